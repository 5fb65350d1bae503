// What a target is, as far as graph passes and the builder of programs have to know.
#pragma once
#include <cstdint>
#include <string_view>

namespace tc {

/// The default is C for any processor. What a target does with a function is asked of its Backend (backend.h).
struct TargetTraits {
  std::string_view processor = "generic";  // the row of --cpu or --arch
  std::string_view march = "";             // C: the compiler's name for the processor
  int vector_lanes = 1;                    // C: f32 in a vector
  int64_t align = 64;                      // bytes, of tensors in workspace and weights
  bool device_memory = false;    // the executor cannot look into tensors: counts and conditions are read on the device
  bool strings = true;           // kernels can make and compare text
  bool padded_copies = true;     // a border is written once, so that inner loops need no bounds
  bool splits_axes = false;      // the templates take functions whose axes are split and merged
  bool picks_precision = false;  // --precision says what products multiply; else that of the model
};

}  // namespace tc
