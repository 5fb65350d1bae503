// RoiAlign and MaxRoiPool: pooling inside of boxes that a tensor gives. Where the box decides how many samples a bin
// takes, the loops have run-time bounds, so these cases are nests.
#include "ir/ops/counted_sizes.h"
#include "ir/ops/numeric.h"
#include "ir/ops/window.h"

namespace tc {
namespace {

Expr i64(const Expr& e) { return cast(DType::I64, e); }

struct RoiAlign {
  Tensor x, rois, batch;
  DType t;
  Expr height = {}, width = {};
  int64_t out_height = 1, out_width = 1, samples = 0;
  float scale = 1;
  bool half_pixel = true, maximum = false;

  Expr c(double v) const { return make_const(t, v); }
  Expr real(const Expr& n) const {
    const auto known = as_const_int(n);
    return known ? c(double(*known)) : cast(t, n);
  }
  Expr edge(const Expr& roi, int k) const {
    const Expr e = widen(rois({roi, k})) * parameter(t, scale);
    return half_pixel ? e - c(0.5) : e;
  }
  /// Length of a bin along an axis: k = 0 for x, 1 for y.
  Expr bin(const Expr& roi, int k) const {
    Expr length = edge(roi, k + 2) - edge(roi, k);
    if (!half_pixel) length = max(length, c(1));
    return length / c(double(k == 0 ? out_width : out_height));
  }
  /// How many samples a bin takes along an axis.
  Expr grid(const Expr& roi, int k) const { return samples > 0 ? Expr(samples) : i64(apply(Op::Ceil, {bin(roi, k)})); }
  Expr position(const Expr& roi, int k, const Expr& bin_index, const Expr& sample) const {
    const Expr b = bin(roi, k);
    return edge(roi, k) + cast(t, bin_index) * b + (cast(t, sample) + c(0.5)) * b / cast(t, grid(roi, k));
  }

