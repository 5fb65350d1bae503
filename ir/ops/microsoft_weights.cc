// Weights of 2, 4 or 8 bits with a scale for each block of them, as quantisers of language models write them
// (com.microsoft). A weight is (q - zero point) * scale; without zero points, q is an offset from the middle of its
// range.
//   MatMulNBits(x, packed, scales, zero points)  ->  w = tc.unpack_weights(packed, scales, zero points); MatMul(x, w)
//   MatMulBnb4(x, packed, absmax)  ->  w = tc.unpack_bnb4(packed, absmax, the numbers that its 16 codes stand for); MatMul(x, w)
// Weights are known while compiling, so that what is emitted multiplies by numbers of the scales' type, or by bytes in blocks
// (block_products.cc).
#include "ir/ops/expansion.h"
#include "ir/ops/numeric.h"
#include "ir/ops/packed_numbers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

int64_t read_bits(const OpBuilder& op) {
  const int64_t bits = op.attr_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) op.unsupported("weights of " + to_text(bits) + " bits");
  return bits;
}

/// y[k, n], K x N: packed [N, blocks, bytes]; scales and zero points are N * blocks numbers, row by row. Zero points in
/// bytes are packed as the weights are, each row from a byte of its own. The order (g_idx), if there is one, says the block
/// of each k.
void define_unpack_weights(OpBuilder& op) {
  const Tensor packed = op.in(0), scales = op.in(1);
  const int64_t bits = read_bits(op), columns = op.attr_int("N"), depth = op.attr_int("K"),
                block = op.attr_int("block_size");
  if (columns < 1 || depth < 1 || block < 1 || block * bits % 8 != 0)
    op.reject("N, K and block_size must be positive, and blocks whole bytes");
  const int64_t blocks = ceil_quotient(depth, block);
  if (num_elements(packed.dims()) != columns * blocks * (block * bits / 8))
    op.reject("the weights do not fit N and K", 0);
  if (num_elements(scales.dims()) != columns * blocks) op.reject("one scale per block is needed", 1);
  const bool shifted = op.has(2), whole = shifted && op.in(2).dtype() == DType::U8;
  const int64_t row = whole ? ceil_quotient(blocks * bits, 8) : blocks;
  if (shifted && num_elements(op.in(2).dims()) != columns * row) op.reject("one zero point per block is needed", 2);
  if (op.has(3) && num_elements(op.in(3).dims()) < depth) op.reject("the order must have K elements", 3);
  const DType t = scales.dtype();
  auto flat = [](const Tensor& x, const Expr& at) { return x(delinearize(at, x.dims())); };
  auto zero_point = [&](const Expr& n, const Expr& index) {
    if (!shifted) return make_const(DType::F32, double(int64_t(1) << (bits - 1)));
    if (!whole) return cast(DType::F32, flat(op.in(2), n * row + index));
    return cast(DType::F32, unpacked([&](const Expr& at) { return flat(op.in(2), n * row + at); }, index, bits));
  };
  auto weight = [&](const Exprs& i) {
    const Expr index =
        op.has(3) ? checked_index(cast(DType::I64, flat(op.in(3), i[0])), blocks) : floor_div(i[0], Expr(block));
    const Expr q =
        unpacked([&](const Expr& at) { return flat(packed, i[1] * (blocks * (block * bits / 8)) + at); }, i[0], bits);
    const Expr distance = cast(DType::F32, q) - zero_point(i[1], index);
    return cast(t, distance * cast(DType::F32, flat(scales, i[1] * blocks + index)));
  };
  op.output(0, op.compute("weights", t, {depth, columns}, weight, {"k", "n"}));
}

/// x, packed weights, scales, zero points, an order of the rows, bias.
bool expand_matmul(Graph& g, Node* n) {
  const Expansion e(g, n);
  if (e.optional(3) && e.optional(4)) e.unsupported("an order of the weights (g_idx) with zero points");
  Value* w = e.op("unpack_weights", {e.in(1), e.in(2), e.optional(3), e.optional(4)}, "_weights",
                  e.attrs_named({"K", "N", "bits", "block_size", "accuracy_level"}), "tc");
  Value* x = e.in(0);
  if (w->type.dtype != x->type.dtype) e.reject("the scales must have the type of the input");
  Value* bias = e.optional(5);
  Value* y = e.op("MatMul", {x, w}, bias ? "_product" : "");
  e.finish(0, bias ? e.op("Add", {y, bias}, "") : y);
  return true;
}

