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

void define_col2im(OpBuilder& op) {
  const Tensor x = op.in(0);
  const Dims image = op.const_ints(1), block = op.const_ints(2), d = x.dims();
  const size_t rank = image.size();
  if (rank == 0 || block.size() != rank)
    op.reject("image_shape and block_shape must have one value per spatial axis", 2);
  for (size_t k = 0; k < rank; k++)
    if (image[k] < 1 || block[k] < 1) op.reject("image_shape and block_shape must be positive", 1);
  if (d.size() != 3) op.reject("the input must have the shape [N, C * block, positions]", 0);
  const Window w = make_window(op, image, block);
  const int64_t taps = num_elements(block);
  if (d[1] % taps != 0) op.reject("axis 1 of the input is no multiple of the block's size", 0);
  if (d[2] != num_elements(w.out))
    op.reject("the input has " + to_text(d[2]) + " positions, but the image gives " + to_text(num_elements(w.out)), 0);
  const DType t = x.dtype(), wide = compute_type(t);
  Dims out = {d[0], d[1] / taps};
  out.insert(out.end(), image.begin(), image.end());
  std::vector<std::string> names = {"n", "c"};
  for (std::string& s : spatial_names("", rank)) names.push_back(std::move(s));
  for (std::string& s : spatial_names("k", rank)) names.push_back(std::move(s));
  const Tensor y = op.reduce(
      "col2im", Op::Add, wide, out, block,
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
        return widen(select(inside, v, zero(t)));
      },
      names);
  op.output(0, convert(op, y, t, "cast"));
}

}  // namespace tc
