// Operators that only move elements. Views (Reshape and its kin) keep the row-major order; the rest are index formulas.
// Gather and scatter operators stand in gather.cc and scatter.cc.
#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// Output 0 is x in another shape with equally many elements.
void view(OpBuilder& b, const Tensor& x, const Dims& dims) {
  if (dims == x.dims()) return b.output(0, x);
  b.output(0, b.compute(stage_label(b), x.dtype(), dims,
                        [&](const Exprs& i) { return x(reshape_index(i, dims, x.dims())); }));
}

/// A view whose shape is known only at run time: what the model declares is what it must be.
void declared_view(OpBuilder& b, const Tensor& x) {
  const Dims dims = b.declared_dims(0, 1);
  if (std::is_neq(compare_elements(dims, x.dims())))
    b.reject("the declared shape does not hold the input's elements", 1);
  view(b, x, dims);
}

/// 0 copies the input's size (unless allowzero), one -1 takes what is left.
void define_reshape(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (!b.known(1)) return declared_view(b, x);
  Dims dims = b.const_ints(1);
  const Dims from = x.dims();
  int64_t open = -1;
  for (size_t d = 0; d < dims.size(); d++) {
    if (dims[d] == 0 && b.attr_int("allowzero") == 0) {
      if (d >= from.size()) b.reject("a 0 in the shape copies a size that the input does not have", 1);
      dims[d] = from[d];
    }
    if (dims[d] < -1 || (dims[d] == -1 && open >= 0)) b.reject("the shape may hold sizes and one -1", 1);
    if (dims[d] == -1) open = int64_t(d);
  }
  Dims others = dims;
  if (open >= 0) others.erase(others.begin() + open);
  const auto [known, total] = elements_in_proportion(others, from);
  if (open >= 0) {
    if (known == 0 || total % known != 0) b.reject("no size fits in the place of -1", 1);
    dims[size_t(open)] = total / known;
  } else if (known != total) {
    b.reject("the shape holds " + to_text(num_elements(dims)) + " elements, the input " + to_text(num_elements(from)),
             1);
  }
  view(b, x, dims);
}

void define_flatten(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int64_t axis = b.attr_int("axis"), rank = x.rank();
  if (axis < -rank || axis > rank)
    b.reject("axis is " + to_text(axis) + " but must lie in " + to_text(-rank) + ".." + to_text(rank));
  const Dims d = x.dims();
  const auto cut = d.begin() + (axis < 0 ? axis + rank : axis);
  view(b, x, {num_elements(Dims(d.begin(), cut)), num_elements(Dims(cut, d.end()))});
}

std::vector<bool> flags_of(const OpBuilder& b, const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> flags(static_cast<size_t>(rank), false);
  for (int64_t a : axes) {
    const auto d = size_t(b.axis(a, rank));
    if (flags[d]) b.reject("axis " + to_text(a) + " is given twice", 1);
    flags[d] = true;
  }
  return flags;
}

void define_squeeze(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (!b.known(1)) return declared_view(b, x);
  const std::vector<bool> named = flags_of(b, b.has(1) ? b.const_ints(1) : std::vector<int64_t>{}, x.rank());
  Dims dims;
  for (size_t d = 0; d < named.size(); d++) {
    const int64_t size = x.dim(int(d));
    const bool drop = b.has(1) ? bool(named[d]) : size == 1;
    if (drop && size != 1)
      b.reject("axis " + to_text(int64_t(d)) + " has size " + to_text(size) + " and cannot be squeezed", 0);
    if (!drop) dims.push_back(size);
  }
  view(b, x, dims);
}

void define_unsqueeze(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (!b.known(1)) return declared_view(b, x);
  const std::vector<int64_t> axes = b.const_ints(1);
  const std::vector<bool> fresh = flags_of(b, axes, x.rank() + int(axes.size()));
  Dims dims;
  int next = 0;
  for (bool f : fresh) dims.push_back(f ? 1 : x.dim(next++));
  view(b, x, dims);
}

