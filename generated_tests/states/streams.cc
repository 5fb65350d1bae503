// Runs a package of `both` (models.py), emitted as `kept` for CUDA: what is enqueued on a stream without waiting computes what runs that
// wait compute; one captured graph serves all tokens; states are saved, restored and looked at. Compiled with
// -DcudaGraphInstantiate=counted_instantiate behind the package's own files.
#undef cudaGraphInstantiate
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
static int captured_graphs = 0;
cudaError_t counted_instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  captured_graphs++;
  return cudaGraphInstantiate(exec, graph, flags);
}

namespace {

constexpr int64_t columns = 8, most = 8, room = 20;
typedef std::vector<float> Row;

void expect(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "error: %s\n", what);
  exit(1);
}

/// What a caller does: runs that bring `rows`, rewinding by -`rows`, or a reset.
struct Step {
  enum { Run, Rewind, Reset } what;
  int64_t rows;
};
const std::vector<Step> kSteps = {{Step::Run, 5}, {Step::Run, 1},    {Step::Run, 8}, {Step::Rewind, 3},
                                  {Step::Run, 2}, {Step::Rewind, 9}, {Step::Run, 1}, {Step::Reset, 0},
                                  {Step::Run, 3}, {Step::Run, 1}};

Row rows_of(size_t step, int64_t n) {
  Row x;
  for (int64_t i = 0; i < n * columns; i++) x.push_back((float)((i * 37 + (int64_t)step * 11) % 101) / 50.0f - 1.0f);
  return x;
}

kept made() {
  kept m;
  expect(kept_init(&m, nullptr, 0, nullptr, 0) == KEPT_OK, "init");
  return m;
}

kept_status run(const kept& m, size_t step, int64_t n, Row& y) {
  const Row x = rows_of(step, n);
  y.assign((size_t)columns, -1.0f);
  kept_inputs in;
  kept_outputs out;
  in.x = x.data(), in.seq = n, *(float**)& out = y.data();
  return kept_run(&m, &in, &out);
}

/// Rewinding and resets of a step; false for a run.
bool rearranged(kept& m, const Step& s) {
  if (s.what == Step::Reset) kept_reset(&m);
  if (s.what == Step::Rewind) expect(kept_rewind(&m, s.rows) == KEPT_OK, "rewind");
  return s.what != Step::Run;
}

std::vector<Row> wait_for_each(kept& m) {
  std::vector<Row> results;
  for (size_t k = 0; k < kSteps.size(); k++) {
    Row y;
    if (rearranged(m, kSteps[k])) continue;
    expect(run(m, k, kSteps[k].rows, y) == KEPT_OK, kept_device_error(&m));
    results.push_back(y);
  }
  return results;
}

std::vector<Row> wait_at_the_end(kept& m) {
  cudaStream_t stream = nullptr;
  std::vector<void*> inputs;
  std::vector<float*> outputs;
  expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream");
  for (size_t k = 0; k < kSteps.size(); k++) {
    if (rearranged(m, kSteps[k])) continue;
    const Row x = rows_of(k, kSteps[k].rows);
    float *dx = nullptr, *dy = nullptr;
    cudaMalloc((void**)&dx, x.size() * sizeof(float));
    cudaMalloc((void**)&dy, columns * sizeof(float));
    cudaMemcpy(dx, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice);
    kept_inputs in;
    kept_outputs out;
    in.x = dx, in.seq = kSteps[k].rows, *(float**)& out = dy;
    expect(kept_run_async(&m, &in, &out, stream) == KEPT_OK, kept_device_error(&m));
    inputs.push_back(dx), outputs.push_back(dy);
  }
  expect(cudaStreamSynchronize(stream) == cudaSuccess, "runs on a stream of the caller's");
  std::vector<Row> results;
  for (float* dy : outputs) {
    results.emplace_back((size_t)columns);
    cudaMemcpy(results.back().data(), dy, columns * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dy);
  }
  for (void* dx : inputs) cudaFree(dx);
  cudaStreamDestroy(stream);
  return results;
}

/// cudaMemcpy2D(), which CUDA on a CPU lacks.
void copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
               cudaMemcpyKind kind) {
  for (size_t k = 0; k < height && width > 0; k++)
    cudaMemcpy((char*)to + k * to_pitch, (const char*)from + k * from_pitch, width, kind);
}

