// How tensors are stored whose size along one axis has no upper bound: that axis outermost, wherever the model has it.
//   [words, batch, 64]     ->   [batch, words, 64]
//   [words * batch, 64]    ->   [batch, words, 64]   one behind the other along an axis: front = words
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

struct OpenLayout {
  size_t axis = 0;    // the open one
  int64_t front = 1;  // the axis is of so many parts, one behind the other, each as long as the size says
  // Where there are several parts: how long each is, times * count / divisor elements.
  Value* count = nullptr;
  int64_t times = 1, divisor = 1;
};

/// The axis of a size without an upper bound, if it is the only one.
std::optional<size_t> only_open_axis(const Dims& dims);
/// Is it so stored that other axes with several elements come first?
bool is_inner(const Dims& dims, size_t axis);
/// Does n make what no memory holds, a value for each pair of words?
bool makes_pairs(const Node& n);
/// The sizes as they are stored: the open axis, those in front of it, its parts if there are several, those behind it.
Dims stored_dims(const Dims& dims, const OpenLayout& l);
/// Anything by axis, in the stored order; `open` and `part` stand for the axis itself.
template <class T>
std::vector<T> in_stored_order(std::vector<T> by_axis, const OpenLayout& l, T open, T part) {
  const auto at = by_axis.begin() + std::ptrdiff_t(l.axis);
  if (l.front > 1)
    *at = std::move(part);
  else
    by_axis.erase(at);
  by_axis.insert(by_axis.begin(), std::move(open));
  return by_axis;
}

/// By buffer of a function; nothing: it is stored in the order of its axes.
using OpenLayouts = std::vector<std::optional<OpenLayout>>;

struct OpenFunction {
  TensorFn fn;
  OpenLayouts outputs;
};
/// The function of operands that are stored so, with results that are: every stage in the order of memory. Nothing where parts of
/// an axis would have to be told apart from one another.
std::optional<OpenFunction> with_open_axes_first(const TensorFn& fn, const OpenLayouts& inputs);

/// All of `x`, which is stored as `l` says, in the order of its axes; or with its parts joined, but still the open axis first.
TensorFn in_order_of_axes(DType t, const Dims& dims, const OpenLayout& l);
TensorFn with_joined_parts(DType t, const Dims& dims, const OpenLayout& l);
/// y[i, j, k, l] = x[i, k, j, l], of an x of these sizes.
TensorFn with_axes_swapped(DType t, const Dims& dims);
/// What there is of x, along `axes` as many as scalars behind it say, packed in the order of the axes into one of as many elements.
/// `by_points`: as a formula of each element, which divides by the sizes, and not as loops over what there is.
TensorFn packed_function(DType t, const Dims& dims, const OpenLayout& l, const std::vector<int64_t>& axes,
                         bool by_points);
/// The other way round: what is not there stays what memory has.
TensorFn unpacked_function(DType t, const Dims& dims, const OpenLayout& l, const std::vector<int64_t>& axes,
                           bool by_points);

}  // namespace tc
