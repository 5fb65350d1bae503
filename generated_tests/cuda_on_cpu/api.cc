// The runtime API of cuda_on_cpu: `api NAME` runs one check; each ends with exit code 0 or says what went wrong.
#include <signal.h>

#include <functional>
#include <thread>

#include "samples/sample.h"

#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)
#define EXPECT_ERROR(call, error)                                                                             \
  do {                                                                                                        \
    const cudaError_t e = (call);                                                                             \
    if (e != error) {                                                                                         \
      fprintf(stderr, "%s:%d: %s gave %s, not %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(e), #error); \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)

constexpr int kElements = 1000;

static __global__ void add(float* y, const float* x, float by, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i] + by;
}
static __global__ void fails(float* y) {
  if (threadIdx.x < 3) __syncthreads();
  y[threadIdx.x] = 1;
}
static cudaError_t launch_add(cudaStream_t s, float* y, const float* x, float by) {
  return tc_launch(add, dim3(8), dim3(128), 0, s, y, x, by, kElements);
}
static cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t s;
  CALL(cudaStreamCreateWithFlags(&s, flags));
  return s;
}

static void memory() {
  float* p = device_memory<float>(kElements);
  std::vector<float> v(kElements, 2), w(kElements);
  EXPECT(uintptr_t(p) % 256 == 0);
  CALL(cudaMemcpy(p, v.data(), 4000, cudaMemcpyHostToDevice));
  CALL(cudaMemcpy(w.data(), p, 4000, cudaMemcpyDeviceToHost));
  EXPECT(v == w);
  CALL(cudaMemset(p, 0, 4000));
  CALL(cudaMemcpy(w.data(), p, 4000, cudaMemcpyDefault));
  EXPECT(w[999] == 0);
  EXPECT_ERROR(cudaMemcpy(p, v.data(), 4004, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
  EXPECT_ERROR(cudaMemcpy(p, v.data(), 40, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMemset(v.data(), 0, 4), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaFree(v.data()), cudaErrorInvalidValue);
  void* q;
  EXPECT_ERROR(cudaMalloc(&q, size_t(1) << 50), cudaErrorMemoryAllocation);
  size_t free_bytes, total;
  CALL(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(total - free_bytes == 4000);
  CALL(cudaFree(p));
  CALL(cudaFree(nullptr));
  CALL(cudaMallocHost(&p, 100));
  p[24] = 1;
  CALL(cudaFreeHost(p));
}

static void device() {
  int n = 0, value = 0;
  cudaDeviceProp p;
  CALL(cudaGetDeviceCount(&n));
  EXPECT(n == 1);
  CALL(cudaSetDevice(0));
  EXPECT_ERROR(cudaSetDevice(1), cudaErrorInvalidDevice);
  CALL(cudaGetDeviceProperties(&p, 0));
  EXPECT(p.warpSize == 32 && p.major >= 8 && p.multiProcessorCount > 0);
  CALL(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT(value == 227 * 1024);
  EXPECT(strcmp(cudaGetErrorName(cudaErrorLaunchFailure), "cudaErrorLaunchFailure") == 0);
}

static void configurations() {
  float* p = device_memory<float>(kElements);
  EXPECT_ERROR(tc_launch(add, dim3(0), dim3(128), 0, nullptr, p, p, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(tc_launch(add, dim3(1), dim3(1025), 0, nullptr, p, p, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(tc_launch(add, dim3(1), dim3(32, 64), 0, nullptr, p, p, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(tc_launch(add, dim3(1, 65536), dim3(1), 0, nullptr, p, p, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_ERROR(tc_launch(add, dim3(1), dim3(1), 49 * 1024, nullptr, p, p, 1, 0), cudaErrorInvalidValue);
  EXPECT_ERROR(tc_allow_shared(add, 228 * 1024), cudaErrorInvalidValue);
  CALL(tc_allow_shared(add, 227 * 1024));
  EXPECT_ERROR(tc_launch(add, dim3(1), dim3(1), 228 * 1024, nullptr, p, p, 1, 0), cudaErrorInvalidValue);
  CALL(tc_launch(add, dim3(1), dim3(1), 227 * 1024, nullptr, p, p, 1, 0));
  EXPECT_ERROR(launch_add(cudaStream_t(p), p, p, 1), cudaErrorInvalidResourceHandle);
}

// A failed kernel breaks all that follows, as on a device.
static void failure() {
  float* p = device_memory<float>(kElements);
  CALL(tc_launch(fails, dim3(1), dim3(64), 0, nullptr, p));
  EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_ERROR(cudaMemset(p, 0, 4), cudaErrorLaunchFailure);
  EXPECT_ERROR(launch_add(nullptr, p, p, 1), cudaErrorLaunchFailure);
  EXPECT_ERROR(cudaDeviceReset(), cudaSuccess);
  CALL(cudaDeviceSynchronize());
}

static void streams() {
  const std::vector<float> zeros(kElements);
  float *x = upload(zeros), *y = upload(zeros);
  cudaStream_t a = new_stream(), b = new_stream(cudaStreamDefault);
  cudaEvent_t event, later;
  CALL(cudaEventCreate(&event));
  CALL(cudaEventCreateWithFlags(&later, cudaEventDisableTiming));
  EXPECT_ERROR(cudaStreamQuery(a), cudaSuccess);
  for (int i = 0; i < 10; i++) CALL(launch_add(a, x, x, 1));
  CALL(cudaEventRecord(event, a));
  CALL(cudaStreamWaitEvent(b, event));
  CALL(launch_add(b, y, x, 100));
  CALL(launch_add(nullptr, y, y, 1000));  // after b, which is ordered with the legacy stream
  CALL(launch_add(b, y, y, 10000));       // after that
  while (cudaStreamQuery(b) == cudaErrorNotReady) continue;
  std::vector<float> got(kElements);
  CALL(cudaMemcpyAsync(got.data(), y, 4000, cudaMemcpyDeviceToHost, b));
  CALL(cudaEventRecord(later, b));
  CALL(cudaEventSynchronize(later));
  EXPECT(got[0] == 11110 && got[999] == 11110);
  float ms = -1;
  CALL(cudaEventSynchronize(event));
  CALL(cudaEventElapsedTime(&ms, event, event));
  EXPECT(ms == 0);
  CALL(cudaEventDestroy(event));
  CALL(cudaStreamDestroy(a));
  EXPECT_ERROR(cudaStreamSynchronize(a), cudaErrorInvalidResourceHandle);
}

static cudaGraphExec_t capture_adds(cudaStream_t s, float* x, int times) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < times; i++) CALL(launch_add(s, x, x, 1));
  CALL(cudaStreamEndCapture(s, &graph));
  CALL(cudaGraphInstantiate(&exec, graph, 0));
  CALL(cudaGraphDestroy(graph));
  return exec;
}

static void graphs() {
  float* x = upload(std::vector<float>(kElements));
  cudaStream_t s = new_stream();
  cudaGraphExec_t three = capture_adds(s, x, 3), empty = capture_adds(s, x, 0);
  CALL(cudaStreamSynchronize(s));
  EXPECT(download(x, 1)[0] == 0);  // capturing runs nothing
  for (int i = 0; i < 5; i++) CALL(cudaGraphLaunch(three, s));
  CALL(cudaGraphLaunch(empty, s));
  CALL(launch_add(s, x, x, 100));
  CALL(cudaGraphLaunch(three, s));
  CALL(cudaGraphExecDestroy(three));
  CALL(cudaStreamSynchronize(s));
  EXPECT(download(x, kElements)[999] == 118);
}

// What is refused while a stream captures, with the codes of CUDA.
static void capture_errors() {
  float* x = upload(std::vector<float>(kElements));
  cudaStream_t s = new_stream(), other = new_stream(), blocking = new_stream(cudaStreamDefault);
  cudaGraph_t graph;
  cudaEvent_t event, outside;
  void* p;
  CALL(cudaEventCreate(&event));
  CALL(cudaEventCreate(&outside));
  CALL(cudaEventRecord(outside, other));
  const auto broken = [&](cudaStream_t stream, const std::function<void()>& call) {
    CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    call();
    cudaStreamCaptureStatus status;
    CALL(cudaStreamIsCapturing(stream, &status));
    EXPECT(status == cudaStreamCaptureStatusInvalidated);
    EXPECT_ERROR(launch_add(stream, x, x, 1), cudaErrorStreamCaptureInvalidated);
    EXPECT_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT(graph == nullptr);
    cudaGetLastError();
    CALL(cudaStreamSynchronize(stream));
  };
  broken(s, [&] { EXPECT_ERROR(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported); });
  broken(s, [&] { EXPECT_ERROR(cudaStreamQuery(s), cudaErrorStreamCaptureUnsupported); });
  broken(s, [&] { EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported); });
  broken(s, [&] { EXPECT_ERROR(cudaMalloc(&p, 4), cudaErrorStreamCaptureUnsupported); });
  broken(s,
         [&] { EXPECT_ERROR(cudaMemcpy(x, x + 1, 4, cudaMemcpyDeviceToDevice), cudaErrorStreamCaptureUnsupported); });
  broken(s, [&] { EXPECT_ERROR(cudaStreamWaitEvent(s, outside), cudaErrorStreamCaptureIsolation); });
  broken(blocking, [&] { EXPECT_ERROR(launch_add(nullptr, x, x, 1), cudaErrorStreamCaptureImplicit); });
  broken(s, [&] {
    CALL(cudaEventRecord(event, s));
    EXPECT_ERROR(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  });
  EXPECT_ERROR(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal), cudaErrorStreamCaptureUnsupported);
  EXPECT_ERROR(cudaStreamEndCapture(s, &graph), cudaErrorInvalidValue);
  EXPECT_ERROR(launch_add(s, x, x, 1), cudaErrorInvalidValue);  // the error before it; the launch itself is made
  CALL(launch_add(s, x, x, -1));

  // A fork that is not joined, and one that is ended in the wrong stream.
  CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  CALL(cudaEventRecord(event, s));
  CALL(cudaStreamWaitEvent(other, event));
  CALL(launch_add(other, x, x, 1));
  EXPECT_ERROR(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureUnjoined);
  cudaGetLastError();
  CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  CALL(cudaEventRecord(event, s));
  CALL(cudaStreamWaitEvent(other, event));
  EXPECT_ERROR(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_ERROR(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();

  // Other threads are free to do what the capturing one is not, but not to end its capture.
  CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  std::thread([&] {
    CALL(cudaMalloc(&p, 4));
    CALL(cudaFree(p));
    CALL(cudaStreamSynchronize(other));
    EXPECT_ERROR(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  CALL(launch_add(s, x, x, 1));
  CALL(cudaStreamEndCapture(s, &graph));
  CALL(cudaGraphDestroy(graph));
  cudaGetLastError();
  EXPECT(download(x, 1)[0] == 0);  // nothing of what was captured has run
}

// Threads with streams, memory and graphs of their own.
static void threads() {
  const auto work = [](float start) {
    cudaStream_t s = new_stream();
    std::vector<float> got(kElements);
    float *x, *pinned;
    CALL(cudaMalloc(&x, 4000));
    CALL(cudaMallocHost(&pinned, 4000));
    cudaGraphExec_t graph = capture_adds(s, x, 5);
    for (int round = 0; round < 50; round++) {
      for (int i = 0; i < kElements; i++) pinned[i] = start + float(i);
      CALL(cudaMemcpyAsync(x, pinned, 4000, cudaMemcpyHostToDevice, s));
      CALL(cudaGraphLaunch(graph, s));
      CALL(cudaMemcpyAsync(got.data(), x, 4000, cudaMemcpyDeviceToHost, s));
      CALL(cudaStreamSynchronize(s));
      for (int i = 0; i < kElements; i++) EXPECT(got[i] == start + float(i) + 5);
    }
    CALL(cudaGraphExecDestroy(graph));
    CALL(cudaStreamDestroy(s));
    CALL(cudaFreeHost(pinned));
    CALL(cudaFree(x));
    // An error is seen by the thread that made it.
    EXPECT_ERROR(cudaSetDevice(7), cudaErrorInvalidDevice);
  };
  std::thread one(work, 1.0f), two(work, 1000.0f);
  one.join();
  two.join();
  EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
}

// With TC_CUDA_PROTECT=1, host code that reads device memory ends with a signal.
static void protect() {
  float* x = upload(std::vector<float>(kElements));
  CALL(launch_add(nullptr, x, x, 1));
  EXPECT(download(x, 1)[0] == 1);
  signal(SIGSEGV, [](int) { _exit(0); });
  volatile float sum = *x;
  fprintf(stderr, "device memory was read by the host: %g\n", double(sum));
  exit(1);
}

int main(int argc, char** argv) {
  struct Check {
    const char* name;
    void (*run)();
  };
  const Check checks[] = {
      {"memory", memory},   {"device", device}, {"configurations", configurations}, {"failure", failure},
      {"streams", streams}, {"graphs", graphs}, {"capture_errors", capture_errors}, {"threads", threads},
      {"protect", protect}};
  for (const Check& c : checks)
    if (argc == 2 && strcmp(c.name, argv[1]) == 0) {
      c.run();
      return 0;
    }
  return 2;
}