/// w[k, n], K x N: code number n * K + k of packed, the high four bits of a byte first, as a number of the table, times the
/// largest magnitude of its block (bitsandbytes; Dettmers et al., "QLoRA", 2023).
void define_unpack_bnb4(OpBuilder& op) {
  const Tensor packed = op.in(0), absmax = op.in(1), table = op.in(2);
  const int64_t columns = op.attr_int("N"), depth = op.attr_int("K"), block = op.attr_int("block_size");
  if (columns < 1 || depth < 1 || block < 1) op.reject("N, K and block_size must be positive");
  const int64_t all = checked_mul(columns, depth);
  if (num_elements(packed.dims()) != ceil_quotient(all, 2)) op.reject("the weights do not fit N and K", 0);
  if (num_elements(absmax.dims()) != ceil_quotient(all, block)) op.reject("one number per block is needed", 1);
  auto flat = [](const Tensor& x, const Expr& at) { return x(delinearize(at, x.dims())); };
  // The block of w[k, n]; where blocks do not go from one column to the next, it depends on k / block alone.
  auto block_of = [&](const Expr& k, const Expr& n) {
    if (depth % block == 0) return n * Expr(depth / block) + floor_div(k, Expr(block));
    if (block % depth == 0) return floor_div(n, Expr(block / depth));
    return floor_div(n * Expr(depth) + k, Expr(block));
  };
  op.output(0, op.compute("weights", absmax.dtype(), {depth, columns},
                          [&](const Exprs& i) {
                            const Expr at = i[1] * depth + i[0];
                            const Expr byte = cast(DType::I32, flat(packed, floor_div(at, Expr(2))));
                            const Expr shift = (Expr(1) - floor_mod(at, Expr(2))) * 4;
                            const Expr code = apply(Op::BitAnd, {apply(Op::Shr, {byte, cast(DType::I32, shift)}),
                                                                 make_int(DType::I32, 15)});
                            return cast(absmax.dtype(),
                                        table({cast(DType::I64, code)}) * widen(flat(absmax, block_of(i[0], i[1]))));
                          },
                          {"k", "n"}));
}

/// What the codes of `quant_type` stand for: of 0, floats of four bits (their largest is 1), of 1, the quantiles of a normal
/// distribution ("NormalFloat").
std::vector<double> numbers_of_codes(int64_t quant_type) {
  if (quant_type == 1)
    return {-1.0,
            -0.6961928009986877,
            -0.5250730514526367,
            -0.39491748809814453,
            -0.28444138169288635,
            -0.18477343022823334,
            -0.09105003625154495,
            0.0,
            0.07958029955625534,
            0.16093020141124725,
            0.24611230194568634,
            0.33791524171829224,
            0.44070982933044434,
            0.5626170039176941,
            0.7229568362236023,
            1.0};
  std::vector<double> t = {0, 5.208333333e-3, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25};
  for (size_t k = 0; k < 8; k++) t.push_back(-t[k]);
  t[8] = 0;
  return t;
}

/// x, packed weights, the largest magnitudes of their blocks.
bool expand_matmul_bnb4(Graph& g, Node* n) {
  const Expansion e(g, n);
  if (e.attr_int("transB") != 1) e.unsupported("weights that are not transposed (transB)");
  const int64_t type = e.attr_int("quant_type");
  if (type != 0 && type != 1) e.reject("quant_type is 0 (FP4) or 1 (NF4)");
  Value* table = e.floats(DType::F32, {16}, numbers_of_codes(type), "_codes");
  Value* w = e.op("unpack_bnb4", {e.in(1), e.in(2), table}, "_weights", e.attrs_named({"K", "N", "block_size"}), "tc");
  if (w->type.dtype != e.in(0)->type.dtype) e.reject("the magnitudes must have the type of the input");
  e.finish(0, e.op("MatMul", {e.in(0), w}, ""));
  return true;
}

