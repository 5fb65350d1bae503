// Which results of a function are counted, given which of its operands are: the question behind BoundedSizes::follow.
#pragma once
#include <map>
#include <set>

#include "ir/tensor_fn.h"

namespace tc {

/// Does `output`, one of the function's, depend on an element of an operand?
bool reads_operands(const TensorFn& fn, const BufferDef* output);

/// Axes of buffers along which one count holds, stage after stage. A tensor may have several: scores of a sequence with
/// itself.
class CountedAxes {
 public:
  void add(const BufferDef* b, int axis) { axes_[b].insert(axis); }
  bool empty() const { return axes_.empty(); }
  /// Follows all stages. False if one looks across a counted axis.
  bool follow(const TensorFn& fn);
  /// Those of `b`, in order.
  std::set<int> of(const BufferDef* b) const;

 private:
  /// What the stage makes has the axes of what it reads. False if an index along one of them is none of the stage's own.
  bool spread(const Stage& s);
  /// The same of a nest (counted_nest.cc): false if its iterations along one of them share something.
  bool spread_nest(const Stage& s);
  /// Does nothing but indices look at these axes?
  bool keeps(const Stage& s) const;
  bool reads_counted(const Stage& s) const;
  std::optional<std::set<int>> axes_in(const Stage& s) const;
  bool only_indexes(const Expr& e, const Var& v) const;

  std::map<const BufferDef*, std::set<int>> axes_;  // looked up only
};

}  // namespace tc
