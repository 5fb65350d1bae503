#include "passes/graph/parallel_branches.h"

namespace tc {

bool same_activation(const Node* a, const Node* b) {
  if (!a || !b) return !a && !b;
  return a->op == b->op && a->attrs == b->attrs &&
         std::equal(a->inputs.begin() + 1, a->inputs.end(), b->inputs.begin() + 1, b->inputs.end());
}

void read_parts(Graph& g, Node* at, Value* y, int64_t axis, const std::vector<BranchPart>& parts) {
  int64_t begin = 0;
  for (const BranchPart& b : parts) {
    const ModelText name = b.result->name;
    const int64_t end = begin + b.size;
    const auto number = [&](std::string_view what, int64_t v) {
      return g.add_constant(derived(name, what), int64_constant({v}));
    };
    Value* part = add_op(g, at, "Slice", {y, number("_from", begin), number("_to", end), number("_axis", axis)}, name);
    part->producer->origins.clear();
    g.replace_uses(b.result, part);
    begin = end;
  }
  for (const BranchPart& b : parts) erase_unused(g, b.result->producer);
}

}  // namespace tc