void define_transpose(OpBuilder& b) {
  const Tensor x = b.in(0);
  const auto rank = size_t(x.rank());
  std::vector<int64_t> perm = b.attr_ints("perm");
  if (!b.has_attr("perm"))
    for (size_t d = rank; d-- > 0;) perm.push_back(int64_t(d));
  std::vector<bool> seen(rank, false);
  bool valid = perm.size() == rank;
  for (int64_t p : perm) {
    valid = valid && p >= 0 && p < int64_t(rank) && !seen[size_t(p)];
    if (valid) seen[size_t(p)] = true;
  }
  if (!valid) b.reject("attribute perm is no permutation of the axes");
  Dims dims;
  for (int64_t p : perm) dims.push_back(x.dim(int(p)));
  if (std::is_sorted(perm.begin(), perm.end())) return b.output(0, x);
  b.output(0, b.compute("transpose", x.dtype(), dims, [&](const Exprs& i) {
    Exprs at(rank);
    for (size_t d = 0; d < rank; d++) at[size_t(perm[d])] = i[d];
    return x(at);
  }));
}

void define_expand(OpBuilder& b) {
  const Tensor x = b.in(0);
  const Tensor shape(make_buffer("shape", DType::I64, to_shape(b.known(1) ? b.const_ints(1) : b.declared_dims(0, 1))));
  for (int64_t d : shape.dims())
    if (d < 0) b.reject("the shape holds a negative size", 1);
  const Dims dims = broadcast_dims(b, {x, shape});
  if (dims == x.dims()) return b.output(0, x);
  b.output(0, b.compute("expand", x.dtype(), dims, [&](const Exprs& i) { return x.broadcast_at(i); }));
}

void define_tile(OpBuilder& b) {
  const Tensor x = b.in(0);
  std::vector<int64_t> repeats;
  if (b.known(1))
    repeats = b.const_ints(1);
  else {
    const Dims declared = b.declared_dims(0, 1);
    for (size_t d = 0; d < declared.size() && int(d) < x.rank(); d++) {
      const int64_t n = x.dim(int(d));
      if (n == 0 ? declared[d] != 0 : declared[d] % n != 0)
        b.reject("the declared shape is no multiple of the input's", 1);
      repeats.push_back(n == 0 ? 1 : declared[d] / n);
    }
  }
  if (int(repeats.size()) != x.rank()) b.reject("one repeat per axis is needed", 1);
  Dims dims = x.dims();
  for (size_t d = 0; d < dims.size(); d++) {
    if (repeats[d] < 0) b.reject("a repeat is negative", 1);
    dims[d] = checked_mul(dims[d], repeats[d]);
  }
  if (dims == x.dims()) return b.output(0, x);
  b.output(0, b.compute("tile", x.dtype(), dims, [&](Exprs i) {
    for (size_t d = 0; d < i.size(); d++)
      if (repeats[d] != 1) i[d] = x.dim(int(d)) == 1 ? Expr(0) : floor_mod(i[d], x.dim(int(d)));
    return x(i);
  }));
}

/// The part that holds position `p`, chosen by halving, so that many parts give a shallow expression.
Expr choose_part(const std::vector<Tensor>& parts, const std::vector<int64_t>& begins, size_t first, size_t last,
                 const Exprs& i, int axis) {
  if (first + 1 == last) return parts[first](with_axis(i, axis, i[size_t(axis)] - Expr(begins[first])));
  const size_t middle = (first + last) / 2;
  return select(i[size_t(axis)] < Expr(begins[middle]), choose_part(parts, begins, first, middle, i, axis),
                choose_part(parts, begins, middle, last, i, axis));
}

void define_concat(OpBuilder& b) {
  const std::vector<Tensor> all = operands(b);
  const int axis = b.axis(b.attr_int("axis"), all[0].rank());
  Dims dims = all[0].dims();
  dims[size_t(axis)] = 0;
  std::vector<Tensor> parts;
  std::vector<int64_t> begins;
  for (size_t k = 0; k < all.size(); k++) {
    const Tensor& x = all[k];
    if (x.rank() != all[0].rank() || x.dtype() != all[0].dtype() ||
        without_axis(x.dims(), axis) != without_axis(dims, axis))
      b.reject("the inputs differ in type or in sizes other than that of axis " + to_text(int64_t(axis)) + ": " +
                   to_text(b.node().inputs[0]->type) + " and " + to_text(b.node().inputs[k]->type),
               int(k));
    if (x.dim(axis) == 0) continue;
    begins.push_back(dims[size_t(axis)]);
    parts.push_back(x);
    dims[size_t(axis)] = checked_add(dims[size_t(axis)], x.dim(axis));
  }
  if (parts.size() <= 1) return b.output(0, parts.empty() ? all[0] : parts[0]);
  b.output(0, b.compute("concat", all[0].dtype(), dims,
                        [&](const Exprs& i) { return choose_part(parts, begins, 0, parts.size(), i, axis); }));
}

