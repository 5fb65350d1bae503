#include "ir/ops/spatial.h"

#include "ir/ops/numeric.h"

namespace tc {

Exprs Layout::at(const Expr& n, const Expr& c, const Exprs& spatial) const {
  Exprs i = {n};
  if (!channels_last) i.push_back(c);
  i.insert(i.end(), spatial.begin(), spatial.end());
  if (channels_last) i.push_back(c);
  return i;
}

Dims Layout::dims(int64_t n, int64_t c, const Dims& spatial) const {
  Dims d = {n};
  if (!channels_last) d.push_back(c);
  d.insert(d.end(), spatial.begin(), spatial.end());
  if (channels_last) d.push_back(c);
  return d;
}

Exprs Layout::spatial(const Exprs& i) const {
  return channels_last ? Exprs(i.begin() + 1, i.end() - 1) : Exprs(i.begin() + 2, i.end());
}

Dims Layout::spatial(const Dims& d) const {
  return channels_last ? Dims(d.begin() + 1, d.end() - 1) : Dims(d.begin() + 2, d.end());
}

std::vector<std::string> spatial_names(const std::string& prefix, size_t rank) {
  static const char* const kNames[] = {"d", "h", "w"};
  std::vector<std::string> names;
  for (size_t k = 0; k < rank; k++) names.push_back(prefix + (rank <= 3 ? kNames[3 - rank + k] : to_text(int64_t(k))));
  return names;
}

std::vector<std::string> Layout::names(const std::string& channel, const std::string& prefix,
                                       size_t spatial_rank) const {
  std::vector<std::string> names = {"n"};
  if (!channels_last) names.push_back(channel);
  for (std::string& s : spatial_names(prefix, spatial_rank)) names.push_back(std::move(s));
  if (channels_last) names.push_back(channel);
  return names;
}

Layout layout_of(const OpBuilder& op) {
  const std::string text = op.attr_string("data_layout", "NCHW");
  if (text != "NCHW" && text != "NHWC") op.reject("data_layout must be NCHW or NHWC");
  return Layout{text == "NHWC"};
}

Exprs Window::positions(const Exprs& o, const Exprs& k) const {
  Exprs p;
  for (size_t d = 0; d < rank(); d++) p.push_back(position(d, o[d], k[d]));
  return p;
}

Expr Window::in_range(const Exprs& positions) const {
  Expr inside = make_int(DType::Bool, 1);
  for (size_t d = 0; d < rank(); d++) {
    const int64_t last = (out[d] - 1) * strides[d] + (kernel[d] - 1) * dilations[d] - begin[d];
    if (begin[d] > 0) inside = inside && positions[d] >= 0;
    if (last >= in[d]) inside = inside && positions[d] < in[d];
  }
  return inside;
}

bool Window::padded() const {
  for (size_t d = 0; d < rank(); d++) {
    const int64_t last = (out[d] - 1) * strides[d] + (kernel[d] - 1) * dilations[d] - begin[d];
    if (begin[d] > 0 || last >= in[d]) return true;
  }
  return false;
}

Dims spatial_attr(const OpBuilder& op, const std::string& name, size_t count, int64_t otherwise, int64_t least) {
  Dims v = op.attr_ints(name);
  if (v.empty()) return Dims(count, otherwise);
  if (v.size() != count)
    op.reject("attribute " + name + " has " + to_text(int64_t(v.size())) + " values but must have " +
              to_text(int64_t(count)));
  for (int64_t x : v)
    if (x < least || x > INT32_MAX)
      op.reject("attribute " + name + " holds " + to_text(x) + "; allowed: " + to_text(least) + " and more");
  return v;
}

Window make_window(OpBuilder& op, const Dims& in, const Dims& kernel, bool ceil_mode) {
  const size_t rank = in.size();
  Window w{in,
           kernel,
           spatial_attr(op, "strides", rank, 1, 1),
           spatial_attr(op, "dilations", rank, 1, 1),
           Dims(rank, 0),
           Dims(rank, 0),
           Dims(rank, 0)};
  const std::string auto_pad = op.attr_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    op.reject("auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  if (!same && auto_pad != "VALID") {
    const Dims pads = spatial_attr(op, "pads", 2 * rank, 0, INT32_MIN);
    w.begin.assign(pads.begin(), pads.begin() + std::ptrdiff_t(rank));
    w.end.assign(pads.begin() + std::ptrdiff_t(rank), pads.end());
  }
  for (size_t d = 0; d < rank; d++) {
    const int64_t extent = checked_mul(kernel[d] - 1, w.dilations[d]) + 1;
    if (same) {
      w.out[d] = ceil_quotient(in[d], w.strides[d]);
      const int64_t total = std::max<int64_t>(0, (w.out[d] - 1) * w.strides[d] + extent - in[d]);
      w.begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end[d] = total - w.begin[d];
      continue;
    }
    const int64_t span = in[d] + w.begin[d] + w.end[d] - extent;
    // Rounded up, a window that begins inside the input and ends behind it is a result, be it the only one.
    if (ceil_mode ? span <= -w.strides[d] : span < 0)
      op.reject("the kernel covers " + to_text(extent) + " elements of a spatial axis, but the padded input has only " +
                    to_text(span + extent),
                0);
    w.out[d] = (ceil_mode ? ceil_quotient(span, w.strides[d]) : span / w.strides[d]) + 1;
    // A window of the last, rounded-up position must start inside the input or its leading padding.
    if (ceil_mode && (w.out[d] - 1) * w.strides[d] >= in[d] + w.begin[d]) w.out[d]--;
  }
  return w;
}

}  // namespace tc
