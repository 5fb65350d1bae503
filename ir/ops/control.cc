// Control flow: nodes with bodies. They are no functions of tensors; regions.cc types them, the executor runs them.
// Sequences and optionals: dynamic_to_static replaces them by their tensors, so that these rows only meet what it
// cannot.
#include "ir/ops/families.h"

namespace tc {
namespace {

void define_list(OpBuilder& b) {
  b.unsupported(
      "sequences and optionals are resolved while compiling, which does not reach into bodies of loops and branches");
}

}  // namespace

OpFamily control_ops() {
  return {
      {"If", 25, {}, nullptr},
      {"Loop", 25, {}, nullptr},
      {"Scan", 25, {}, nullptr},
      {"SequenceEmpty", 11, {{"dtype", {}}}, define_list},
      {"SequenceConstruct", 11, {}, define_list},
      {"SequenceInsert", 11, {}, define_list},
      {"SequenceErase", 11, {}, define_list},
      {"SequenceAt", 11, {}, define_list},
      {"SequenceLength", 11, {}, define_list},
      {"SplitToSequence", 24, {{"axis", int64_t(0)}, {"keepdims", int64_t(1)}}, define_list},
      {"ConcatFromSequence", 11, {{"axis", {}}, {"new_axis", int64_t(0)}}, define_list},
      {"Optional", 28, {{"type", {}}}, define_list},
  };
}

}  // namespace tc
