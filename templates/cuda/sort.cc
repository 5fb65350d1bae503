// The most extreme elements of rows, in order: top-k, and sorting where k is the length.
//
//   a block has a row, or several short ones, in shared memory: values and the positions they come from
//     for size = 2, 4, .. row: for step = size / 2 .. 1:       barrier
//       each thread: a pair of elements `step` apart is exchanged if it is in the wrong order
//   the first k are the result
//
// An element comes before another if it is more extreme or, where both are equal, stands in front of it: no two are
// equal, so that the result does not depend on the way there. Rows longer than a block's memory are cut into parts. Of
// each part the first k go on: joined and sorted again while they are few, else two sorted parts are merged at a time,
// a thread per element, which finds its rank among the other part's elements by bisection.
#include <algorithm>
#include <bit>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/ops/helpers.h"
#include "ir/ops/top_k.h"
#include "support/text.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

constexpr int64_t kShortRows = 128;
constexpr int64_t kShortestPart = 64;
constexpr int64_t kSpare = 1 << 14;  // numbers behind a row that stand for no position

class SortLoops {
 public:
  SortLoops(const TopK& t, bool wants_values, bool wants_indices, const PlanEntry& plan)
      : t_(t),
        wants_values_(wants_values),
        wants_indices_(wants_indices),
        type_(compute_type(t.x->dtype)),
        n_(t.length()),
        position_type_(n_ + kSpare <= 1 << 16 ? DType::U16 : DType::I32) {
    for (size_t d = 0; d < t.x->shape.size(); d++)
      if (int(d) != t.axis) outer_.push_back({make_var("i" + to_text(int64_t(d))), t.x->shape[d]});
    rows_ = points(outer_);
    decide(plan);
  }

  Stmt build(std::string& description) {
    description = "rows sorted in shared memory";
    if (n_ <= most_) return sort(nullptr, n_, nullptr);
    const int64_t kept = std::min(t_.k(), most_);
    int64_t runs = ceil_div(n_, most_);
    Buffer from = make_positions(runs * kept);
    Stmts launches = {sort(nullptr, n_, from)};
    description = "parts of rows sorted in shared memory, ";
    if (kept * 2 <= most_) {
      description += "then what is left of them";
      for (int64_t count = runs * kept; from; count = runs * kept) {
        runs = ceil_div(count, most_);
        const Buffer to = runs > 1 ? make_positions(runs * kept) : nullptr;
        launches.push_back(sort(from, count, to));
        from = to;
      }
    } else {
      description += "then merged";
      for (int64_t length = kept; from; length = std::min(t_.k(), length * 2)) {
        const Buffer to = runs > 2 ? make_positions(ceil_div(runs, 2) * std::min(t_.k(), length * 2)) : nullptr;
        launches.push_back(merge(from, runs, length, to));
        runs = ceil_div(runs, 2);
        from = to;
      }
    }
    Stmt all = seq(std::move(launches));
    for (size_t i = between_.size(); i-- > 0;) all = alloc(between_[i], all);
    return all;
  }

