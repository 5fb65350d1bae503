// Products of bytes in blocks: what is multiplied by weights of few bits is rounded to bytes, each block with a scale of its
// own. multiply_blocks puts them in the place of products of floats:
//   s = tc.block_scales(x); q = tc.quantize_blocks(x, s), and
//   tc.matmul_blocks(q, s, packed, scales, zero points)                       for MatMulNBits,
//   tc.matmul_dequantized(q, s, w, scales, zero points)                       for DequantizeLinear,
//   tc.expert_matmul_blocks(q, s, chosen, packed, bias, scales, zero points)  for QMoE.
// The sum of a block is a whole number, and exact; sums of blocks are in single precision.
#include "ir/ops/block_products.h"

#include "ir/ops/experts.h"
#include "ir/ops/granularity.h"
#include "ir/ops/numeric.h"
#include "ir/ops/packed_numbers.h"

namespace tc {
namespace {

int64_t read_block(OpBuilder& op) {
  const int64_t block = op.attr_int("block_size");
  if (block < 1 || op.in(0).rank() < 1) op.reject("block_size must be positive, and the input must have axes");
  return block;
}

/// x[..., block * size + i], 0 behind the last element.
Expr in_block(const Tensor& x, const Exprs& i, const Expr& block, const Expr& within, int64_t size) {
  const int64_t length = x.dims().back();
  Exprs at(i.begin(), i.begin() + std::ptrdiff_t(x.dims().size()) - 1);
  at.push_back(block * Expr(size) + within);
  const Expr last = at.back();
  if (length % size == 0) return x(at);
  return select(last < Expr(length), x(at), zero(x.dtype()));
}

/// s[..., block] = max |x| / 127 over a block of x[..., K]: what a step of q = x / s is.
void define_block_scales(OpBuilder& op) {
  const Tensor x = op.in(0);
  const int64_t block = read_block(op);
  if (x.dtype() != DType::F32) op.reject("only float32 is quantised in blocks", 0);
  Dims d = x.dims();
  d.back() = ceil_quotient(d.back(), block);
  const Tensor most = op.reduce(
      "amax", Op::Max, DType::F32, d, {block},
      [&](const Exprs& i, const Exprs& r) { return abs(in_block(x, i, i.back(), r[0], block)); }, {}, zero(DType::F32));
  op.output(0,
            op.compute("scale", DType::F32, d, [&](const Exprs& i) { return most(i) / make_const(DType::F32, 127); }));
}

/// q[..., block, i] = x / s, rounded, as i8; zeros fill the last block.
void define_quantize_blocks(OpBuilder& op) {
  const Tensor x = op.in(0), scale = op.in(1);
  const int64_t block = read_block(op);
  Dims d = scale.dims();
  d.push_back(block);
  op.output(0, op.compute("quantize", DType::I8, d, [&](const Exprs& i) {
    const Exprs in_scale(i.begin(), i.end() - 1);
    const Expr s = scale(in_scale), none = zero(DType::F32);
    const Expr inverse = select(eq(s, none), none, make_const(DType::F32, 1) / s);
    const Expr q = apply(Op::Round, {in_block(x, i, in_scale.back(), i.back(), block) * inverse});
    return cast(DType::I8, min(max(q, make_const(DType::F32, -127)), make_const(DType::F32, 127)));
  }));
}

Expr flat(const Tensor& x, const Expr& at) { return x(delinearize(at, x.dims())); }

/// One step of the sum: the product of two integers, times both scales.
Expr term(const Expr& q, const Expr& distance, const Expr& scale) {
  return cast(DType::F32, cast(DType::I32, q) * distance) * scale;
}

/// Refuses q that are no blocks of what has `depth` elements along its last axis, and scales that are not theirs.
void check_blocks(OpBuilder& op, int64_t depth) {
  const Dims q = op.in(0).dims(), s = op.in(1).dims();
  if (q.size() < 2 || q.back() < 1 || s != Dims(q.begin(), q.end() - 1)) op.reject("each block needs its scale", 1);
  if (s.back() != ceil_quotient(depth, q.back())) op.reject("the blocks do not fit the weights", 0);
}

/// y[..., n] = sum(block, i) q[..., block, i] * (w[n, block, i] - zero[n, block]) * (s[..., block] * scale[n, block]): q and
/// s of quantize_blocks, packed weights, their scales and zero points as those of unpack_weights.
void define_matmul_blocks(OpBuilder& op) {
  const Tensor q = op.in(0), s = op.in(1), packed = op.in(2), scales = op.in(3);
  const int64_t bits = op.attr_int("bits"), columns = op.attr_int("N"), block = q.dims().back(),
                blocks = s.dims().back(), bytes = block * bits / 8;
  if (num_elements(packed.dims()) != columns * blocks * bytes) op.reject("the weights do not fit", 2);
  if (num_elements(scales.dims()) != columns * blocks) op.reject("one scale per block is needed", 3);
  const int64_t row = ceil_quotient(blocks * bits, 8);
  if (op.has(4) && (op.in(4).dtype() != DType::U8 || num_elements(op.in(4).dims()) != columns * row))
    op.reject("one packed zero point per block is needed", 4);
  auto zero_point = [&](const Expr& n, const Expr& index) {
    if (!op.has(4)) return make_int(DType::I32, int64_t(1) << (bits - 1));
    return unpacked([&](const Expr& at) { return flat(op.in(4), n * row + at); }, index, bits);
  };
  Dims y = s.dims();
  y.back() = columns;
  op.output(0, op.reduce(
                   "matmul", Op::Add, DType::F32, y, {blocks, block},
                   [&](const Exprs& i, const Exprs& r) {
                     const Expr& n = i.back();
                     Exprs at(i.begin(), i.end() - 1);
                     at.push_back(r[0]);
                     const Expr scale = s(at) * flat(scales, n * blocks + r[0]);
                     at.push_back(r[1]);
                     const Expr w = unpacked(
                         [&](const Expr& k) { return flat(packed, (n * blocks + r[0]) * bytes + k); }, r[1], bits);
                     return term(q(at), w - zero_point(n, r[0]), scale);
                   },
                   y.size() == 2 ? std::vector<std::string>{"m", "n", "b", "k"} : std::vector<std::string>{}));
}

/// y[..., n] = sum(block, i) q[..., block, i] * (w[k, n] - zero) * (s[..., block] * scale), k = block * size + i: w, scales and
/// zero points as those of DequantizeLinear; with transB w[n, k]. Behind the last k there is nothing.
void define_matmul_dequantized(OpBuilder& op) {
  const Tensor q = op.in(0), s = op.in(1), w = op.in(2), scales = op.in(3);
  if (w.rank() != 2 || !is_int(w.dtype())) op.reject("the weights must be a matrix of integers", 2);
  const bool turned = op.attr_int("transB") != 0;
  const int64_t depth = w.dims()[turned ? 1 : 0], columns = w.dims()[turned ? 0 : 1];
  check_blocks(op, depth);
  const int64_t size = q.dims().back(), blocks = s.dims().back();
  const Granularity g = read_granularity(op, 2, 3, 4);
  const bool along_sum = g.block > 0, fits = g.axis == (turned == along_sum ? 1 : 0);
  const bool whole = !along_sum || g.block % size == 0 || g.block >= depth;
  if (num_elements(scales.dims()) > 1 && (!fits || !whole)) op.reject("a block must have one scale", 3);
  Dims y = s.dims();
  y.back() = columns;
  auto at = [&](const Expr& k, const Expr& n) { return turned ? Exprs{n, k} : Exprs{k, n}; };
  op.output(0, op.reduce(
                   "matmul", Op::Add, DType::F32, y, {blocks, size},
                   [&](const Exprs& i, const Exprs& r) {
                     const Expr& n = i.back();
                     const Expr first = r[0] * Expr(size), k = first + r[1];
                     Exprs of_block(i.begin(), i.end() - 1);
                     of_block.push_back(r[0]);
                     Exprs of_number = of_block;
                     of_number.push_back(r[1]);
                     Expr number = cast(DType::I32, w(at(k, n)));
                     if (depth % size != 0) number = select(k < Expr(depth), number, make_int(DType::I32, 0));
                     if (op.has(4)) number = number - cast(DType::I32, g.at(op.in(4), at(first, n)));
                     return term(q(of_number), number, s(of_block) * g.at(scales, at(first, n)));
                   },
                   y.size() == 2 ? std::vector<std::string>{"m", "n", "b", "k"} : std::vector<std::string>{}));
}

/// y[t, j, n] = bias[e, n] + sum(block, i) q[t, j, block, i] * (w[e, n, k] - zero) * (s[t, j, block] * scale), e = chosen[t, j] and
/// k = block * size + i: packed weights [experts, columns, bytes], scales and zero points [experts, columns, blocks]; q and s
/// without the axis j are the same for all of it.
void define_expert_matmul_blocks(OpBuilder& op) {
  const Tensor q = op.in(0), s = op.in(1), chosen = op.in(2), packed = op.in(3), scales = op.in(5);
  const int64_t bits = op.attr_int("bits"), size = q.dims().back(), block = op.attr_int("block_size");
  const Dims rows = chosen.dims(), d = packed.dims();
  if (rows.size() != 2) op.reject("experts are chosen for rows", 2);
  if (d.size() != 3 || (bits != 4 && bits != 8)) op.reject("the weights must be packed", 3);
  const int64_t experts = d[0], columns = d[1], depth = d[2] * 8 / bits;
  check_blocks(op, depth);
  Dims wanted = {rows[0], rows[1], s.dims().back()};
  const bool same_for_all = s.rank() == 2;
  if (same_for_all) wanted.erase(wanted.begin() + 1);
  if (s.dims() != wanted) op.reject("the input does not fit the chosen experts", 0);
  if (block < size || block % size != 0 || depth % block != 0) op.reject("a block must have one scale", 5);
  const Dims each = {experts, columns, depth / block};
  if (scales.dims() != each || (op.has(6) && op.in(6).dims() != each)) op.reject("one scale per block is needed", 5);
  const Dims out = {rows[0], rows[1], columns};
  const Tensor sum =
      op.reduce("matmul", Op::Add, DType::F32, out, {s.dims().back(), size},
                [&](const Exprs& i, const Exprs& r) {
                  const Expr e = chosen_expert(chosen, i, experts), first = r[0] * Expr(size);
                  Exprs of_block = same_for_all ? Exprs{i[0], r[0]} : Exprs{i[0], i[1], r[0]};
                  const Exprs of_scale = {e, i[2], floor_div(first, Expr(block))};
                  const Expr scale = s(of_block) * widen(scales(of_scale));
                  of_block.push_back(r[1]);
                  const Expr w = unpacked([&](const Expr& at) { return packed({e, i[2], at}); }, first + r[1], bits);
                  const Expr zero =
                      op.has(6) ? cast(DType::I32, op.in(6)(of_scale)) : make_int(DType::I32, int64_t(1) << (bits - 1));
                  return term(q(of_block), w - zero, scale);
                },
                {"t", "j", "n", "b", "k"});
  output_with_bias(op, sum, 4, chosen, experts);
}

}  // namespace

OpFamily block_products_ops() {
  const AttrSpec block = int_attr("block_size", 0), bits = int_attr("bits", 4);
  return {
      {"block_scales", 1, {block}, define_block_scales, "x", "scale", "tc"},
      {"quantize_blocks", 1, {block}, define_quantize_blocks, "x s", "quantize", "tc"},
      {"matmul_blocks", 1, {int_attr("N", 0), bits}, define_matmul_blocks, "q s packed scales zeros", "matmul", "tc"},
      {"matmul_dequantized",
       1,
       {int_attr("axis", 1), block, int_attr("transB", 0)},
       define_matmul_dequantized,
       "q s w scales zeros",
       "matmul",
       "tc"},
      {"expert_matmul_blocks",
       1,
       {bits, block},
       define_expert_matmul_blocks,
       "q s chosen packed bias scales zeros",
       "expert_matmul",
       "tc"},
  };
}

}  // namespace tc
