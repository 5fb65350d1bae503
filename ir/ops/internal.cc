// Operators of our own, inserted by passes.
#include <algorithm>
#include <limits>

#include "ir/loop/conditions.h"
#include "ir/ops/families.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

bool is_known(const Expr& size) { return as<IntImm>(size) != nullptr; }

/// The sizes of x with those of operands 1, 2, ... along `axes`, none beyond what x has.
Exprs actual_sizes(OpBuilder& b, const Tensor& x, const std::vector<int64_t>& axes) {
  Exprs sizes;
  for (int64_t d : x.dims()) sizes.push_back(Expr(d));
  for (size_t k = 0; k < axes.size(); k++) {
    Expr& size = sizes[size_t(b.axis(axes[k], x.rank()))];
    size = min(b.in(int(k) + 1)({}), size);
  }
  return sizes;
}

/// The first slices of x along some axes, as many as the other operands say, as one dense tensor at the start of y, which has
/// room for all of x.
void define_pack(OpBuilder& b) {
  const Tensor x = b.in(0);
  const Dims dims = x.dims();
  const Exprs sizes = actual_sizes(b, x, b.attr_ints("axes"));
  b.output(0, b.compute("pack", x.dtype(), dims, [&](const Exprs& i) {
    Expr at = linear_index(i, dims), there;
    Exprs from(dims.size());
    for (size_t last = dims.size(); last > 0;) {
      if (!is_known(sizes[last - 1])) {
        const Expr n = max(sizes[--last], Expr(1));
        from[last] = last == 0 ? min(at, Expr(std::max<int64_t>(1, dims[0]) - 1)) : floor_mod(at, n);
        there = both(there, last == 0 ? at < sizes[0] : sizes[last] > Expr(0));
        at = floor_div(at, n);
        continue;
      }
      // Sizes that are constants are one.
      size_t first = last;
      while (first > 0 && is_known(sizes[first - 1])) first--;
      const Dims part(dims.begin() + std::ptrdiff_t(first), dims.begin() + std::ptrdiff_t(last));
      const Expr n = Expr(std::max<int64_t>(1, num_elements(part)));
      const Exprs index = delinearize(first == 0 ? min(at, n - Expr(1)) : floor_mod(at, n), part);
      std::copy(index.begin(), index.end(), from.begin() + std::ptrdiff_t(first));
      if (first == 0) there = both(there, at < n);
      at = floor_div(at, n);
      last = first;
    }
    return select(there, x(from), zero(x.dtype()));
  }));
}

/// What pack() makes, back in its place, a tensor of sizes `shape`: x, which has one axis, lies densely in the sizes that the
/// other operands say, along `axes`, each as large as `least` says at least. What is behind them is the last of what there is, so
/// that whoever computes with it meets nothing that a run would not meet anyway; zero where nothing is there.
void define_unpack(OpBuilder& b) {
  const Tensor x = b.in(0);
  const Dims dims = b.attr_ints("shape");
  const auto axes = b.attr_ints("axes"), least = b.attr_ints("least");
  Exprs sizes;
  for (int64_t d : dims) sizes.push_back(Expr(d));
  std::vector<bool> may_be_empty(dims.size());
  for (size_t k = 0; k < axes.size(); k++) {
    sizes.at(size_t(axes[k])) = b.in(int(k) + 1)({});
    may_be_empty[size_t(axes[k])] = least.at(k) < 1;
  }
  // Behind the last of those axes elements are neighbours, whatever the sizes are.
  const size_t outer = axes.empty() ? 0 : size_t(*std::max_element(axes.begin(), axes.end())) + 1;
  const int64_t row = num_elements(Dims(dims.begin() + std::ptrdiff_t(outer), dims.end()));
  const int64_t rows = row > 0 ? std::max<int64_t>(1, x.dim(0) / row) : 1;
  b.output(0, b.compute("unpack", x.dtype(), dims, [&](const Exprs& i) {
    Expr at = 0, there;
    for (size_t d = 0; d < dims.size(); d++) {
      if (d == outer) at = min(at, Expr(rows - 1));
      const Expr last = may_be_empty[d] ? max(sizes[d] - Expr(1), Expr(0)) : sizes[d] - Expr(1);
      at = at * sizes[d] + (is_known(sizes[d]) ? i[d] : min(i[d], last));
      if (may_be_empty[d]) there = both(there, sizes[d] > Expr(0));
    }
    const Expr value = x({outer == dims.size() ? min(at, Expr(rows - 1)) : at});
    return there ? select(there, value, zero(x.dtype())) : value;
  }));
}

