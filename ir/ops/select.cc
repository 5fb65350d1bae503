// Operators whose result's size depends on values: Compress, NonZero, Unique. The size comes from values that are known
// when the model is compiled, or else from the shape that the model declares; values that need another size raise
// E_RANGE. A node with one output more counts: its results have capacity for all there can be, zeros behind the last
// one, and that output is the count, an i64 scalar.
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "ir/ops/counting.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

std::vector<Var> loop_vars(int rank) {
  std::vector<Var> vars;
  for (int d = 0; d < rank; d++) vars.push_back(make_var("i" + to_text(int64_t(d))));
  return vars;
}

/// The capacity of results that are counted: two at least, because an axis of one element would be one that broadcasts.
int64_t capacity_for(int64_t most) { return std::max<int64_t>(2, most); }

/// The outputs of a nest, with a scalar for the count behind them.
std::vector<ValueType> counted_results(std::vector<ValueType> outputs, bool counts) {
  if (counts) outputs.push_back(ValueType::tensor(DType::I64, {}));
  return outputs;
}

/// y[...] = value
Stmt filled(const Buffer& y, const Expr& value) {
  return for_each_index(static_dims(y->shape), [&](const Exprs& i) { return store(y, i, value); });
}

/// Rows along an axis (or elements of the flattened input) where the condition holds.
void define_compress(OpBuilder& b) {
  Tensor x = b.in(0);
  const Tensor condition = b.in(1);
  if (condition.dtype() != DType::Bool || condition.rank() != 1) b.reject("the condition must be a list of bool", 1);
  int axis = 0;
  if (b.has_attr("axis")) {
    axis = b.axis(b.attr_int("axis"), x.rank());
  } else if (x.rank() != 1) {
    const Dims flat = {num_elements(x.dims())}, from = x.dims();
    const Tensor whole = x;
    x = b.compute("flat", x.dtype(), flat, [&](const Exprs& i) { return whole(reshape_index(i, flat, from)); });
  }
  if (condition.dim(0) > x.dim(axis)) b.reject("the condition is longer than the axis", 1);
  Dims dims = x.dims();
  const bool counts = b.wants(1);
  if (counts) {
    dims[size_t(axis)] = capacity_for(condition.dim(0));
  } else if (b.known(1)) {
    const std::vector<int64_t> chosen = b.const_ints(1);
    dims[size_t(axis)] = std::count_if(chosen.begin(), chosen.end(), [](int64_t c) { return c != 0; });
  } else {
    dims = b.declared_dims(0, 1);
    if (int(dims.size()) != x.rank() || without_axis(dims, axis) != without_axis(x.dims(), axis))
      b.reject("the declared shape does not fit the input", 1);
  }
  const int64_t count = dims[size_t(axis)];
  const auto y = b.nest(
      "compress", counted_results({ValueType::tensor(x.dtype(), to_shape(dims))}, counts),
      [&](const std::vector<Buffer>& out) {
        const Buffer next = counter("next");
        const std::vector<Var> vars = loop_vars(x.rank());
        const Exprs i(vars.begin(), vars.end());
        Stmt copy = store(out[0], with_axis(i, axis, value_of(next)), x(i));
        for (size_t d = dims.size(); d-- > 0;)
          if (int(d) != axis) copy = loop(vars[d], x.dim(int(d)), copy);
        const Stmt step =
            if_then(condition({i[size_t(axis)]}), seq({if_then(value_of(next) < Expr(count), copy), increment(next)}));
        const Stmt clear = counts ? filled(out[0], zero(x.dtype())) : Stmt();
        const Stmt all = loop(vars[size_t(axis)], condition.dim(0), step);
        return alloc(
            next, seq({clear, set(next, 0), all, counts ? store(out[1], {}, value_of(next)) : must_be(next, count)}));
      });
  b.output(0, y[0]);
  if (counts) b.output(1, y[1]);
}

