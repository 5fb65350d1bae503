// MaxUnpool: writes each value where MaxPool found it. Col2Im: adds the columns of overlapping blocks back into an
// image.
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"
#include "ir/ops/window.h"

namespace tc {

void define_max_unpool(OpBuilder& op) {
  const Tensor x = op.in(0), indices = op.in(1);
  const Dims d = x.dims();
  if (d.size() < 3) op.reject("the input must have a batch axis, a channel axis and at least one spatial axis", 0);
  if (indices.dims() != d) op.reject("the indices must have the shape of the input", 1);
  const size_t rank = d.size() - 2;
  if (op.attr_ints("kernel_shape").empty()) op.reject("attribute kernel_shape is missing");
  const Dims kernel = spatial_attr(op, "kernel_shape", rank, 1, 1), strides = spatial_attr(op, "strides", rank, 1, 1);
  const Dims pads = spatial_attr(op, "pads", 2 * rank, 0, 0);
  Dims inferred = {d[0], d[1]};
  for (size_t k = 0; k < rank; k++)
    inferred.push_back(checked_mul(d[k + 2] - 1, strides[k]) - pads[k] - pads[rank + k] + kernel[k]);
  // The indices count in the inferred shape; a larger output_shape adds zeros at the end.
  const Dims out = op.known(2) ? (op.has(2) ? Dims(op.const_ints(2)) : inferred) : op.declared_dims(0, 2);
  if (out.size() != d.size()) op.reject("output_shape must have one value per axis of the input", 2);
  for (size_t k = 0; k < out.size(); k++)
    if (out[k] < inferred[k]) op.reject("output_shape is smaller than what the input needs", 2);
  const DType t = x.dtype();
  op.output(0, op.nest("max_unpool", {ValueType::tensor(t, to_shape(out))}, [&](const std::vector<Buffer>& y) {
    auto loops = [](const Dims& extents, const std::vector<Var>& vars, Stmt body) {
      for (size_t k = extents.size(); k-- > 0;) body = loop(vars[k], extents[k], body);
      return body;
    };
    std::vector<Var> o, i;
    for (size_t k = 0; k < out.size(); k++) o.push_back(make_var("o" + to_text(int64_t(k))));
    for (size_t k = 0; k < d.size(); k++) i.push_back(make_var("i" + to_text(int64_t(k))));
    const Exprs at(i.begin(), i.end());
    const Var position = make_var("position");
    const Expr safe = apply(Op::Index, {indices(at), Expr(num_elements(inferred))});
    return seq({loops(out, o, store(y[0], Exprs(o.begin(), o.end()), zero(t))),
                loops(d, i, let(position, safe, store(y[0], delinearize(position, inferred), x(at))))});
  })[0]);
}

namespace {

/// Every list of `rank` positive factors whose product is n.
std::vector<Dims> factorisations(int64_t n, size_t rank) {
  if (rank == 1) return {{n}};
  std::vector<Dims> all;
  for (int64_t f = 1; f <= n; f++) {
    if (n % f != 0) continue;
    for (Dims& rest : factorisations(n / f, rank - 1)) {
      rest.insert(rest.begin(), f);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

/// The blocks that fit the input and the image: the one that is given or, where it comes at run time, all that the
/// sizes allow. `taps` is the number of elements of a block.
std::vector<Dims> possible_blocks(OpBuilder& op, const Dims& image, int64_t taps, int64_t positions) {
  constexpr int64_t kMostTaps = 1 << 16;
  constexpr size_t kMostBlocks = 8, kMostAxes = 4;
  if (op.known(2)) return {op.const_ints(2)};
  if (taps > kMostTaps || image.size() > kMostAxes)
    op.unsupported("the block's shape must be known when the model is compiled", 2);
  const Dims dilations = spatial_attr(op, "dilations", image.size(), 1, 1);
  const Dims pads = spatial_attr(op, "pads", 2 * image.size(), 0, INT32_MIN);
  std::vector<Dims> fitting;
  for (Dims& block : factorisations(taps, image.size())) {
    bool fits = true;
    for (size_t k = 0; k < block.size(); k++)
      fits = fits && image[k] + pads[k] + pads[image.size() + k] >= dilations[k] * (block[k] - 1) + 1;
    if (fits && num_elements(make_window(op, image, block).out) == positions) fitting.push_back(std::move(block));
  }
  if (fitting.empty()) op.reject("no block fits the input and the image that the model declares", 2);
  if (fitting.size() > kMostBlocks) op.unsupported("the block's shape must be known when the model is compiled", 2);
  return fitting;
}

/// Adds the columns of x, blocks of one shape, into the image.
Tensor add_blocks(OpBuilder& op, const Tensor& x, const Dims& image, const Dims& block) {
  const Dims d = x.dims();
  const size_t rank = image.size();
  const Window w = make_window(op, image, block);
  const int64_t taps = num_elements(block);
  if (d[1] % taps != 0) op.reject("axis 1 of the input is no multiple of the block's size", 0);
  if (d[2] != num_elements(w.out))
    op.reject("the input has " + to_text(d[2]) + " positions, but the image gives " + to_text(num_elements(w.out)), 0);
  Dims out = {d[0], d[1] / taps};
  out.insert(out.end(), image.begin(), image.end());
  std::vector<std::string> names = {"n", "c"};
  for (std::string& s : spatial_names("", rank)) names.push_back(std::move(s));
  for (std::string& s : spatial_names("k", rank)) names.push_back(std::move(s));
  return op.reduce(
      "col2im", Op::Add, compute_type(x.dtype()), out, block,
      [&](const Exprs& i, const Exprs& r) {
        Expr inside = make_int(DType::Bool, 1);
        Exprs position;
        for (size_t k = 0; k < rank; k++) {
          const Expr p = i[2 + k] + w.begin[k] - r[k] * w.dilations[k];
          if (w.strides[k] > 1) inside = inside && eq(floor_mod(p, w.strides[k]), 0);
          position.push_back(floor_div(p, w.strides[k]));
          inside = inside && position[k] >= 0 && position[k] < w.out[k];
        }
        const Expr v = x({i[0], i[1] * taps + linear_index(r, block), linear_index(position, w.out)});
        return widen(select(inside, v, zero(x.dtype())));
      },
      names);
}

}  // namespace

/// A shape of the image that comes at run time is the declared one; a block that comes at run time is one of those that
/// the sizes allow, and run() returns E_RANGE where it is another one.
void define_col2im(OpBuilder& op) {
  const Tensor x = op.in(0);
  const Dims d = x.dims();
  if (d.size() != 3) op.reject("the input must have the shape [N, C * block, positions]", 0);
  Dims image;
  int64_t taps = 0;
  if (!op.known(1) || !op.known(2)) {
    const Dims declared = op.declared_dims(0, op.known(1) ? 2 : 1);
    if (declared.size() < 3 || declared[0] != d[0] || declared[1] < 1 || d[1] % declared[1] != 0)
      op.reject("the declared shape does not fit the input", 1);
    image.assign(declared.begin() + 2, declared.end());
    taps = d[1] / declared[1];
  }
  if (op.known(1)) image = op.const_ints(1);
  const auto rank = int64_t(image.size());
  if (rank == 0 || length_of(op, 1) != rank || length_of(op, 2) != rank)
    op.reject("image_shape and block_shape must have one value per spatial axis", 2);
  auto positive = [&](const Dims& sizes, int input) {
    for (int64_t n : sizes)
      if (n < 1) op.reject("image_shape and block_shape must be positive", input);
  };
  positive(image, 1);
  const std::vector<Dims> blocks = possible_blocks(op, image, taps, d[2]);
  positive(blocks[0], 2);
  std::vector<Candidate> candidates;
  for (const Dims& block : blocks) {
    Expr given = make_int(DType::Bool, 1);
    for (size_t k = 0; k < block.size(); k++) given = given && eq(element(op, 2, int64_t(k)), Expr(block[k]));
    candidates.push_back({given, add_blocks(op, x, image, block)});
  }
  const Tensor y = candidates.size() == 1 ? candidates[0].result : choose(op, "chosen", candidates);
  op.output(0, convert(op, y, x.dtype(), "cast"));
}

}  // namespace tc