/// The first `size` slices of x along an axis; the status E_RANGE where `count` is another number.
void define_exactly(OpBuilder& b) {
  const Tensor x = b.in(0), count = b.in(1);
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  Dims dims = x.dims();
  dims[size_t(axis)] = b.attr_int("size");
  b.output(0, b.compute("exactly", x.dtype(), dims, [&](const Exprs& i) {
    const Expr size = Expr(dims[size_t(axis)]);
    const Expr wrong = max(count({}) - size, size - count({}));
    Exprs from = i;
    from[size_t(axis)] = i[size_t(axis)] + apply(Op::Index, {wrong, Expr(1)});  // 0, or no result
    return x(from);
  }));
}

/// Positions along axes of sizes `shape`, where -1 is what the next operand says: those below 0 count from the end, and one that is
/// out of range gives the status E_RANGE. Where `shape` has several, the last axis of `at` has one position for each. What lies
/// behind the sizes of `at`, as the operands behind those say along `axes`, is position 0.
void define_positions(OpBuilder& b) {
  const Tensor at = b.in(0);
  int operand = 1;
  const auto next = [&] { return b.in(operand++)({}); };
  Exprs lengths, ends;
  for (const int64_t n : b.attr_ints("shape")) lengths.push_back(n < 0 ? next() : Expr(n));
  const auto axes = b.attr_ints("axes");
  for (size_t k = 0; k < axes.size(); k++) ends.push_back(next());
  b.output(0, b.compute("positions", DType::I64, at.dims(), [&](const Exprs& i) {
    Expr length = lengths.back(), position = cast(DType::I64, at(i)), there;
    for (size_t k = lengths.size() - 1; k-- > 0;) length = select(eq(i.back(), Expr(int64_t(k))), lengths[k], length);
    for (size_t k = 0; k < axes.size(); k++) there = both(there, i.at(size_t(axes[k])) < ends[k]);
    if (there) position = select(there, position, Expr(0)), length = select(there, length, Expr(1));
    return apply(Op::Index, {position, length});
  }));
}

/// What is counted of x, along `axes` as the next operands say, as a dense tensor that is read in another shape: `shape`, with as
/// many slices along each of `to` as the operands behind those say; zeros behind what is counted.
void define_regroup(OpBuilder& b) {
  const Tensor x = b.in(0);
  const Dims shape = b.attr_ints("shape"), dims = x.dims();
  const auto axes = b.attr_ints("axes"), to = b.attr_ints("to");
  std::vector<Tensor> from_counts(dims.size()), to_counts(shape.size());
  std::vector<bool> counted_from(dims.size()), counted_to(shape.size());
  int operand = 1;
  for (const int64_t axis : axes) counted_from.at(size_t(axis)) = true, from_counts[size_t(axis)] = b.in(operand++);
  for (const int64_t axis : to) counted_to.at(size_t(axis)) = true, to_counts[size_t(axis)] = b.in(operand++);
  b.output(0, b.compute("regroup", x.dtype(), shape, [&](const Exprs& i) {
    Expr at = 0, there;
    for (size_t d = 0; d < shape.size(); d++) {
      at = at * (counted_to[d] ? cast(DType::I64, to_counts[d]({})) : Expr(shape[d])) + i[d];
      if (counted_to[d]) there = both(there, i[d] < to_counts[d]({}));
    }
    Exprs from(dims.size());
    for (size_t d = dims.size(); d-- > 0;) {
      const Expr n = counted_from[d] ? max(from_counts[d]({}), Expr(1)) : Expr(std::max<int64_t>(1, dims[d]));
      from[d] = min(d == 0 ? at : floor_mod(at, n), Expr(std::max<int64_t>(1, dims[d]) - 1));
      at = floor_div(at, n);
    }
    return select(there, x(from), zero(x.dtype()));
  }));
}

