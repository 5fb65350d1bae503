#include "ir/loop/expand_intrin.h"

#include <algorithm>
#include <functional>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/matrix_instruction.h"

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

// The number at the end of a name such as load4; 0 if the name is another.
int64_t number_after(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return 0;
  int64_t n = 0;
  for (const char c : name.substr(prefix.size())) {
    if (c < '0' || c > '9') return 0;
    n = n * 10 + (c - '0');
  }
  return n;
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

// On the registers of a lane.
Stmt round_words(const IntrinOperand& r, int64_t count) {
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
  list.push_back(round_words(r, count));
  return seq(std::move(list));
}

// Null if the instruction is none on tiles.
Stmt expand_tiles(const Intrin& k) {
  if (k.buffers.empty() || k.buffers[0]->scope != Scope::Fragment) return {};
  const IntrinCall c = parse(k);
  const IntrinOperand& t = c.operands.at(0);
  if (const MatrixInstruction* m = find_matrix_instruction(k.name)) return multiply_add(*m, c);
  return over_tile(*t.buffer, [&](const Expr& row, const Expr& column) {
    Expr value;
    if (k.name == "fill_fragment") value = c.scalars.at(0);
    if (k.name == "load_fragment") value = load(c.operands.at(1).buffer, at(c.operands[1], row, column));
    if (k.name == "load_fragment_trans") value = load(c.operands.at(1).buffer, at(c.operands[1], column, row));
    if (k.name == "join_fragments") {
      const int64_t part = t.buffer->shape.back().value / int64_t(c.operands.size() - 1);
      for (size_t i = c.operands.size(); i-- > 1;) {
        const IntrinOperand& from = c.operands[i];
        const Expr x = cast(t.buffer->dtype, load(from.buffer, at(from, row, floor_mod(column, part))));
        value = value ? select(column < Expr(int64_t(i) * part), x, value) : x;
      }
    }
    if (k.name == "split_fragment_tf32") {
      const IntrinOperand& rounded = c.operands.at(1);
      const Expr x = load(rounded.buffer, at(rounded, row, column));
      return seq({store(t.buffer, at(t, row, column), tf32_rest(x)),
                  store(rounded.buffer, at(rounded, row, column), rounded_to_tf32(x))});
    }
    if (k.name == "round_fragment_tf32") value = rounded_to_tf32(load(t.buffer, at(t, row, column)));
    check(bool(value), "instruction " + k.name + " works on tiles");
    return store(t.buffer, at(t, row, column), value);
  });
}

// dot4(sum[i], a, b; first lane, n): sum[i, lane] += (a[0] + shift) * b[4 * lane] + ... in every lane, n products of
// them.
Stmt sums_of_quads(const Intrin& k) {
  const IntrinCall c = parse(k);
  const IntrinOperand &sum = c.operands.at(0), &a = c.operands.at(1), &b = c.operands.at(2);
  const Var lane = make_var("lane"), q = make_var("q");
  const Expr left = cast(DType::I32, load(a.buffer, {a.index.at(0) + Expr(q)}));
  const Expr shifted = a.buffer->dtype == DType::I8 ? left + make_int(DType::I32, 128) : left;
  const Expr right = cast(DType::I32, load(b.buffer, {b.index.at(0) + Expr(lane) * Expr(4) + Expr(q)}));
  Exprs at = sum.index;
  at.push_back(c.scalars.at(0) + Expr(lane));
  return loop(lane, lanes(), loop(q, c.scalars.at(1), store(sum.buffer, at, shifted * right, Op::Add)));
}

// load_strided(to, from; first, stride): to[lane] = from[first + stride * lane] in every lane.
Stmt every_nth(const Intrin& k) {
  const IntrinCall c = parse(k);
  const IntrinOperand &to = c.operands.at(0), &from = c.operands.at(1);
  const Var lane = make_var("lane");
  Exprs at = to.index;
  at.push_back(Expr(lane));
  const Expr begin = from.index.empty() ? c.scalars.at(0) : from.index[0] + c.scalars.at(0);
  return loop(lane, lanes(), store(to.buffer, at, load(from.buffer, {begin + Expr(lane) * c.scalars.at(1)})));
}

// load_transposed(tile, from; stride): tile[row, lane] = from[row + stride * lane], VL rows of VL lanes; load_unriffled:
// `stride` rows of them.
Stmt columns_as_rows(const Intrin& k) {
  const IntrinCall c = parse(k);
  const IntrinOperand &tile = c.operands.at(0), &from = c.operands.at(1);
  const Var row = make_var("row"), lane = make_var("lane");
  const Expr at = from.index.at(0) + Expr(row) + Expr(lane) * c.scalars.at(0);
  const Expr rows = k.name == "load_unriffled" ? c.scalars.at(0) : lanes();
  return loop(row, rows, loop(lane, lanes(), store(tile.buffer, {Expr(row), Expr(lane)}, load(from.buffer, {at}))));
}

// transpose_tile(to, from; s, t): to[column * s + row] = from[row * t + column], as many rows as elements are in 16 bytes.
Stmt transposed_tile(const Intrin& k) {
  const IntrinCall c = parse(k);
  const IntrinOperand &to = c.operands.at(0), &from = c.operands.at(1);
  const int64_t n = 16 / info(to.buffer->dtype).bytes;
  const Var row = make_var("row"), column = make_var("column");
  const Expr at = to.index.at(0) + Expr(column) * c.scalars.at(0) + Expr(row);
  const Expr read = from.index.at(0) + Expr(row) * c.scalars.at(1) + Expr(column);
  return loop(row, n, loop(column, n, store(to.buffer, {at}, load(from.buffer, {read}))));
}

// store_riffled(to, rows; n): to[lane * n + row] = rows[row, lane], n rows of VL lanes.
Stmt interleaved_store(const Intrin& k) {
  const IntrinCall c = parse(k);
  const IntrinOperand &to = c.operands.at(0), &rows = c.operands.at(1);
  const Var row = make_var("row"), lane = make_var("lane");
  const Expr at = to.index.at(0) + Expr(lane) * c.scalars.at(0) + Expr(row);
  return loop(row, c.scalars.at(0),
              loop(lane, lanes(), store(to.buffer, {at}, load(rows.buffer, {Expr(row), Expr(lane)}))));
}

}  // namespace

