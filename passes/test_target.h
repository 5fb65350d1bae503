// A pass context with the templates of a target, for tests.
#pragma once
#include "passes/pass.h"
#include "templates/target.h"

namespace tc {

struct TestTarget {
  explicit TestTarget(const Target& t = {})
      : backend(make_backend(t)), cx{backend->traits(), {}, nullptr, {}, backend.get()} {}
  std::unique_ptr<const Backend> backend;
  PassContext cx;
};

/// The row of --cpu, or with `cuda` the first of --arch.
inline Target test_target(std::string_view cpu, bool cuda = false) {
  return {cuda ? Target::Kind::Cuda : Target::Kind::C, *find_cpu(cpu), cuda_models().front()};
}

}  // namespace tc
