// Which tensors lie inside of others. That the numbers stay right, run_differential and run_near_misses say.
#include "passes/program/parts.h"

#include "passes/program/test_program.h"

namespace tc::parts_test {
namespace {

using testing::program_of;

std::string kernels_of(const Program& p) {
  std::string names;
  for (const Step& s : p.steps)
    if (const Call* c = std::get_if<Call>(&s.kind)) {
      const std::string& name = p.kernels.at(size_t(c->kernel)).name;
      names += (names.empty() ? "" : " ") + name.substr(0, name.find('_', name.find_first_of("0123456789") - 1));
    }
  return names;
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

int parts_in(const Program& p) {
  int n = 0;
  for (const Slot& s : p.slots) n += s.within >= 0 ? 1 : 0;
  return n;
}

const std::string kBranches = R"(float[1,16,12,12] x, float[32,16,1,1] w, float[16,16,3,3] v)";

TEST(Parts, AConcatWritesThroughItsProducers) {
  const Program p = program_of("g (" + kBranches + R"() => (float[1,48,12,12] y) {
    a = Conv (x, w)  b = Conv <pads = [1,1,1,1]> (x, v)  c = Concat <axis = 1> (a, b)  y = Relu (c) })",
                               false);
  EXPECT_EQ(count(kernels_of(p), "concat"), 0) << kernels_of(p);
  EXPECT_EQ(parts_in(p), 2);
  for (const Slot& s : p.slots) EXPECT_TRUE(s.within <= 0 || s.within == 32 * 4) << s.within;
}

// An input lies where the caller says, and so does what the caller wants.
TEST(Parts, InputsAndOutputsStay) {
  const Program p =
      program_of(R"(g (float[48,64] x, float[48,64] z) => (float[96,64] y, float[48,64] r, float[96,64] s) {
    r = Neg (x)  y = Concat <axis = 0> (r, z)  t = Tanh (x)  q = Concat <axis = 0> (z, x)  s = Sigmoid (q) })",
                 false);
  EXPECT_EQ(parts_in(p), 0);
}

TEST(Parts, OperandsMadeElsewhereAreCopiedAlone) {
  const Program p = program_of("g (" + kBranches + R"() => (float[1,48,12,12] y) {
    a = Conv (x, w)  c = Concat <axis = 1> (a, x)  y = Relu (c) })",
                               false);
  EXPECT_EQ(parts_in(p), 2);
  EXPECT_EQ(count(kernels_of(p), "concat"), 0) << kernels_of(p);
}

// The layers of a dense block: each reads all that were made before.
TEST(Parts, ADenseBlockIsOneTensor) {
  const Program p = program_of(R"(g (float[1,16,12,12] x, float[16,16,3,3] u, float[16,32,1,1] v, float[16,48,1,1] w) =>
    (float[1,64,12,12] y) {
    a = Relu (x)
    b = Conv <pads = [1,1,1,1]> (a, u)   c = Concat <axis = 1> (a, b)
    d = Conv (c, v)   e = Concat <axis = 1> (a, b, d)
    f = Conv (e, w)   h = Concat <axis = 1> (a, b, d, f)   y = Tanh (h) })",
                               false);
  EXPECT_EQ(count(kernels_of(p), "concat"), 0) << kernels_of(p);
  int wholes = 0;
  for (const Slot& s : p.slots) wholes += s.bytes == 4 * 64 * 144 ? 1 : 0;
  EXPECT_EQ(wholes, 1);
}

// What is padded lies in the interior; the border has a kernel of its own.
TEST(Parts, APaddedConcatHasABorder) {
  const Program p = program_of("g (" + kBranches + R"(, float[8,48,3,3] u) => (float[1,8,12,12] y) {
    a = Conv (x, w)  b = Conv <pads = [1,1,1,1]> (x, v)  c = Concat <axis = 1> (a, b)
    y = Conv <pads = [1,1,1,1]> (c, u) })",
                               false);
  EXPECT_EQ(count(kernels_of(p), "border"), 1) << kernels_of(p);
  EXPECT_EQ(count(kernels_of(p), "concat"), 0) << kernels_of(p);
}

TEST(Parts, SlicesAreViews) {
  const Program p =
      program_of(R"(g (float[1,16,12,12] x, float[64,16,1,1] w) => (float[1,32,6,6] y, float[1,32,6,6] z) {
    a = Conv (x, w)  b, c = Split <axis = 1, num_outputs = 2> (a)
    y = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b)  z = AveragePool <kernel_shape = [2,2], strides = [2,2]> (c)
    })",
                 false);
  EXPECT_EQ(count(kernels_of(p), "split"), 0) << kernels_of(p);
}

// One number a pixel beside others would leave vectors empty; a small tensor is copied in no time.
TEST(Parts, ShortRowsAndSmallTensorsAreCopied) {
  const Program p = program_of(R"(g (float[1,16,30,30] x, float[4,16,1,1] w) => (float[1,8,30,30] y) {
    a = Conv (x, w)  b = Relu (a)  c = Concat <axis = 1> (a, b)  y = Tanh (c) })",
                               false);
  EXPECT_EQ(parts_in(p), 0);
}

}  // namespace
}  // namespace tc::parts_test
