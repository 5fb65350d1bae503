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
/// Reads of known elements: they say what else is needed, beside ends that sizes say. By themselves no kernel ends there.
void drop_constant_ends(std::vector<LiveAxis>& list);

class LiveFunction {
 public:
  using Sizes = std::map<const BufferDef*, Expr>;            // of scalars among the inputs; looked up only
  using Bounds = std::map<const BufferDef*, PositionBound>;  // of inputs; looked up only
  LiveFunction(const TensorFn& fn, Sizes sizes, Bounds bounds, const Ranges& ranges)
      : fn_(fn), sizes_(std::move(sizes)), symbols_(ranges), most_(std::move(bounds)) {
    bound_positions();
  }

  void need(const Buffer& b, const std::vector<LiveAxis>& list);
  /// Null: nobody needs the buffer.
  const std::vector<LiveAxis>* of(const Buffer& b) const;
  void run();
  /// What the elements of a result are, where that depends on the sizes.
  std::optional<PositionBound> bound_of(const Buffer& b) const;

 private:
  /// An index expression that is below an end, and the ranges of variables, the sizes among them.
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
  /// What decides whether an index is out of range. `in_choice`: `known` holds wherever it is tested.
  void tested(const Expr& e, const Known& known, bool in_choice = false);
  /// i < count, and what else an && says.
  void learn(const Expr& condition, Known& known) const;
  /// An expression over the symbols that `e` is never above; null: not known.
  Expr end_of(const Expr& e, const Known& known) const;
  /// `e` with the numbers that are sizes as such.
  Expr with_sizes(const Expr& e) const;
  /// The number over the sizes that `e` is; null where something else tells.
  Expr exactly(const Expr& e) const;
  /// No element of `e` is below that.
  int64_t least(const Expr& e, Ranges ranges) const;
  /// From the operands to the results.
  void bound_positions();

  const TensorFn& fn_;
  const Sizes sizes_;
  const Ranges& symbols_;
  Bounds most_;
  std::map<const BufferDef*, std::vector<LiveAxis>> needed_;  // looked up only
};

}  // namespace tc