/// Sizes of the parts that a Split makes, of what the model declares. Those of neighbours that nobody reads are any with
/// the right sum: the first one has it all.
std::vector<int64_t> declared_sizes(OpBuilder& b, int axis, const Tensor& x) {
  std::vector<int64_t> sizes(size_t(b.num_outputs()), 0);
  int64_t known = 0;
  int unread = -1, last = -1;  // the neighbours
  for (int k = 0; k < b.num_outputs(); k++) {
    if (!b.is_read(k) && !b.declares(k) && (unread < 0 || last == k - 1)) {
      unread = unread < 0 ? k : unread;
      last = k;
      continue;
    }
    const Dims declared = b.declared_dims(k, 1);
    if (int(declared.size()) != x.rank()) b.reject("an output's declared shape does not fit the input", 1);
    sizes[size_t(k)] = declared[size_t(axis)];
    known = checked_add(known, sizes[size_t(k)]);
  }
  if (unread >= 0) sizes[size_t(unread)] = x.dim(axis) - known;
  return sizes;
}

void define_split(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const int64_t n = x.dim(axis), count = b.num_outputs();
  std::vector<int64_t> sizes;
  if (b.has(1)) {
    if (b.known(1))
      sizes = b.const_ints(1);
    else
      sizes = declared_sizes(b, axis, x);
    int64_t total = 0;
    for (int64_t s : sizes) total = s < 0 ? -1 : total < 0 ? -1 : checked_add(total, s);
    if (int64_t(sizes.size()) != count || total != n) b.reject("the sizes do not fit the axis and the outputs", 1);
  } else {
    if (b.has_attr("num_outputs") && b.attr_int("num_outputs") != count)
      b.reject("num_outputs is not the number of outputs");
    const int64_t each = (n + count - 1) / count;
    for (int64_t k = 0; k < count; k++) sizes.push_back(std::clamp<int64_t>(n - k * each, 0, each));
  }
  int64_t begin = 0;
  for (size_t k = 0; k < sizes.size(); begin += sizes[k++]) {
    Dims dims = x.dims();
    dims[size_t(axis)] = sizes[k];
    b.output(int(k), b.compute("split", x.dtype(), dims,
                               [&](const Exprs& i) { return x(with_axis(i, axis, i[size_t(axis)] + Expr(begin))); }));
  }
}

struct AxisSlice {
  int64_t start = 0, step = 1, size = 0;
};

/// Python's rules: negative positions count from the end, positions outside are moved to the border.
AxisSlice slice_of(int64_t n, int64_t start, int64_t end, int64_t step) {
  auto normal = [&](int64_t p, int64_t low, int64_t high) {
    if (p < 0) p = p < -n ? low : p + n;
    return std::clamp(p, low, high);
  };
  if (step > 0) {
    const int64_t s = normal(start, 0, n), e = normal(end, 0, n);
    return {s, step, e > s ? (e - s - 1) / step + 1 : 0};
  }
  if (n == 0) return {0, step, 0};
  const int64_t s = normal(start, 0, n - 1), e = end < -n ? -1 : normal(end, -1, n - 1);
  const uint64_t width = uint64_t(0) - uint64_t(step);
  return {s, step, s > e ? int64_t(uint64_t(s - e - 1) / width) + 1 : 0};
}

