#include "templates/cpu/sketch_lanes.h"

#include <set>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"

namespace tc {

bool runs_in_lanes(const Stmt& s, const Var& v) {
  bool all = true;
  walk(s, [&](const Stmt& x) {
    const Store* k = as<Store>(x);
    if (as<Let>(x) || as<While>(x) || as<Intrin>(x)) all = false;
    if (!k) return all;
    const bool own = k->index.empty();
    all = all && (own || lane_step(k->index, v) == 1) && has_stored_form(k->value, k->buffer->dtype, v, true) &&
          (!k->reduce || op_has_lanes(*k->reduce, k->buffer->dtype));
    return all;
  });
  return all;
}

std::optional<OperandsApart> operands_apart(const Stmt& s, const Var& v) {
  OperandsApart apart;
  std::set<Buffer> beside;
  bool possible = true;
  walk(
      s, [](const Stmt&) { return true; },
      [&](const Expr& e) {
        const Load* l = as<Load>(e);
        if (!l || l->index.empty()) return true;
        if (lane_step(l->index, v)) {
          beside.insert(l->buffer);
          return true;
        }
        size_t at = 0, uses = 0;
        for (size_t d = 0; d < l->index.size(); d++)
          if (uses_var(l->index[d], v)) at = d, uses++;
        const auto f = affine_in(l->index[at], {v});
        possible = possible && uses == 1 && f && f->coefficients[0] == 1 &&
                   apart.try_emplace(l->buffer, at).first->second == at;
        return true;
      });
  for (const auto& [b, _] : apart) possible = possible && beside.count(b) == 0;
  if (!possible || apart.empty()) return {};
  return apart;
}

std::vector<int64_t> order_with(size_t rank, size_t last) {
  std::vector<int64_t> order;
  for (size_t d = 0; d < rank; d++)
    if (d != last) order.push_back(int64_t(d));
  order.push_back(int64_t(last));
  return order;
}

Stmt brought_together(const Stmt& s, const OperandsApart& apart) {
  std::map<Buffer, Buffer> copies;
  for (const auto& [b, d] : apart) {
    Shape shape;
    for (const int64_t i : order_with(b->shape.size(), d)) shape.push_back(b->shape[size_t(i)]);
    copies[b] = make_buffer(b->name, b->dtype, shape);
  }
  return rewrite(s, [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    const auto it = l ? apart.find(l->buffer) : apart.end();
    if (it == apart.end()) return {};
    Exprs index;
    for (const int64_t i : order_with(l->index.size(), it->second)) index.push_back(l->index[size_t(i)]);
    return load(copies.at(l->buffer), index);
  });
}

}  // namespace tc