/// Indices of the elements that are not zero, one row per axis.
void define_non_zero(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (x.dtype() == DType::String) b.unsupported("which strings are zero is not said", 0);
  Dims dims = {x.rank(), 0};
  const bool counts = b.wants(1);
  if (counts) {
    dims[1] = capacity_for(num_elements(x.dims()));
  } else if (const Constant c = b.constant(0)) {
    for (int64_t k = 0; k < c->size(); k++) dims[1] += c->as_double(k) != 0 ? 1 : 0;
  } else {
    dims = b.declared_dims(0, 0);
    if (dims.size() != 2 || dims[0] != x.rank()) b.reject("the declared shape does not fit the input", 0);
  }
  const auto y =
      b.nest("nonzero", counted_results({ValueType::tensor(DType::I64, to_shape(dims))}, counts),
             [&](const std::vector<Buffer>& out) {
               const Buffer next = counter("next");
               const Stmt body = for_each_index(x.dims(), [&](const Exprs& i) {
                 Stmts found;
                 for (size_t d = 0; d < i.size(); d++)
                   found.push_back(store(out[0], {Expr(int64_t(d)), value_of(next)}, i[d]));
                 const Expr e = widen(x(i));
                 return if_then(x.dtype() == DType::Bool ? e : ne(e, zero(e->dtype)),
                                seq({if_then(value_of(next) < Expr(dims[1]), seq(found)), increment(next)}));
               });
               const Stmt clear = counts ? filled(out[0], Expr(0)) : Stmt();
               return alloc(next, seq({clear, set(next, 0), body,
                                       counts ? store(out[1], {}, value_of(next)) : must_be(next, dims[1])}));
             });
  b.output(0, y[0]);
  if (counts) b.output(1, y[1]);
}

/// x as rows: [number of rows, elements of a row]; a row is a slice along the axis, or one element.
Tensor rows_of(OpBuilder& b, const Tensor& x) {
  if (!b.has_attr("axis")) {
    const Dims flat = {num_elements(x.dims()), 1}, from = x.dims();
    return b.compute("rows", x.dtype(), flat, [&](const Exprs& i) { return x(reshape_index(i, flat, from)); });
  }
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const Dims rest = without_axis(x.dims(), axis);
  return b.compute("rows", x.dtype(), {x.dim(axis), num_elements(rest)},
                   [&](const Exprs& i) { return x(insert_axis(delinearize(i[1], rest), axis, i[0])); });
}

/// -1, 0 or 1; NaN equals itself and comes after all numbers.
Expr compare(const Expr& a, const Expr& b) {
  if (a->dtype == DType::Bool) return select(eq(a, b), Expr(0), select(a, Expr(1), Expr(-1)));
  const Expr plain = select(a < b, Expr(-1), select(a > b, Expr(1), Expr(0)));
  if (!is_float(a->dtype)) return plain;
  const Expr a_nan = apply(Op::IsNan, {a}), b_nan = apply(Op::IsNan, {b});
  return select(a_nan, select(b_nan, Expr(0), Expr(1)), select(b_nan, Expr(-1), plain));
}

/// order = how row p compares with row q, element by element.
Stmt compare_rows(const Tensor& rows, const Buffer& order, const Expr& p, const Expr& q) {
  const Var e = make_var("e");
  const Expr sign = compare(widen(rows({p, e})), widen(rows({q, e})));
  return seq({set(order, 0), loop(e, rows.dim(1), if_then(eq(value_of(order), 0), set(order, sign)))});
}

