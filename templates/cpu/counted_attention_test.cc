// Attention spelled out in operators, over as many keys as the run says, equals the definition, but for roundings: in tiles of rows,
// in one pass of few rows, and its softmax and its second product by themselves.
#include <cmath>

#include "templates/cpu/test_schedule.h"

namespace tc::counted_attention_test {
namespace {

using namespace tc::testing;

struct Case {
  int64_t heads = 3, queries = 20, keys = 50, size = 16, n = 37;
  bool mask = false;
  int64_t masked = 33;   // keys that nobody sees then
  bool or_zero = false;  // rows without a number are zero
};

class Builder {
 public:
  explicit Builder(const Case& c) : c_(c), scores_{1, c.heads, c.queries, c.keys}, row_{1, c.heads, c.queries} {}

  Buffer given(const std::string& name, const Dims& dims) {
    in.push_back(random_floats(dims, uint32_t(in.size()) + 1));
    return b.input(name, dims);
  }
  /// The number of keys; what comes later asks for it.
  void count() {
    const Buffer count = b.input("count", {}, false, DType::I64);
    MutableTensor m = new_tensor(DType::I64, {});
    m.as<int64_t>()[0] = c_.n;
    in.push_back(std::make_shared<const TensorData>(std::move(m.data)));
    n_ = load(count, {});
  }
  Buffer products() {
    const Buffer q = given("q", {1, c_.heads, c_.queries, c_.size}), k = given("k", {1, c_.heads, c_.keys, c_.size});
    Buffer s = b.reduce("matmul", Op::Add, scores_, {c_.size}, [&](const Exprs& i, const Exprs& r) {
      return load(q, {i[0], i[1], i[2], r[0]}) * load(k, {i[0], i[1], i[3], r[0]});
    });
    if (!c_.mask) return s;
    MutableTensor m = new_tensor(DType::F32, {c_.keys});
    for (int64_t i = 0; i < c_.keys; i++) m.as<float>()[i] = i < c_.masked ? -INFINITY : 0.0f;
    in.push_back(std::make_shared<const TensorData>(std::move(m.data)));
    const Buffer bias = b.input("mask", {c_.keys});
    return b.compute("add", scores_, [&](const Exprs& i) { return load(s, i) + load(bias, {i[3]}); });
  }
  Buffer softmax(const Buffer& s) {
    const auto of = [](const Buffer& x, const Exprs& i) { return load(x, {i[0], i[1], i[2]}); };
    const Buffer top = b.reduce("max", Op::Max, row_, {c_.keys}, [&](const Exprs& i, const Exprs& r) {
      return select(r[0] < n_, load(s, {i[0], i[1], i[2], r[0]}), lowest(DType::F32));
    });
    const Expr nothing = zero(DType::F32);
    const Buffer e = b.compute("exp", scores_, [&](const Exprs& i) {
      const Expr m = of(top, i);
      return exp(load(s, i) - (c_.or_zero ? select(eq(m, lowest(DType::F32)), nothing, m) : m));
    });
    const Buffer sum = b.reduce("sum", Op::Add, row_, {c_.keys}, [&](const Exprs& i, const Exprs& r) {
      return select(r[0] < n_, load(e, {i[0], i[1], i[2], r[0]}), zero(DType::F32));
    });
    return b.compute("softmax", scores_, [&](const Exprs& i) {
      const Expr total = of(sum, i), share = load(e, i) / total;
      return c_.or_zero ? select(total > nothing, share, nothing) : share;
    });
  }
  Buffer times_values(const Buffer& p) {
    const Buffer v = given("v", {1, c_.heads, c_.keys, c_.size});
    const Dims dims = {1, c_.heads, c_.queries, c_.size};
    return b.reduce("times", Op::Add, dims, {c_.keys}, [&](const Exprs& i, const Exprs& r) {
      const Expr product = load(p, {i[0], i[1], i[2], r[0]}) * load(v, {i[0], i[1], r[0], i[3]});
      return select(r[0] < n_, product, zero(DType::F32));
    });
  }

