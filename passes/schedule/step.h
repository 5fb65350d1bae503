// One step of a Schedule while it is being checked: the message of a refusal, and the record when it is done.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "passes/analysis/dependence.h"
#include "passes/analysis/nest.h"
#include "passes/schedule/primitives.h"

namespace tc {

/// Bytes of an array on a thread's stack. What is larger goes to the scratch memory on a CPU, and is refused on a GPU.
inline constexpr int64_t kMostStack = 4096;

/// The statement as text for a message: long ones are cut, so that it shows where, not everything.
std::string excerpt(const Stmt& s);

class StepCheck {
 public:
  /// `name`: of the primitive; `args`: what it was told.
  StepCheck(Schedule& s, std::string name, const std::vector<StepOperand>& args);

  const Stmt& body() const { return s_.body_; }
  bool strict_fp() const { return s_.options_.strict_fp; }

  /// The loop of `v`; refuses if there is none.
  LoopSite find(const Var& v) const;
  /// Throws ScheduleError: "split(i, 0): the factor is 0\n<where as text>". `where` may be null.
  [[noreturn]] void refuse(const std::string& why, const Stmt& where = {},
                           std::optional<size_t> argument = std::nullopt) const;
  void require(bool ok, const std::string& why, const Stmt& where = {}) const {
    if (!ok) refuse(why, where);
  }
  /// The same of the argument at that position: a number that cannot be.
  void require_argument(size_t argument, bool ok, const std::string& why, const Stmt& where = {}) const {
    if (!ok) refuse(why, where, argument);
  }
  /// Refuses bounds that read memory: they are evaluated once, before the first iteration.
  void require_fixed_bounds(const LoopSite& site) const;
  /// Whether it is known, without looking at the loops, that no two iterations touch the same memory.
  bool is_independent(const Var& v) const;
  /// Refuses unless the iterations of the loop are independent of each other.
  void require_independent(const LoopSite& site) const;

  /// Refuses a loop where a buffer of that scope, filled by each thread for itself, must not stand.
  void require_insertion_point(const LoopSite& site, Scope scope) const;
  /// Refuses memory that does not belong to one thread where a thread of a GPU would allocate it.
  void require_scope(const LoopSite& site, Scope scope) const;
  /// The stage that made `from` now makes `to`.
  void rename_result(const Buffer& from, const Buffer& to);
  /// The step is taken: the new body, and what it has made there.
  void done(Stmt body, std::vector<StepOperand> results = {});

 private:
  Schedule& s_;
  PlanLine line_;
};

}  // namespace tc
