// Small graphs for tests of passes, and the check that a pass changed no result. For tests only.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/ops/evaluate.h"
#include "ir/ops/op.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "passes/test_target.h"

namespace tc {

inline ValueType type_of(DType t, const Dims& d) { return ValueType::tensor(t, to_shape(d)); }

inline Constant float_constant(const Dims& dims, const std::vector<float>& v) {
  check(num_elements(dims) == int64_t(v.size()), "float_constant: sizes");
  return make_constant(DType::F32, dims, v.data());
}

/// Small integers as f32: sums of them are exact in any order.
inline Constant random_constant(DType t, const Dims& dims, uint64_t& state, int lowest = -3, int span = 7) {
  MutableTensor m = new_tensor(t, dims);
  for (int64_t i = 0; i < num_elements(dims); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int v = lowest + int((state >> 33) % uint64_t(span));
    switch (t) {
      case DType::F32: m.as<float>()[i] = float(v); break;
      case DType::F64: m.as<double>()[i] = double(v); break;
      case DType::I64: m.as<int64_t>()[i] = v; break;
      case DType::I32: m.as<int32_t>()[i] = v; break;
      case DType::F16:
      case DType::BF16: m.as<uint16_t>()[i] = double_to_narrow_float(t, v); break;
      case DType::Bool: m.bytes[i] = v > 0; break;
      default: m.bytes[i] = uint8_t(v); break;
    }
  }
  return std::make_shared<TensorData>(std::move(m.data));
}

/// A graph that is written down node by node; types are inferred at once.
struct TestGraph {
  Graph g{ModelText("g")};
  uint64_t seed = 1;

  Value* in(const std::string& name, const Dims& dims, DType t = DType::F32) {
    return g.add_input(ModelText(name), type_of(t, dims));
  }
  Value* constant(const std::string& name, Constant c) { return g.add_constant(ModelText(name), std::move(c)); }
  Value* scalar(const std::string& name, double v, DType t = DType::F32) {
    return constant(name, scalar_constant(t, v));
  }
  Value* ints(const std::string& name, const std::vector<int64_t>& v) { return constant(name, int64_constant(v)); }
  Value* weight(const std::string& name, const Dims& dims, int lowest = -3, int span = 7) {
    return constant(name, random_constant(DType::F32, dims, seed, lowest, span));
  }
  /// The node is named after its first output.
  Value* op(const std::string& name, const std::string& op_name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return multi({name}, op_name, std::move(inputs), std::move(attrs))[0];
  }
  std::vector<Value*> multi(const std::vector<std::string>& names, const std::string& op_name,
                            std::vector<Value*> inputs, Attrs attrs = {}) {
    std::vector<ModelText> outputs(names.begin(), names.end());
    Node* n = g.append(op_name, std::move(inputs), std::move(outputs), std::move(attrs));
    n->name = ModelText(names[0]);
    n->origins = {n->name};
    infer_types(g, *n);
    return n->outputs;
  }
  Graph out(std::vector<Value*> values) {
    g.set_outputs(std::move(values));
    return std::move(g);
  }
};

inline std::vector<Constant> random_inputs(const Graph& g, uint64_t seed) {
  std::vector<Constant> list;
  for (const Value* v : g.inputs()) list.push_back(random_constant(v->type.dtype, static_dims(v->type.shape), seed));
  return list;
}

/// Both graphs give the same outputs for random integer-valued inputs: the same bits, or, with a tolerance, floats
/// whose difference is at most `tolerance` times the larger magnitude (at least 1); NaN is NaN.
inline void expect_same(const Graph& before, const Graph& after, uint64_t seed = 7, double tolerance = 0) {
  const auto inputs = random_inputs(before, seed);
  const auto a = evaluate(before, inputs), b = evaluate(after, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(before.outputs()[k]->name, after.outputs()[k]->name);
    ASSERT_EQ(a[k]->dtype, b[k]->dtype);
    ASSERT_EQ(a[k]->dims, b[k]->dims);
    if (tolerance == 0) {
      EXPECT_EQ(std::memcmp(a[k]->bytes.get(), b[k]->bytes.get(), a[k]->num_bytes), 0) << "output " << k;
      continue;
    }
    for (int64_t i = 0; i < a[k]->size(); ++i) {
      const double x = a[k]->as_double(i), y = b[k]->as_double(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      ASSERT_NEAR(x, y, tolerance * std::max({1.0, std::abs(x), std::abs(y)})) << "output " << k << ", element " << i;
    }
  }
}

/// Runs passes on a copy, checks that results stay the same, and returns the copy.
inline Graph after_passes(const Graph& before, const std::vector<void (*)(Graph&, PassContext&)>& passes,
                          double tolerance = 0, const Target& made_for = {}) {
  Graph g = before.clone();
  TestTarget target(made_for);
  for (auto* pass : passes) {
    pass(g, target.cx);
    verify(g);
  }
  expect_same(before, g, 7, tolerance);
  return g;
}

/// "Conv Relu Add": the operators in list order.
inline std::string ops_of(const Graph& g) {
  std::vector<std::string> names;
  for (const auto& n : g.nodes()) names.push_back(n->domain.empty() ? n->op : n->domain + "." + n->op);
  return join(names, " ");
}

/// "conv2d+add+relu max_pool": the stages of each fused node joined, other nodes by operator.
inline std::string kernels_of(const Graph& g) {
  std::vector<std::string> names;
  for (const auto& n : g.nodes()) {
    if (n->domain != "tc" || !n->fn) {
      names.push_back(n->op);
      continue;
    }
    std::vector<std::string> stages;
    for (const Stage& s : n->fn->stages) stages.push_back(s.name);
    names.push_back(join(stages, "+"));
  }
  return join(names, " ");
}

}  // namespace tc