/// slot = the place of row `row` in the sorted list of the rows `first`, which has `size` elements: where an equal one is
/// (order = 0), or the first larger one (order = 1). Half of what is left is ruled out at a time.
Stmt halve(const Tensor& rows, const Buffer& first, const Expr& size, const Buffer& slot, const Buffer& order,
           const Expr& row) {
  const Buffer end = counter("end"), middle = counter("middle");
  const Stmt look = compare_rows(rows, order, load(first, {value_of(middle)}), row);
  const Stmt step =
      seq({set(middle, floor_div(value_of(slot) + value_of(end), 2)), look,
           if_then(eq(value_of(order), -1), set(slot, value_of(middle) + 1), set(end, value_of(middle)))});
  const Stmt settle = seq(
      {set(order, 1), if_then(value_of(slot) < size, compare_rows(rows, order, load(first, {value_of(slot)}), row))});
  return alloc(
      end,
      alloc(middle, seq({set(slot, 0), set(end, size), while_loop(value_of(slot) < value_of(end), step), settle})));
}

/// A number that two elements share exactly when compare() calls them equal.
int64_t key_of(const TensorData& x, int64_t at) {
  if (!is_float(x.dtype)) return x.as_int(at);
  const double v = x.as_double(at);
  if (std::isnan(v)) return INT64_MAX;
  return v == 0 ? 0 : std::bit_cast<int64_t>(v);
}

/// How many rows differ, for an input that is known when the model is compiled.
int64_t distinct_rows(const TensorData& x, bool by_axis, int axis) {
  const auto middle = x.dims.begin() + axis;
  const int64_t outer = by_axis ? num_elements(Dims(x.dims.begin(), middle)) : 1;
  const int64_t inner = by_axis ? num_elements(Dims(middle + 1, x.dims.end())) : 1;
  const int64_t n = by_axis ? *middle : x.size();
  const std::set<std::string> words(x.strings.begin(), x.strings.end());
  const auto key = [&](int64_t at) {
    return x.dtype == DType::String ? std::distance(words.begin(), words.find(x.strings[size_t(at)])) : key_of(x, at);
  };
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(n));
  for (int64_t r = 0; r < n; r++)
    for (int64_t o = 0; o < outer; o++)
      for (int64_t k = 0; k < inner; k++) rows[size_t(r)].push_back(key((o * n + r) * inner + k));
  std::sort(rows.begin(), rows.end());
  return std::unique(rows.begin(), rows.end()) - rows.begin();
}

struct UniqueLists {
  Buffer first, inverse, counts;  // per distinct row: first occurrence, how often; per row: its slot
};

/// Inserts row after row into the list of distinct rows: sorted, or in order of appearance. `counted` takes the number
/// of distinct rows; null: it has to be `count`.
Stmt fill_lists(const Tensor& rows, const UniqueLists& u, int64_t count, bool sorted, const Buffer& counted) {
  const Buffer used = counter("used"), slot = counter("place"), order = counter("order");
  const Var r = make_var("r"), q = make_var("q"), s = make_var("s");
  const Expr p = value_of(slot);
  auto compare_at_slot = [&] { return if_then(p < value_of(used), compare_rows(rows, order, load(u.first, {p}), r)); };
  // `order` is what the row at `slot` says: beyond the end of the list it is 1, "larger".
  const Expr passes = ne(value_of(order), 0) && p < value_of(used);
  const Stmt walk = seq({set(slot, 0), set(order, 1), compare_at_slot(),
                         while_loop(passes, seq({increment(slot), set(order, 1), compare_at_slot()}))});
  const Stmt search = sorted ? halve(rows, u.first, value_of(used), slot, order, r) : walk;
  const Expr from = value_of(used) - 1 - Expr(s);
  const Stmt shift = loop(
      s, value_of(used) - p,
      seq({store(u.first, {from + 1}, load(u.first, {from})), store(u.counts, {from + 1}, load(u.counts, {from}))}));
  const Stmt insert =
      seq({if_then(value_of(used) < Expr(count), seq({shift, store(u.first, {p}, r), store(u.counts, {p}, 1)})),
           increment(used)});
  const Stmt found = store(u.counts, {p}, load(u.counts, {p}) + 1);
  const Stmt fill =
      loop(r, rows.dim(0),
           if_then(value_of(used) <= Expr(count), seq({search, if_then(eq(value_of(order), 0), found, insert)})));
  const Stmt next = seq({increment(slot), compare_rows(rows, order, load(u.first, {p}), q)});
  const Stmt find = sorted ? halve(rows, u.first, min(value_of(used), Expr(count)), slot, order, q)
                           : seq({set(slot, 0), compare_rows(rows, order, load(u.first, {0}), q),
                                  while_loop(ne(value_of(order), 0) && p < Expr(count - 1), next)});
  const Stmt number = loop(q, rows.dim(0), seq({find, store(u.inverse, {q}, min(p, Expr(count - 1)))}));
  // Rows that are declared but do not come must not leave wild indexes behind.
  const Var c = make_var("c");
  const Stmt clear = loop(c, count, seq({store(u.first, {c}, 0), store(u.counts, {c}, 0)}));
  const Stmt all = seq({set(used, 0), clear, fill, counted ? store(counted, {}, value_of(used)) : must_be(used, count),
                        count > 0 && rows.dim(0) > 0 ? number : Stmt()});
  return alloc(used, alloc(slot, alloc(order, all)));
}

