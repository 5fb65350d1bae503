// Sums of products of bytes behind a move of their operand, or in front of one of their result: the move is a stage of its own, through
// scratch memory.
//
//   transpose, conv2d, bias, requantize, transpose   ->   transpose | conv2d, bias, requantize | transpose
//
// Products take four bytes that lie side by side, and tiles of bytes are turned sixteen rows at a time; one by one neither would be.
#include <algorithm>

#include "templates/cpu/contraction.h"
#include "templates/join_stages.h"

namespace tc {
namespace {

// Does the stage only say where elements lie?
bool moves(const Stage& s) {
  const Load* l = s.kind == Stage::Kind::Compute && s.outputs.size() == 1 ? as<Load>(s.values[0]) : nullptr;
  return l && points(s.axes) == num_elements(static_dims(l->buffer->shape));
}

bool sums_bytes(const Stage& s) {
  if (s.kind != Stage::Kind::Reduce || s.outputs.size() != 1 || s.outputs[0]->dtype != DType::I32) return false;
  const auto loads = loads_of(s.values[0]);
  return std::any_of(loads.begin(), loads.end(),
                     [](const Load* l) { return l->buffer->dtype == DType::I8 || l->buffer->dtype == DType::U8; });
}

// The function behind its first stage, whose result is an operand.
TensorFn rest_of(const TensorFn& fn) {
  TensorFn rest{fn.inputs, {fn.stages.begin() + 1, fn.stages.end()}, fn.outputs};
  rest.inputs.push_back(fn.stages[0].outputs[0]);
  return rest;
}

}  // namespace

std::optional<Scheduled> schedule_moves_apart(const TemplateArgs& a, const SchedulePart& part) {
  const std::vector<Stage>& stages = a.fn.stages;
  const auto statically = [](const Stage& s) { return s.outputs.size() == 1 && is_static(s.outputs[0]->shape); };
  if (stages.size() < 2 || a.fn.outputs.size() != 1 || !std::all_of(stages.begin(), stages.end(), statically) ||
      std::none_of(stages.begin(), stages.end(), sums_bytes))
    return {};
  if (moves(stages[0])) {
    std::vector<bool> known = a.constant_input;
    known.push_back(false);
    TensorFn products = rest_of(a.fn);
    if (moves(stages.back()) && products.stages.size() > 1) {
      products.stages.pop_back();
      products.outputs = products.stages.back().outputs;
    }
    const auto c = canonicalize(products);
    if (c && match_byte_contraction({products, &*c, known, a.cpu, a.options}))
      return join_stages(a.fn, a.constant_input, part, false, 1);
  }
  if (moves(stages.back())) return join_stages(a.fn, a.constant_input, part, false);
  return {};
}

}  // namespace tc
