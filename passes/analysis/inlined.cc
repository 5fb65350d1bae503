#include "passes/analysis/inlined.h"

#include <algorithm>

#include "ir/loop/visit.h"

namespace tc {

Expr inlined(const TensorFn& fn, const Expr& e, const std::vector<Buffer>& stops) {
  return rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    if (!l || std::find(stops.begin(), stops.end(), l->buffer) != stops.end()) return {};
    const Stage* s = producer(fn, l->buffer);
    if (!s || s->kind != Stage::Kind::Compute || s->outputs.size() != 1 || s->scan >= 0) return {};
    VarMap at;
    for (size_t k = 0; k < s->axes.size(); k++) at[s->axes[k].var.get()] = l->index[k];
    return inlined(fn, substitute(s->values[0], at), stops);
  });
}

}  // namespace tc
