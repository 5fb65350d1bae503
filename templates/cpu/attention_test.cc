// Attention whose mask says by positions which keys a row sees equals the definition, but for roundings, in strips that end with them;
// and heads that lie side by side or share keys.
#include <cmath>

#include "templates/cpu/test_schedule.h"

namespace tc::attention_strips_test {
namespace {

using namespace tc::testing;

struct Case {
  int64_t rows = 40, keys = 50, size = 16, value_size = 16, heads = 4,
          shared = 1;  // shared: heads that read the same keys
  int64_t ahead = 0;   // row i sees keys up to i + ahead
  bool causal = true;
  int64_t window = 0;                 // and the last so many of them; 0: all
  bool masked = false;                // by an operand, too
  bool or_zero = true;                // rows that see nothing are zero
  bool merged = false;                // heads side by side in queries, keys and result
  std::vector<int64_t> lengths = {};  // of the batches' keys, if the run says them
  bool by_rows = false;               // the mask compares rows with numbers: no bound of the keys
};

class Builder {
 public:
  explicit Builder(const Case& c) : c_(c), dims_{2, c.heads, c.rows, c.keys}, row_{2, c.heads, c.rows} {}

  TestFunction attention() {
    const Buffer p = softmax(scores());
    const Buffer v = operand("v", c_.keys, c_.heads / c_.shared, c_.value_size);
    const Buffer y = b.reduce("attention", Op::Add, {2, c_.heads, c_.rows, c_.value_size}, {c_.keys},
                              [&](const Exprs& i, const Exprs& r) {
                                return load(p, {i[0], i[1], i[2], r[0]}) *
                                       element(v, i[0], floor_div(i[1], Expr(c_.shared)), r[0], i[3], c_.value_size);
                              });
    if (!c_.merged) return b.take(y);
    return b.take(b.compute("merge", {2, c_.rows, c_.heads * c_.value_size}, [&](const Exprs& i) {
      const Expr size = c_.value_size;
      return load(y, {i[0], floor_div(i[2], size), i[1], floor_mod(i[2], size)});
    }));
  }

  FunctionBuilder b;
  std::vector<Constant> in;

 private:
  Buffer given(const std::string& name, const Dims& dims) {
    in.push_back(random_floats(dims, uint32_t(in.size()) + 1));
    return b.input(name, dims);
  }
  Buffer operand(const std::string& name, int64_t length, int64_t heads, int64_t size) {
    return given(name, c_.merged ? Dims{2, length, heads * size} : Dims{2, heads, length, size});
  }
  Expr element(const Buffer& x, const Expr& batch, const Expr& head, const Expr& at, const Expr& d,
               int64_t size) const {
    if (!c_.merged) return load(x, {batch, head, at, d});
    return load(x, {batch, at, head * Expr(size) + d});
  }
  Buffer counts() {
    MutableTensor m = new_tensor(DType::I64, {2});
    std::copy(c_.lengths.begin(), c_.lengths.end(), m.as<int64_t>());
    in.push_back(std::make_shared<const TensorData>(std::move(m.data)));
    return b.input("lengths", {2}, false, DType::I64);
  }
  Buffer scores() {
    const Buffer q = operand("q", c_.rows, c_.heads, c_.size), k = operand("k", c_.keys, c_.heads / c_.shared, c_.size);
    const Buffer s = b.reduce("qk", Op::Add, dims_, {c_.size}, [&](const Exprs& i, const Exprs& r) {
      return element(q, i[0], i[1], i[2], r[0], c_.size) *
             element(k, i[0], floor_div(i[1], Expr(c_.shared)), i[3], r[0], c_.size);
    });
    const Buffer mask = c_.masked ? given("mask", {c_.keys}) : nullptr,
                 lengths = c_.lengths.empty() ? nullptr : counts();
    return b.compute("masked", dims_, [&](const Exprs& i) {
      Expr ok = c_.by_rows ? i[2] < Expr(7) : make_int(DType::Bool, 1);
      if (c_.causal) ok = ok && i[3] <= i[2] + Expr(c_.ahead);
      if (c_.window > 0) ok = ok && i[2] + Expr(c_.ahead) < i[3] + Expr(c_.window);
      if (lengths) ok = ok && i[3] < load(lengths, {i[0]});
      if (mask) ok = ok && load(mask, {i[3]}) > make_const(DType::F32, -0.3);
      return select(ok, load(s, i) * make_const(DType::F32, 0.25), lowest(DType::F32));
    });
  }
  Buffer softmax(const Buffer& s) {
    const auto of = [](const Buffer& x, const Exprs& i) { return load(x, {i[0], i[1], i[2]}); };
    const Buffer top = b.reduce("max", Op::Max, row_, {c_.keys}, [&](const Exprs& i, const Exprs& r) {
      return load(s, {i[0], i[1], i[2], r[0]});
    });
    const Buffer e = b.compute("exp", dims_, [&](const Exprs& i) {
      const Expr m = of(top, i);
      return exp(load(s, i) - (c_.or_zero ? select(eq(m, lowest(DType::F32)), zero(DType::F32), m) : m));
    });
    const Buffer sum = b.reduce("sum", Op::Add, row_, {c_.keys}, [&](const Exprs& i, const Exprs& r) {
      return load(e, {i[0], i[1], i[2], r[0]});
    });
    return b.compute("softmax", dims_, [&](const Exprs& i) {
      const Expr total = of(sum, i);
      return load(e, i) / (c_.or_zero ? select(eq(total, zero(DType::F32)), make_const(DType::F32, 1), total) : total);
    });
  }

