// Strings of a run of the interpreter.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "ir/types.h"

namespace tc::interp {

/// Holds each distinct string of a run once, so that a string is a number (a handle) in a register and in memory, and
/// equal strings are equal numbers. The empty string is 0, what fresh memory holds. Handles live as long as the pool.
class StringPool {
 public:
  int64_t handle(std::string_view text);
  static const std::string& text(int64_t handle);

  /// The elements of a constant's strings, as a buffer of strings lies in memory.
  MutableTensor elements(const TensorData& strings);
  static Constant constant(const MutableTensor& elements);

 private:
  std::set<std::string, std::less<>> texts_;
};

}  // namespace tc::interp