/// Start and step of every axis from lists that are known only at run time; the sizes are the declared ones.
void run_time_slice(OpBuilder& b, const Tensor& x) {
  const int64_t count = length_of(b, 1);
  for (int k = 2; k <= 4; k++)
    if (b.has(k) && length_of(b, k) != count) b.reject("starts, ends, axes and steps differ in length", k);
  const Dims dims = b.declared_dims(0, 1);
  if (int(dims.size()) != x.rank()) b.reject("the declared shape does not fit the input", 1);
  const int rank = x.rank();
  auto per_axis = [&](const std::string& name, int64_t otherwise,
                      const std::function<Expr(int64_t k, const Expr& n)>& f) {
    return b.compute(name, DType::I64, {rank}, [&](const Exprs& i) {
      Expr n = rank > 0 ? Expr(x.dim(rank - 1)) : Expr(0);
      for (int d = rank - 1; d-- > 0;) n = select(eq(i[0], Expr(d)), Expr(x.dim(d)), n);
      Expr e = otherwise;
      for (int64_t k = count; k-- > 0;) {
        const Expr axis = b.has(3) ? run_time_axis(element(b, 3, k), rank) : Expr(k);
        e = select(eq(axis, i[0]), f(k, n), e);
      }
      return e;
    });
  };
  auto step_of = [&](int64_t k) { return b.has(4) ? element(b, 4, k) : Expr(1); };
  const Tensor step = per_axis("step", 1, [&](int64_t k, const Expr&) { return step_of(k); });
  const Tensor start = per_axis("start", 0, [&](int64_t k, const Expr& n) {
    const Expr given = element(b, 1, k), from_front = select(given < Expr(0), given + n, given);
    return max(Expr(0), min(from_front, select(step_of(k) < Expr(0), n - 1, n)));
  });
  b.output(0, b.compute("slice", x.dtype(), dims, [&](Exprs i) {
    for (int d = 0; d < rank; d++)
      i[size_t(d)] = checked_index(i[size_t(d)] * step({Expr(d)}) + start({Expr(d)}), x.dim(d));
    return x(i);
  }));
}

void define_slice(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (!b.known(1) || !b.known(2) || !b.known(3) || !b.known(4)) return run_time_slice(b, x);
  const std::vector<int64_t> starts = b.const_ints(1), ends = b.const_ints(2);
  std::vector<int64_t> axes = b.has(3) ? b.const_ints(3) : std::vector<int64_t>{};
  const std::vector<int64_t> steps = b.has(4) ? b.const_ints(4) : std::vector<int64_t>(starts.size(), 1);
  if (!b.has(3))
    for (size_t k = 0; k < starts.size(); k++) axes.push_back(int64_t(k));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    b.reject("starts, ends, axes and steps differ in length", 1);
  flags_of(b, axes, x.rank());
  Dims dims = x.dims();
  std::vector<AxisSlice> slices;
  for (int64_t d : dims) slices.push_back({0, 1, d});
  for (size_t k = 0; k < axes.size(); k++) {
    if (steps[k] == 0) b.reject("a step is 0", 4);
    const auto d = size_t(b.axis(axes[k], x.rank()));
    slices[d] = slice_of(dims[d], starts[k], ends[k], steps[k]);
  }
  bool whole = true;
  for (size_t d = 0; d < dims.size(); d++) {
    whole = whole && slices[d].size == dims[d] && (slices[d].step == 1 || dims[d] <= 1);
    dims[d] = slices[d].size;
    if (slices[d].size <= 1) slices[d].step = 1;  // extreme steps must not reach the index arithmetic
  }
  if (whole) return b.output(0, x);
  b.output(0, b.compute("slice", x.dtype(), dims, [&](Exprs i) {
    for (size_t d = 0; d < i.size(); d++) i[d] = i[d] * Expr(slices[d].step) + Expr(slices[d].start);
    return x(i);
  }));
}

/// The sizes and indices of [N, C, H, W], in memory [N, H, W, C] where data_layout says so.
struct ImageAxes {
  bool last;
  explicit ImageAxes(OpBuilder& b) : last(b.attr_string("data_layout") == "NHWC") {
    if (!last && b.attr_string("data_layout") != "NCHW") b.reject("data_layout must be NCHW or NHWC");
  }
  template <class T>
  std::vector<T> first(const std::vector<T>& i) const {
    return last ? std::vector<T>{i[0], i[3], i[1], i[2]} : i;
  }
  template <class T>
  std::vector<T> stored(const std::vector<T>& i) const {
    return last ? std::vector<T>{i[0], i[2], i[3], i[1]} : i;
  }
};

