#include "ir/loop/matrix_instruction.h"

namespace tc {
namespace {

constexpr MatrixInstruction kInstructions[] = {
    {"mma_f16_k16", DType::F16, DType::F16, DType::F32, 16}, {"mma_bf16_k16", DType::BF16, DType::BF16, DType::F32, 16},
    {"mma_tf32_k8", DType::F32, DType::F32, DType::F32, 8},  {"mma_s8_k32", DType::I8, DType::I8, DType::I32, 32},
    {"mma_u8_k32", DType::U8, DType::U8, DType::I32, 32},    {"mma_s8u8_k32", DType::I8, DType::U8, DType::I32, 32},
    {"mma_u8s8_k32", DType::U8, DType::I8, DType::I32, 32},
};

}  // namespace

const MatrixInstruction* find_matrix_instruction(std::string_view name) {
  for (const MatrixInstruction& m : kInstructions)
    if (m.name == name) return &m;
  return nullptr;
}

const MatrixInstruction* matrix_instruction(DType left, DType right) {
  for (const MatrixInstruction& m : kInstructions)
    if (m.left == left && m.right == right) return &m;
  return nullptr;
}

}  // namespace tc