/// x up to its first `count` slices along an axis, then a number: that of operand 2, or the one that is named. Or else the last of
/// those slices ("edge"), or those before it, backwards ("reflect").
void define_fill_behind(OpBuilder& b) {
  const Tensor x = b.in(0), count = b.in(1);
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const std::string fill = b.attr_string("fill");
  const DType t = x.dtype();
  if (fill == "edge" || fill == "reflect")
    return b.output(0, b.compute("fill_behind", t, x.dims(), [&](Exprs i) {
      Expr& at = i[size_t(axis)];
      const Expr last = count({}) - Expr(1);
      const Expr behind = fill == "edge" ? last : min(last + last - at, last);
      at = select(at < count({}), at, max(behind, Expr(0)));
      return x(i);
    }));
  const Expr number = b.has(2)            ? cast(t, b.in(2)(Exprs(size_t(b.in(2).rank()), Expr(0))))
                      : fill == "lowest"  ? lowest(t)
                      : fill == "highest" ? highest(t)
                      : fill == "nan"     ? make_const(t, std::numeric_limits<double>::quiet_NaN())
                      : fill == "one"     ? make_const(t, 1)
                                          : zero(t);
  b.output(0, b.compute("fill_behind", t, x.dims(),
                        [&](const Exprs& i) { return select(i[size_t(axis)] < count({}), x(i), number); }));
}

/// Operands x0, n0, x1, n1, ...: the first n0 slices of x0 along an axis, then the first n1 of x1, and so on, then
/// zeros.
void define_join(OpBuilder& b) {
  const int parts = b.num_inputs() / 2;
  const int axis = b.axis(b.attr_int("axis"), b.in(0).rank());
  Dims dims = b.in(0).dims();
  int64_t& capacity = dims[size_t(axis)];
  capacity = 0;
  for (int k = 0; k < parts; k++) capacity += b.in(2 * k).dim(axis);
  const DType t = b.in(0).dtype();
  b.output(0, b.compute("join", t, dims, [&](const Exprs& i) {
    const Expr at = i[size_t(axis)];
    std::vector<Expr> starts = {Expr(0)};
    for (int k = 0; k < parts; k++) starts.push_back(starts.back() + b.in(2 * k + 1)({}));
    Expr y = zero(t);
    for (int k = parts; k-- > 0;) {
      const Tensor x = b.in(2 * k);
      if (x.dim(axis) == 0) continue;
      const Expr index = min(max(at - starts[size_t(k)], Expr(0)), Expr(x.dim(axis) - 1));
      y = select(at < starts[size_t(k) + 1], x(with_axis(i, axis, index)), y);
    }
    return y;
  }));
}

/// 0, 1, 2, ..., as many as the operand says; behind these the last of them. An operand that is none: 0.
void define_steps(OpBuilder& b) {
  const Tensor count = b.in(0);
  b.output(0, b.compute("steps", DType::I64, {1, b.attr_int("capacity")},
                        [&](const Exprs& i) { return min(i[1], max(count({}) - Expr(1), Expr(0))); }));
}

