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
#include "ir/ops/top_k.h"

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

/// The numbers of the rows, sorted by what they have and equal ones by themselves: runs of sorted rows become runs of twice the length.
/// `order` takes them; `merged` has as many elements.
Stmt sorted_rows(const Tensor& rows, const Buffer& order, const Buffer& merged) {
  const int64_t n = rows.dim(0);
  const Buffer length = counter("length"), start = counter("start"), slot = counter("place"), left = counter("left"),
               right = counter("right"), which = counter("which");
  const Var middle = make_var("middle"), end = make_var("end"), i = make_var("i"), k = make_var("k");
  const auto stands_before = [](const Expr& a, const Expr& b) {
    return a->dtype == DType::Bool ? logical_not(a) && b : precedes(a, b, false);
  };
  const Expr p = load(order, {value_of(right)}), q = load(order, {value_of(left)});
  const auto take = [&](const Expr& from) {
    return seq({store(merged, {value_of(slot)}, load(order, {from})), increment(slot)});
  };
  const auto take_rest = [&](const Buffer& of, const Expr& last) {
    return while_loop(value_of(of) < last, seq({take(value_of(of)), increment(of)}));
  };
  const Stmt compared =
      rows.dim(1) == 1
          ? set(which, select(stands_before(widen(rows({p, Expr(0)})), widen(rows({q, Expr(0)}))), Expr(1), Expr(0)))
          : seq({compare_rows(rows, which, p, q), set(which, select(eq(value_of(which), -1), Expr(1), Expr(0)))});
  const Stmt next =
      seq({compared, take(select(eq(value_of(which), 0), value_of(left), value_of(right))),
           set(left, value_of(left) + 1 - value_of(which)), set(right, value_of(right) + value_of(which))});
  const Stmt merge = seq({set(left, value_of(start)), set(right, Expr(middle)),
                          while_loop(value_of(left) < Expr(middle) && value_of(right) < Expr(end), next),
                          take_rest(left, Expr(middle)), take_rest(right, Expr(end)), set(start, Expr(end))});
  const Expr from = value_of(start), size = value_of(length);
  const Stmt run = let(middle, min(from + size, Expr(n)), let(end, min(from + size * 2, Expr(n)), merge));
  const Stmt pass = seq({set(start, 0), set(slot, 0), while_loop(value_of(start) < Expr(n), run),
                         loop(k, n, store(order, {k}, load(merged, {k}))), set(length, value_of(length) * 2)});
  Stmt all = seq({loop(i, n, store(order, {i}, i)), set(length, 1), while_loop(value_of(length) < Expr(n), pass)});
  for (const Buffer& c : {length, start, slot, left, right, which}) all = alloc(c, all);
  return all;
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
  Buffer order, other;            // of as many elements as there are rows, for the work
};

/// One distinct row more, which begins at `row` if it is among those that there is room for.
Stmt new_row(const UniqueLists& u, const Buffer& used, int64_t count, const Expr& row) {
  const Expr slot = value_of(used);
  return seq(
      {if_then(slot < Expr(count), seq({store(u.first, {slot}, row), store(u.counts, {slot}, 0)})), increment(used)});
}
/// A row is the next one of those at a slot.
Stmt counted_row(const UniqueLists& u, int64_t count, const Expr& slot, const Expr& row) {
  const Var last = make_var("last");  // of those that there is room for
  return let(last, min(slot, Expr(count - 1)),
             seq({store(u.inverse, {row}, last), store(u.counts, {last}, load(u.counts, {last}) + 1)}));
}

/// Finds the distinct rows among the sorted ones, and numbers them so or in the order of appearance. `counted` takes the number of distinct
/// rows; null: it has to be `count`.
Stmt fill_lists(const Tensor& rows, const UniqueLists& u, int64_t count, bool sorted, const Buffer& counted) {
  const int64_t n = rows.dim(0);
  const Buffer used = counter("used"), differs = counter("differs");
  const Var i = make_var("i"), r = make_var("r"), c = make_var("c");
  const Expr row = load(u.order, {i});
  const Stmt compare =
      seq({set(differs, 1), if_then(Expr(i) > 0, compare_rows(rows, differs, load(u.order, {Expr(i) - 1}), row))});
  const Expr fresh = ne(value_of(differs), 0);
  Stmt number;
  if (sorted) {
    number = loop(
        i, n,
        seq({compare, if_then(fresh, new_row(u, used, count, row)), counted_row(u, count, value_of(used) - 1, row)}));
  } else {
    // The first of those that are equal stands for all of them, then its slot does.
    const Buffer like = counter("like");
    const Expr slot = load(u.other, {load(u.inverse, {r})});
    number = alloc(
        like, seq({set(like, 0),
                   loop(i, n, seq({compare, if_then(fresh, set(like, row)), store(u.inverse, {row}, value_of(like))})),
                   loop(r, n,
                        seq({if_then(eq(load(u.inverse, {r}), Expr(r)),
                                     seq({store(u.other, {r}, value_of(used)), new_row(u, used, count, r)})),
                             counted_row(u, count, slot, r)}))}));
  }
  // Rows that are declared but do not come must not leave wild indexes behind.
  const Stmt clear = loop(c, count, seq({store(u.first, {c}, 0), store(u.counts, {c}, 0)}));
  const Stmt found = count > 0 && n > 0 ? seq({sorted_rows(rows, u.order, u.other), number}) : Stmt();
  const Stmt told = counted ? store(counted, {}, value_of(used)) : must_be(used, count);
  return alloc(used, alloc(differs, seq({set(used, 0), clear, found, told})));
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
  const ValueType per_row = ValueType::tensor(DType::I64, to_shape({rows.dim(0)}));
  std::vector<ValueType> results = counted_results({list, per_row, list}, counts);
  const size_t last = results.size();
  results.insert(results.end(), 2, per_row);
  const auto u = b.nest("unique", results, [&](const std::vector<Buffer>& out) {
    return fill_lists(rows, {out[0], out[1], out[2], out[last], out[last + 1]}, count, b.attr_int("sorted") != 0,
                      counts ? out[3] : Buffer());
  });
  b.output(0, b.compute("unique", x.dtype(), dims, [&](const Exprs& i) {
    const Expr row = u[0]({i[size_t(axis)]});
    if (by_axis) return x(with_axis(i, axis, row));
    return rows({row, Expr(0)});
  }));
  for (size_t k = 0; k < last; k++) b.output(int(k) + 1, u[k]);
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
