// For tests: runs one operator on constants through its definition and the interpreter.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "ir/language/test_round_trip.h"
#include "ir/ops/op.h"
#include "ir/verify.h"
#include "templates/cuda/test_schedule.h"

namespace tc {

/// A constant of type t from numbers, rounded to it.
inline Constant tensor_of(DType t, Dims dims, const std::vector<double>& values) {
  MutableTensor m = new_tensor(t, dims);
  check(int64_t(values.size()) == num_elements(dims), "tensor_of: one value per element");
  for (size_t k = 0; k < values.size(); k++) {
    const double v = values[k];
    const int bytes = info(t).bytes;
    if (t == DType::F32)
      m.as<float>()[k] = float(v);
    else if (t == DType::F64)
      m.as<double>()[k] = v;
    else if (is_narrow_float(t) && bytes == 2)
      m.as<uint16_t>()[k] = double_to_narrow_float(t, v);
    else if (is_narrow_float(t))
      m.as<uint8_t>()[k] = uint8_t(double_to_narrow_float(t, v));
    else if (bytes == 1)
      m.as<uint8_t>()[k] = uint8_t(int64_t(v));
    else if (bytes == 2)
      m.as<uint16_t>()[k] = uint16_t(int64_t(v));
    else if (bytes == 4)
      m.as<uint32_t>()[k] = uint32_t(int64_t(v));
    else
      m.as<int64_t>()[k] = int64_t(v);
  }
  return std::make_shared<const TensorData>(std::move(m.data));
}

/// Reproducible values; whole numbers in [-span, span] if `whole`, so that sums are exact in any order.
inline Constant random_tensor(DType t, Dims dims, int seed, double span = 4, bool whole = true) {
  std::mt19937 g{unsigned(seed)};
  std::vector<double> v(size_t(num_elements(dims)));
  for (double& x : v) {
    const double u = double(g() % 100001) / 100000 * 2 - 1;
    x = whole ? std::round(u * span) : u * span;
  }
  return tensor_of(t, std::move(dims), v);
}

struct OpRun {
  std::string op;
  std::vector<Constant> inputs;  // null: absent
  Attrs attrs = {};
  int outputs = 1;
  std::string domain = "";
  double cuda_tolerance = 1e-4;  // of the CUDA schedule, whose sums have another order
};

inline std::vector<Constant> run_op(const OpRun& r) {
  Graph g;
  std::vector<Value*> in;
  for (size_t k = 0; k < r.inputs.size(); k++)
    in.push_back(r.inputs[k] ? g.add_constant(ModelText("i" + std::to_string(k)), r.inputs[k]) : nullptr);
  std::vector<ModelText> names;
  for (int k = 0; k < r.outputs; k++) names.push_back(ModelText("o" + std::to_string(k)));
  Node* n = g.append(r.op, in, names, r.attrs, r.domain);
  infer_types(g, *n);
  const TensorFn& fn = tensor_fn(*n);
  verify(fn);
  std::vector<Constant> args;
  for (int k : fn_operands(*n)) args.push_back(r.inputs[size_t(k)]);
  std::vector<Constant> results = evaluate(fn, args);
  for (size_t k = 0; k < results.size(); k++) {
    check(results[k]->dtype == n->outputs[k]->type.dtype, "result type");
    check(results[k]->dims == static_dims(n->outputs[k]->type.shape), "result shape");
  }
  testing::expect_cuda_schedule(fn, args, results, r.cuda_tolerance);
  language::testing::expect_round_trip(fn);
  return results;
}

/// Runs an operator that its row rewrites: what it becomes is evaluated node by node.
inline std::vector<Constant> run_rewritten(const OpRun& r) {
  Graph g;
  std::vector<Value*> in;
  for (const Constant& c : r.inputs) in.push_back(c ? g.add_constant(ModelText("x"), c) : nullptr);
  std::vector<ModelText> names;
  for (int k = 0; k < r.outputs; k++) names.push_back(ModelText("o" + std::to_string(k)));
  Node* n = g.append(r.op, in, names, r.attrs, r.domain);
  g.set_outputs(n->outputs);
  check(find_op(r.domain, r.op)->expand(g, n), "no expansion");
  g.erase(n);
  std::map<const Value*, Constant> known;
  for (const auto& v : g.values())
    if (v->is_constant()) known[v.get()] = v->constant;
  for (const auto& node : g.nodes()) {
    const TensorFn& fn = tensor_fn(*node);
    verify(fn);
    std::vector<Constant> args;
    for (int k : fn_operands(*node)) args.push_back(known.at(node->inputs[size_t(k)]));
    const std::vector<Constant> results = evaluate(fn, args);
    testing::expect_cuda_schedule(fn, args, results, r.cuda_tolerance);
    for (size_t k = 0; k < results.size(); k++) known[node->outputs[k]] = results[k];
  }
  std::vector<Constant> y;
  for (const Value* v : g.outputs()) y.push_back(known.at(v));
  return y;
}

/// The message of the error that the operator's definition or rewriting throws, "" if it throws none.
inline std::string op_error(const OpRun& r) {
  try {
    find_op(r.domain, r.op)->define ? run_op(r) : run_rewritten(r);
    return "";
  } catch (const Error& e) {
    return e.diagnostic().message;
  }
}

inline std::vector<double> values(const Constant& c) {
  std::vector<double> v;
  for (int64_t k = 0; k < c->size(); k++) v.push_back(is_float(c->dtype) ? c->as_double(k) : double(c->as_int(k)));
  return v;
}

/// Element of a row-major tensor by index, 0 outside: what padding with zeros reads.
inline double at(const Constant& c, const Dims& index) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); d++) {
    if (index[d] < 0 || index[d] >= c->dims[d]) return 0;
    flat = flat * c->dims[d] + index[d];
  }
  return is_float(c->dtype) ? c->as_double(flat) : double(c->as_int(flat));
}

/// Calls f for every index of a box, last axis fastest.
inline void for_each_index(const Dims& extents, const std::function<void(const Dims&)>& f) {
  Dims i(extents.size(), 0);
  for (int64_t n = num_elements(extents); n > 0; n--) {
    f(i);
    for (size_t d = i.size(); d-- > 0 && ++i[d] == extents[d];) i[d] = 0;
  }
}

/// The tensor with its axes permuted.
inline Constant permuted(const Constant& c, const std::vector<int>& perm) {
  Dims dims;
  for (int p : perm) dims.push_back(c->dims[size_t(p)]);
  std::vector<double> v;
  for_each_index(dims, [&](const Dims& i) {
    Dims from(i.size());
    for (size_t k = 0; k < i.size(); k++) from[size_t(perm[k])] = i[k];
    v.push_back(at(c, from));
  });
  return tensor_of(c->dtype, dims, v);
}

/// Largest |a - b| / (1 + |b|); infinite if the sizes differ or one of the two is NaN.
inline double max_error(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t k = 0; k < a.size(); k++) {
    if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) continue;
    const double e = std::abs(a[k] - b[k]) / (1 + std::abs(b[k]));
    worst = std::isnan(e) ? INFINITY : std::max(worst, e);
  }
  return worst;
}

}  // namespace tc