/// `past` with the first operand(2) slices of `fresh` from position operand(3) on, one for all or one for each index of
/// axis 0; zeros where the past is shorter than the result, which has `capacity` slices. No room for them: E_RANGE. As a copy
/// and what changes of it, so that a result in place of the past is that change alone. With `zeros_behind` the rest of the past does
/// not show. `past_ends`: the past has as many slices as the position says, and what lies behind the result's could be anything. Operand 4 is
/// for who counts the result.
void define_append(OpBuilder& b) {
  const Tensor past = b.in(0), fresh = b.in(1), number = b.in(2), positions = b.in(3);
  const int axis = b.axis(b.attr_int("axis"), past.rank());
  const int64_t capacity = b.attr_int("capacity"), most = std::min(fresh.dim(axis), capacity);
  Dims dims = past.dims();
  if (without_axis(dims, axis) != without_axis(fresh.dims(), axis) || past.dtype() != fresh.dtype() ||
      past.dim(axis) > capacity || (positions.rank() > 0 && axis == 0))
    b.reject("what is appended does not fit");
  dims[size_t(axis)] = capacity;
  const Dims lead(dims.begin(), dims.begin() + axis), trail(dims.begin() + axis + 1, dims.end());
  const auto y =
      b.nest("append", {ValueType::tensor(past.dtype(), to_shape(dims))}, [&](const std::vector<Buffer>& out) {
        const bool past_ends = b.attr_int("past_ends") != 0;
        const auto first = [&](const Exprs& i) { return positions.rank() == 0 ? positions({}) : positions({i[0]}); };
        const auto past_rows = [&](const Exprs& i) {
          const Var row = make_var("row");
          const Stmt slice = for_each_index(
              trail,
              [&](const Exprs& j) {
                const Exprs at = concat(concat(i, {Expr(row)}), j);
                return store(out[0], at, past(at));
              },
              "j");
          return loop(row, min(max(first(i), Expr(0)), Expr(past.dim(axis))), slice);
        };
        const Stmt copy =
            past_ends ? for_each_index(lead, past_rows)
                      : for_each_index(past.dims(), [&](const Exprs& at) { return store(out[0], at, past(at)); });
        Dims rest = dims;
        rest[size_t(axis)] = capacity - past.dim(axis);
        const Stmt zeros = for_each_index(rest, [&](const Exprs& at) {
          return store(out[0], with_axis(at, axis, at[size_t(axis)] + past.dim(axis)), zero(past.dtype()));
        });
        const Expr count = min(max(number({}), Expr(0)), Expr(most));
        const Stmt rows = for_each_index(lead, [&](const Exprs& i) {
          const Var row = make_var("row"), start = make_var("start");
          const Stmt slice = for_each_index(
              trail,
              [&](const Exprs& j) {
                return store(out[0], concat(concat(i, {Expr(start) + Expr(row)}), j),
                             fresh(concat(concat(i, {Expr(row)}), j)));
              },
              "j");
          Stmt placed = loop(row, count, slice);
          if (b.attr_int("zeros_behind") != 0) {
            const Var behind = make_var("behind");
            const Stmt none = for_each_index(
                trail,
                [&](const Exprs& j) {
                  return store(out[0], concat(concat(i, {Expr(start) + count + Expr(behind)}), j), zero(past.dtype()));
                },
                "j");
            placed = seq({placed, loop(behind, Expr(capacity) - count - Expr(start), none)});
          }
          return let(start, apply(Op::Index, {first(i), Expr(capacity + 1) - count}), placed);
        });
        return past_ends || capacity == past.dim(axis) ? seq({copy, rows}) : seq({copy, zeros, rows});
      });
  b.output(0, y[0]);
}

/// Scale and zero point of DynamicQuantizeLinear, whose largest elements are sought in `high` and whose least ones in `low`.
void define_quantized_range(OpBuilder& b) {
  const auto [scale, zero_point] = quantized_range(b, b.in(0), b.in(1));
  b.output(0, scale);
  b.output(1, zero_point);
}

}  // namespace

OpFamily internal_ops() {
  return {
      // The node's `fn` is its definition: tensor_fn() never asks this row.
      {.name = "fused", .since = 1, .attrs = {}, .define = nullptr, .domain = "tc"},
      {"fill_behind",
       1,
       {{"axis", int64_t(0)},
        {"fill", std::string("zero")},
        {"least", int64_t(0)}},  // `least`: of the count, as far as known
       define_fill_behind,
       "x count number",
       "",
       "tc"},
      {"append",
       1,
       {{"axis", int64_t(0)}, {"capacity", int64_t(0)}, {"zeros_behind", int64_t(0)}, {"past_ends", int64_t(0)}},
       define_append,
       "past fresh count positions total",
       "",
       "tc"},
      {"steps", 1, {{"capacity", int64_t(0)}}, define_steps, "count", "", "tc"},
      {"join", 1, {{"axis", int64_t(0)}}, define_join, "x count", "", "tc"},
      {"positions",
       1,
       {{"axes", std::vector<int64_t>()}, {"shape", std::vector<int64_t>()}},
       define_positions,
       "at sizes",
       "",
       "tc"},
      {"regroup",
       1,
       {{"axes", std::vector<int64_t>()}, {"shape", std::vector<int64_t>()}, {"to", std::vector<int64_t>()}},
       define_regroup,
       "x counts",
       "",
       "tc"},
      {"pack", 1, {{"axes", std::vector<int64_t>()}}, define_pack, "x counts", "", "tc"},
      {"unpack",
       1,
       {{"axes", std::vector<int64_t>()}, {"shape", std::vector<int64_t>()}, {"least", std::vector<int64_t>()}},
       define_unpack,
       "x counts",
       "",
       "tc"},
      {"quantized_range", 1, {}, define_quantized_range, "high low", "", "tc"},
      {"exactly", 1, {{"axis", int64_t(0)}, {"size", int64_t(0)}}, define_exactly, "x count", "", "tc"},
  };
}

}  // namespace tc
