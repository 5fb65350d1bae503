// Reading and writing where other tensors say, on a GPU: rows 16 bytes at a time, updates of one element in their
// order.
#include <gtest/gtest.h>

#include "ir/loop/visit.h"
#include "ir/ops/test_ops.h"

namespace tc::gather_scatter_test {
namespace {

// Indices from 0 to n - 1, some of them several times, some counted from behind.
Constant indices(const Dims& dims, int64_t n, int64_t seed) {
  std::vector<double> v;
  for (int64_t i = 0; i < num_elements(dims); i++) {
    const int64_t p = (i * i + seed * 7 + i / 3) % n;
    v.push_back(double(i % 4 == 3 ? p - n : p));
  }
  return tensor_of(DType::I64, dims, v);
}

Scheduled schedule_of(const OpRun& r) {
  Graph g;
  std::vector<Value*> in;
  for (const Constant& c : r.inputs)
    in.push_back(g.add_input(ModelText("i"), ValueType::tensor(c->dtype, to_shape(c->dims))));
  Node* n = g.append(r.op, in, {ModelText("y")}, r.attrs, "");
  infer_types(g, *n);
  return schedule_cuda(tensor_fn(*n), std::vector<bool>(in.size(), false), *find_arch("sm_80"));
}

TEST(CudaGather, RowsAreReadSixteenBytesAtATime) {
  for (const auto& [t, description] : {std::pair(DType::F32, "4 elements a thread, 16 bytes an access"),
                                       std::pair(DType::F16, "8 elements a thread, 16 bytes an access"),
                                       std::pair(DType::I64, "2 elements a thread, 16 bytes an access")}) {
    const OpRun rows{
        .op = "Gather", .inputs = {random_tensor(t, {30, 64}, 1, 100), indices({3, 601}, 30, 2)}, .cuda_tolerance = 0};
    EXPECT_EQ(schedule_of(rows).description, description);
    EXPECT_EQ(run_op(rows)[0]->dims, (Dims{3, 601, 64}));
  }
  const OpRun odd{
      .op = "Gather", .inputs = {random_tensor(DType::F32, {30, 63}, 1), indices({1000}, 30, 2)}, .cuda_tolerance = 0};
  EXPECT_EQ(schedule_of(odd).description, "a thread per element");
  run_op(odd);
  const OpRun columns{.op = "Gather",
                      .inputs = {random_tensor(DType::F32, {1000, 30}, 1), indices({64}, 30, 2)},
                      .attrs = {{"axis", int64_t(1)}},
                      .cuda_tolerance = 0};
  EXPECT_EQ(schedule_of(columns).description, "a thread per element");
  run_op(columns);
}

// The iterations of a loop are threads where it is bound to them.
int64_t threads_of(const OpRun& r) {
  int64_t most = 0;
  walk(schedule_of(r).body, [&](const Stmt& x) {
    const For* block = as<For>(x);
    if (!block || block->kind != ForKind::BlockX) return true;
    const For* thread = as<For>(block->body);
    const bool updates = [&] {  // not the copy
      bool serial = false;
      walk(block->body, [&](const Stmt& y) {
        const For* f = as<For>(y);
        serial = serial || (f && f->kind == ForKind::Serial);
        return true;
      });
      return serial;
    }();
    if (updates && thread) most = *as_const_int(block->extent) * *as_const_int(thread->extent);
    return true;
  });
  return most;
}

TEST(CudaScatter, UpdatesOfOneElementKeepTheirOrder) {
  for (const char* how : {"none", "add", "mul", "max", "min"}) {
    const Attrs attrs = {{"reduction", std::string(how)}};
    auto values = [](const Dims& d, int seed) { return random_tensor(DType::F32, d, seed, 1.5, false); };
    run_op({.op = "ScatterND",
            .inputs = {values({9, 40}, 1), indices({30, 1}, 9, 3), values({30, 40}, 2)},
            .attrs = attrs,
            .cuda_tolerance = 0});
    run_op({.op = "ScatterND",
            .inputs = {values({4, 4, 3}, 1), indices({50, 2}, 4, 5), values({50, 3}, 2)},
            .attrs = attrs,
            .cuda_tolerance = 0});
    for (const int64_t axis : {0, 1}) {
      Attrs along = attrs;
      along["axis"] = axis;
      run_op({.op = "ScatterElements",
              .inputs = {values({20, 20}, 1), indices({20, 20}, 20, 4), values({20, 20}, 2)},
              .attrs = along,
              .cuda_tolerance = 0});
    }
  }
}

TEST(CudaScatter, AThreadPerColumnWalksTheUpdates) {
  const Constant x = random_tensor(DType::F32, {9, 512}, 1), u = random_tensor(DType::F32, {30, 512}, 2);
  EXPECT_EQ(threads_of({.op = "ScatterND", .inputs = {x, indices({30, 1}, 9, 3), u}}), 512);
  EXPECT_EQ(threads_of({.op = "ScatterElements", .inputs = {x, indices({9, 512}, 9, 3), x}}), 512);
}

}  // namespace
}  // namespace tc::gather_scatter_test
