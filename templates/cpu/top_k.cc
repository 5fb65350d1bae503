// The k first elements of a row in order of size, by a heap of k: O(n log k) instead of insertion's O(n k).
//
//   values[0 .. k] = x[0 .. k]                       and where they are
//   sift every parent down, the last one first       the root is now the one that comes last of the k
//   for j in k .. n: if x[j] comes before the root:  put it there and sift it down
//   for m in k - 1 .. 1: the root goes to place m    what is left of the heap are the m elements before it
//
// The heap lies in the results themselves. Elements that are equal stay in the order of their positions (comes_before), so
// that the results are those of the definition, bit for bit.
#include "ir/ops/top_k.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/ops/counting.h"
#include "ir/ops/helpers.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

class HeapLoops {
 public:
  explicit HeapLoops(const TopK& t) : t_(t) {}

  /// Of the rows around; `plan` says whether threads share the outermost axis of them.
  Stmt build(const PlanEntry& plan) {
    std::vector<Axis> around;
    for (size_t d = 0; d < t_.x->shape.size(); d++) {
      const Axis a{make_var("i" + to_text(int64_t(d))), t_.x->shape[d]};
      outer_.emplace_back(a.var);
      if (int(d) != t_.axis) around.push_back(a);
    }
    const bool shares = !around.empty() && around[0].extent.value > 1;
    const bool parallel =
        plan.flag("parallel", points(around) * t_.length() >= kParallelThreshold, shares, "there is one row");
    Stmt body = row();
    for (size_t d = around.size(); d-- > 0;)
      body = loop(around[d].var, around[d].extent, body, d == 0 && parallel ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

 private:
  Exprs at(const Expr& place) const { return with_axis(outer_, t_.axis, place); }
  Expr value_at(const Expr& place) const { return widen(load(t_.values, at(place))); }
  Expr index_at(const Expr& place) const { return load(t_.indices, at(place)); }
  Stmt put(const Expr& place, const Expr& value, const Expr& index) const {
    return seq({store(t_.values, at(place), value), store(t_.indices, at(place), index)});
  }

  /// Puts an element into the heap's first `size` places: those that come behind it move up, from `hole` on.
  Stmt sift(const Expr& hole, const Expr& size, const Expr& value, const Expr& index) const {
    const Buffer place = counter("place"), child = counter("child");
    const Expr p = value_of(place), c = value_of(child);
    // The child that comes later is the one that may move up.
    const Var left = make_var("left", t_.values->dtype), right = make_var("right", t_.values->dtype);
    const Expr later = comes_before(widen(left), index_at(c), widen(right), index_at(c + 1), t_.largest);
    const Stmt choose =
        let(left, load(t_.values, at(c)), let(right, load(t_.values, at(c + 1)), if_then(later, increment(child))));
    const Stmt descend = seq({set(child, p * Expr(2) + 1), if_then(c + 1 < size, choose)});
    const Expr moves = c < size && comes_before(widen(value), index, value_at(c), index_at(c), t_.largest);
    const Stmt move = seq({put(p, load(t_.values, at(c)), index_at(c)), set(place, c), descend});
    return alloc(place, alloc(child, seq({set(place, hole), descend, while_loop(moves, move), put(p, value, index)})));
  }

  /// The same of the element at `from`, which another one may take the place of.
  Stmt sift_from(const Expr& from, const Stmt& before, const Expr& hole, const Expr& size) const {
    const Var value = make_var("value", t_.values->dtype), index = make_var("index");
    return let(value, load(t_.values, at(from)),
               let(index, index_at(from), seq({before, sift(hole, size, value, index)})));
  }

  Stmt row() const {
    const int64_t n = t_.length(), k = t_.k();
    const Var i = make_var("i"), s = make_var("s"), j = make_var("j"), m = make_var("m");
    const Expr parent = Expr(k / 2 - 1) - Expr(s), last = Expr(k - 1) - Expr(m);
    const Var next = make_var("next", t_.values->dtype);
    const Stmt fill = loop(i, k, put(i, load(t_.x, at(i)), i));
    const Stmt heap = loop(s, k / 2, sift_from(parent, {}, parent, k));
    const Stmt enter = if_then(precedes(widen(next), value_at(0), t_.largest), sift(0, k, next, j));
    const Stmt scan = loop(j, n - k, let(next, load(t_.x, at(j)), enter), ForKind::Serial, k);
    const Stmt sort = loop(m, k - 1, sift_from(last, put(last, load(t_.values, at(0)), index_at(0)), 0, last));
    return seq({fill, heap, scan, sort});
  }

  const TopK& t_;
  Exprs outer_;
};

}  // namespace

std::optional<Scheduled> schedule_top_k(const TemplateArgs& a) {
  constexpr int64_t kShortest = 2;  // of one element insertion is a comparison
  if (a.fn.stages.size() != 1) return {};
  const auto t = match_top_k(a.fn.stages[0]);
  if (!t || t->k() < kShortest || num_elements(static_dims(t->values->shape)) == 0) return {};
  Scheduled s;
  s.body = HeapLoops(*t).build(a.plan);
  for (const Buffer& b : {t->values, t->indices}) {
    if (std::find(a.fn.outputs.begin(), a.fn.outputs.end(), b) != a.fn.outputs.end()) continue;
    const Buffer unused = make_buffer(b->name, b->dtype, b->shape, Scope::Workspace);
    s.body = alloc(unused, substitute_buffers(s.body, {{b.get(), unused}}));
  }
  s.inputs = a.fn.inputs;
  for (size_t i = 0; i < s.inputs.size(); i++) s.input_index.push_back(int(i));
  s.outputs = a.fn.outputs;
  s.description = "a heap of the elements that come first, then sorted";
  s.family = "top_k";
  return s;
}

}  // namespace tc
