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
  /// A box along an axis: where it begins, the length of a bin, the samples in it.
  struct Along {
    Expr start, bin, count;
  };
  Along along(const Expr& roi, int k) const { return {edge(roi, k), bin(roi, k), grid(roi, k)}; }
  Expr position(const Along& a, const Expr& bin_index, const Expr& sample) const {
    return a.start + cast(t, bin_index) * a.bin + (cast(t, sample) + c(0.5)) * a.bin / cast(t, a.count);
  }

  /// The two neighbours of a position along an axis of n pixels, and how much the higher one counts.
  struct Side {
    Expr low, high, weight;
  };
  Side side(const Expr& at, const Expr& n) const {
    const Expr p = max(at, c(0)), floor = i64(apply(Op::Floor, {p})), end = n - Expr(1);
    return {min(floor, end), min(floor + 1, end), select(floor >= end, c(0), p - cast(t, floor))};
  }
  Expr image(const Expr& roi) const { return apply(Op::Index, {i64(batch({roi})), Expr(x.dim(0))}); }
  /// What a sample gives, between the rows of v and the columns of h.
  Expr sample(const Expr& image, const Expr& channel, const Side& v, const Side& h) const {
    auto at = [&](const Expr& row, const Expr& column) { return widen(x({image, channel, row, column})); };
    const Expr above = c(1) - v.weight, before = c(1) - h.weight;
    const Expr a = above * before * at(v.low, h.low), b = above * h.weight * at(v.low, h.high);
    const Expr d = v.weight * before * at(v.high, h.low), e = v.weight * h.weight * at(v.high, h.high);
    auto higher = [](const Expr& p, const Expr& q) { return select(p < q, q, p); };
    return maximum ? higher(higher(a, b), higher(d, e)) : a + b + d + e;
  }
  /// Samples more than a pixel outside of the image are 0.
  Expr inside(const Expr& at, const Expr& n) const { return at >= c(-1) && at <= real(n); }
};

/// So many channels share what depends on the box alone.
constexpr int64_t kChannels = 8;

/// Loops around body(bin, channels): bins {roi, first channel, oh, ow} of so many channels.
Stmt for_each_bin(const Dims& out, const std::function<Stmt(const Exprs& bin, const Expr& channels)>& body) {
  const Var roi = make_var("roi"), part = make_var("part"), oh = make_var("oh"), ow = make_var("ow");
  const int64_t parts = (out[1] + kChannels - 1) / kChannels;
  const Expr first = Expr(part) * Expr(kChannels), left = Expr(out[1]) - first;
  const bool even = out[1] % kChannels == 0;
  const Stmt bin = body({roi, first, oh, ow}, parts == 1 ? Expr(out[1])
                                              : even     ? Expr(kChannels)
                                                         : min(Expr(kChannels), left));
  return loop(roi, out[0], loop(part, parts, loop(oh, out[2], loop(ow, out[3], bin))));
}

/// One axis of a box whose size decides how many samples a bin takes, in names; k = 0 for x, 1 for y.
struct Samples {
  const RoiAlign& r;
  int k;
  std::string axis = k == 0 ? "x" : "y";
  Var start = make_var(axis + "_start", r.t), bin = make_var(k == 0 ? "bin_width" : "bin_height", r.t),
      count = make_var(k == 0 ? "columns" : "rows");

  Stmt named(const Expr& roi, Stmt body) const {
    body = let(count, i64(apply(Op::Ceil, {bin})), body);
    return let(start, r.edge(roi, k), let(bin, r.bin(roi, k), body));
  }
  /// Loops over the samples of a bin: body(side) where one lies inside of the image, `outside` elsewhere.
  Stmt each(const Expr& bin_index, const Stmt& outside, const std::function<Stmt(const RoiAlign::Side&)>& body) const {
    const Var s = make_var("s" + axis), at = make_var("at_" + axis, r.t), weight = make_var(axis + "_weight", r.t);
    const Var low = make_var(axis + "_low"), high = make_var(axis + "_high");
    const Expr n = k == 0 ? r.width : r.height;
    const RoiAlign::Side side = r.side(at, n);
    const Stmt inside = let(low, side.low, let(high, side.high, let(weight, side.weight, body({low, high, weight}))));
    const Stmt one = let(at, r.position({start, bin, count}, bin_index, s), if_then(r.inside(at, n), inside, outside));
    return loop(s, max(Expr(count), Expr(0)), one);
  }
};

