// What sizes that the run gives must not be, since ONNX then means something else than a formula of them. A Reshape takes the
// operand's size along an axis where its list says 0 (unless `allowzero`):
//   y = Reshape(x, [n, -1])   x: [2, n]   ->   y: [n, 2], but of n = 0 it is [2, 0]
// One output has no result then: the run ends with E_RANGE, as it does where an index is out of range.
//   return y, y_count   ->   y_count' = tc.exactly(y_count, 1 + min(2, 1) (1 - min(n, 1))) {size = 1}
// Where no tensor of the shape that ONNX means exists ([2, n] as [n, 2]: [2, 2] of no elements), the size is the 0 of the list,
// as in the program that the model was exported from.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"

namespace tc {
namespace {

/// The size as 0 or 1: is there an element?
SizeForm some(Counts& counts, const SizeForm& size) {
  return counts.lesser(counts.larger(size, fixed_size(0)), fixed_size(1));
}

}  // namespace

bool BoundedSizes::promise_zeros(const std::vector<SizeForm>& target, const std::vector<SizeForm>& from) {
  const auto may_be_zero = [&](const SizeForm& f) { return f.fixed() ? f.addend == 0 : counts_.least(f) <= 0; };
  const auto is_open = [&](const SizeForm& f) { return f == fixed_size(-1) || may_be_zero(f); };
  if (std::count_if(target.begin(), target.end(), is_open) < 2) return true;  // the result would have elements
  for (size_t k = 0; k < std::min(target.size(), from.size()); k++) {
    const SizeForm &size = target[k], &copied = from[k];
    if (size.fixed() || !may_be_zero(size) || exact_quotient(copied, size)) continue;
    if (in_body_) return false;
    const SizeForm is_there = some(counts_, copied);
    broken_.push_back(is_there - is_there * some(counts_, size));
  }
  return true;
}

void BoundedSizes::check_promises(Graph& g, std::vector<Value*>& outputs, size_t own) {
  size_t at = own;
  const auto can_fail = [&](const Value* v) {
    return v->producer && v->type.is_static_tensor() && !has_no_elements(dims_of(v));
  };
  if (at == outputs.size()) at = size_t(std::find_if(outputs.begin(), outputs.end(), can_fail) - outputs.begin());
  if (at == outputs.size()) return;  // nothing has elements, whatever the sizes are
  Value* const v = outputs[at];
  const ModelText name = v->producer ? v->name : derived(v->name, "_checked");
  if (v->producer) v->name = derived(name, "_unchecked");
  const Dims dims = dims_of(v);
  const int64_t size = dims.empty() ? 1 : dims[0];
  SizeForm total = fixed_size(size);
  for (const SizeForm& f : broken_) total = total + f;
  const auto reshaped = [&](Value* from, const Dims& to, const ModelText& as) {
    return add_op(g, nullptr, "Reshape", {from, g.add_constant(derived(as, "_shape"), int64_constant(to))}, as);
  };
  Value* all = dims.empty() ? reshaped(v, {1}, derived(name, "_listed")) : v;
  Node* checked =
      g.append("exactly", {all, counts_.value_of(g, nullptr, total, derived(name, "_expected"))},
               {dims.empty() ? derived(name, "_alone") : name}, {{"axis", int64_t(0)}, {"size", size}}, "tc");
  infer_types(g, *checked);
  outputs[at] = dims.empty() ? reshaped(checked->outputs[0], {}, name) : checked->outputs[0];
}

}  // namespace tc
