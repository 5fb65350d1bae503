#include "passes/graph/counted_order.h"

namespace tc {

namespace {

constexpr int64_t kMostListed = 1 << 20;

}  // namespace

Value* numbers_in_steps(Graph& g, Node* n, int64_t count, int64_t step, const ModelText& name) {
  if (count > kMostListed) {
    const auto number = [&](const char* suffix, int64_t v) {
      return g.add_constant(derived(name, suffix), make_constant(DType::I64, {}, &v));
    };
    return add_op(g, n, "Range", {number("_from", 0), number("_to", checked_mul(count, step)), number("_by", step)},
                  name);
  }
  std::vector<int64_t> list(static_cast<size_t>(count));
  for (size_t k = 0; k < list.size(); k++) list[k] = int64_t(k) * step;
  return g.add_constant(name, int64_constant(list));
}

}  // namespace tc
