#include "passes/loop/flatten_buffers.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::flatten_buffers_test {
namespace {

// y[j, i] = x[i, j]
class FlattenBuffers : public ::testing::Test {
 protected:
  Floats x{"x", {3, 4}}, y{"y", {4, 3}};
  Var i = make_var("i"), j = make_var("j");
  Stmt kernel(const Buffer& in, const Buffer& out) const {
    return loop(i, 3, loop(j, 4, store(out, {j, i}, load(in, {i, j}))));
  }
};

TEST_F(FlattenBuffers, RowsFollowEachOther) {
  BufferMap flat;
  const Stmt s = flatten_buffers(kernel(x.buffer, y.buffer), flat);
  EXPECT_EQ(to_text(s), "for i in 0 .. +3:\n  for j in 0 .. +4:\n    y[j * 3 + i] = x[i * 4 + j]\n");
  x.count();
  run(s, {{flat.at(x.buffer.get()), x.bind().bytes}, {flat.at(y.buffer.get()), y.bind().bytes}});
  EXPECT_EQ(y.data[2 * 3 + 1], x.data[1 * 4 + 2]);
}

// What a position was taken apart into is the position again; where only a part of it is used, the quotient stays.
TEST_F(FlattenBuffers, QuotientsAndRemaindersMeet) {
  const Buffer y = make_buffer("y", DType::F32, {Dim(4), Dim(8), Dim(8)}),
               z = make_buffer("z", DType::F32, {Dim(8), Dim(4)});
  const Var p = make_var("p");
  const Expr e = p, one = make_float(DType::F32, 1);
  const auto flat = [](const Stmt& s) {
    BufferMap buffers;
    return to_text(flatten_buffers(s, buffers));
  };
  EXPECT_EQ(flat(store(y, {floor_div(e, 64), floor_mod(floor_div(e, 8), 8), floor_mod(e, 8)}, one)), "y[p] = 1.0f\n");
  EXPECT_EQ(flat(store(z, {floor_div(e, 8), floor_mod(e, 4)}, one)),
            "z[floor_div(p, 8) * 4 + floor_mod(p, 4)] = 1.0f\n");
}

TEST_F(FlattenBuffers, StridesAndOffsetsAreApplied) {
  auto d = std::make_shared<BufferDef>(*x.buffer);
  d->strides = {1, 8};
  d->offset = 5;
  BufferMap flat;
  const std::string text = to_text(flatten_buffers(kernel(d, y.buffer), flat));
  EXPECT_NE(text.find("= x[i + j * 8 + 5]"), std::string::npos) << text;
  EXPECT_EQ(flat.at(d.get())->shape, (Shape{5 + 2 + 3 * 8 + 1}));
}

TEST_F(FlattenBuffers, RegistersAndSharedArraysKeepTheirShape) {
  for (const Scope scope : {Scope::Register, Scope::Shared}) {
    const Buffer t = make_buffer("t", DType::F32, {Dim(4), Dim(3)}, scope);
    BufferMap flat;
    const std::string text = to_text(flatten_buffers(alloc(t, kernel(x.buffer, t)), flat));
    EXPECT_NE(text.find("t[j, i] = x[i * 4 + j]"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tc::flatten_buffers_test
