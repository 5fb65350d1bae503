// Attention in one pass equals the definition, but for roundings: groups of heads, windows, caps, blocks that are not full, no keys.
#include <limits>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "templates/cpu/test_schedule.h"

namespace tc::streaming_attention_test {
namespace {

using namespace tc::testing;

struct Case {
  int64_t batch = 1, heads = 4, key_heads = 2, queries = 3, keys = 150, size = 16;
  std::vector<int64_t> lengths = {97}, first = {94};
  bool whole = false, bias = false;  // queries as four axes; a mask of floats
  Attrs attrs = {{"is_causal", int64_t(1)}};
  int64_t number = -1;  // of keys that there are, behind which the values are NaN; -1: all
};

/// [batch, heads, keys, size], NaN from key `n` on.
Constant values_of(const Case& c) {
  const Constant x = random_floats({c.batch, c.key_heads, c.keys, c.size}, 3);
  MutableTensor m = new_tensor(DType::F32, x->dims);
  for (int64_t k = 0; k < x->size(); k++)
    m.as<float>()[k] = k / c.size % c.keys < c.number ? x->as<float>()[k] : std::numeric_limits<float>::quiet_NaN();
  return std::make_shared<TensorData>(std::move(m.data));
}

/// The function of the operator; the operands are left in `in`.
TensorFn function_of(const Case& c, std::vector<Constant>& in) {
  Graph g;
  std::vector<Value*> operands;
  std::map<const Value*, Constant> given;
  const auto add = [&](const Dims& dims) {
    operands.push_back(g.add_input(ModelText("x"), ValueType::tensor(DType::F32, to_shape(dims))));
    given[operands.back()] = random_floats(dims, uint32_t(operands.size()));
  };
  const Dims four = {c.batch, c.heads, c.queries, c.size}, three = {c.batch, c.queries, c.heads * c.size};
  add(c.whole ? four : three);
  add({c.batch, c.key_heads, c.keys, c.size});
  add({c.batch, c.key_heads, c.keys, c.size});
  if (c.bias)
    add({c.queries, c.keys});
  else
    operands.push_back(nullptr);
  operands.resize(6, nullptr);
  for (const auto& list : {c.lengths, c.first}) {
    operands.push_back(g.add_input(ModelText("n"), ValueType::tensor(DType::I64, {Dim(c.batch)})));
    given[operands.back()] = int64_constant(list);
  }
  if (c.number >= 0) {
    given[operands[2]] = values_of(c);
    operands.push_back(nullptr);
    operands.push_back(g.add_input(ModelText("keys"), ValueType::tensor(DType::I64, {})));
    given[operands.back()] = scalar_constant(DType::I64, double(c.number));
  }
  Attrs attrs = c.attrs;
  attrs["q_num_heads"] = c.heads;
  attrs["kv_num_heads"] = c.key_heads;
  Node* n = g.insert(nullptr, "attention", operands, {ModelText("y")}, attrs, "tc");
  infer_types(g, *n);
  const TensorFn& fn = tensor_fn(*n);
  for (const int k : fn_operands(*n)) in.push_back(given.at(operands[size_t(k)]));
  return fn;
}

Scheduled scheduled(const TensorFn& fn) {
  return schedule_cpu(fn, std::vector<bool>(fn.inputs.size(), false), *find_cpu("x86-64-v3"));
}

bool streams(const Scheduled& s) { return s.description.find("one pass") != std::string::npos; }

void expect_near(const Case& c) {
  std::vector<Constant> in;
  const TensorFn fn = function_of(c, in);
  const Constant expected = evaluate(fn, in)[0];
  const Scheduled s = scheduled(fn);
  EXPECT_TRUE(streams(s)) << s.description;
  for (const int vl : {1, 4, 8, 16}) {
    const std::vector<float> got = run_scheduled(s, fn, in, vl);
    for (int64_t k = 0; k < expected->size(); k++)
      ASSERT_NEAR(got[size_t(k)], expected->as<float>()[k], 2e-5) << vl << " lanes, element " << k;
  }
}

TEST(StreamingAttention, GroupsOfHeadsShareKeys) {
  expect_near({});
  expect_near({.heads = 3, .key_heads = 3, .size = 32});
  expect_near({.heads = 8, .key_heads = 1, .queries = 1});
  expect_near({.batch = 2, .lengths = {5, 150}, .first = {2, 147}});
  expect_near({.whole = true});
}

TEST(StreamingAttention, BlocksThatAreNotFullAndNoKeys) {
  for (const int64_t n : {1, 63, 64, 65, 128, 129, 150}) expect_near({.queries = 1, .lengths = {n}, .first = {n - 1}});
  expect_near({.queries = 2, .lengths = {0}, .first = {0}, .attrs = {}});
}

TEST(StreamingAttention, MasksOfOtherKinds) {
  expect_near({.attrs = {}});  // not causal: all keys that there are
  expect_near({.attrs = {{"is_causal", int64_t(1)}, {"left_window_size", int64_t(20)}}});
  expect_near({.attrs = {{"is_causal", int64_t(1)}, {"softcap", 2.0f}}});
  expect_near({.bias = true});
}

TEST(StreamingAttention, BehindTheLastKeyIsAnything) {
  expect_near({.lengths = {150}, .first = {57}, .number = 60});
  expect_near({.queries = 1, .lengths = {150}, .first = {149}, .number = 129});
  expect_near({.queries = 5, .lengths = {40}, .first = {0}, .attrs = {}, .number = 64});
}

TEST(StreamingAttention, HeadsThatAreNoWholeVectorsAreForOthers) {
  std::vector<Constant> in;
  EXPECT_FALSE(streams(scheduled(function_of({.size = 20}, in))));
}

}  // namespace
}  // namespace tc::streaming_attention_test
