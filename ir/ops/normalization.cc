// Normalisations. Statistics are taken in two passes (the mean, then the mean of the squared differences), in f32 for
// narrow types; they are stages of their own, so that constant ones can be folded.
#include "ir/ops/normalization.h"

#include "ir/ops/families.h"
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"

namespace tc {

Expr reciprocal_root(const Expr& variance, float epsilon) {
  const DType t = variance->dtype;
  return make_const(t, 1) / sqrt(variance + parameter(t, epsilon));
}

Moments moments(OpBuilder& op, DType t, const Dims& shape, const Dims& reduced, const OpBuilder::ReducePoint& element,
                const std::vector<std::string>& names) {
  const Expr count = make_const(t, double(num_elements(reduced)));
  const Tensor sum = op.reduce("sum", Op::Add, t, shape, reduced, element, names);
  const Tensor mean = op.compute(
      "mean", t, shape, [&](const Exprs& i) { return sum(i) / count; }, names);
  const Tensor squares = op.reduce(
      "squared_deviation", Op::Add, t, shape, reduced,
      [&](const Exprs& i, const Exprs& r) {
        const Expr d = element(i, r) - mean(i);
        return d * d;
      },
      names);
  const Tensor variance = op.compute(
      "variance", t, shape, [&](const Exprs& i) { return squares(i) / count; }, names);
  return {mean, variance};
}

namespace {

void check_channels(OpBuilder& op, int input, int64_t channels) {
  if (op.in(input).dims() != Dims{channels})
    op.reject("this input must have one value per channel, that is " + to_text(channels), input);
}

std::vector<std::string> image_names(int rank) {
  if (rank < 3 || rank > 5) return {"n", "c"};
  std::vector<std::string> names = {"n", "c"};
  for (std::string& s : spatial_names("", size_t(rank) - 2)) names.push_back(std::move(s));
  return names;
}

void define_batch_normalization(OpBuilder& op) {
  const Tensor x = op.in(0);
  if (x.rank() < 1) op.reject("the input must have at least one axis", 0);
  const int channel_axis = x.rank() == 1 ? -1 : 1;
  const int64_t channels = channel_axis < 0 ? 1 : x.dim(1);
  for (int k = 1; k < 5; k++) check_channels(op, k, channels);
  const DType t = compute_type(x.dtype());
  const float epsilon = op.attr_float("epsilon", 1e-5f);
  auto channel = [&](const Exprs& i) { return channel_axis < 0 ? Expr(0) : i[1]; };
  auto parameter_of = [&](int input) {
    const Tensor p = op.in(input);
    return [p, t](const Expr& c) { return cast(t, p({c})); };
  };
  std::function<Expr(const Expr&)> mean = parameter_of(3), variance = parameter_of(4);
  if (op.attr_int("training_mode", 0) != 0) {
    Dims reduced;
    for (int k = 0; k < x.rank(); k++)
      if (k != channel_axis) reduced.push_back(x.dim(k));
    const Moments m = moments(op, t, {channels}, reduced,
                              [&](const Exprs& i, const Exprs& r) {
                                Exprs at = r;
                                if (channel_axis >= 0) at.insert(at.begin() + 1, i[0]);
                                return widen(x(at));
                              },
                              {"c"});
    const Expr momentum = parameter(t, op.attr_float("momentum", 0.9f));
    auto running = [&](const std::string& name, const std::function<Expr(const Expr&)>& old, const Tensor& now,
                       DType to) {
      return op.compute(
          name, to, {channels},
          [&](const Exprs& i) { return cast(to, old(i[0]) * momentum + now(i) * (make_const(t, 1) - momentum)); },
          {"c"});
    };
    if (op.wants(1)) op.output(1, running("running_mean", mean, m.mean, op.in(3).dtype()));
    if (op.wants(2)) op.output(2, running("running_var", variance, m.variance, op.in(4).dtype()));
    mean = [m](const Expr& c) { return m.mean({c}); };
    variance = [m](const Expr& c) { return m.variance({c}); };
  } else if (op.wants(1) || op.wants(2)) {
    op.reject("running_mean and running_var exist in training mode only");
  }
  const auto scale = parameter_of(1), bias = parameter_of(2);
  const Tensor factor =
      op.compute("factor", t, {channels},
                 [&](const Exprs& i) { return scale(i[0]) / sqrt(variance(i[0]) + parameter(t, epsilon)); }, {"c"});
  const Tensor shift =
      op.compute("shift", t, {channels}, [&](const Exprs& i) { return bias(i[0]) - mean(i[0]) * factor(i); }, {"c"});
  op.output(0, op.compute(
                   "batch_norm", x.dtype(), x.dims(),
                   [&](const Exprs& i) {
                     const Expr c = channel(i);
                     return cast(x.dtype(), widen(x(i)) * factor({c}) + shift({c}));
                   },
                   image_names(x.rank())));
}

/// What LayerNormalization and RMSNormalization share: rows are the axes before `axis`.
struct Rows {
  Tensor x;
  int axis = 0;
  DType t;
  Dims outer, inner, kept;  // kept: outer with ones for the normalised axes
  Exprs outer_of(const Exprs& i) const { return Exprs(i.begin(), i.begin() + axis); }
  Expr element(const Exprs& i, const Exprs& r) const {
    Exprs at = i;
    at.insert(at.end(), r.begin(), r.end());
    return widen(x(at));
  }
};

Rows read_rows(OpBuilder& op) {
  Rows r;
  r.x = op.in(0);
  const Dims d = r.x.dims();
  r.axis = op.axis(op.attr_int("axis", -1), r.x.rank());
  r.t = compute_type(r.x.dtype());
  r.outer.assign(d.begin(), d.begin() + r.axis);
  r.inner.assign(d.begin() + r.axis, d.end());
  r.kept = r.outer;
  r.kept.resize(d.size(), 1);
  return r;
}

void check_broadcasts(OpBuilder& op, int input, const Dims& to) {
  const Dims d = op.in(input).dims();
  for (size_t k = 0; k < d.size(); k++)
    if (d.size() > to.size() || (d[d.size() - 1 - k] != 1 && d[d.size() - 1 - k] != to[to.size() - 1 - k]))
      op.reject("this input does not broadcast to the normalised axes", input);
}

void define_layer_normalization(OpBuilder& op) {
  const Rows rows = read_rows(op);
  const DType t = rows.t, to = rows.x.dtype();
  check_broadcasts(op, 1, rows.x.dims());
  if (op.has(2)) check_broadcasts(op, 2, rows.x.dims());
  const Tensor scale = op.in(1);
  const Moments m =
      moments(op, t, rows.outer, rows.inner, [&](const Exprs& i, const Exprs& r) { return rows.element(i, r); }, {});
  const Tensor inverse = op.compute("inv_std_dev", t, rows.outer, [&](const Exprs& i) {
    return reciprocal_root(m.variance(i), op.attr_float("epsilon", 1e-5f));
  });
  op.output(0, op.compute("layer_norm", to, rows.x.dims(), [&](const Exprs& i) {
    const Exprs row = rows.outer_of(i);
    Expr y = (widen(rows.x(i)) - m.mean(row)) * inverse(row) * cast(t, scale.broadcast_at(i));
    if (op.has(2)) y = y + cast(t, op.in(2).broadcast_at(i));
    return cast(to, y);
  }));
  const DType stash = DType(op.attr_int("stash_type", 1));
  if (!is_float(stash)) op.reject("stash_type must be a type of floating-point numbers");
  auto kept = [&](const std::string& name, const Tensor& s) {
    return op.compute(name, stash, rows.kept, [&](const Exprs& i) { return cast(stash, s(rows.outer_of(i))); });
  };
  if (op.wants(1)) op.output(1, kept("saved_mean", m.mean));
  if (op.wants(2)) op.output(2, kept("saved_inv_std_dev", inverse));
}

void define_rms_normalization(OpBuilder& op) {
  const Rows rows = read_rows(op);
  const DType t = rows.t;
  check_broadcasts(op, 1, rows.x.dims());
  const Tensor scale = op.in(1);
  const Tensor squares =
      op.reduce("sum_of_squares", Op::Add, t, rows.outer, rows.inner, [&](const Exprs& i, const Exprs& r) {
        const Expr v = rows.element(i, r);
        return v * v;
      });
  const Tensor inverse = op.compute("inv_rms", t, rows.outer, [&](const Exprs& i) {
    return reciprocal_root(squares(i) / make_const(t, double(num_elements(rows.inner))),
                           op.attr_float("epsilon", 1e-5f));
  });
  op.output(0, op.compute("rms_norm", scale.dtype(), rows.x.dims(), [&](const Exprs& i) {
    return cast(scale.dtype(), widen(rows.x(i)) * inverse(rows.outer_of(i)) * cast(t, scale.broadcast_at(i)));
  }));
}

void define_instance_normalization(OpBuilder& op) {
  const Tensor x = op.in(0), scale = op.in(1), bias = op.in(2);
  if (x.rank() < 3) op.reject("the input must have a batch axis, a channel axis and at least one spatial axis", 0);
  const Dims d = x.dims(), spatial(d.begin() + 2, d.end());
  check_channels(op, 1, d[1]);
  check_channels(op, 2, d[1]);
  const DType t = compute_type(x.dtype());
  const Moments m = moments(
      op, t, {d[0], d[1]}, spatial,
      [&](const Exprs& i, const Exprs& r) {
        Exprs at = i;
        at.insert(at.end(), r.begin(), r.end());
        return widen(x(at));
      },
      image_names(x.rank()));
  const Tensor inverse = op.compute(
      "inv_std_dev", t, {d[0], d[1]},
      [&](const Exprs& i) { return reciprocal_root(m.variance(i), op.attr_float("epsilon", 1e-5f)); }, {"n", "c"});
  op.output(0, op.compute(
                   "instance_norm", x.dtype(), d,
                   [&](const Exprs& i) {
                     const Exprs nc = {i[0], i[1]};
                     const Expr y =
                         (widen(x(i)) - m.mean(nc)) * inverse(nc) * widen(scale({i[1]})) + widen(bias({i[1]}));
                     return cast(x.dtype(), y);
                   },
                   image_names(x.rank())));
}

void define_group_normalization(OpBuilder& op) {
  const Tensor x = op.in(0), scale = op.in(1), bias = op.in(2);
  if (x.rank() < 2) op.reject("the input must have a batch axis and a channel axis", 0);
  const Dims d = x.dims(), spatial(d.begin() + 2, d.end());
  const int64_t groups = op.attr_int("num_groups", 0);
  if (groups < 1 || d[1] % groups != 0)
    op.reject("num_groups is " + to_text(groups) + ", which does not divide the " + to_text(d[1]) + " channels");
  check_channels(op, 1, d[1]);
  check_channels(op, 2, d[1]);
  const int64_t per_group = d[1] / groups;
  const DType t = compute_type(x.dtype());
  Dims reduced = {per_group};
  reduced.insert(reduced.end(), spatial.begin(), spatial.end());
  const Moments m = moments(op, t, {d[0], groups}, reduced,
                            [&](const Exprs& i, const Exprs& r) {
                              Exprs at = {i[0], i[1] * per_group + r[0]};
                              at.insert(at.end(), r.begin() + 1, r.end());
                              return widen(x(at));
                            },
                            {"n", "g"});
  const Tensor inverse = op.compute(
      "inv_std_dev", t, {d[0], groups},
      [&](const Exprs& i) { return reciprocal_root(m.variance(i), op.attr_float("epsilon", 1e-5f)); }, {"n", "g"});
  op.output(0, op.compute(
                   "group_norm", x.dtype(), d,
                   [&](const Exprs& i) {
                     const Exprs g = {i[0], floor_div(i[1], Expr(per_group))};
                     const Expr y = (widen(x(i)) - m.mean(g)) * inverse(g) * widen(scale({i[1]})) + widen(bias({i[1]}));
                     return cast(x.dtype(), y);
                   },
                   image_names(x.rank())));
}

void define_lrn(OpBuilder& op) {
  const Tensor x = op.in(0);
  if (x.rank() < 2) op.reject("the input must have a channel axis", 0);
  const int64_t size = op.attr_int("size", 0), channels = x.dim(1);
  if (size < 1 || size > INT32_MAX) op.reject("size must be positive");
  const DType t = compute_type(x.dtype());
  const Tensor squares = op.reduce(
      "sum_of_squares", Op::Add, t, x.dims(), {size},
      [&](const Exprs& i, const Exprs& r) {
        Exprs at = i;
        at[1] = i[1] + r[0] - (size - 1) / 2;
        const Expr v = widen(x(at));
        const Expr inside = size == 1 ? make_int(DType::Bool, 1) : at[1] >= 0 && at[1] < channels;
        return select(inside, v * v, zero(t));
      },
      image_names(x.rank()));
  const Expr factor = make_const(t, double(op.attr_float("alpha", 1e-4f)) / double(size));
  const Expr beta = parameter(t, op.attr_float("beta", 0.75f)), bias = parameter(t, op.attr_float("bias", 1));
  op.output(0, op.compute(
                   "lrn", x.dtype(), x.dims(),
                   [&](const Exprs& i) {
                     return cast(x.dtype(), widen(x(i)) / apply(Op::Pow, {bias + factor * squares(i), beta}));
                   },
                   image_names(x.rank())));
}

void define_mean_variance_normalization(OpBuilder& op) {
  const Tensor x = op.in(0);
  const Dims d = x.dims();
  std::vector<bool> reduced_axis(d.size(), false);
  for (int64_t a : op.attr_ints("axes", {0, 2, 3})) reduced_axis[size_t(op.axis(a, x.rank()))] = true;
  Dims kept, reduced;
  for (size_t k = 0; k < d.size(); k++) (reduced_axis[k] ? reduced : kept).push_back(d[k]);
  const DType t = compute_type(x.dtype());
  const Moments m = moments(op, t, kept, reduced,
                            [&](const Exprs& i, const Exprs& r) {
                              Exprs at;
                              size_t next_kept = 0, next_reduced = 0;
                              for (size_t k = 0; k < d.size(); k++)
                                at.push_back(reduced_axis[k] ? r[next_reduced++] : i[next_kept++]);
                              return widen(x(at));
                            },
                            {});
  op.output(0, op.compute("mvn", x.dtype(), d, [&](const Exprs& i) {
    Exprs at;
    for (size_t k = 0; k < d.size(); k++)
      if (!reduced_axis[k]) at.push_back(i[k]);
    // The function body of ONNX adds its epsilon to the deviation, not to the variance.
    return cast(x.dtype(), (widen(x(i)) - m.mean(at)) / (sqrt(m.variance(at)) + make_const(t, 1e-9)));
  }));
}

}  // namespace

OpFamily normalization_ops() {
  const AttrSpec epsilon = float_attr("epsilon", 1e-5f), stash = int_attr("stash_type", 1), last = int_attr("axis", -1);
  return {
      {"BatchNormalization",
       15,
       {epsilon, float_attr("momentum", 0.9f), int_attr("training_mode", 0)},
       define_batch_normalization,
       "x scale bias mean var",
       "batch_norm"},
      {"LayerNormalization", 17, {last, epsilon, stash}, define_layer_normalization, "x scale bias", "layer_norm"},
      {"RMSNormalization", 23, {last, epsilon, stash}, define_rms_normalization, "x scale", "rms_norm"},
      {"InstanceNormalization", 22, {epsilon}, define_instance_normalization, "x scale bias", "instance_norm"},
      {"GroupNormalization",
       21,
       {optional_attr("num_groups"), epsilon, stash},
       define_group_normalization,
       "x scale bias",
       "group_norm"},
      {"LRN",
       13,
       {optional_attr("size"), float_attr("alpha", 1e-4f), float_attr("beta", 0.75f), float_attr("bias", 1)},
       define_lrn},
      {"MeanVarianceNormalization", 13, {ints_attr("axes", {0, 2, 3})}, define_mean_variance_normalization, "", "mvn"},
  };
}

}  // namespace tc
