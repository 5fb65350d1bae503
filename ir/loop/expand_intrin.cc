#include "ir/loop/expand_intrin.h"

#include <functional>

#include "ir/loop/build.h"
#include "support/error.h"

namespace tc {
namespace {

// Element `i` behind the beginning of an operand. Arrays of registers have one index less than axes.
Exprs element(const IntrinOperand& o, int64_t i) {
  Exprs index = o.index;
  if (index.size() < o.buffer->shape.size())
    index.push_back(Expr(i));
  else if (!index.empty())
    index.back() = index.back() + Expr(i);
  return index;
}

// An element of a tile, or behind the element of memory where a tile begins.
Exprs at(const IntrinOperand& o, const Expr& row, const Expr& column) {
  Exprs index = o.index;
  if (o.buffer->scope == Scope::Fragment) {
    index.push_back(row);
    index.push_back(column);
  } else {
    index[index.size() - 2] = index[index.size() - 2] + row;
    index.back() = index.back() + column;
  }
  return index;
}

// `body` for every element of a tile.
Stmt over_tile(const BufferDef& tile, const std::function<Stmt(const Expr& row, const Expr& column)>& body) {
  const Var row = make_var("row"), column = make_var("column");
  const size_t rank = tile.shape.size();
  const Stmt s = loop(column, Expr(tile.shape[rank - 1]), body(row, column), ForKind::Fragment);
  return loop(row, Expr(tile.shape[rank - 2]), s, ForKind::Fragment);
}

Stmt multiply_add(const MatrixInstruction& m, const IntrinCall& c) {
  const IntrinOperand &sums = c.operands.at(0), &left = c.operands.at(1), &right = c.operands.at(2);
  const Var k = make_var("k");
  return over_tile(*sums.buffer, [&](const Expr& row, const Expr& column) {
    const Expr product =
        cast(m.sum, load(left.buffer, at(left, row, k))) * cast(m.sum, load(right.buffer, at(right, k, column)));
    return loop(k, m.depth, store(sums.buffer, at(sums, row, column), product, Op::Add));
  });
}

// To nearest, ties away from zero. NaN stays NaN: its bits may be those that would carry over into the sign.
Expr tf32_bits(const Expr& bits) {
  auto number = [](int64_t v) { return make_int(DType::U32, v); };
  const Expr is_nan = number(0x7f800000) < apply(Op::BitAnd, {bits, number(0x7fffffff)});
  return select(is_nan, number(0x7fffffff), apply(Op::BitAnd, {bits + number(0x1000), number(0xffffe000)}));
}
Expr rounded_to_tf32(const Expr& x) { return bitcast(DType::F32, tf32_bits(bitcast(DType::U32, x))); }

// What rounding takes away, rounded.
Expr tf32_rest(const Expr& x) { return rounded_to_tf32(x - rounded_to_tf32(x)); }

Stmt joined_tiles(const IntrinOperand& to, const IntrinCall& c, const Expr& row, const Expr& column) {
  const int64_t part = to.buffer->shape.back().value / int64_t(c.operands.size() - 1);
  Expr value;
  for (size_t i = c.operands.size(); i-- > 1;) {
    const IntrinOperand& from = c.operands[i];
    const Expr x = cast(to.buffer->dtype, load(from.buffer, at(from, row, floor_mod(column, part))));
    value = value ? select(column < Expr(int64_t(i) * part), x, value) : x;
  }
  return store(to.buffer, at(to, row, column), value);
}

Stmt on_tile(TileForm form, const IntrinCall& c) {
  const IntrinOperand& t = c.operands.at(0);
  return over_tile(*t.buffer, [&](const Expr& row, const Expr& column) {
    auto set = [&](const Expr& value) { return store(t.buffer, at(t, row, column), value); };
    auto element_of = [&](size_t i, const Expr& r, const Expr& c2) {
      return load(c.operands.at(i).buffer, at(c.operands[i], r, c2));
    };
    switch (form) {
      case TileForm::Fill: return set(c.scalars.at(0));
      case TileForm::Load: return set(element_of(1, row, column));
      case TileForm::LoadTransposed: return set(element_of(1, column, row));
      case TileForm::Join: return joined_tiles(t, c, row, column);
      case TileForm::Round: return set(rounded_to_tf32(element_of(0, row, column)));
      case TileForm::Split: break;
    }
    const Expr x = element_of(1, row, column);
    const IntrinOperand& rounded = c.operands[1];
    return seq({set(tf32_rest(x)), store(rounded.buffer, at(rounded, row, column), rounded_to_tf32(x))});
  });
}

Stmt copied(const IntrinCall& c, int64_t count) {
  Stmts list;
  for (int64_t i = 0; i < count; i++) {
    const IntrinOperand &to = c.operands.at(0), &from = c.operands.at(1);
    Expr value = load(from.buffer, element(from, i));
    if (!c.scalars.empty()) value = select(c.scalars[0], value, zero(value->dtype));
    list.push_back(store(to.buffer, element(to, i), value));
  }
  return seq(std::move(list));
}

Expr begin_of(const IntrinOperand& o) { return o.index.empty() ? Expr(0) : o.index[0]; }

// tile[row, lane] = from[row + stride * lane]
Stmt strided_rows(const IntrinCall& c, const Expr& rows) {
  const IntrinOperand &tile = c.operands.at(0), &from = c.operands.at(1);
  const Var row = make_var("row"), lane = make_var("lane");
  const Expr at = begin_of(from) + Expr(row) + Expr(lane) * c.scalars.at(0);
  return loop(row, rows, loop(lane, lanes(), store(tile.buffer, {Expr(row), Expr(lane)}, load(from.buffer, {at}))));
}

}  // namespace

Stmt copied_elements(const IntrinCall& c, int64_t count) { return copied(c, count); }
Stmt copied_bytes(const IntrinCall& c, int64_t bytes) {
  return copied(c, bytes / info(c.operands.at(0).buffer->dtype).bytes);
}
Stmt no_assignments(const IntrinCall&, int64_t) { return {}; }

Stmt round_words(const IntrinCall& c, int64_t count) {
  const IntrinOperand& r = c.operands.back();
  Stmts list;
  for (int64_t i = 0; i < count; i++)
    list.push_back(store(r.buffer, element(r, i), tf32_bits(load(r.buffer, element(r, i)))));
  return seq(std::move(list));
}

Stmt split_words(const IntrinCall& c, int64_t count) {
  const IntrinOperand &rest = c.operands.at(0), &r = c.operands.at(1);
  Stmts list;
  for (int64_t i = 0; i < count; i++) {
    const Expr x = bitcast(DType::F32, load(r.buffer, element(r, i)));
    list.push_back(store(rest.buffer, element(rest, i), bitcast(DType::U32, tf32_rest(x))));
  }
  list.push_back(round_words(c, count));
  return seq(std::move(list));
}

Stmt sums_of_quads(const IntrinCall& c, int64_t) {
  const IntrinOperand &sum = c.operands.at(0), &a = c.operands.at(1), &b = c.operands.at(2);
  const Var lane = make_var("lane"), q = make_var("q");
  const Expr left = cast(DType::I32, load(a.buffer, {a.index.at(0) + Expr(q)}));
  const Expr shifted = a.buffer->dtype == DType::I8 ? left + make_int(DType::I32, 128) : left;
  const Expr right = cast(DType::I32, load(b.buffer, {b.index.at(0) + Expr(lane) * Expr(4) + Expr(q)}));
  Exprs at = sum.index;
  at.push_back(c.scalars.at(0) + Expr(lane));
  return loop(lane, lanes(), loop(q, c.scalars.at(1), store(sum.buffer, at, shifted * right, Op::Add)));
}

Stmt sums_of_words(const IntrinCall& c, int64_t) {
  const IntrinOperand &sum = c.operands.at(0), &words = c.operands.at(1), &a = c.operands.at(2);
  const Expr stride = c.scalars.at(1), count = c.scalars.at(2), bits = c.scalars.at(3);
  const Expr parts = floor_div(8, bits);  // of a byte
  const Var lane = make_var("lane"), w = make_var("w"), j = make_var("j"), i = make_var("i");
  const Expr word = load(words.buffer, {words.index.at(0) + stride * Expr(w) + Expr(lane)});
  const Expr shift = cast(DType::I32, Expr(i) * Expr(8) + bits * Expr(j));
  const Expr mask = apply(Op::Shl, {make_int(DType::I32, 1), cast(DType::I32, bits)}) - make_int(DType::I32, 1);
  const Expr number = apply(Op::BitAnd, {apply(Op::Shr, {word, shift}), mask});
  const Expr k = (Expr(w) * parts + Expr(j)) * Expr(4) + Expr(i);
  const Expr factor = cast(DType::I32, load(a.buffer, {a.index.at(0) + k}));
  Exprs at = sum.index;
  at.push_back(c.scalars.at(0) + Expr(lane));
  const Stmt add = store(sum.buffer, at, number * factor, Op::Add);
  return loop(lane, lanes(), loop(w, count, loop(j, parts, loop(i, 4, add))));
}

// Index of a vector operand's lane.
static Exprs lane_of(const IntrinOperand& o, const Expr& lane) {
  Exprs at = o.index;
  at.push_back(lane);
  return at;
}

// As processors have it: of the factor its lower 16 bits count.
Stmt products_of_bytes(const IntrinCall& c, int64_t) {
  const IntrinOperand &sum = c.operands.at(0), &a = c.operands.at(1), &factor = c.operands.at(2);
  const Var lane = make_var("lane");
  const Expr at = c.scalars.at(0) + Expr(lane);
  const Expr left = cast(DType::I32, load(a.buffer, {a.index.at(0) + Expr(lane)}));
  const Expr right = cast(DType::I32, cast(DType::I16, load(factor.buffer, lane_of(factor, at))));
  return loop(lane, lanes(), store(sum.buffer, lane_of(sum, at), left * right, Op::Add));
}

Stmt products_of_tiles(const IntrinCall& c, int64_t) {
  const IntrinOperand &sums = c.operands.at(0), &left = c.operands.at(1), &right = c.operands.at(2);
  const Expr columns = c.scalars.at(0), upper = c.scalars.at(1), row_stride = c.scalars.at(3), runs = c.scalars.at(5),
             run_stride = c.scalars.at(6), depth = c.scalars.at(7);
  auto rows = [&](const Expr& count, const Expr& first, const Expr& below) {
    const Var i = make_var("i"), j = make_var("j"), r = make_var("r"), quad = make_var("k4"), q = make_var("q");
    const Expr at = begin_of(sums) + (first + Expr(i)) * columns + Expr(j);
    const Expr in_row = Expr(r) * run_stride + Expr(quad) * 4 + Expr(q);
    const Expr x = load(left.buffer, {begin_of(left) + below + Expr(i) * row_stride + in_row});
    const Expr quads = (Expr(r) * floor_div(depth, 4) + Expr(quad)) * columns + Expr(j);
    const Expr w = load(right.buffer, {begin_of(right) + quads * Expr(4) + Expr(q)});
    const Stmt add = store(sums.buffer, {at}, cast(DType::I32, x) * cast(DType::I32, w), Op::Add);
    const Stmt all = loop(r, runs, loop(quad, floor_div(depth, 4), loop(q, 4, add)));
    return loop(i, count, loop(j, columns, seq({store(sums.buffer, {at}, make_int(DType::I32, 0)), all})));
  };
  return seq({rows(upper, 0, 0), rows(c.scalars.at(2), upper, c.scalars.at(4))});
}

Stmt unpacked_bits(const IntrinCall& c, int64_t) {
  const IntrinOperand &to = c.operands.at(0), &words = c.operands.at(1);
  const Var lane = make_var("lane");
  const Expr first = c.scalars.at(0) + Expr(lane), bits = c.scalars.at(2);
  auto shift = [](Op op, const Expr& x, const Expr& by) { return apply(op, {x, cast(DType::I32, by)}); };
  const Expr top =
      shift(Op::Shl, load(words.buffer, lane_of(words, first)), Expr(32) - bits * (c.scalars.at(1) + Expr(1)));
  const Expr number = shift(Op::Shr, top, Expr(32) - bits);
  return loop(lane, lanes(), store(to.buffer, lane_of(to, first), cast(DType::F32, number)));
}

Stmt looked_up_bits(const IntrinCall& c, int64_t) {
  const IntrinOperand &to = c.operands.at(0), &words = c.operands.at(1), &table = c.operands.at(2);
  const Var lane = make_var("lane");
  const Expr first = c.scalars.at(0) + Expr(lane), shift = cast(DType::I32, c.scalars.at(1) * Expr(4));
  const Expr moved = apply(Op::Shr, {load(words.buffer, lane_of(words, first)), shift});
  const Expr index = cast(DType::I64, apply(Op::BitAnd, {moved, make_int(DType::I32, 15)}));
  const Expr begin = begin_of(table) + index;
  return loop(lane, lanes(), store(to.buffer, lane_of(to, first), load(table.buffer, {begin})));
}

Stmt every_nth(const IntrinCall& c, int64_t) {
  const IntrinOperand &to = c.operands.at(0), &from = c.operands.at(1);
  const Var lane = make_var("lane");
  Exprs at = to.index;
  at.push_back(Expr(lane));
  const Expr begin = begin_of(from) + c.scalars.at(0);
  return loop(lane, lanes(), store(to.buffer, at, load(from.buffer, {begin + Expr(lane) * c.scalars.at(1)})));
}

Stmt columns_as_rows(const IntrinCall& c, int64_t) { return strided_rows(c, lanes()); }
Stmt deinterleaved_rows(const IntrinCall& c, int64_t) { return strided_rows(c, c.scalars.at(0)); }

Stmt transposed_tile(const IntrinCall& c, int64_t) {
  const IntrinOperand &to = c.operands.at(0), &from = c.operands.at(1);
  const int64_t n = 16 / info(to.buffer->dtype).bytes;
  const Var row = make_var("row"), column = make_var("column");
  const Expr at = to.index.at(0) + Expr(column) * c.scalars.at(0) + Expr(row);
  const Expr read = from.index.at(0) + Expr(row) * c.scalars.at(1) + Expr(column);
  return loop(row, n, loop(column, n, store(to.buffer, {at}, load(from.buffer, {read}))));
}

Stmt interleaved_store(const IntrinCall& c, int64_t) {
  const IntrinOperand &to = c.operands.at(0), &rows = c.operands.at(1);
  const Var row = make_var("row"), lane = make_var("lane");
  const Expr at = to.index.at(0) + Expr(lane) * c.scalars.at(0) + Expr(row);
  return loop(
      row, c.scalars.at(0),
      loop(lane, lanes(), store(to.buffer, {at}, cast(to.buffer->dtype, load(rows.buffer, {Expr(row), Expr(lane)})))));
}

Stmt sums_of_lanes(const IntrinCall& c, int64_t) {
  const IntrinOperand &to = c.operands.at(0), &rows = c.operands.at(1);
  const Var row = make_var("row"), lane = make_var("lane");
  const Expr first = to.index.empty() ? c.scalars.at(0) : to.index[0] + c.scalars.at(0);
  const Exprs at = {first + Expr(row)};
  const Expr term = load(rows.buffer, {rows.index.at(0) + Expr(row), Expr(lane)});
  const Stmt add = store(to.buffer, at, term, Op::Add);
  return loop(row, c.scalars.at(1), seq({store(to.buffer, at, zero(to.buffer->dtype)), loop(lane, lanes(), add)}));
}

// sums[.., j, r, e] += left[row + r, k] * right[8 j + e, k], in the order in which rows lie.
static Stmt multiply_add_swizzled(const GroupMatrixInstruction& m, const IntrinCall& c) {
  const IntrinOperand &sums = c.operands.at(0), &left = c.operands.at(1), &right = c.operands.at(2);
  const Var j = make_var("j"), k = make_var("k");
  auto element = [&](const IntrinOperand& o, const Expr& row) {
    Exprs index = o.index;
    Expr &outer = index[index.size() - 2], &inner = index.back();
    outer = outer + row;
    inner = swizzled(outer, inner + Expr(k), o.buffer->dtype);
    return cast(m.sum, load(o.buffer, index));
  };
  IntrinOperand piece = sums;
  piece.index.back() = piece.index.back() + Expr(j);
  return loop(j, m.columns / kTileColumns, over_tile(*sums.buffer, [&](const Expr& row, const Expr& column) {
                const Expr product = element(left, row) * element(right, Expr(j) * Expr(kTileColumns) + column);
                return loop(k, kGroupDepthBytes / info(m.left).bytes,
                            store(sums.buffer, at(piece, row, column), product, Op::Add));
              }));
}

Stmt expand_intrin(const Intrin& k) {
  const Meaning& meaning = instruction(k).meaning;
  const IntrinCall c = parse(k);
  if (const auto* m = std::get_if<Assignments>(&meaning)) return m->made(c, m->n);
  if (const auto* m = std::get_if<TileOperation>(&meaning)) return on_tile(m->form, c);
  if (const auto* m = std::get_if<GroupMatrixInstruction>(&meaning); m && k.buffers.at(0)->scope == Scope::Fragment)
    return multiply_add_swizzled(*m, c);
  const auto* m = std::get_if<MatrixInstruction>(&meaning);
  check(m && k.buffers.at(0)->scope == Scope::Fragment, "no assignments stand for instruction " + k.name);
  return multiply_add(*m, c);
}

}  // namespace tc