 private:
  void decide(const PlanEntry& plan) {
    fit_ = int64_t(std::bit_floor(uint64_t(kStaticSharedBytes / (info(type_).bytes + info(position_type_).bytes))));
    const int64_t longest = std::min(fit_, int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(n_, 2)))));
    most_ = plan.number(
        "part", [&] { return longest; },
        KnobValues::powers_of_two(std::min(longest, kShortestPart), longest, "elements of a row that a block sorts"));
    const int64_t length = part_of(n_).length, lanes = std::min(kMaxBlockThreads, length / 2);
    lanes_ = plan.number(
        "lanes", [&] { return lanes; },
        KnobValues::powers_of_two(std::min(lanes, kWarp), lanes, "threads of a row, which has so many pairs"));
    rows_of_block_ = plan.number(
        "rows", [&] { return part_of(n_).rows; },
        KnobValues::powers_of_two(1, std::min(kMaxBlockThreads / lanes_, fit_ / length),
                                  "rows that a block has threads and memory for"));
  }

  Buffer make_positions(int64_t count) {
    between_.push_back(make_buffer("places", position_type_, {Dim(rows_), Dim(count)}, Scope::Workspace));
    return between_.back();
  }

  Exprs at(const Expr& along) const {
    Exprs index;
    for (const Axis& a : outer_) index.emplace_back(a.var);
    index.insert(index.begin() + t_.axis, along);
    return index;
  }
  // The value at a position; positions behind the row hold what comes last.
  Expr value_at(const Expr& position) const {
    return select(position < Expr(n_), widen(load(t_.x, at(position))), last_in_order(type_, t_.largest));
  }
  // The element from `position` is number `rank` of the row.
  Stmt put(const Buffer& to, const Expr& row, const Expr& rank, const Expr& position) const {
    if (to) return store(to, {row, rank}, cast(position_type_, position));
    return seq({wants_values_ ? store(t_.values, at(rank), load(t_.x, at(position))) : Stmt(),
                wants_indices_ ? store(t_.indices, at(rank), position) : Stmt()});
  }
  Stmt with_row(const Expr& row, Stmt body) const {
    const VarMap at = point_at(outer_, row);
    for (size_t k = outer_.size(); k-- > 0;) body = let(outer_[k].var, at.at(outer_[k].var.get()), body);
    return body;
  }

  struct Element {
    Expr value, position;
  };
  Expr before(const Element& a, const Element& b) const {
    return comes_before(a.value, a.position, b.value, b.position, t_.largest);
  }

  // Parts of rows, a power of two long, sorted; `count` elements of the rows themselves or of `from`. The first k of
  // each go `to`, or to the result.
  struct Part {
    int64_t length, lanes, rows, iterations;  // lanes: threads of a row; iterations: pairs of a thread
  };
  Part part_of(int64_t count) const {
    Part p;
    p.length = std::max<int64_t>(2, std::min<int64_t>(most_, int64_t(std::bit_ceil(uint64_t(count)))));
    p.lanes = std::min(lanes_, p.length / 2);
    p.iterations = p.length / 2 / p.lanes;
    p.rows = std::clamp<int64_t>(kShortRows / p.lanes, 1, fit_ / p.length);
    if (rows_of_block_ > 0 && count == n_)
      p.rows = rows_of_block_;
    else
      while (p.rows > 1 && p.rows / 2 >= rows_ && p.rows * p.lanes > 32) p.rows /= 2;
    return p;
  }

  Stmt sort(const Buffer& from, int64_t count, const Buffer& to) const {
    const Part p = part_of(count);
    const int64_t parts = ceil_div(count, p.length);
    const Buffer value = make_buffer("value", type_, {Dim(p.rows * p.length)}, Scope::Shared),
                 position = make_buffer("place", position_type_, {Dim(p.rows * p.length)}, Scope::Shared);
    const Var thread = make_var("thread"), block = make_var("block"), part = make_var("part"), row = make_var("row"),
              lane = make_var("lane"), base = make_var("base"), slot = make_var("slot"), iteration = make_var("turn"),
              p0 = make_var("p");
    const Expr live = Expr(row) < Expr(rows_), at_slot = Expr(base) + Expr(slot);
    // Element `slot` of the part.
    auto over_slots = [&](const Stmt& body) {
      return loop(iteration, p.length / p.lanes, let(slot, Expr(iteration) * Expr(p.lanes) + Expr(lane), body));
    };
    const bool whole_rows = rows_ % p.rows == 0;
    const Expr number = parts > 1 ? Expr(part) * Expr(p.length) + Expr(slot) : Expr(slot);
    Expr source = number;
    if (from) {
      source = cast(DType::I64, load(from, {row, number}));
      if (count % p.length != 0) source = select(number < Expr(count), source, Expr(n_) + Expr(slot));
    }
    const Expr inside = whole_rows ? Expr() : live;
    if (inside) source = select(inside, source, Expr(n_) + Expr(slot));
    const Stmt fetch = over_slots(
        let(p0, source,
            seq({store(value, {at_slot}, value_at(p0)), store(position, {at_slot}, cast(position_type_, Expr(p0)))})));
    const int64_t kept = std::min({t_.k(), p.length, count});
    const Expr rank = to && parts > 1 ? Expr(part) * Expr(kept) + Expr(slot) : Expr(slot);
    Stmt result = let(p0, cast(DType::I64, load(position, {at_slot})), put(to, row, rank, p0));
    if (kept < p.length) result = if_then(Expr(slot) < Expr(kept), result);
    result = over_slots(result);
    if (inside) result = if_then(inside, result);
    Stmt body = seq({comment("values and places", fetch), exchanges(p, value, position, base, lane),
                     barrier(Scope::Shared), comment(to ? "the first go on" : "the result", result)});
    body = let(lane, p.rows == 1 ? Expr(thread) : floor_mod(Expr(thread), p.lanes), body);
    const Expr in_block = floor_div(Expr(thread), p.lanes);
    body = let(base, p.rows == 1 ? Expr(0) : in_block * Expr(p.length), body);
    body = let(row, p.rows == 1 ? Expr(block) : Expr(block) * Expr(p.rows) + in_block, with_row(row, body));
    Stmt s = alloc(value, alloc(position, loop(thread, p.lanes * p.rows, body, ForKind::ThreadX)));
    s = loop(block, ceil_div(rows_, p.rows), s, ForKind::BlockX);
    return parts > 1 ? loop(part, parts, s, ForKind::BlockY) : s;
  }

  // A bitonic network: sorted runs of `size` elements, every second one backwards.
  Stmt exchanges(const Part& p, const Buffer& value, const Buffer& position, const Var& base, const Var& lane) const {
    const Var s = make_var("s"), d = make_var("d"), size = make_var("size"), step = make_var("step"),
              mask = make_var("mask"), pair = make_var("pair"), i = make_var("i"), j = make_var("j"),
              iteration = make_var("turn");
    const Var a = make_var("a", type_), b = make_var("b", type_), pa = make_var("place_a", position_type_),
              pb = make_var("place_b", position_type_);
    const Expr first = Expr(base) + Expr(i), second = Expr(base) + Expr(j);
    const Expr wrong = before({b, pb}, {a, pa});
    const Expr forwards = eq(apply(Op::BitAnd, {Expr(i), Expr(size)}), 0);
    auto put_at = [&](const Expr& at, const Var& v, const Var& from) {
      return seq({store(value, {at}, Expr(v)), store(position, {at}, Expr(from))});
    };
    Stmt body = if_then(eq(wrong, forwards), seq({put_at(first, b, pb), put_at(second, a, pa)}));
    body = let(pa, load(position, {first}), let(pb, load(position, {second}), body));
    body = let(a, load(value, {first}), let(b, load(value, {second}), body));
    // Pairs are numbered along the elements, those with i + step left out.
    const Expr number = Expr(pair) * Expr(2) - apply(Op::BitAnd, {Expr(pair), Expr(mask)});
    body = let(i, number, let(j, Expr(i) + Expr(step), body));
    body = loop(iteration, p.iterations, let(pair, Expr(iteration) * Expr(p.lanes) + Expr(lane), body));
    body = let(mask, Expr(step) - Expr(1), seq({barrier(Scope::Shared), body}));
    body = let(step, apply(Op::Shr, {Expr(size), Expr(d) + Expr(1)}), body);
    body = let(size, apply(Op::Shl, {Expr(2), Expr(s)}), loop(d, Expr(s) + Expr(1), body));
    return comment("sorted", loop(s, std::countr_zero(uint64_t(p.length)), body));
  }

  // Sorted runs, two at a time, to runs of twice the length, or as long as the result.
  Stmt merge(const Buffer& from, int64_t runs, int64_t length, const Buffer& to) const {
    const int64_t merged = std::min(t_.k(), length * 2);
    const Axis row{make_var("row"), Dim(rows_)}, run{make_var("run"), Dim(runs)}, position{make_var("o"), Dim(length)};
    const Var mine = make_var("p"), value = make_var("v", type_), other = make_var("other"),
              middle = make_var("middle"), theirs = make_var("q"), iteration = make_var("turn");
    const Buffer low = make_buffer("low", DType::I64, {}, Scope::Register),
                 high = make_buffer("high", DType::I64, {}, Scope::Register);
    auto element = [&](const Expr& run, const Expr& o) {
      return cast(DType::I64, load(from, {Expr(row.var), run * Expr(length) + o}));
    };
    const Expr lo = load(low, {}), hi = load(high, {});
    Stmt step = if_then(before({value_at(theirs), theirs}, {value, mine}), store(low, {}, Expr(middle) + Expr(1)),
                        store(high, {}, Expr(middle)));
    step = let(middle, floor_div(lo + hi, 2), let(theirs, element(other, middle), step));
    step = loop(iteration, int64_t(std::bit_width(uint64_t(length))), if_then(lo < hi, step));
    const Expr rank = Expr(position.var) + lo;
    const Expr half = floor_div(Expr(run.var), 2);
    const Expr at = to ? half * Expr(merged) + rank : rank;
    Stmt result = if_then(rank < Expr(merged), put(to, row.var, at, mine));
    // A run without another one is as long as the others all the same.
    if (to && runs % 2 != 0)
      result = seq({result, if_then(Expr(other) >= Expr(runs) && rank + Expr(length) < Expr(merged),
                                    put(to, row.var, at + Expr(length), Expr(n_)))});
    const Expr alone = runs % 2 == 0 ? Expr(length) : select(Expr(other) < Expr(runs), Expr(length), Expr(0));
    Stmt body = alloc(low, seq({store(low, {}, Expr(0)), alloc(high, seq({store(high, {}, alone), step, result}))}));
    body = let(mine, element(run.var, position.var), let(value, value_at(mine), body));
    body = let(other, Expr(run.var) + Expr(1) - floor_mod(Expr(run.var), 2) * Expr(2), body);
    return comment("runs merged", thread_per_point({row, run, position}, with_row(row.var, body)));
  }

  const TopK t_;
  const bool wants_values_, wants_indices_;
  const DType type_;
  const int64_t n_;
  const DType position_type_;  // of positions in memory
  std::vector<Axis> outer_;
  int64_t rows_ = 1, fit_ = 0, most_ = 0;                 // rows; elements in a block's memory, and of a part
  int64_t lanes_ = kMaxBlockThreads, rows_of_block_ = 0;  // threads of a row, at most; 0: not decided yet
  std::vector<Buffer> between_;
};

}  // namespace

std::optional<Scheduled> cuda_sort(const CudaArgs& a) {
  if (a.fn.stages.size() != 1) return {};
  const auto t = match_top_k(a.fn.stages[0]);
  if (!t || has_no_elements(static_dims(t->values->shape)) || t->length() > (int64_t(1) << 30)) return {};
  auto wants = [&](const Buffer& b) {
    return std::find(a.fn.outputs.begin(), a.fn.outputs.end(), b) != a.fn.outputs.end();
  };
  Scheduled s = with_operands(a.fn, "sort", "");
  s.body = SortLoops(*t, wants(t->values), wants(t->indices), a.plan).build(s.description);
  return s;
}

}  // namespace tc
