// Ranges whose ends are sizes: as many numbers as these say.
//   y = Range(0, n, 1)                    ->   y = Range(0, most, 1), counted by n
//   y = Range(Cast(n) - 1, -1, -2)        ->   y: [ceil(most / 2)] = Range(...), counted by floor((n + 1) / 2)
//   y = Range(past, past + 1, 1)          ->   y: [1] = Range(...)
//
// Preconditions: start and limit are forms of counts, or constants; the step is a constant. Floating point as far as it gives the
// exact number.
#include <cmath>
#include <numeric>

#include "ir/open_size.h"
#include "passes/graph/counted_node.h"

namespace tc {

std::optional<BoundedSizes::RealSize> BoundedSizes::real_number(const Value* v) {
  if (!v) return std::nullopt;
  int budget = 200;
  if (!is_float(v->type.dtype)) {
    const auto whole = element(v, 0, budget);
    return whole ? std::optional(RealSize{*whole, 1}) : std::nullopt;
  }
  const auto known = scalar_of(v);
  if (!known) return real(v, 0, budget);
  for (int64_t q = 1; q <= 64; q *= 2)
    if (std::abs(*known) < (1 << 24) && *known * double(q) == std::floor(*known * double(q)))
      return RealSize{fixed_size(int64_t(*known * double(q))), q};
  return std::nullopt;
}

void BoundedSizes::bound_range(Graph& g, Node* n) {
  Value* y = n->outputs.at(0);
  if (n->inputs.size() != 3 || !y || y->type.is_static_tensor()) return;
  const auto start = real_number(n->inputs[0]), limit = real_number(n->inputs[1]), step = real_number(n->inputs[2]);
  if (!start || !limit || !step || !step->form.fixed() || step->form.addend == 0) return;
  if (n->inputs[0]->constant && n->inputs[1]->constant && n->inputs[2]->constant) return;
  const int64_t common = std::lcm(std::lcm(start->divisor, limit->divisor), step->divisor);
  const SizeForm from = start->form * (common / start->divisor), to = limit->form * (common / limit->divisor);
  const int64_t by = step->form.addend * (common / step->divisor), width = std::abs(by);
  const SizeForm distance = counts_.larger(by > 0 ? to - from : from - to, fixed_size(0));
  const SizeForm length = counts_.quotient(distance + fixed_size(width - 1), width);
  const int64_t most = counts_.bound(length);
  g.set_type(y, ValueType::tensor(n->inputs[0]->type.dtype, to_shape({most})));
  if (n->inputs[0]->constant && n->inputs[2]->constant) {  // one with constant ends, which folds where it is read whole
    const double last = *scalar_of(n->inputs[0]) + double(most) * *scalar_of(n->inputs[2]);
    // A size without an upper bound is no number of 32 bits.
    if (!is_open(most) || info(n->inputs[0]->type.dtype).bytes == 8)
      g.set_input(n, 1, g.add_constant(derived(y->name, "_bounds"), scalar_constant(n->inputs[0]->type.dtype, last)));
  }
  if (!length.fixed()) note(y, {0, counts_.value_of(g, n, length, derived(y->name, "_count")), most});
}

}  // namespace tc
