// Random numbers and tensors of random numbers, the same on every host. For tests only.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ir/types.h"

namespace tc::testing {

/// A linear congruential generator. `start` tells tests apart that count seeds from 0.
class Dice {
 public:
  explicit Dice(uint64_t seed, uint64_t start = 12345) : state_(seed * 2654435761u + start) {}
  /// 0 .. n - 1
  int64_t below(int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return int64_t((state_ >> 33) % uint64_t(n));
  }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[size_t(below(int64_t(list.size())))];
  }

 private:
  uint64_t state_;
};

/// Integers from -3 to 3, times `factor`: sums of them are exact in any order. Types of 8 bits: bytes of any value.
inline Constant small_integers(const Dims& dims, uint32_t seed, DType t = DType::F32, int factor = 1) {
  MutableTensor m = new_tensor(t, dims);
  for (int64_t i = 0; i < num_elements(dims); i++) {
    seed = seed * 1664525u + 1013904223u;
    const int v = (int(seed >> 24) % 7 - 3) * factor;
    if (t == DType::F32)
      m.as<float>()[i] = float(v);
    else if (t == DType::F16 || t == DType::BF16)
      m.as<uint16_t>()[i] = double_to_narrow_float(t, v);
    else if (t == DType::I32)
      m.as<int32_t>()[i] = v;
    else
      m.as<uint8_t>()[i] = uint8_t(seed >> 24);
  }
  return std::make_shared<const TensorData>(std::move(m.data));
}

/// Thousandths from -1 to 1.
inline Constant random_floats(const Dims& dims, uint32_t seed) {
  Dice dice(seed);
  MutableTensor m = new_tensor(DType::F32, dims);
  for (int64_t k = 0; k < num_elements(dims); k++) m.as<float>()[k] = float(dice.below(2001) - 1000) / 1000;
  return std::make_shared<const TensorData>(std::move(m.data));
}

}  // namespace tc::testing
