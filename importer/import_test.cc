#include "importer/import.h"

#include <gtest/gtest.h>

#include "importer/testing.h"

namespace tc {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

TEST(Import, SmallModel) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] y)
<float[3,2] w = {1,2,3,4,5,6}>
{ h = MatMul(x, w)  y = Relu(h) })",
                                 {.dims = {{"N", 4}}});
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.text, R"(graph net(%x: f32[4,3]) -> (%y) {
  %w: f32[3,2] = const [1, 2, 3, 4, 5, 6]
  %h: f32[4,2] = MatMul(%x, %w)
  %y: f32[4,2] = Relu(%h)
}
)");
}

}  // namespace
}  // namespace tc
