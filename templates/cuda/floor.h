// How fast a GPU could be at most.
#pragma once
#include "ir/program.h"
#include "templates/cuda/cuda_model.h"

namespace tc {

/// What the datasheet of a card says: 10^12 operations a second at the boost clock, a multiplication and an addition being two;
/// of tensor cores dense ones, with sums of 32 bits.
struct CudaCard {
  int sm;  // the row of --arch
  std::string_view name;
  double ghz;
  int64_t l2_mib;
  double f64, f32, tf32, f16, i8;  // tf32 0: it has no such products
};

/// One for each row of --arch, the one that has the row's multiprocessors and memory.
const CudaCard& card_of(const CudaModel& gpu);

/// Backend::floor_ns for a row of --arch: the longer of
///   the products, at the card's rate for their type: that of tensor cores for bytes, for halves, and for what the kernel
///   rounds to tf32; and
///   the operands: results of other kernels come from the L2 cache if that holds all operands of the call, weights if it
///   holds all that a run touches, else from memory.
/// The L2 cache gives a multiprocessor 64 bytes a clock, more than which it cannot take. What all of them get at once is
/// less, and no datasheet says how much. What it takes to start a kernel is no part of a floor.
double floor_ns(const KernelWork& work, int64_t run_bytes, const CudaModel& gpu);

}  // namespace tc