Stmt expand_intrin(const Intrin& k) {
  if (k.name == "dot4") return sums_of_quads(k);
  if (k.name == "load_strided") return every_nth(k);
  if (k.name == "load_transposed" || k.name == "load_unriffled") return columns_as_rows(k);
  if (k.name == "store_riffled") return interleaved_store(k);
  if (k.name == "transpose_tile") return transposed_tile(k);
  if (k.name == "cp_async_commit" || k.name == "cp_async_wait") return {};
  if (const Stmt tiles = expand_tiles(k)) return tiles;
  if (const int64_t words = number_after(k.name, "round_tf32_x")) return round_words(parse(k).operands.at(0), words);
  if (const int64_t words = number_after(k.name, "split_tf32_x")) return split_words(parse(k), words);
  const IntrinCall call = parse(k);
  const int64_t bytes = number_after(k.name, "cp_async");
  const int64_t count = bytes > 0 ? bytes / info(k.buffers.at(0)->dtype).bytes
                                  : std::max(number_after(k.name, "load"), number_after(k.name, "store"));
  check(count > 0, "no assignments stand for instruction " + k.name);
  Stmts list;
  for (int64_t i = 0; i < count; i++) {
    const IntrinOperand &to = call.operands.at(0), &from = call.operands.at(1);
    Expr value = load(from.buffer, element(from, i));
    if (!call.scalars.empty()) value = select(call.scalars[0], value, zero(value->dtype));
    list.push_back(store(to.buffer, element(to, i), value));
  }
  return seq(std::move(list));
}

}  // namespace tc
