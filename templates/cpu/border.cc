// The constant border around a result that its consumer reads as padding: filled axis by axis, before and after the
// interior, each point once.
#include "ir/loop/build.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

// Fills the slab [from, from + count) of axis d: interior of the axes before d, everything of the axes after it.
Stmt fill_slab(const Canonical& c, size_t d, int64_t from, int64_t count) {
  if (count == 0) return {};
  const Border& b = *c.border;
  int64_t inner = count;
  for (size_t k = d + 1; k < b.dims.size(); k++) inner *= b.dims[k];
  int64_t stride = inner / count;
  const Var i = make_var("i");
  Expr index = Expr(from * stride) + Expr(i);
  std::vector<std::pair<Var, int64_t>> outer;
  for (size_t k = d; k-- > 0;) {
    stride *= b.dims[k + 1];
    const Var o = make_var("o");
    if (b.interior[k] == 1) {
      index = index + Expr(b.begin[k] * stride);
      continue;
    }
    index = (Expr(o) + Expr(b.begin[k])) * Expr(stride) + index;
    outer.push_back({o, b.interior[k]});
  }
  Stmt s = loop(i, inner, store(c.out, {index}, b.value));
  for (const auto& [o, n] : outer) s = loop(o, n, s);
  return s;
}

}  // namespace

Stmt fill_border(const Canonical& c) {
  if (!c.border) return {};
  Stmts list;
  for (size_t d = 0; d < c.border->dims.size(); d++) {
    const int64_t end = c.border->begin[d] + c.border->interior[d];
    list.push_back(fill_slab(c, d, 0, c.border->begin[d]));
    list.push_back(fill_slab(c, d, end, c.border->dims[d] - end));
  }
  const Stmt fill = seq(list);
  return fill ? comment("the border", fill) : fill;
}

}  // namespace tc
