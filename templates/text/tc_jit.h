/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Packages emitted with --jit: NVRTC compiles the kernels for the machine's own GPU when an instance is made. Needs CUDA 12
 * or newer: NVRTC and the runtime's libraries of kernels. The compiler of the host sees only the functions that launch. */
#ifndef TC_JIT_H
#define TC_JIT_H
#ifndef TC_LAUNCH_ONLY
#  define TC_LAUNCH_ONLY
#endif
#include "tc_cuda.h"
#include <nvrtc.h>
#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>

struct tc_jit_file {
  const char *name; /* as #include lines have it */
  const char *text; /* ends with a zero byte */
};

/* What is compiled: the `sources`, one after the other, and the names of their `kernels`. */
struct tc_jit_program {
  std::vector<tc_jit_file> sources, headers;
  std::vector<const char *> kernels;
};

/* The kernels of one instance, compiled. */
class tc_jit {
 public:
  tc_jit() = default;
  tc_jit(const tc_jit &) = delete;
  tc_jit &operator=(const tc_jit &) = delete;
  ~tc_jit()
  {
    if (library_) cudaLibraryUnload(library_);
  }

  /* Compiles for the current device. What NVRTC says of an error goes to stderr. */
  cudaError_t compile(const tc_jit_program &p)
  {
    int device = 0, major = 0, minor = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (e != cudaSuccess) return e;
    starts_early_ = major >= 9;
    std::vector<std::string> lowered;
    std::vector<char> code;
    const std::string arch = "sm_" + std::to_string(major * 10 + minor) + (major == 9 ? "a" : "");  // with products of warp groups
    if (!translate(arch, p, lowered, code)) return cudaErrorJitCompilationDisabled;
    e = cudaLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    for (size_t i = 0; i < p.kernels.size() && e == cudaSuccess; i++) {
      cudaKernel_t kernel = nullptr;
      e = cudaLibraryGetKernel(&kernel, library_, lowered[i].c_str());
      kernels_.push_back({p.kernels[i], kernel});
    }
    return e;
  }

  /* May kernels start before the one ahead of them in the stream has ended? (tc_grid_dependency_wait() of tc_cuda.h) */
  bool starts_early() const { return starts_early_; }

  cudaKernel_t find(const char *name) const
  {
    for (const auto &k : kernels_)
      if (strcmp(k.first, name) == 0) return k.second;
    return nullptr;
  }

  /* Machine code for `arch`, and the mangled names. Needs no GPU. */
  static bool translate(const std::string &arch, const tc_jit_program &p, std::vector<std::string> &lowered, std::vector<char> &code)
  {
    std::string all;
    std::vector<const char *> texts, names;
    for (const tc_jit_file &f : p.sources) all += "#include \"" + std::string(f.name) + "\"\n";
    for (const auto *list : {&p.sources, &p.headers})
      for (const tc_jit_file &f : *list) names.push_back(f.name), texts.push_back(f.text);
    nvrtcProgram program = nullptr;
    if (nvrtcCreateProgram(&program, all.c_str(), "kernels.cu", (int)texts.size(), texts.data(), names.data()) != NVRTC_SUCCESS) return false;
    for (const char *k : p.kernels) nvrtcAddNameExpression(program, k);
    const std::string target = "--gpu-architecture=" + arch;
    const char *options[] = {target.c_str(), "--std=c++17"};
    bool ok = nvrtcCompileProgram(program, 2, options) == NVRTC_SUCCESS;
    if (!ok) say(program);
    for (size_t i = 0; i < p.kernels.size() && ok; i++) {
      const char *name = nullptr;
      ok = nvrtcGetLoweredName(program, p.kernels[i], &name) == NVRTC_SUCCESS;
      if (ok) lowered.push_back(name);
    }
    size_t bytes = 0;
    ok = ok && nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS;
    code.resize(bytes);
    ok = ok && nvrtcGetCUBIN(program, code.data()) == NVRTC_SUCCESS;
    nvrtcDestroyProgram(&program);
    return ok;
  }

 private:
  static void say(nvrtcProgram program)
  {
    size_t bytes = 0;
    nvrtcGetProgramLogSize(program, &bytes);
    std::string log(bytes, ' ');
    nvrtcGetProgramLog(program, &log[0]);
    fprintf(stderr, "NVRTC: %s\n", log.c_str());
  }

  bool starts_early_ = false;
  cudaLibrary_t library_ = nullptr;
  std::vector<std::pair<const char *, cudaKernel_t>> kernels_;
};

/* While it lives, launches of this thread take their kernels from `jit`. */
class tc_jit_scope {
 public:
  explicit tc_jit_scope(const tc_jit &jit) : before_(current()) { current() = &jit; }
  ~tc_jit_scope() { current() = before_; }
  tc_jit_scope(const tc_jit_scope &) = delete;
  tc_jit_scope &operator=(const tc_jit_scope &) = delete;
  static const tc_jit *&current()
  {
    static thread_local const tc_jit *jit = nullptr;
    return jit;
  }

 private:
  const tc_jit *before_;
};

template <class... A>
static inline cudaError_t tc_jit_launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, A... arguments)
{
  const tc_jit *jit = tc_jit_scope::current();
  const cudaKernel_t k = jit ? jit->find(kernel) : nullptr;
  if (!k) return cudaErrorInvalidDeviceFunction;
  void *values[] = {(void *)&arguments..., nullptr};
  return tc_start((const void *)k, jit->starts_early(), grid, block, shared_bytes, stream, values);
}
#define tc_launch(kernel, ...) tc_jit_launch(#kernel, __VA_ARGS__)

static inline cudaError_t tc_jit_allow_shared(const char *kernel, size_t shared_bytes)
{
  const tc_jit *jit = tc_jit_scope::current();
  const cudaKernel_t k = jit ? jit->find(kernel) : nullptr;
  if (!k) return cudaErrorInvalidDeviceFunction;
  return cudaFuncSetAttribute((const void *)k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
}
#define tc_allow_shared(kernel, shared_bytes) tc_jit_allow_shared(#kernel, shared_bytes)

#endif