void define_unique(OpBuilder& b) {
  const Tensor x = b.in(0);
  const bool by_axis = b.has_attr("axis");
  const int axis = by_axis ? b.axis(b.attr_int("axis"), x.rank()) : 0;
  int64_t count = 0;
  Dims dims = by_axis ? x.dims() : Dims{0};
  // Where each element has its like needs no list of a known size.
  const bool only_places = !b.constant(0) && !b.wants(0) && !b.wants(1) && !b.wants(3);
  const bool counts = b.wants(4) || only_places;
  if (counts) {
    const int64_t most = by_axis ? x.dim(axis) : num_elements(x.dims());
    count = most == 0 ? 0 : capacity_for(most);
  } else if (b.constant(0)) {
    count = distinct_rows(*b.constant(0), by_axis, axis);
  } else if (b.declares(0)) {
    const Dims declared = b.declared_dims(0, 0);
    if (declared.size() != dims.size()) b.reject("the declared shape does not fit the input", 0);
    count = declared[size_t(axis)];
  } else {
    const Dims declared = b.declared_dims(b.declares(1) ? 1 : 3, 0);
    if (declared.size() != 1) b.reject("the declared shape does not fit the input", 0);
    count = declared[0];
  }
  dims[size_t(axis)] = count;
  const Tensor rows = rows_of(b, x);
  if (!counts && ((count == 0) != (rows.dim(0) == 0) || count > rows.dim(0)))
    b.reject("the declared shape does not fit the input", 0);
  const ValueType list = ValueType::tensor(DType::I64, to_shape({count}));
  const auto u = b.nest(
      "unique", counted_results({list, ValueType::tensor(DType::I64, to_shape({rows.dim(0)})), list}, counts),
      [&](const std::vector<Buffer>& out) {
        return fill_lists(rows, {out[0], out[1], out[2]}, count, b.attr_int("sorted") != 0, counts ? out[3] : Buffer());
      });
  b.output(0, b.compute("unique", x.dtype(), dims, [&](const Exprs& i) {
    const Expr row = u[0]({i[size_t(axis)]});
    if (by_axis) return x(with_axis(i, axis, row));
    return rows({row, Expr(0)});
  }));
  for (size_t k = 0; k < u.size(); k++) b.output(int(k) + 1, u[k]);
}

}  // namespace

OpFamily select_ops() {
  return {
      {"Compress", 28, {{"axis", {}}}, define_compress, "x condition"},
      joins_nothing("zero", {"NonZero", 13, {}, define_non_zero, "x", "nonzero"}),
      {"Unique", 28, {{"axis", {}}, {"sorted", int64_t(1)}}, define_unique},
  };
}

}  // namespace tc