  FunctionBuilder b;
  std::vector<Constant> in;

 private:
  const Case& c_;
  const Dims scores_, row_;
  Expr n_;
};

/// `last`: elements of a row of the result that anybody reads.
void expect_near(const TensorFn& fn, const std::vector<Constant>& in, const std::string& description, int64_t last) {
  const Constant expected = evaluate(fn, in)[0];
  const Scheduled s = schedule_cpu(fn, std::vector<bool>(fn.inputs.size(), false), *find_cpu("x86-64-v3"));
  EXPECT_NE(s.description.find(description), std::string::npos) << s.description;
  const int64_t width = static_dims(fn.outputs[0]->shape).back();
  for (const int vl : {1, 4, 8, 16}) {
    const std::vector<float> got = run_scheduled(s, fn, in, vl);
    for (int64_t k = 0; k < expected->size(); k++) {
      const float want = expected->as<float>()[k], is = got[size_t(k)];
      if (k % width >= last) continue;
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(is)) << vl << " lanes, element " << k << ": " << is;
      else
        ASSERT_NEAR(is, want, 2e-5) << vl << " lanes, element " << k;
    }
  }
}

void expect_attention(const Case& c, const std::string& description) {
  Builder b(c);
  const Buffer s = b.products();
  b.count();
  const TestFunction f = b.b.take(b.times_values(b.softmax(s)));
  expect_near(f.fn, b.in, description, c.size);
}

TEST(CountedAttention, TilesOfRowsEndBehindTheKeys) {
  for (const int64_t n : {1, 7, 16, 31, 32, 33, 49, 50}) expect_attention({.n = n}, "strips of");
  expect_attention({.heads = 1, .queries = 70, .keys = 64, .size = 24, .n = 45}, "strips of");
  expect_attention({.mask = true}, "strips of");
}

TEST(CountedAttention, FewQueriesGoOverTheKeysOnce) {
  for (const int64_t n : {1, 63, 64, 65, 150}) expect_attention({.queries = 1, .keys = 150, .n = n}, "one pass");
  expect_attention({.queries = 4, .keys = 150, .n = 149, .mask = true, .masked = 100}, "one pass");
}

TEST(CountedAttention, NoKeysGiveZerosAndMaskedOnesNaN) {
  expect_attention({.queries = 1, .n = 0}, "one pass");
  expect_attention({.queries = 1, .n = 30, .mask = true}, "one pass");
  expect_attention({.n = 0}, "strips of");
  expect_attention({.n = 30, .mask = true}, "strips of");
}

TEST(CountedAttention, RowsWithoutANumberMayBeZero) {
  for (const int64_t queries : {1, 20}) {
    const std::string description = queries == 1 ? "one pass" : "strips of";
    expect_attention({.queries = queries, .or_zero = true}, description);
    expect_attention({.queries = queries, .n = 30, .mask = true, .or_zero = true}, description);
    expect_attention({.queries = queries, .n = 0, .or_zero = true}, description);
  }
}

TEST(CountedAttention, ASoftmaxByItself) {
  for (const int64_t n : {1, 15, 16, 100, 128, 129, 300}) {
    const Case c{.queries = 2, .keys = 300, .n = n};
    Builder b(c);
    const Buffer x = b.given("x", {1, c.heads, c.queries, c.keys});
    b.count();
    const TestFunction f = b.b.take(b.softmax(x));
    expect_near(f.fn, b.in, "rows of 300", n);
  }
}

TEST(CountedAttention, AProductByItself) {
  for (const int64_t queries : {1, 20})
    for (const int64_t n : {0, 1, 20, 50}) {
      const Case c{.queries = queries, .n = n};
      Builder b(c);
      const Buffer p = b.given("p", {1, c.heads, c.queries, c.keys});
      b.count();
      const TestFunction f = b.b.take(b.times_values(p));
      expect_near(f.fn, b.in, "registers", c.size);
    }
}

}  // namespace
}  // namespace tc::counted_attention_test
