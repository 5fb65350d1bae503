// What the samples' host code shares: errors, random numbers, device memory, verdicts.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "tc_cuda.h"
#include "tc_types.h"

// Ends the program with code 3 at the first call that fails.
#define CALL(call)                                                                                 \
  do {                                                                                             \
    const cudaError_t e = (call);                                                                  \
    if (e != cudaSuccess) {                                                                        \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(e));          \
      exit(3);                                                                                     \
    }                                                                                              \
  } while (0)

inline uint32_t next_random() {
  static uint32_t state = 12345;
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}
inline float random_float() { return float(int(next_random() % 2001) - 1000) / 1000.0f; }
inline float random_integer(int largest) { return float(int(next_random() % unsigned(2 * largest + 1)) - largest); }

template <class T>
T* upload(const std::vector<T>& v) {
  T* p = nullptr;
  CALL(cudaMalloc(&p, v.size() * sizeof(T)));
  CALL(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}
template <class T>
T* device_memory(size_t n) {
  T* p = nullptr;
  CALL(cudaMalloc(&p, n * sizeof(T)));
  return p;
}
template <class T>
std::vector<T> download(const T* p, size_t n) {
  std::vector<T> v(n);
  CALL(cudaDeviceSynchronize());
  CALL(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
  return v;
}

// One line with a verdict and a hash of the bits; 0 if right. A bar of 0 asks for equal bits, else for that relative
// error in the 2-norm.
inline int verdict(const char* name, const std::vector<float>& got, const std::vector<float>& expected, double bar) {
  double error = 0, norm = 0;
  size_t different = got.size() == expected.size() ? 0 : 1;
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < got.size() && different <= got.size(); i++) {
    uint32_t bits;
    memcpy(&bits, &got[i], 4);
    hash = (hash ^ bits) * 1099511628211u;
    different += memcmp(&got[i], &expected[i], 4) != 0;
    error += (double(got[i]) - expected[i]) * (double(got[i]) - expected[i]);
    norm += double(expected[i]) * expected[i];
  }
  const double relative = sqrt(error / (norm + 1e-30));
  const bool right = bar == 0 ? different == 0 : relative <= bar;  // false for NaN
  printf("%s %s: %zu of %zu differ, relative error %.1e, hash %016llx\n", right ? "PASS" : "FAIL", name, different,
         got.size(), relative, (unsigned long long)hash);
  return right ? 0 : 1;
}
inline std::vector<uint16_t> to_f16(const std::vector<float>& v) {
  std::vector<uint16_t> h(v.size());
  for (size_t i = 0; i < v.size(); i++) h[i] = tc_f16_from_f32(v[i]);
  return h;
}
inline std::vector<float> from_f16(const std::vector<uint16_t>& h) {
  std::vector<float> v(h.size());
  for (size_t i = 0; i < h.size(); i++) v[i] = tc_f32_from_f16(h[i]);
  return v;
}