Tensor roi_align_adaptive(OpBuilder& op, const RoiAlign& r, const Dims& out) {
  const Op join = r.maximum ? Op::Max : Op::Add;
  return op.nest("roi_align", {ValueType::tensor(r.t, to_shape(out))}, [&](const std::vector<Buffer>& y) {
    return for_each_bin(out, [&](const Exprs& bin, const Expr& channels) {
      const Samples rows{r, 1}, columns{r, 0};
      const Var image = make_var("image");
      const Buffer joined = make_buffer(r.maximum ? "highest" : "sums", r.t, {Dim(kChannels)}, Scope::Stack);
      auto each = [&](const std::function<Stmt(const Exprs& c, const Expr& channel)>& f) {
        const Var c = make_var("c");
        return loop(c, channels, f({c}, bin[1] + Expr(c)));
      };
      const Expr none = Expr(rows.count) <= 0 || Expr(columns.count) <= 0;
      const Expr start = r.maximum ? select(none, r.c(0), lowest(r.t)) : r.c(0);
      auto nothing = [&] {
        return r.maximum ? each([&](const Exprs& c, const Expr&) { return store(joined, c, r.c(0), join); }) : Stmt();
      };
      const Stmt samples = rows.each(bin[2], nothing(), [&](const RoiAlign::Side& v) {
        return columns.each(bin[3], nothing(), [&](const RoiAlign::Side& h) {
          return each([&](const Exprs& c, const Expr& channel) {
            return store(joined, c, r.sample(image, channel, v, h), join);
          });
        });
      });
      const Expr count = cast(r.t, max(Expr(rows.count) * Expr(columns.count), Expr(1)));
      const Stmt bins = seq({each([&](const Exprs& c, const Expr&) { return store(joined, c, start); }), samples,
                             each([&](const Exprs& c, const Expr& channel) {
                               const Expr result = load(joined, c);
                               return store(y[0], with_axis(bin, 1, channel), r.maximum ? result : result / count);
                             })});
      const Stmt named = rows.named(bin[0], columns.named(bin[0], alloc(joined, bins)));
      return let(image, r.image(bin[0]), named);
    });
  })[0];
}

Tensor roi_align_fixed(OpBuilder& op, const RoiAlign& r, const Dims& out) {
  Tensor y = op.reduce("roi_align", r.maximum ? Op::Max : Op::Add, r.t, out, {r.samples, r.samples},
                       [&](const Exprs& i, const Exprs& s) {
                         const Expr v = r.position(r.along(i[0], 1), i[2], s[0]),
                                    h = r.position(r.along(i[0], 0), i[3], s[1]);
                         const Expr value = r.sample(r.image(i[0]), i[1], r.side(v, r.height), r.side(h, r.width));
                         return select(r.inside(v, r.height) && r.inside(h, r.width), value, r.c(0));
                       },
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
  auto bound = [&](const Expr& roi, const Expr& o, int low, int64_t bins, int64_t extent, bool end) {
    const Expr first = corner(roi, low), length = max(corner(roi, low + 2) - first + 1, Expr(1));
    const Expr bin = cast(wide, length) / c(double(bins));
    const Expr at = end ? apply(Op::Ceil, {cast(wide, o + 1) * bin}) : apply(Op::Floor, {cast(wide, o) * bin});
    return min(max(i64(at) + first, Expr(0)), Expr(extent));
  };
  op.output(0, op.nest("max_roi_pool", {ValueType::tensor(t, to_shape(out))}, [&](const std::vector<Buffer>& y) {
    return for_each_bin(out, [&](const Exprs& bin, const Expr& channels) {
      const Var ch = make_var("c"), h = make_var("h"), w = make_var("w"), image = make_var("image");
      const Var top = make_var("top"), bottom = make_var("bottom"), left = make_var("left"), right = make_var("right");
      const Buffer highest = make_buffer("highest", t, {}, Scope::Register);
      const Expr& roi = bin[0];
      const Expr channel = bin[1] + Expr(ch), nothing = Expr(bottom) <= Expr(top) || Expr(right) <= Expr(left);
      const Stmt one = store(highest, {}, x({image, channel, h, w}), Op::Max);
      const Stmt scan = loop(h, Expr(bottom) - Expr(top), loop(w, Expr(right) - Expr(left), one, ForKind::Serial, left),
                             ForKind::Serial, top);
      const Stmt each =
          seq({store(highest, {}, select(nothing, zero(t), lowest(t))), if_then(logical_not(nothing), scan),
               store(y[0], with_axis(bin, 1, channel), load(highest, {}))});
      Stmt body = loop(ch, channels, alloc(highest, each));
      body = let(top, bound(roi, bin[2], 2, pooled[0], x.dim(2), false),
                 let(bottom, bound(roi, bin[2], 2, pooled[0], x.dim(2), true), body));
      body = let(left, bound(roi, bin[3], 1, pooled[1], x.dim(3), false),
                 let(right, bound(roi, bin[3], 1, pooled[1], x.dim(3), true), body));
      return let(image, apply(Op::Index, {i64(rois({roi, 0})), Expr(x.dim(0))}), body);
    });
  })[0]);
}

}  // namespace tc