/// What there is of all states, as NAME_cuda.h says it.
struct Saved {
  std::vector<std::vector<char>> states;
  bool operator==(const Saved& o) const { return states == o.states; }
};
Saved save(kept& m) {
  Saved s;
  kept_state_view v;
  for (int k = 0; kept_state(&m, k, &v); k++) {
    if (v.rank == 0) {
      s.states.emplace_back((const char*)v.data, (const char*)v.data + sizeof(int64_t));
      continue;
    }
    const int a = v.rank == 3 ? 1 : 0;  // `rows` grows along axis 1
    const size_t width = (size_t)(v.sizes[a] * v.strides[a]), height = (size_t)(a > 0 ? v.sizes[0] : 1);
    s.states.emplace_back(width * height);
    copy_rows(s.states.back().data(), width, v.data, a > 0 ? (size_t)v.strides[0] : width, width, height,
              cudaMemcpyDeviceToHost);
  }
  return s;
}
void restore(kept& m, const Saved& s) {
  kept_state_view v;
  for (int k = 0; kept_state(&m, k, &v); k++) {  // numbers first: they are sizes of the others
    if (v.rank == 0) memcpy(v.data, s.states[(size_t)k].data(), sizeof(int64_t));
  }
  for (int k = 0; kept_state(&m, k, &v); k++) {
    if (v.rank == 0) continue;
    const int a = v.rank == 3 ? 1 : 0;
    const size_t width = (size_t)(v.sizes[a] * v.strides[a]), height = (size_t)(a > 0 ? v.sizes[0] : 1);
    expect(width * height == s.states[(size_t)k].size(), "a state is as large as it was");
    copy_rows(v.data, a > 0 ? (size_t)v.strides[0] : width, s.states[(size_t)k].data(), width, width, height,
              cudaMemcpyHostToDevice);
  }
}

void test_streams() {
  kept waits = made(), launches = made(), streams = made();
  kept_use_graphs(&launches, 0);
  const std::vector<Row> wanted = wait_for_each(waits);
  expect(wanted == wait_for_each(launches), "graphs compute what launches compute");
  expect(wanted == wait_at_the_end(streams), "what is enqueued computes what is waited for");
  expect(save(waits) == save(streams), "and leaves the same states");
  kept_free(&waits), kept_free(&launches), kept_free(&streams);
}

void test_one_graph() {
  kept m = made();
  const int before = captured_graphs;
  Row y;
  for (int64_t k = 0; k < room; k++) expect(run(m, (size_t)k, 1, y) == KEPT_OK, "a token");
  expect(captured_graphs == before + 1, "one graph serves all tokens");
  const Saved full = save(m);
  expect(run(m, 0, 1, y) == KEPT_E_STATE && save(m) == full && y[0] == -1.0f, "without room nothing changes");
  expect(kept_rewind(&m, room + 1) == KEPT_E_ARG && kept_rewind(&m, -1) == KEPT_E_ARG && save(m) == full,
         "nor by too many");
  kept_reset(&m);
  const Saved none = save(m);
  for (const auto& s : none.states)
    for (const char c : s) expect(c == 0, "a reset leaves zeros and nothing");
  expect(none.states[0].empty(), "a reset leaves no elements");
  kept_free(&m);
}

void test_saved_states() {
  kept m = made(), other = made();
  Row y, again;
  expect(run(m, 1, 5, y) == KEPT_OK, "a run");
  const Saved s = save(m);
  expect(run(m, 2, 3, y) == KEPT_OK, "a run");
  for (kept* k : {&m, &other}) {
    restore(*k, s);
    expect(run(*k, 2, 3, again) == KEPT_OK && again == y, "a restored state is what it was");
  }
  kept_free(&m), kept_free(&other);
}

void test_refused_capture() {
  kept m = made();
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  float* memory = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMalloc((void**)&memory, 2 * columns * sizeof(float));
  kept_inputs in;
  kept_outputs out;
  in.x = memory, in.seq = 1, *(float**)& out = memory + columns;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  expect(kept_run_async(&m, &in, &out, stream) == KEPT_E_ARG, "a stream that captures is refused");
  expect(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "and goes on capturing");
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(memory);
  kept_free(&m);
}

}  // namespace

int main() {
  test_streams();
  test_one_graph();
  test_saved_states();
  test_refused_capture();
  printf("right\n");
  return 0;
}
