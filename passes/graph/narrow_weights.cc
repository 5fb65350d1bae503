// Stores weights of single precision that are halves, all of them, as such, where the loops that read them widen them as they go.
//   y = tc.fused(x, w: f32)   matmul[m, n] = sum(k) x[m, k] * w[k, n]
//                                                       ->
//   y = tc.fused(x, w: f16)   matmul[m, n] = sum(k) x[m, k] * f32(w[k, n])
// Models of halves, which widen_halves computes in single precision, have such weights, and so have those that were rounded to halves
// before they were exported. Half the bytes are stored and read; what is computed stays the same in every bit.
//
// Preconditions: a constant operand of a sum of products, of kLeast elements at least; every element is a half (f16, or
// else bf16), none is NaN; only sums of products read it; the target says that its loops take the function.
//
// Needs: to_functions, weights in their last form. Leaves: the same kinds of nodes.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ir/graph/views.h"
#include "passes/backend.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr int64_t kLeast = 4096;  // elements: fewer are not worth another constant

constexpr uint32_t kFraction = 0x7fffff;

bool is_bf16(uint32_t bits) {
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return (bits & 0xffff) == 0 && !nan;
}

bool is_f16(uint32_t bits) {
  const uint32_t exponent = bits >> 23 & 255, fraction = bits & kFraction;
  if (exponent == 0 || exponent == 255) return fraction == 0;  // zeros, infinities
  if (exponent < 103 || exponent > 142) return false;
  const uint32_t lost = 13 + (exponent < 113 ? 113 - exponent : 0);  // bits of the fraction that a half has no room for
  return (fraction & ((uint32_t(1) << lost) - 1)) == 0;
}

/// The types of halves that have all of these floats.
std::vector<DType> half_types(const TensorData& t) {
  const uint32_t *begin = t.as<uint32_t>(), *end = begin + t.size();
  std::vector<DType> types;
  if (std::all_of(begin, end, is_f16)) types.push_back(DType::F16);
  if (std::all_of(begin, end, is_bf16)) types.push_back(DType::BF16);
  return types;
}

Constant as_halves(const TensorData& t, DType half) {
  MutableTensor m = new_tensor(half, t.dims);
  for (int64_t i = 0; i < t.size(); i++)
    m.as<uint16_t>()[i] = uint16_t(double_to_narrow_float(half, double(t.as<float>()[i])));
  return std::make_shared<const TensorData>(std::move(m.data));
}

class Narrowing {
 public:
  Narrowing(Graph& g, const PassContext& cx) : g_(g), cx_(cx) {}

  void run() {
    for (const auto& n : g_.nodes()) {
      for (const auto& r : n->regions) Narrowing(*r, cx_).run();
      for (size_t i = 0; is_contraction(n.get()) && i < n->inputs.size(); i++) narrow(*n, i);
    }
    g_.drop_unused_constants();
  }

 private:
  void narrow(Node& n, size_t operand) {
    Value* v = n.inputs[operand];
    if (!v || !v->constant || v->type.dtype != DType::F32 || v->constant->size() < kLeast) return;
    if (operand >= n.fn->inputs.size() || !n.fn->operands.empty()) return;
    if (v->output_uses != 0 || !std::all_of(v->users.begin(), v->users.end(), is_contraction)) return;
    std::vector<bool> constant;
    for (const Value* in : n.inputs) constant.push_back(root_of(in)->is_constant());
    const ScheduleOptions o{.strict_fp = cx_.options.strict_fp, .precision = cx_.options.precision};
    for (const DType half : types_of(v)) {
      TensorFn fn = *n.fn;
      read_stored_as(fn, operand, half);
      if (!cx_.backend->reads_few_bits(fn, constant, o)) continue;
      Value*& halves = halves_[{v, half}];
      if (!halves) halves = g_.add_constant(v->name, as_halves(*v->constant, half));
      g_.set_input(&n, operand, halves);
      n.fn = std::make_shared<const TensorFn>(std::move(fn));
      return;
    }
  }

  const std::vector<DType>& types_of(Value* v) {
    const auto [at, fresh] = types_.try_emplace(v);
    if (fresh) at->second = half_types(*v->constant);
    return at->second;
  }

  Graph& g_;
  const PassContext& cx_;
  std::map<const Value*, std::vector<DType>> types_;         // looked up only
  std::map<std::pair<const Value*, DType>, Value*> halves_;  // looked up only
};

}  // namespace

void narrow_weights(Graph& g, PassContext& cx) {
  check(cx.backend != nullptr, "narrow_weights: no target");
  Narrowing(g, cx).run();
}

}  // namespace tc
