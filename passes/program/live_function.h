// What the stages of one function need of its buffers, from the results back to the operands.
#pragma once
#include <map>

#include "ir/loop/linear.h"
#include "ir/tensor_fn.h"
#include "passes/program/live_axes.h"

namespace tc {

/// What is needed where either is.
std::vector<LiveAxis> needed_by_both(const std::vector<LiveAxis>& a, const std::vector<LiveAxis>& b,
                                     const Ranges& ranges);
/// `e` simplified; null where it is so long that it would cost more to compute and to read than it saves.
Expr if_short(const Expr& e, const Ranges& ranges);

class LiveFunction {
 public:
  using Sizes = std::map<const BufferDef*, Expr>;  // of scalars among the inputs; looked up only
  LiveFunction(const TensorFn& fn, Sizes sizes, const Ranges& ranges)
      : fn_(fn), sizes_(std::move(sizes)), symbols_(ranges) {}

  void need(const Buffer& b, const std::vector<LiveAxis>& list);
  /// Null: nobody needs the buffer.
  const std::vector<LiveAxis>* of(const Buffer& b) const;
  void run();

 private:
  /// An index expression that is below an end, and the ranges of variables.
  struct Known {
    struct Below {
      Expr index, end;
    };
    std::vector<Below> below;
    Ranges ranges;
  };

  void stage(const Stage& s);
  /// Stages [first, last), which advance together.
  void steps(size_t first, size_t last);
  /// What is sorted along an axis is needed along others as far as the results are.
  bool sorted(const Stage& s, const std::vector<LiveAxis>& results);
  /// Loops that end at a count say which elements are read.
  void nest(const Stmt& s, const Known& known, const Buffer& result, const std::vector<LiveAxis>& needed);
  void loads(const Expr& e, const Known& known);
  /// What of the load's buffer is read, along the axes where it follows from the sizes.
  std::vector<LiveAxis> read_by(const Load& l, const Known& known) const;
  /// What decides whether an index is out of range.
  void tested(const Expr& e, const Known& known);
  /// i < count, and what else an && says.
  void learn(const Expr& condition, Known& known) const;
  /// An expression over the symbols that `e` is never above; null: not known.
  Expr end_of(const Expr& e, const Known& known) const;

  const TensorFn& fn_;
  const Sizes sizes_;
  const Ranges& symbols_;
  std::map<const BufferDef*, std::vector<LiveAxis>> needed_;  // looked up only
};

}  // namespace tc
