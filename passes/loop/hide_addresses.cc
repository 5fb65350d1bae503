// hide_addresses: rows that overlap are read anew in every iteration (C).
//
//   for k in 0 .. +9:                                  for k in 0 .. +9:
//     alias x_k = &x[w * 42 + k]                         alias x_k = &x[w * 42 + k]
//     unroll i in 0 .. +14: acc[i] += x_k[i * 3] * ..      hide_address(x_k)
//                                                          unroll i in 0 .. +14: acc[i] += x_k[i * 3] * ..
//
// What row i reads, row i - 1 reads three iterations later. GCC keeps such elements from one iteration to the next, in more registers than
// there are beside a tile, and moves them through memory (predictive commoning). Needs: pointers hoisted. Leaves: everything else as it is.
#include "passes/loop/hide_addresses.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

constexpr int64_t kFewestRows = 4;
constexpr int64_t kIterations = 8;  // the compiler looks no further

bool is_serial(const Stmt& s) {
  const For* f = as<For>(s);
  return as<While>(s) || (f && f->kind != ForKind::Unroll);
}

// Is `e` an element of rows along `row` that another row reads in one of the next iterations, whose elements are `step` apart?
bool is_read_again(const Expr& e, const Buffer& view, const Var& row, int64_t step, int64_t iterations) {
  const Load* l = as<Load>(e);
  if (!l || l->buffer != view || l->index.size() != 1 || as<Ramp>(l->index[0])) return false;
  const auto at = affine_in(l->index[0], {row});
  const int64_t apart = at ? std::abs(at->coefficients[0]) : 0;
  return apart > 0 && apart % step == 0 && apart / step < iterations;
}

bool rows_overlap(const Alias& a, const For& around) {
  const auto moves = affine_in(a.offset, {around.var});
  const int64_t step = moves ? std::abs(moves->coefficients[0]) : 0;
  if (step == 0) return false;
  const int64_t iterations = std::min(as_const_int(around.extent).value_or(INT64_MAX), kIterations + 1);
  bool found = false;
  walk(a.body, [&](const Stmt& x) {
    const For* f = as<For>(x);
    const auto rows = f ? as_const_int(f->extent) : std::nullopt;
    if (rows && *rows >= kFewestRows)
      walk(
          f->body, [](const Stmt&) { return true; },
          [&](const Expr& e) {
            found |= is_read_again(e, a.view, f->var, step, iterations);
            return !found;
          });
    return !found;
  });
  return found;
}

// Of the loop itself, not of those inside of it.
std::vector<Buffer> overlapping(const For& f) {
  std::vector<Buffer> views;
  walk(f.body, [&](const Stmt& x) {
    if (is_serial(x)) return false;
    if (const Alias* a = as<Alias>(x); a && rows_overlap(*a, f)) views.push_back(a->view);
    return true;
  });
  return views;
}

Stmt in_loop(const For& f) {
  const std::vector<Buffer> views = overlapping(f);
  if (views.empty()) return {};
  const Stmt body = rewrite(f.body, {}, [&](const Stmt& x) -> Stmt {
    const Alias* a = as<Alias>(x);
    if (!a || std::find(views.begin(), views.end(), a->view) == views.end()) return {};
    return alias(a->view, a->base, a->offset, seq({intrin("hide_address", {{a->view, {0}}}), a->body}));
  });
  return loop(f.var, f.extent, body, f.kind, f.begin);
}

}  // namespace

Stmt hide_addresses(const Stmt& s) {
  return rewrite(s, {},
                 [](const Stmt& x) -> Stmt { return as<For>(x) && is_serial(x) ? in_loop(*as<For>(x)) : Stmt(); });
}

}  // namespace tc
