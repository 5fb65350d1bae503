#include "ir/ops/heap.h"

#include <limits>

namespace tc {
namespace {

/// Finds the place of an element at or below the hole `at`: larger children move up.
Stmt sift_down(const Heap& h, const Expr& at, const Expr& element) {
  const Buffer hole = counter("hole"), child = counter("child");
  const Expr c = value_of(child);
  auto value = [&](const Expr& p) { return load(h.element, {p}); };
  const Stmt larger_child = set(child, c + select(value(c + 1) > value(c), Expr(1), Expr(0)));
  const Stmt move_up =
      seq({store(h.element, {value_of(hole)}, value(c)), set(hole, c), set(child, value_of(hole) * 2 + 1)});
  const Stmt step = if_then(element >= value(c), set(child, value_of(h.count)), move_up);
  const Stmt descend = while_loop(c < value_of(h.count), seq({larger_child, step}));
  return alloc(
      hole,
      alloc(child, seq({set(hole, at), set(child, at * 2 + 1), descend, store(h.element, {value_of(hole)}, element)})));
}

Stmt end(const Heap& h) { return store(h.element, {value_of(h.count)}, Expr(std::numeric_limits<int64_t>::min())); }

}  // namespace

Stmt append(const Heap& h, const Expr& element) {
  return seq({store(h.element, {value_of(h.count)}, element), increment(h.count)});
}

Stmt order(const Heap& h) {
  const Var i = make_var("i"), parent = make_var("parent"), element = make_var("element");
  const Expr parents = floor_div(value_of(h.count), Expr(2));
  const Stmt one =
      let(parent, parents - 1 - Expr(i), let(element, load(h.element, {parent}), sift_down(h, parent, element)));
  return seq({end(h), loop(i, parents, one)});
}

Stmt drop_largest(const Heap& h) {
  const Var last = make_var("last");
  const Stmt shorter = set(h.count, value_of(h.count) - 1);
  return seq({shorter, let(last, load(h.element, {value_of(h.count)}), seq({end(h), sift_down(h, Expr(0), last)}))});
}

}  // namespace tc