  /// One bilinear sample; 0 where it lies more than a pixel outside.
  Expr sample(const Exprs& i, const Expr& sy, const Expr& sx) const {
    const Expr y = position(i[0], 1, i[2], sy), xx = position(i[0], 0, i[3], sx);
    const Expr inside = y >= c(-1) && y <= real(height) && xx >= c(-1) && xx <= real(width);
    struct Side {
      Expr low, high, w_low, w_high;
    };
    auto side = [&](const Expr& v, const Expr& n) {
      const Expr p = max(v, c(0)), floor = i64(apply(Op::Floor, {p}));
      const Expr end = n - Expr(1), last = floor >= end;
      const Expr low = min(floor, end), high = min(floor + 1, end);
      const Expr frac = select(last, c(0), p - cast(t, floor));
      return Side{low, high, c(1) - frac, frac};
    };
    const Side v = side(y, height), h = side(xx, width);
    const Expr n = apply(Op::Index, {i64(batch({i[0]})), Expr(x.dim(0))});
    auto at = [&](const Expr& row, const Expr& column) { return widen(x({n, i[1], row, column})); };
    const Expr a = v.w_low * h.w_low * at(v.low, h.low), b = v.w_low * h.w_high * at(v.low, h.high);
    const Expr d = v.w_high * h.w_low * at(v.high, h.low), e = v.w_high * h.w_high * at(v.high, h.high);
    return select(inside, maximum ? max(max(a, b), max(d, e)) : a + b + d + e, c(0));
  }
};

Tensor roi_align_adaptive(OpBuilder& op, const RoiAlign& r, const Dims& out) {
  return op.nest("roi_align", {ValueType::tensor(r.t, to_shape(out))}, [&](const std::vector<Buffer>& y) {
    const Var roi = make_var("roi"), c = make_var("c"), oh = make_var("oh"), ow = make_var("ow");
    const Var sy = make_var("sy"), sx = make_var("sx"), rows = make_var("rows"), columns = make_var("columns");
    const Exprs i = {roi, c, oh, ow};
    const Expr none = Expr(rows) <= 0 || Expr(columns) <= 0;
    const Expr start = r.maximum ? select(none, zero(r.t), lowest(r.t)) : zero(r.t);
    const Expr count = cast(r.t, max(Expr(rows) * Expr(columns), Expr(1)));
    Stmt add = store(y[0], i, r.sample(i, sy, sx), r.maximum ? Op::Max : Op::Add);
    Stmt samples = loop(sy, max(Expr(rows), Expr(0)), loop(sx, max(Expr(columns), Expr(0)), add));
    Stmt bin = seq({store(y[0], i, start), samples, r.maximum ? Stmt() : store(y[0], i, load(y[0], i) / count)});
    Stmt bins = loop(c, out[1], loop(oh, out[2], loop(ow, out[3], bin)));
    return loop(roi, out[0], let(rows, r.grid(roi, 1), let(columns, r.grid(roi, 0), bins)));
  })[0];
}

Tensor roi_align_fixed(OpBuilder& op, const RoiAlign& r, const Dims& out) {
  const Tensor y = op.reduce("roi_align", r.maximum ? Op::Max : Op::Add, r.t, out, {r.samples, r.samples},
                             [&](const Exprs& i, const Exprs& s) { return r.sample(i, s[0], s[1]); },
                             {"roi", "c", "oh", "ow", "sy", "sx"});
  if (r.maximum || r.samples == 1) return y;
  return op.compute("average", r.t, out, [&](const Exprs& i) { return y(i) / r.c(double(r.samples * r.samples)); });
}

}  // namespace

void define_roi_align(OpBuilder& op) {
  RoiAlign r{op.in(0), op.in(1), op.in(2), compute_type(op.in(0).dtype())};
  if (r.x.rank() != 4) op.reject("the input must have the shape [N, C, H, W]", 0);
  if (r.rois.rank() != 2 || r.rois.dim(1) != 4) op.reject("rois must have the shape [number of boxes, 4]", 1);
  if (r.batch.dims() != Dims{r.rois.dim(0)}) op.reject("batch_indices must have one value per box", 2);
  r.height = Expr(r.x.dim(2));
  r.width = Expr(r.x.dim(3));
  int operand = kRoiAlignCounts;
  for (const int64_t axis : op.attr_ints(std::string(kCountedAxes)))
    (axis == 2 ? r.height : r.width) = counted_size(op, operand++);
  r.out_height = op.attr_int("output_height", 1);
  r.out_width = op.attr_int("output_width", 1);
  r.samples = op.attr_int("sampling_ratio", 0);
  r.scale = op.attr_float("spatial_scale", 1);
  const std::string mode = op.attr_string("mode", "avg"),
                    pixel = op.attr_string("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") op.reject("mode must be avg or max");
  if (pixel != "half_pixel" && pixel != "output_half_pixel")
    op.reject("coordinate_transformation_mode must be half_pixel or output_half_pixel");
  if (r.out_height < 1 || r.out_width < 1 || r.samples < 0)
    op.reject("output sizes must be positive, sampling_ratio not negative");
  if (r.x.dim(2) < 1 || r.x.dim(3) < 1 || r.x.dim(0) < 1) op.reject("an empty image cannot be pooled", 0);
  r.maximum = mode == "max";
  r.half_pixel = pixel == "half_pixel";
  const Dims out = {r.rois.dim(0), r.x.dim(1), r.out_height, r.out_width};
  op.output(0, convert(op, r.samples > 0 ? roi_align_fixed(op, r, out) : roi_align_adaptive(op, r, out), r.x.dtype(),
                       "cast"));
}

void define_max_roi_pool(OpBuilder& op) {
  const Tensor x = op.in(0), rois = op.in(1);
  const std::vector<int64_t> pooled = op.attr_ints("pooled_shape");
  if (x.rank() != 4) op.reject("the input must have the shape [N, C, H, W]", 0);
  if (rois.rank() != 2 || rois.dim(1) != 5) op.reject("rois must have the shape [number of boxes, 5]", 1);
  if (x.dim(0) == 0 && rois.dim(0) > 0) op.reject("there is no image to take regions from", 0);
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) op.reject("pooled_shape must hold two positive sizes");
  const DType t = x.dtype(), wide = compute_type(t);
  const Dims out = {rois.dim(0), x.dim(1), pooled[0], pooled[1]};
  const Expr scale = parameter(wide, op.attr_float("spatial_scale", 1));
  auto c = [&](double v) { return make_const(wide, v); };
  // C's round(): halves away from zero; the coordinates are those of a box drawn on whole pixels.
  auto corner = [&](const Expr& roi, int k) {
    const Expr v = widen(rois({roi, k})) * scale;
    return i64(select(v < c(0), apply(Op::Ceil, {v - c(0.5)}), apply(Op::Floor, {v + c(0.5)})));
  };
  op.output(0, op.nest("max_roi_pool", {ValueType::tensor(t, to_shape(out))}, [&](const std::vector<Buffer>& y) {
    const Var roi = make_var("roi"), ch = make_var("c"), oh = make_var("oh"), ow = make_var("ow");
    const Var h = make_var("h"), w = make_var("w"), n = make_var("n");
    const Var top = make_var("top"), bottom = make_var("bottom"), left = make_var("left"), right = make_var("right");
    auto bound = [&](const Expr& o, int low, int64_t bins, int64_t extent, bool end) {
      const Expr first = corner(roi, low), length = max(corner(roi, low + 2) - first + 1, Expr(1));
      const Expr bin = cast(wide, length) / c(double(bins));
      const Expr at = end ? apply(Op::Ceil, {cast(wide, o + 1) * bin}) : apply(Op::Floor, {cast(wide, o) * bin});
      return min(max(i64(at) + first, Expr(0)), Expr(extent));
    };
    const Exprs i = {roi, ch, oh, ow};
    const Expr empty = Expr(bottom) <= Expr(top) || Expr(right) <= Expr(left);
    Stmt scan = loop(h, max(Expr(bottom) - Expr(top), Expr(0)),
                     loop(w, max(Expr(right) - Expr(left), Expr(0)), store(y[0], i, x({n, ch, h, w}), Op::Max),
                          ForKind::Serial, left),
                     ForKind::Serial, top);
    Stmt bin = seq({store(y[0], i, select(empty, zero(t), lowest(t))), scan});
    bin = let(top, bound(oh, 2, pooled[0], x.dim(2), false), let(bottom, bound(oh, 2, pooled[0], x.dim(2), true), bin));
    bin = let(left, bound(ow, 1, pooled[1], x.dim(3), false), let(right, bound(ow, 1, pooled[1], x.dim(3), true), bin));
    Stmt bins = loop(ch, out[1], loop(oh, out[2], loop(ow, out[3], bin)));
    const Expr image = apply(Op::Index, {i64(rois({roi, 0})), Expr(x.dim(0))});
    return loop(roi, out[0], let(n, image, bins));
  })[0]);
}

}  // namespace tc