void define_depth_to_space(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int64_t s = b.attr_int("blocksize");
  const std::string mode = b.attr_string("mode");
  const ImageAxes axes(b);
  if (mode != "DCR" && mode != "CRD") b.reject("attribute mode must be DCR or CRD");
  const Dims d = x.rank() == 4 ? axes.first(x.dims()) : Dims();
  if (d.empty() || s < 1 || d[1] % checked_mul(s, s) != 0)
    b.reject("the input must have 4 axes and a channel count that blocksize^2 divides", 0);
  const int64_t c = d[1] / (s * s);
  const Dims dims = axes.stored(Dims{d[0], c, d[2] * s, d[3] * s});
  b.output(0, b.compute("depth_to_space", x.dtype(), dims, [&](const Exprs& at) {
    const Exprs i = axes.first(at);
    const Expr part = floor_mod(i[2], s) * s + floor_mod(i[3], s);
    const Expr channel = mode == "DCR" ? part * c + i[1] : i[1] * (s * s) + part;
    return x(axes.stored(Exprs{i[0], channel, floor_div(i[2], s), floor_div(i[3], s)}));
  }));
}

void define_space_to_depth(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int64_t s = b.attr_int("blocksize");
  const std::string mode = b.attr_string("mode");
  const ImageAxes axes(b);
  if (mode != "DCR" && mode != "CRD") b.reject("attribute mode must be DCR or CRD");
  const Dims d = x.rank() == 4 ? axes.first(x.dims()) : Dims();
  if (d.empty() || s < 1 || d[2] % s != 0 || d[3] % s != 0)
    b.reject("the input must have 4 axes, the last two divisible by blocksize", 0);
  const int64_t c = d[1];
  const Dims dims = axes.stored(Dims{d[0], checked_mul(c, checked_mul(s, s)), d[2] / s, d[3] / s});
  b.output(0, b.compute("space_to_depth", x.dtype(), dims, [&](const Exprs& at) {
    const Exprs i = axes.first(at);
    const bool dcr = mode == "DCR";
    const Expr part = dcr ? floor_div(i[1], c) : floor_mod(i[1], s * s);
    const Expr channel = dcr ? floor_mod(i[1], c) : floor_div(i[1], s * s);
    return x(axes.stored(Exprs{i[0], channel, i[2] * s + floor_div(part, s), i[3] * s + floor_mod(part, s)}));
  }));
}

}  // namespace

OpFamily movement_ops() {
  const OpFamily in_order = {
      {"Reshape", 25, {{"allowzero", int64_t(0)}}, define_reshape, "x shape"},
      {"Flatten", 25, {{"axis", int64_t(1)}}, define_flatten},
      {"Squeeze", 25, {}, define_squeeze, "x axes"},
      {"Unsqueeze", 25, {}, define_unsqueeze, "x axes"},
  };
  const OpFamily moved = {
      marked(OpTrait::Chooses, {"Transpose", 25, {{"perm", {}}}, define_transpose}),
      {"Expand", 13, {}, define_expand, "x shape"},
      {"Tile", 13, {}, define_tile, "x repeats"},
      {"Concat", 13, {{"axis", {}}}, define_concat},
      {"Split", 18, {{"axis", int64_t(0)}, {"num_outputs", {}}}, define_split, "x sizes"},
      marked(OpTrait::Chooses, {"Slice", 13, {}, define_slice, "x starts ends axes steps"}),
      {"DepthToSpace",
       28,
       {{"blocksize", {}}, {"mode", std::string("DCR")}, {"data_layout", std::string("NCHW")}},
       define_depth_to_space},
      {"SpaceToDepth",
       28,
       {{"blocksize", {}}, {"mode", std::string("DCR")}, {"data_layout", std::string("NCHW")}},
       define_space_to_depth},
  };
  return joined({all_marked(OpTrait::Chooses, all_marked(OpTrait::KeepsElements, in_order)), moved, pad_ops(),
                 gather_ops(), scatter_ops(), select_ops(), non_max_suppression_ops(), string_ops(), token_ops()});
}

}  // namespace tc
