// One program for both targets: digits.h is the same API. Prints the ten outputs for a seeded input; with TC_PROGRAM_CUDA
// also tries what only the CUDA build has.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "cnn.h"
#include "digits.h"
#ifdef TC_PROGRAM_CUDA
#include "digits_cuda.h"
#endif

static int failures = 0;
static void expect(bool ok, const char* what) {
  if (!ok) failures++, std::printf("FAIL %s\n", what);
}

static std::vector<float> seeded(size_t n, unsigned seed) {
  std::vector<float> v(n);
  for (float& x : v) x = float((seed = seed * 1664525u + 1013904223u) >> 8) / float(1 << 24);
  return v;
}

static std::vector<float> run_digits(unsigned seed, int times) {
  digits m;
  std::vector<float> x = seeded(64, seed), y(10, -1.0f);
  if (digits_init(&m, nullptr, 0, nullptr, 0) != DIGITS_OK) return {};
  const digits_inputs in = {x.data()};
  const digits_outputs out = {y.data()};
  for (int i = 0; i < times; i++) expect(digits_run(&m, &in, &out) == DIGITS_OK, "run");
  digits_free(&m);
  return y;
}

static std::vector<float> run_cnn(unsigned seed) {
  cnn m;
  std::vector<float> x = seeded(3 * 14 * 14, seed), y(11, -1.0f);
  if (cnn_init(&m, nullptr, 0, nullptr, 0) != CNN_OK) return {};
  const cnn_inputs in = {x.data()};
  const cnn_outputs out = {y.data()};
  expect(cnn_run(&m, &in, &out) == CNN_OK, "run of the second model");
  cnn_free(&m);
  return y;
}

static void refusals() {
  digits m;
  std::vector<unsigned char> wrong(DIGITS_WEIGHTS_BYTES + 64);
  unsigned char* aligned = wrong.data() + (64 - size_t(wrong.data()) % 64) % 64;
  expect(digits_init(nullptr, nullptr, 0, nullptr, 0) == DIGITS_E_ARG, "init without an instance");
  expect(digits_init(&m, aligned, DIGITS_WEIGHTS_BYTES, nullptr, 0) == DIGITS_E_WEIGHTS, "weights of something else");
  expect(digits_init(&m, aligned + 1, DIGITS_WEIGHTS_BYTES, nullptr, 0) == DIGITS_E_ALIGN,
         "weights that are not aligned");
  expect(digits_init(&m, digits_weights(), 64, nullptr, 0) == DIGITS_E_WEIGHTS, "weights cut short");
  expect(digits_init(&m, nullptr, 0, nullptr, 0) == DIGITS_OK, "init");
  expect(digits_run(&m, nullptr, nullptr) == DIGITS_E_ARG, "run without tensors");
  digits_free(&m);
  expect(std::strcmp(digits_strerror(DIGITS_E_WEIGHTS), "unknown status") != 0, "words for a status");
}

#ifdef TC_PROGRAM_CUDA
static void device_pointers(const std::vector<float>& expected) {
  digits m;
  std::vector<float> x = seeded(64, 7), y(10, -1.0f);
  expect(digits_init(&m, nullptr, 0, nullptr, 0) == DIGITS_OK, "init");
  void *dx = nullptr, *dy = nullptr;
  cudaStream_t stream;
  cudaMalloc(&dx, 256);
  cudaMalloc(&dy, 40);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMemcpyAsync(dx, x.data(), 256, cudaMemcpyHostToDevice, stream);
  const digits_inputs in = {static_cast<const float*>(dx)};
  const digits_outputs out = {static_cast<float*>(dy)};
  expect(digits_run_async(&m, &in, &out, stream) == DIGITS_OK, "run_async");
  cudaMemcpyAsync(y.data(), dy, 40, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  expect(y == expected, "run_async gives what run gives");
  const digits_inputs host = {x.data()};
  const digits_outputs back = {y.data()};
  digits_use_graphs(&m, 0);
  expect(digits_run(&m, &host, &back) == DIGITS_OK && y == expected, "kernels one by one give what the graph gives");
  expect(digits_device_error(&m)[0] == 0, "no error is kept");
  digits_free(&m);
  cudaFree(dx);
  cudaFree(dy);
  cudaStreamDestroy(stream);
}
#endif

int main() {
  const std::vector<float> alone = run_digits(7, 1), second = run_cnn(3);
  expect(alone.size() == 10 && second.size() == 11, "both models run in one program");
  std::vector<float> a, b, c;
  std::thread one([&] { a = run_digits(7, 20); }), two([&] { b = run_digits(7, 20); }), three([&] { c = run_cnn(3); });
  one.join(), two.join(), three.join();
  expect(a == alone && b == alone && c == second, "instances in threads give what one alone gives");
  refusals();
#ifdef TC_PROGRAM_CUDA
  device_pointers(alone);
#endif
  for (const float v : alone) std::printf("%.9g\n", double(v));
  for (const float v : second) std::printf("%.9g\n", double(v));
  return failures != 0;
}
