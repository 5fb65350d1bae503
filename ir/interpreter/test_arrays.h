// Buffers with memory, for the tests of the interpreter.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/interpreter.h"
#include "ir/loop/build.h"

namespace tc {

// A buffer with its memory.
template <class T>
struct Array {
  Buffer buffer;
  std::vector<T> data;
  Array(std::string name, DType t, Dims dims, T fill = T())
      : buffer(make_buffer(std::move(name), t, to_shape(dims))), data(size_t(num_elements(dims)), fill) {}
  Binding bind() { return {buffer, reinterpret_cast<uint8_t*>(data.data())}; }
};
struct Floats : Array<float> {
  Floats(std::string name, Dims dims) : Array(std::move(name), DType::F32, std::move(dims)) {}
  Floats& count() {
    for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
    return *this;
  }
};

/// What a run is refused with; empty: it ran.
inline std::string message_of(const Stmt& s, const std::vector<Binding>& b, const RunOptions& o = {}) {
  try {
    run(s, b, o);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace tc
