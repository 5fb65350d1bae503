// Sliding windows over the spatial axes of a tensor: what convolutions and pools share.
#pragma once
#include <string>
#include <vector>

#include "ir/ops/op.h"

namespace tc {

/// Where batch, channels and spatial axes sit: [N, C, spatial...] or, channels last, [N, spatial..., C].
struct Layout {
  bool channels_last = false;
  Exprs at(const Expr& n, const Expr& c, const Exprs& spatial) const;
  Dims dims(int64_t n, int64_t c, const Dims& spatial) const;
  int channel_axis(int rank) const { return channels_last ? rank - 1 : 1; }
  /// The parts of an index of this layout.
  Expr channel(const Exprs& i) const { return channels_last ? i.back() : i.at(1); }
  Exprs spatial(const Exprs& i) const;
  Dims spatial(const Dims& d) const;
  /// Names of the axes of a result: n, c, oh, ow, in the order of the layout.
  std::vector<std::string> names(const std::string& channel, const std::string& prefix, size_t spatial_rank) const;
};
/// From the attribute data_layout, "NCHW" (any number of spatial axes) or "NHWC".
Layout layout_of(const OpBuilder& op);

/// "oh", "ow" for two axes, "od", "oh", "ow" for three, "o0".. for more.
std::vector<std::string> spatial_names(const std::string& prefix, size_t rank);

/// Window positions, one entry per spatial axis: output o, tap k reads the input at o * stride + k * dilation - begin.
struct Window {
  Dims in, kernel, strides, dilations, begin, end, out;

  size_t rank() const { return in.size(); }
  Expr position(size_t axis, const Expr& o, const Expr& k) const {
    return o * strides[axis] + k * dilations[axis] - begin[axis];
  }
  Exprs positions(const Exprs& o, const Exprs& k) const;
  /// True where every position lies inside the input; only the sides that can leave it are tested, so that the
  /// constant true is returned for windows without padding.
  Expr in_range(const Exprs& positions) const;
  bool padded() const;
};

/// Reads strides, dilations, pads and auto_pad, and sizes the output. `kernel` has one extent per spatial axis.
Window make_window(OpBuilder& op, const Dims& in, const Dims& kernel, bool ceil_mode = false);
/// The attribute, or `otherwise` for every axis; rejects a wrong length or values below `least`.
Dims spatial_attr(const OpBuilder& op, const std::string& name, size_t count, int64_t otherwise, int64_t least);

}  // namespace tc
