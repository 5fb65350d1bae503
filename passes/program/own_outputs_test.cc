#include "passes/program/own_outputs.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"

namespace tc::own_outputs_test {
namespace {

TEST(OwnOutputs, InputsAndRepeatedOutputsAreCopied) {
  Buffer x = make_buffer("x", DType::F32, {Dim(2), Dim(2)});
  TensorFn fn;
  fn.inputs = {x};
  fn.outputs = {x, x};
  TensorFn own = own_outputs(fn);
  verify(own);
  EXPECT_EQ(to_text(own),
            "in x: f32[2,2]\n"
            "copy (copy: f32)[i:2, j:2] = x[i, j]\n"
            "copy (copy: f32)[i:2, j:2] = x[i, j]\n"
            "out copy: f32[2,2]\n"
            "out copy: f32[2,2]\n");
  float v[] = {1, 2, 3, 4};
  auto r = evaluate(own, {make_constant(DType::F32, {2, 2}, v)});
  EXPECT_EQ(r[1]->as_double(3), 4);
  EXPECT_EQ(own_outputs(own).stages.size(), 2u);
}

}  // namespace
}  // namespace tc::own_outputs_test
