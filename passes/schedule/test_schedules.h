// What the tests of schedule primitives share: small functions, the text of a body, refusals, and equality with the
// definition on small integers, bit for bit.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/test_random.h"
#include "ir/verify.h"
#include "passes/schedule/primitives.h"
#include "templates/cpu/test_functions.h"

namespace tc::testing {

/// The body runs to the bytes that the definition gives. `prologue`: of packed operands; `views`: of memory as it lies.
inline void expect_same(const TensorFn& fn, const Stmt& body, const std::string& what = "",
                        const TensorFn& prologue = {}, const std::vector<Scheduled::View>& views = {}) {
  std::vector<Constant> in;
  std::vector<Binding> bindings;
  std::vector<Buffer> buffers = fn.inputs;
  buffers.insert(buffers.end(), fn.outputs.begin(), fn.outputs.end());
  buffers.insert(buffers.end(), prologue.outputs.begin(), prologue.outputs.end());
  for (const Scheduled::View& v : views) buffers.push_back(v.flat);
  ASSERT_NO_THROW(verify(body, buffers)) << what << "\n" << to_text(body);
  for (const Buffer& b : fn.inputs) {
    in.push_back(small_integers(static_dims(b->shape), uint32_t(in.size() + 1), b->dtype));
    bindings.push_back({b, const_cast<uint8_t*>(in.back()->bytes.get())});
  }
  const std::vector<Constant> expected = evaluate(fn, in);
  std::vector<std::vector<uint8_t>> out;
  for (const Constant& c : expected) out.emplace_back(c->num_bytes + 8, uint8_t(0xa7));
  for (size_t i = 0; i < out.size(); i++) bindings.push_back({fn.outputs[i], out[i].data()});
  std::vector<Constant> known;
  for (const Buffer& b : prologue.inputs)
    known.push_back(in.at(size_t(std::find(fn.inputs.begin(), fn.inputs.end(), b) - fn.inputs.begin())));
  const std::vector<Constant> packed = prologue.outputs.empty() ? known : evaluate(prologue, known);
  for (size_t i = 0; i < prologue.outputs.size(); i++)
    bindings.push_back({prologue.outputs[i], const_cast<uint8_t*>(packed[i]->bytes.get())});
  for (const Scheduled::View& v : views)
    for (size_t i = 0, n = bindings.size(); i < n; i++)
      if (bindings[i].buffer == v.of) bindings.push_back({v.flat, bindings[i].bytes});
  RunOptions o;
  o.check_races = true;
  ASSERT_NO_THROW(run(body, bindings, o)) << what << "\n" << to_text(body);
  for (size_t i = 0; i < out.size(); i++)
    ASSERT_EQ(std::memcmp(out[i].data(), expected[i]->bytes.get(), expected[i]->num_bytes), 0)
        << what << "\n"
        << to_text(fn) << to_text(body);
}

inline void expect_same(const TensorFn& fn, const Schedule& s, const std::string& what = "") {
  expect_same(fn, s.body(), what, s.prologue(), s.views());
}

/// The message of the refusal; empty if the step was taken.
inline std::string refusal(const std::function<void()>& step) {
  try {
    step();
  } catch (const ScheduleError& e) {
    return e.what();
  }
  return "";
}

/// y[i, j] = x[i, j] + x[i, j]
inline TensorFn twice(int64_t rows, int64_t columns) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, columns});
  return b.take(b.compute("add", {rows, columns}, [&](const Exprs& i) { return load(x, i) + load(x, i); })).fn;
}

/// y[i] = sum over k of x[i, k]
inline TensorFn row_sums(int64_t rows, int64_t columns) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, columns});
  return b
      .take(b.reduce("sum", Op::Add, {rows}, {columns},
                     [&](const Exprs& i, const Exprs& r) {
                       return load(x, {i[0], r[0]});
                     }))
      .fn;
}

}  // namespace tc::testing