  const Case& c_;
  const Dims dims_, row_;
};

void expect(const Case& c, const std::string& description, const std::string& text = "",
            const std::string& missing = "") {
  Builder b(c);
  const TestFunction f = b.attention();
  const Constant expected = evaluate(f.fn, b.in)[0];
  const Scheduled s = schedule_cpu(f.fn, std::vector<bool>(f.fn.inputs.size(), false), *find_cpu("x86-64-v3"));
  EXPECT_NE(s.description.find(description), std::string::npos) << s.description;
  const std::string body = to_text(s.body);
  EXPECT_NE(body.find(text), std::string::npos) << body;
  if (!missing.empty()) {
    EXPECT_EQ(body.find(missing), std::string::npos) << body;
  }
  for (const int vl : {1, 4, 8, 16}) {
    const std::vector<float> got = run_scheduled(s, f.fn, b.in, vl);
    for (int64_t k = 0; k < expected->size(); k++) {
      const float want = expected->as<float>()[k], is = got[size_t(k)];
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(is)) << vl << " lanes, element " << k << ": " << is;
      else
        ASSERT_NEAR(is, want, 2e-5) << vl << " lanes, element " << k;
    }
  }
}

TEST(AttentionStrips, StripsEndWithTheKeysThatTheirRowsSee) {
  for (const int64_t ahead : {0, 3, 10, 60}) expect({.ahead = ahead}, "strips of", "num_keys");
  expect({.rows = 50, .keys = 50}, "strips of", "num_keys");
  expect({.rows = 33, .keys = 20}, "strips of", "num_keys");
  expect({.rows = 3, .keys = 65}, "strips of", "num_keys");
  expect({.masked = true}, "strips of", "num_keys");
}

TEST(AttentionStrips, RowsThatSeeNothing) {
  for (const int64_t ahead : {-1, -5, -60}) expect({.ahead = ahead}, "strips of", "num_keys");
  expect({.keys = 20, .window = 4}, "strips of", "num_keys");
}

TEST(AttentionStrips, WindowsBeginWithTheKeysThatARowSees) {
  for (const int64_t window : {1, 7, 16, 90}) expect({.window = window}, "strips of", "num_keys");
  expect({.ahead = 9, .window = 12, .masked = true}, "strips of", "num_keys");
}

TEST(AttentionStrips, AsManyKeysAsTheRunSays) {
  for (const bool causal : {false, true})
    for (const bool merged : {false, true})
      expect({.shared = 2, .causal = causal, .merged = merged, .lengths = {50, 23}}, "strips of", "all_keys");
  expect({.lengths = {0, 1}}, "strips of", "all_keys");
  expect({.lengths = {1000, -3}}, "strips of", "all_keys");
  expect({.rows = 5, .keys = 200, .ahead = 150, .lengths = {155, 160}}, "strips of", "all_keys");
  expect({.rows = 5, .keys = 30000, .ahead = 50, .lengths = {55, 3}}, "strips of", "for own in 0 .. +2");
  expect({.rows = 4, .lengths = {50, 23}}, "one pass");
}

// Exponentials of a row that sees nothing are NaN, which whoever skips keys does not find.
TEST(AttentionStrips, NaNOfRowsThatSeeNothing) {
  expect({.or_zero = false}, "strips of", "num_keys");
  expect({.ahead = 2, .or_zero = false}, "strips of", "num_keys");
  expect({.ahead = -1, .or_zero = false}, "", "", "num_keys");
  expect({.window = 5, .or_zero = false}, "", "", "num_keys");
  expect({.masked = true, .or_zero = false}, "", "", "num_keys");
}

TEST(AttentionStrips, MasksOfRowsAreNoBounds) {
  expect({.by_rows = true}, "", "");
  expect({.causal = false, .by_rows = true}, "", "", "num_keys");
}

TEST(AttentionStrips, HeadsSideBySideThatShareKeys) {
  for (const bool causal : {false, true})
    for (const int64_t shared : {1, 2, 4}) {
      expect({.shared = shared, .causal = causal, .merged = true}, "strips of");
      expect({.shared = shared, .causal = causal}, "strips of");
    }
  expect({.value_size = 24, .heads = 6, .shared = 3, .merged = true}, "strips of", "num_keys");
}

}  // namespace
}  // namespace tc::attention_strips_test
