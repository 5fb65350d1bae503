// One operator, evaluated by the interpreter. For tests only.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "ir/language/test_round_trip.h"
#include "ir/ops/op.h"
#include "ir/ops/test_ops.h"
#include "templates/cuda/test_schedule.h"

namespace tc::case_testing {

inline Constant floats(const Dims& dims, const std::vector<float>& v) {
  check(num_elements(dims) == int64_t(v.size()), "floats: sizes");
  return make_constant(DType::F32, dims, v.data());
}
inline Constant ints(const Dims& dims, const std::vector<int64_t>& v) {
  check(num_elements(dims) == int64_t(v.size()), "ints: sizes");
  return make_constant(DType::I64, dims, v.data());
}
/// Values of any numeric type, rounded or wrapped to it.
inline Constant numbers(DType t, const Dims& dims, const std::vector<double>& v) {
  MutableTensor m = new_tensor(t, dims);
  check(m.data.size() == int64_t(v.size()), "numbers: sizes");
  const size_t width = size_t(info(t).bytes);
  for (size_t k = 0; k < v.size(); k++) {
    const Constant one = scalar_constant(t, v[k]);
    std::copy(one->bytes.get(), one->bytes.get() + width, m.bytes + k * width);
  }
  return std::make_shared<TensorData>(std::move(m.data));
}

struct Call {
  std::string op;
  std::vector<Constant> inputs;  // null: absent
  Attrs attrs = {};
  std::vector<int> run_time = {};        // operands whose values define() may not see
  std::vector<ValueType> declared = {};  // types of the outputs that the model declares
  int outputs = 1;
  std::string domain = "";
};

struct Result {
  std::vector<Constant> outputs;
  TensorFn fn;
};

inline Result run(const Call& c) {
  Graph g;
  std::vector<Value*> in;
  for (size_t k = 0; k < c.inputs.size(); k++) {
    const bool late = std::find(c.run_time.begin(), c.run_time.end(), int(k)) != c.run_time.end();
    const Constant& v = c.inputs[k];
    const ModelText name("in" + to_text(int64_t(k)));
    if (!v)
      in.push_back(nullptr);
    else
      in.push_back(late ? g.add_input(name, ValueType::tensor(v->dtype, to_shape(v->dims))) : g.add_constant(name, v));
  }
  std::vector<ModelText> names;
  for (int k = 0; k < c.outputs; k++) names.emplace_back("out" + to_text(int64_t(k)));
  Node* n = g.append(c.op, in, names, c.attrs, c.domain);
  for (size_t k = 0; k < c.declared.size(); k++) g.set_type(n->outputs[k], c.declared[k]);
  infer_types(g, *n);
  std::vector<Constant> args;
  for (int k : fn_operands(*n)) args.push_back(c.inputs[size_t(k)]);
  Result r{evaluate(tensor_fn(*n), args), tensor_fn(*n)};
  testing::expect_cuda_schedule(r.fn, args, r.outputs);
  language::testing::expect_round_trip(r.fn);
  return r;
}

using tc::values;
/// Values of output 0.
inline std::vector<double> values(const Call& c) { return values(run(c).outputs[0]); }

/// Message of the Error that `c` throws, "" if it throws none.
inline std::string error_of(const Call& c) {
  try {
    run(c);
  } catch (const Error& e) {
    return e.diagnostic().render();
  }
  return "";
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); k++) {
    if (std::isnan(want[k]))
      EXPECT_TRUE(std::isnan(got[k])) << "element " << k << " is " << got[k];
    else if (std::isinf(want[k]))
      EXPECT_EQ(got[k], want[k]) << "element " << k;
    else
      EXPECT_NEAR(got[k], want[k], tolerance * std::max(1.0, std::fabs(want[k]))) << "element " << k;
  }
}

}  // namespace tc::case_testing
