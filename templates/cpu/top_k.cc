// The k first elements of a row in order of size. Up to 64 of them are a sorted list, which few elements of a row enter:
//
//   for j in 0 .. k:  move what comes behind x[j] on by one place, and put it there
//   for j in k .. n:  if x[j] comes before the last:  the same
//
// More of them are a heap, which takes log k steps for one instead of k:
//
//   values[0 .. k] = x[0 .. k]                       and where they are
//   sift every parent down, the last one first       the root is now the one that comes last of the k
//   for j in k .. n: if x[j] comes before the root:  put it there and sift it down
//   for m in k - 1 .. 1: the root goes to place m    what is left of the heap are the m elements before it
//
// Blocks of a long row whose most extreme element does not come before the last are passed over. Both are local arrays; a
// large heap lies in the results. Elements that are equal stay in the order of their positions (comes_before), so that the
// results are those of the definition, bit for bit.
#include "ir/ops/top_k.h"

#include <algorithm>
#include <functional>

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/visit.h"
#include "ir/ops/counting.h"
#include "ir/ops/helpers.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

class TopKLoops {
 public:
  /// `used`: the results that somebody reads.
  TopKLoops(const TopK& t, const std::vector<Buffer>& used) : t_(t), used_(used) {}

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
    Stmt body = is_list() ? list() : heap();
    for (size_t d = around.size(); d-- > 0;)
      body = loop(around[d].var, around[d].extent, body, d == 0 && parallel ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

  bool is_list() const { return t_.k() <= kLongestList; }
  bool is_used(const Buffer& b) const { return std::find(used_.begin(), used_.end(), b) != used_.end(); }
  /// Are places that data decide those of the results?
  bool works_in_results() const { return !values_; }

 private:
  static constexpr int64_t kLongestList = 64, kMostOwn = 256;  // elements: 3 KiB

  Exprs at(const Expr& place) const { return with_axis(outer_, t_.axis, place); }
  Expr stored_value(const Expr& place) const { return values_ ? load(values_, {place}) : load(t_.values, at(place)); }
  Expr value_at(const Expr& place) const { return widen(stored_value(place)); }
  Expr index_at(const Expr& place) const { return indices_ ? load(indices_, {place}) : load(t_.indices, at(place)); }
  Stmt put(const Expr& place, const Expr& value, const Expr& index) const {
    if (values_) return seq({store(values_, {place}, value), store(indices_, {place}, index)});
    return seq({store(t_.values, at(place), value), store(t_.indices, at(place), index)});
  }

  /// Puts an element into the heap's first `size` places: those that come behind it move up, from `hole` on.
  Stmt sift(const Expr& hole, const Expr& size, const Expr& value, const Expr& index) const {
    const Buffer place = counter("place"), child = counter("child");
    const Expr p = value_of(place), c = value_of(child);
    // The child that comes later is the one that may move up.
    const Var left = make_var("left", t_.values->dtype), right = make_var("right", t_.values->dtype);
    const Expr later = comes_before(widen(left), index_at(c), widen(right), index_at(c + 1), t_.largest);
    const Stmt choose = let(left, stored_value(c), let(right, stored_value(c + 1), if_then(later, increment(child))));
    const Stmt descend = seq({set(child, p * Expr(2) + 1), if_then(c + 1 < size, choose)});
    const Expr moves = c < size && comes_before(widen(value), index, value_at(c), index_at(c), t_.largest);
    const Stmt move = seq({put(p, stored_value(c), index_at(c)), set(place, c), descend});
    return alloc(place, alloc(child, seq({set(place, hole), descend, while_loop(moves, move), put(p, value, index)})));
  }

  /// The same of the element at `from`, which another one may take the place of.
  Stmt sift_from(const Expr& from, const Stmt& before, const Expr& hole, const Expr& size) const {
    const Var value = make_var("value", t_.values->dtype), index = make_var("index");
    return let(value, stored_value(from), let(index, index_at(from), seq({before, sift(hole, size, value, index)})));
  }

  /// Puts an element where it belongs in the list; from `end` on there is nothing that it comes before.
  Stmt insert(const Expr& end, const Expr& value, const Expr& index) const {
    const Buffer place = counter("place");
    const Expr p = value_of(place), before = p - 1;
    const Expr moves = p > 0 && precedes(widen(value), value_at(before), t_.largest);
    const Stmt move = seq({put(p, stored_value(before), index_at(before)), set(place, before)});
    return alloc(place, seq({set(place, end), while_loop(moves, move), put(p, value, index)}));
  }

  Stmt list() {
    own();
    const Var i = make_var("i"), j = make_var("j"), first = make_var("next", t_.values->dtype);
    const Stmt fill = loop(i, t_.k(), let(first, load(t_.x, at(i)), insert(i, first, i)));
    const Expr last = t_.k() - 1;
    return with_results(seq({fill, scan(j, last, [&](const Expr& next) { return insert(last, next, j); })}));
  }

  Stmt heap() {
    const int64_t k = t_.k();
    if (k <= kMostOwn) own();
    const Var i = make_var("i"), s = make_var("s"), j = make_var("j"), m = make_var("m");
    const Expr parent = Expr(k / 2 - 1) - Expr(s), last = Expr(k - 1) - Expr(m);
    const Stmt fill = loop(i, k, put(i, load(t_.x, at(i)), i));
    const Stmt make = loop(s, k / 2, sift_from(parent, {}, parent, k));
    const Stmt enter = scan(j, 0, [&](const Expr& next) { return sift(0, k, next, j); });
    const Stmt sort = loop(m, k - 1, sift_from(last, put(last, stored_value(0), index_at(0)), 0, last));
    return with_results(seq({fill, make, enter, sort}));
  }

  /// Arrays for a row, so that no place that data decide is one of the results.
  void own() {
    values_ = make_buffer("values", t_.values->dtype, {Dim(t_.k())}, Scope::Stack);
    indices_ = make_buffer("indices", DType::I64, {Dim(t_.k())}, Scope::Stack);
  }
  Stmt with_results(const Stmt& found) const {
    if (!values_) return found;
    const Var m = make_var("m");
    Stmts results;
    for (const auto& [result, found_here] : {std::pair{t_.values, values_}, std::pair{t_.indices, indices_}})
      if (is_used(result)) results.push_back(store(result, at(m), load(found_here, {m})));
    return alloc(values_, alloc(indices_, seq({found, loop(m, t_.k(), seq(results))})));
  }

  /// Lets in what comes before the one at place `last`.
  Stmt scan(const Var& j, const Expr& last, const std::function<Stmt(const Expr& next)>& enters) const {
    const Var next = make_var("next", t_.values->dtype);
    const Stmt enter =
        let(next, load(t_.x, at(j)), if_then(precedes(widen(next), value_at(last), t_.largest), enters(next)));
    if (has_blocks()) return blocks(j, last, enter);
    return loop(j, t_.length() - t_.k(), enter, ForKind::Serial, t_.k());
  }

  static constexpr int64_t kBlock = 64, kFewestBlocks = 4;  // elements

  bool has_blocks() const {
    return t_.axis + 1 == int(t_.x->shape.size()) && t_.x->dtype == DType::F32 &&
           t_.length() - t_.k() >= kFewestBlocks * kBlock;
  }
  /// The last block is read as far as the row goes: what stands in front of it was looked at before.
  Stmt blocks(const Var& j, const Expr& last, const Stmt& enter) const {
    const int64_t n = t_.length(), k = t_.k();
    const Var block = make_var("block"), first = make_var("first"), v = make_var("v");
    const Buffer extreme = make_buffer(t_.largest ? "most" : "least", DType::F32, {Dim(kMaxLanes)}, Scope::Register);
    const Op op = t_.largest ? Op::Max : Op::Min;
    const Expr seen = min(Expr(first), Expr(n - kBlock));
    const Stmt start = store(extreme, {ramp(0)}, broadcast(t_.largest ? lowest(DType::F32) : highest(DType::F32)));
    const Stmt join =
        loop(v, Expr(kBlock) / lanes(), store(extreme, {ramp(0)}, load(t_.x, at(ramp(seen + Expr(v) * lanes()))), op),
             ForKind::Unroll);
    const Expr all = apply(t_.largest ? Op::ReduceMax : Op::ReduceMin, {load(extreme, {ramp(0)})});
    const Expr behind = t_.largest ? all <= value_at(last) : all >= value_at(last);  // false of NaN
    const Stmt some =
        if_then(logical_not(behind), loop(j, min(Expr(kBlock), Expr(n) - Expr(first)), enter, ForKind::Serial, first));
    return loop(block, ceil_div(n - k, kBlock),
                let(first, Expr(k) + Expr(block) * Expr(kBlock), alloc(extreme, seq({start, join, some}))));
  }

  const TopK& t_;
  const std::vector<Buffer>& used_;
  Exprs outer_;
  Buffer values_, indices_;  // of the row; null: they are the results
};

}  // namespace

std::optional<Scheduled> schedule_top_k(const TemplateArgs& a) {
  constexpr int64_t kShortest = 2;  // of one element insertion is a comparison
  if (a.fn.stages.size() != 1) return {};
  const auto t = match_top_k(a.fn.stages[0]);
  if (!t || t->k() < kShortest || has_no_elements(static_dims(t->values->shape))) return {};
  Scheduled s;
  TopKLoops loops(*t, a.fn.outputs);
  s.body = loops.build(a.plan);
  for (const Buffer& b : {t->values, t->indices}) {
    if (loops.is_used(b) || !loops.works_in_results()) continue;
    const Buffer unused = make_buffer(b->name, b->dtype, b->shape, Scope::Workspace);
    s.body = alloc(unused, substitute_buffers(s.body, {{b.get(), unused}}));
  }
  s.inputs = a.fn.inputs;
  for (size_t i = 0; i < s.inputs.size(); i++) s.input_index.push_back(int(i));
  s.outputs = a.fn.outputs;
  s.description = loops.is_list() ? "a sorted list of the elements that come first"
                                  : "a heap of the elements that come first, then sorted";
  s.family = "top_k";
  return s;
}

}  // namespace tc