/// Rows of a table that is stored in blocks: data, indices, scales, zero points. Bytes hold one number of 8 bits or two
/// of 4 along their last axis; zero points are stored as the data is.
void define_gather(OpBuilder& op) {
  const Tensor data = op.in(0), indices = op.in(1), scales = op.in(2);
  const bool bytes = data.dtype() == DType::U8;
  const int64_t bits = bytes ? read_bits(op) : 8, block = op.attr_int("block_size", 128);
  Dims d = data.dims();
  if (d.empty()) op.reject("the data must have axes", 0);
  d.back() *= 8 / bits;
  const int rank = int(d.size());
  const int axis = op.axis(op.attr_int("gather_axis", 0), rank), along = op.axis(op.attr_int("quantize_axis", 1), rank);
  if (axis == along) op.reject("gather_axis and quantize_axis must differ");
  if (block < 1) op.reject("block_size must be positive");
  Dims blocks = d;
  blocks[size_t(along)] = ceil_quotient(d[size_t(along)], block);
  if (scales.dims() != blocks) op.reject("the scales must have the shape " + to_text(to_shape(blocks)), 2);
  Dims zeros = blocks;
  zeros.back() = ceil_quotient(zeros.back() * bits, 8);
  if (op.has(3) && op.in(3).dims() != zeros)
    op.reject("the zero points must have the shape " + to_text(to_shape(zeros)), 3);
  const DType t = scales.dtype();
  auto number = [&](const Tensor& x, const Exprs& at) {
    return unpacked([&](const Expr& last) { return x(with_axis(at, rank - 1, last)); }, at.back(), bits);
  };
  Dims y = d;
  const Dims wanted = indices.dims();
  y.erase(y.begin() + axis);
  y.insert(y.begin() + axis, wanted.begin(), wanted.end());
  op.output(0, op.compute("gather", t, y, [&](const Exprs& i) {
    const auto from = i.begin() + axis, to = from + std::ptrdiff_t(wanted.size());
    const Expr index = cast(DType::I64, indices(Exprs(from, to)));
    const int64_t size = d[size_t(axis)];
    Exprs at(i.begin(), from);
    at.push_back(checked_index(index, size));  // from the end, too
    at.insert(at.end(), to, i.end());
    const Exprs in_block = with_axis(at, along, floor_div(at[size_t(along)], Expr(block)));
    const Expr zero_point =
        op.has(3) ? number(op.in(3), in_block) : make_int(DType::I32, bytes ? int64_t(1) << (bits - 1) : 0);
    return cast(t, cast(DType::F32, number(data, at) - zero_point) * widen(scales(in_block)));
  }));
}

}  // namespace

OpFamily microsoft_weights_ops() {
  const std::string_view ms = "com.microsoft";
  return {
      {.name = "MatMulNBits",
       .since = 1,
       .attrs = {optional_attr("K"), optional_attr("N"), int_attr("bits", 4), optional_attr("block_size"),
                 int_attr("accuracy_level", 0)},
       .define = nullptr,
       .domain = ms,
       .expand = expand_matmul},
      {.name = "MatMulBnb4",
       .since = 1,
       .attrs = {optional_attr("K"), optional_attr("N"), optional_attr("block_size"), optional_attr("quant_type"),
                 int_attr("training_mode", 0), int_attr("transB", 1)},
       .define = nullptr,
       .domain = ms,
       .expand = expand_matmul_bnb4},
      {"GatherBlockQuantized",
       1,
       {int_attr("gather_axis", 0), int_attr("quantize_axis", 1), int_attr("block_size", 128), int_attr("bits", 4)},
       define_gather,
       "data indices scales zeros",
       "gather",
       ms},
      {"unpack_weights",
       1,
       {int_attr("K", 0), int_attr("N", 0), int_attr("bits", 4), int_attr("block_size", 0),
        int_attr("accuracy_level", 0)},
       define_unpack_weights,
       "packed scales zeros order",
       "weights",
       "tc"},
      {"unpack_bnb4",
       1,
       {int_attr("K", 0), int_attr("N", 0), int_attr("block_size", 0)},
       define_unpack_bnb4,
       "packed absmax codes",
       "weights",
       "tc"},
  };
}

}  // namespace tc
