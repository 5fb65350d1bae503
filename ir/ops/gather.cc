// Operators that read where other tensors say. Indexes known only at run time are range-checked.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

void require_indices(const OpBuilder& b, const Tensor& indices, int input) {
  if (!is_int(indices.dtype())) b.reject("indices must be integers", input);
}

/// Indices that lead into an axis without elements lead nowhere.
void require_elements(const OpBuilder& b, int64_t n, const Tensor& indices) {
  if (n == 0 && !has_no_elements(indices.dims())) b.reject("the indexed axis has no elements", 1);
}

void define_gather(OpBuilder& b) {
  const Tensor x = b.in(0), indices = b.in(1);
  require_indices(b, indices, 1);
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const int64_t n = x.dim(axis);
  require_elements(b, n, indices);
  const Dims d = x.dims(), inner = indices.dims();
  Dims dims(d.begin(), d.begin() + axis);
  dims.insert(dims.end(), inner.begin(), inner.end());
  dims.insert(dims.end(), d.begin() + axis + 1, d.end());
  // A single known index makes it a slice.
  Expr known;
  if (const Constant c = b.constant(1); c && c->size() == 1) {
    const int64_t k = c->as_int(0);
    if (k < -n || k >= n)
      b.reject("index " + to_text(k) + " is outside of an axis with " + to_text(n) + " elements", 1);
    known = Expr(k < 0 ? k + n : k);
  }
  b.output(0, b.compute("gather", x.dtype(), dims, [&](const Exprs& i) {
    const auto first = i.begin() + axis, last = first + indices.rank();
    Exprs at(i.begin(), first);
    at.push_back(known ? known : checked_index(indices(Exprs(first, last)), n));
    at.insert(at.end(), last, i.end());
    return x(at);
  }));
}

void define_gather_elements(OpBuilder& b) {
  const Tensor x = b.in(0), indices = b.in(1);
  require_indices(b, indices, 1);
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  if (indices.rank() != x.rank()) b.reject("the indices must have the rank of the data", 1);
  require_elements(b, x.dim(axis), indices);
  for (int d = 0; d < x.rank(); d++)
    if (d != axis && indices.dim(d) > x.dim(d))
      b.reject("the indices are longer than the data on axis " + to_text(int64_t(d)), 1);
  b.output(0, b.compute("gather_elements", x.dtype(), indices.dims(),
                        [&](const Exprs& i) { return x(with_axis(i, axis, checked_index(indices(i), x.dim(axis)))); }));
}

void define_gather_nd(OpBuilder& b) {
  const Tensor x = b.in(0), indices = b.in(1);
  require_indices(b, indices, 1);
  const int64_t batch = b.attr_int("batch_dims");
  if (indices.rank() < 1 || batch < 0 || batch >= indices.rank() || batch > x.rank())
    b.reject("batch_dims does not fit the ranks");
  const int64_t k = indices.dim(-1);
  if (k + batch > x.rank()) b.reject("the index tuples are longer than the data has axes", 1);
  for (int d = 0; d < int(batch); d++)
    if (indices.dim(d) != x.dim(d)) b.reject("the batch axes of data and indices differ", 1);
  for (int64_t c = 0; c < k; c++) require_elements(b, x.dim(int(batch + c)), indices);
  const Dims d = x.dims(), outer = indices.dims();
  Dims dims(outer.begin(), outer.end() - 1);
  dims.insert(dims.end(), d.begin() + batch + k, d.end());
  b.output(0, b.compute("gather_nd", x.dtype(), dims, [&](const Exprs& i) {
    const Exprs lead(i.begin(), i.begin() + indices.rank() - 1);
    Exprs at(i.begin(), i.begin() + batch);
    for (int64_t c = 0; c < k; c++)
      at.push_back(checked_index(indices(concat(lead, {Expr(c)})), x.dim(int(batch + c))));
    at.insert(at.end(), i.begin() + indices.rank() - 1, i.end());
    return x(at);
  }));
}

/// The first sequence_lens[b] elements of each sequence in reverse, the rest as they are.
void define_reverse_sequence(OpBuilder& b) {
  const Tensor x = b.in(0), lengths = b.in(1);
  require_indices(b, lengths, 1);
  const int time = b.axis(b.attr_int("time_axis"), x.rank()), batch = b.axis(b.attr_int("batch_axis"), x.rank());
  if (time == batch) b.reject("time_axis and batch_axis are the same");
  if (lengths.dims() != Dims{x.dim(batch)}) b.reject("one length per sequence is needed", 1);
  b.output(0, b.compute("reverse_sequence", x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr t = i[size_t(time)], length = cast(DType::I64, lengths({i[size_t(batch)]}));
    return x(with_axis(i, time, select(t < length, checked_index(length - 1 - t, x.dim(time)), t)));
  }));
}

}  // namespace

OpFamily gather_ops() {
  const std::vector<AttrSpec> axis = {{"axis", int64_t(0)}};
  return {
      {"Gather", 13, axis, define_gather, "x indices"},
      {"GatherElements", 13, axis, define_gather_elements, "x indices"},
      {"GatherND", 13, {{"batch_dims", int64_t(0)}}, define_gather_nd, "x indices", "gather_nd"},
      {"ReverseSequence",
       28,
       {{"batch_axis", int64_t(1)}, {"time_axis", int64_t(0)}},
       define_reverse_sequence,
       "x lengths"},
  };
}

}  // namespace tc
