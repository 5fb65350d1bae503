// Random numbers that depend on nothing but the seed and the element's number, so that every run, thread count and
// target gives the same. Without a seed the node's name is taken for one.
#include <bit>

#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

Expr u32(uint32_t v) { return make_int(DType::U32, int64_t(v)); }
Expr f64(double v) { return make_float(DType::F64, v); }

uint32_t seed_of(const OpBuilder& b) {
  if (auto it = b.node().attrs.find("seed"); it != b.node().attrs.end()) {
    if (const float* f = std::get_if<float>(&it->second)) return std::bit_cast<uint32_t>(*f);
    if (const int64_t* i = std::get_if<int64_t>(&it->second)) return uint32_t(*i);
  }
  const std::string& name = b.node().outputs.at(0) ? b.node().outputs[0]->name.raw() : b.node().name.raw();
  return uint32_t(hash_text(name));
}

/// A well mixed 32-bit number: two rounds of xor-shift and multiplication.
Expr mix(Expr x) {
  auto shifted = [](const Expr& e, uint32_t by) { return apply(Op::BitXor, {e, apply(Op::Shr, {e, u32(by)})}); };
  x = shifted(x, 16) * u32(0x7feb352d);
  x = shifted(x, 15) * u32(0x846ca68b);
  return shifted(x, 16);
}

struct Target {
  Dims dims;
  DType t;
};

/// Shape and type: attributes, or those of the operand ("Like").
Target target_of(OpBuilder& b, bool like, DType otherwise) {
  Target r{{}, otherwise};
  if (like)
    r = {b.in(0).dims(), b.in(0).dtype()};
  else
    r.dims = b.attr_ints("shape");
  if (b.has_attr("dtype")) r.t = static_cast<DType>(b.attr_int("dtype"));
  if (int(r.t) <= 0 || int(r.t) > int(DType::I2) || (!is_float(r.t) && !is_int(r.t) && r.t != DType::Bool))
    b.reject("attribute dtype names no numeric type");
  return r;
}

Define random_uniform(bool like) {
  return [like](OpBuilder& b) {
    const Target r = target_of(b, like, DType::F32);
    const double low = double(b.attr_float("low")), high = double(b.attr_float("high"));
    b.output(0, b.compute("random_uniform", r.t, r.dims, [&](const Exprs& i) {
      return cast(r.t, f64(low) + f64(high - low) * uniform_random(b, i, r.dims, 0));
    }));
  };
}

/// Two uniform numbers on the circle of radius sqrt(-2 log u).
Define random_normal(bool like) {
  return [like](OpBuilder& b) {
    const Target r = target_of(b, like, DType::F32);
    const double mean = double(b.attr_float("mean")), scale = double(b.attr_float("scale"));
    b.output(0, b.compute("random_normal", r.t, r.dims, [&](const Exprs& i) {
      const Expr radius = sqrt(f64(-2) * log(uniform_random(b, i, r.dims, 0)));
      const Expr angle = f64(6.283185307179586476925) * uniform_random(b, i, r.dims, 1);
      return cast(r.t, f64(mean) + f64(scale) * radius * apply(Op::Cos, {angle}));
    }));
  };
}

void define_bernoulli(OpBuilder& b) {
  const Tensor p = b.in(0);
  const Target r = target_of(b, true, p.dtype());
  b.output(0, b.compute("bernoulli", r.t, r.dims, [&](const Exprs& i) {
    return cast(r.t, uniform_random(b, i, r.dims, 0) < cast(DType::F64, p(i)));
  }));
}

/// Each sample is the class with the largest log-probability plus Gumbel noise, which draws classes by their
/// probability.
void define_multinomial(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (x.rank() != 2 || x.dim(1) < 1) b.reject("the shape must be [batch, classes]", 0);
  const int64_t samples = b.attr_int("sample_size"), classes = x.dim(1);
  if (samples < 0) b.reject("attribute sample_size is negative");
  const auto t = static_cast<DType>(b.attr_int("dtype"));
  if (t != DType::I32 && t != DType::I64) b.reject("attribute dtype must be int32 or int64");
  const Dims all = {x.dim(0), samples, classes};
  const Tensor score = b.compute("score", DType::F64, all, [&](const Exprs& i) {
    return cast(DType::F64, x({i[0], i[2]})) - log(-log(uniform_random(b, i, all, 0)));
  });
  b.output(0, convert(b, arg_extremum(b, score, 2, false, true, false), t, "multinomial"));
}

}  // namespace

Expr uniform_random(const OpBuilder& b, const Exprs& index, const Dims& dims, uint32_t stream) {
  const Expr element = linear_index(index, dims);
  const Expr low = cast(DType::U32, element), high = cast(DType::U32, floor_div(element, int64_t(1) << 32));
  Expr h = mix(apply(Op::BitXor, {low, u32(seed_of(b))}));
  h = mix(apply(Op::BitXor, {h, high + u32(0x9e3779b9u * (stream + 1))}));
  return (cast(DType::F64, h) + f64(0.5)) * f64(0x1p-32);
}

OpFamily random_ops() {
  // The "Like" forms take shape and type from their operand; the others have a shape, and float where nothing is said.
  const std::vector<AttrSpec> uniform_like = {{"dtype", {}}, {"high", 1.0f}, {"low", 0.0f}, {"seed", {}}};
  const std::vector<AttrSpec> normal_like = {{"dtype", {}}, {"mean", 0.0f}, {"scale", 1.0f}, {"seed", {}}};
  auto with_shape = [](std::vector<AttrSpec> attrs) {
    attrs[0].otherwise = int64_t(DType::F32);
    attrs.push_back({"shape", {}});
    return attrs;
  };
  return all_marked(
      OpTrait::Random,
      {
          {"RandomUniform", 22, with_shape(uniform_like), random_uniform(false)},
          marked(OpTrait::PlacesFromFront,
                 {"RandomUniformLike", 22, uniform_like, random_uniform(true), "x", "random_uniform"}),
          {"RandomNormal", 22, with_shape(normal_like), random_normal(false)},
          marked(OpTrait::PlacesFromFront,
                 {"RandomNormalLike", 22, normal_like, random_normal(true), "x", "random_normal"}),
          marked(OpTrait::PlacesFromFront, {"Bernoulli", 22, {{"dtype", {}}, {"seed", {}}}, define_bernoulli, "p"}),
          {"Multinomial", 22, {{"dtype", int64_t(6)}, {"sample_size", int64_t(1)}, {"seed", {}}}, define_multinomial},
      });
}

}  // namespace tc
