#include "emit_c/operands.h"

#include <algorithm>

namespace tc {
namespace {

std::string access(const std::string& macro, const std::string& name, DType t) {
  if (t == DType::F32) return macro + "(" + name + ")";
  return macro + "_AS(" + std::string(info(t).c_type) + ", " + name + ")";
}

}  // namespace

std::string operand_text(const Program& p, const ProgramNames& n, const Operand& o, const std::string& member) {
  const size_t i = size_t(o.index);
  switch (o.kind) {
    case Operand::Kind::Input:
      return "in" + member + n.inputs[i];
    case Operand::Kind::Output:
      return "out" + member + n.outputs[i];
    case Operand::Kind::Slot:
      return access("AT", n.slots[i], p.slots[i].dtype);
    case Operand::Kind::Weight:
      return access("WEIGHT", n.weights[i], p.weights[i].data->dtype);
    case Operand::Kind::Scratch:
      return "SCRATCH";
    case Operand::Kind::Status:
      return "STATUS";
  }
  return "?";
}

std::string null_tests(const Program& p, const ProgramNames& n) {
  std::string s;
  for (size_t i = 0; i < p.inputs.size(); i++)
    if (num_elements(p.inputs[i].dims) > 0) s += " || !in->" + n.inputs[i];
  for (size_t i = 0; i < p.outputs.size(); i++)
    if (num_elements(p.outputs[i].dims) > 0) s += " || !out->" + n.outputs[i];
  return s;
}

bool can_fail(const Program& p) {
  return std::any_of(p.kernels.begin(), p.kernels.end(), [](const Kernel& k) { return k.can_fail; });
}

}  // namespace tc
