// Runs a package of `dense` (models.py), emitted as `sized` with --dim batch=1..70 --cuda-graphs 2, with changing sizes: graphs are replayed for
// the sizes that they were captured for, and captured again when they were given up. Compiled with -DcudaGraphInstantiate=counted_instantiate
// behind the package's own files.
#undef cudaGraphInstantiate
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
static int captured = 0;
cudaError_t counted_instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  captured++;
  return cudaGraphInstantiate(exec, graph, flags);
}

namespace {

constexpr int64_t columns = 33, results = 7, most = 70;

void expect(bool holds, const char* what, int64_t batch) {
  if (holds) return;
  fprintf(stderr, "error: batch %lld: %s\n", (long long)batch, what);
  exit(1);
}

struct Results {
  std::vector<float> y = std::vector<float>(most * results, -1.0f);
  std::vector<int64_t> at = std::vector<int64_t>(most, -1);
  bool operator==(const Results& o) const { return y == o.y && at == o.at; }
};

std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> x;
  for (int64_t i = 0; i < count; i++) x.push_back((float)((i * 37 + seed * 11) % 101) / 50.0f - 1.0f);
  return x;
}

Results run(const sized& m, const std::vector<float>& x, int64_t batch) {
  Results r;
  const sized_inputs in = {x.data(), batch};
  const sized_outputs out = {r.y.data(), r.at.data()};
  expect(sized_run(&m, &in, &out) == SIZED_OK, sized_device_error(&m), batch);
  return r;
}

// Allocations of the device end where the tensors end.
Results run_async(const sized& m, const std::vector<float>& x, int64_t batch) {
  Results r;
  float *dx = nullptr, *dy = nullptr;
  int64_t* dat = nullptr;
  cudaStream_t stream = nullptr;
  expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream", batch);
  cudaMalloc((void**)&dx, x.size() * sizeof(float));
  cudaMalloc((void**)&dy, (size_t)batch * results * sizeof(float));
  cudaMalloc((void**)&dat, (size_t)batch * sizeof(int64_t));
  cudaMemcpyAsync(dx, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice, stream);
  const sized_inputs in = {dx, batch};
  const sized_outputs out = {dy, dat};
  expect(sized_run_async(&m, &in, &out, stream) == SIZED_OK, sized_device_error(&m), batch);
  cudaMemcpyAsync(r.y.data(), dy, (size_t)batch * results * sizeof(float), cudaMemcpyDeviceToHost, stream);
  cudaMemcpyAsync(r.at.data(), dat, (size_t)batch * sizeof(int64_t), cudaMemcpyDeviceToHost, stream);
  expect(cudaStreamSynchronize(stream) == cudaSuccess, "a run on a stream of the caller's", batch);
  cudaFree(dx), cudaFree(dy), cudaFree(dat);
  cudaStreamDestroy(stream);
  return r;
}

}  // namespace

int main() {
  sized graphs, launches;
  expect(sized_init(&graphs, nullptr, 0, nullptr, 0) == SIZED_OK &&
             sized_init(&launches, nullptr, 0, nullptr, 0) == SIZED_OK,
         "init", 0);
  sized_use_graphs(&launches, 0);
  const struct {
    int64_t batch;
    int captured;  // so far
  } steps[] = {{1, 1}, {70, 2}, {70, 2}, {5, 3}, {70, 3}, {5, 3}, {1, 4}, {5, 4}, {2, 5}, {5, 5}, {70, 6}};
  for (const auto& step : steps) {
    const std::vector<float> x = numbers(step.batch * columns, step.captured + step.batch);
    const Results r = run(graphs, x, step.batch);
    expect(captured == step.captured, "graphs are captured once for sizes that are kept", step.batch);
    expect(r == run(launches, x, step.batch), "graphs compute what launches compute", step.batch);
    expect(r == run_async(launches, x, step.batch), "so does run_async", step.batch);
    expect(step.batch == most || (r.at[(size_t)step.batch] == -1 && r.y[(size_t)step.batch * results] == -1.0f),
           "nothing is written behind what there is", step.batch);
  }
  for (const int64_t batch : {(int64_t)0, most + 1}) {
    Results r;
    const std::vector<float> x = numbers((most + 1) * columns, 0);
    const sized_inputs in = {x.data(), batch};
    const sized_outputs out = {r.y.data(), r.at.data()};
    expect(sized_run(&graphs, &in, &out) == SIZED_E_ARG && sized_run_async(&graphs, &in, &out, nullptr) == SIZED_E_ARG,
           "a size out of its bounds is refused", batch);
  }
  sized_free(&graphs);
  sized_free(&launches);
  printf("right\n");
  return 0;
}
