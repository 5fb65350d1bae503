// What the sketches of both targets share: steps over the plain loops of any function, whose sizes are numbers of the line `sketch`.
// templates/cpu/sketch.cc, templates/cuda/sketch.cc.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "passes/schedule/planner.h"
#include "passes/schedule/primitives.h"

namespace tc {

/// One formula, or one reduction of one value.
bool is_plain(const Stage& stage);
/// The name that the result of a stage has in the text of the loops.
std::string name_of(const Schedule& s, const Buffer& b);
/// The name, or, where something is called so already, the same with a number behind it: steps that are written down give the same
/// text when they are read again.
std::string unused_name(const Schedule& s, const std::string& name);
/// The iterations of a loop, if they are a constant.
std::optional<int64_t> trips(const Schedule& s, const Var& v);
/// Of n iterations: what divides them, powers of two, and all of them.
KnobValues parts_of(int64_t n, int64_t most);
/// The loops of a nest from `v` on, each right inside the other.
std::vector<Var> nest_from(const Schedule& s, const Var& v);

/// The stages that are left, and the loops that they share.
struct SketchedStages {
  std::vector<const Stage*> list;
  std::set<Var> shared;
  /// What stands behind the numbers of a stage's nest, so that those of several are told apart.
  std::string suffix(const Schedule& s, const Buffer& result) const;
};
/// Where temporaries are computed: of one formula inline (`inline_NAME`), others in one of the loops of the last stage (`at`: how
/// many of them stand around all stages), if a part has `most_bytes`; those of 4 KiB lie on the stack.
SketchedStages place_temporaries(Schedule& s, const TensorFn& fn, const PlanEntry& plan, int64_t most_bytes);

/// The steps have been chosen: lets their lines stand for the numbers. `names`: of Schedule::tell_apart.
void finish_sketch(Schedule& s, const std::map<std::string, std::string>& names, const PlanEntry& plan);

/// The nest that fills `result`, before its first step; a target's sketch of it is derived from this.
class SketchedNest {
 public:
  /// `shared`: loops around the nest that are others' as well.
  SketchedNest(Schedule& s, const Buffer& result, const std::set<Var>& shared, std::string suffix,
               const PlanEntry& plan);
  bool has_loops() const { return nest_ && (red_.empty() || sum_); }

 protected:
  static constexpr int64_t kMostUnrolled = 16;

  bool is_space(const Var& v) const;
  /// Those over results, then those of the sum.
  std::vector<Var> loops() const;
  /// A number of the nest: the largest possible one up to the model's, where nothing is stated.
  int64_t number(const std::string& name, int64_t model, const KnobValues& values) const;
  /// The same for one that decides on what others mean. `model` is one of them.
  int64_t kind(const std::string& name, int64_t model, const KnobValues& values) const;
  /// Whether terms of the sum may be joined in another order.
  bool may_join_parts(bool strict_fp) const;
  void reorder(const std::vector<Var>& order);
  /// The loop over parts of `size` iterations and the one within a part; null: it runs once. `names`: as far as they are unused.
  std::pair<Var, Var> cut(const Var& v, int64_t size, const Naming& names = {});
  /// Loops of a tile: the last one in vectors where `lanes` is set, of the others unrolled those of a few iterations.
  void finish(std::vector<Var> loops, bool lanes);
  /// The same for the loops of the sums of a tile, and for those of the start values and of the results, `made` beside them.
  void finish_tile(const std::vector<Var>& tile, const std::vector<Var>& made, bool lanes);
  /// Which loop of the sum stands innermost (`inner`).
  void choose_inner();

  Schedule& s_;
  const std::string suffix_;
  const PlanEntry& plan_;
  std::vector<Var> space_, red_;  // loops of several iterations, outermost first: over results, of the sum
  Stmt nest_;
  const Store* sum_ = nullptr;
  std::map<Var, std::string> name_;  // looked up only
  std::map<Var, int64_t> size_;      // looked up only
  int64_t inner_ = -1;               // of red_
};

}  // namespace tc
