// A sketch of one nest: which steps there are, and the numbers that are left open.
//
//   for n: for c: { acc = 0; for k: acc += x[n, k] * w[k, c]; y[n, c] = acc }
//
// - `lanes`: the loop that runs over lanes of vectors. One of the results' (c), or one of the sum's (k), which then keeps a sum a
//   lane (rfactor) and joins them at the end; 0: none, one element at a time.
// - each loop's own number: of a loop over results the iterations that stand in the tile, all of whose sums are kept in registers
//   (decompose_reduction), of the sum's the iterations that are unrolled, or the lanes.
// - `copied`: where lanes are results whose operands lie apart, iterations of the outermost loop that share a copy in which they lie
//   side by side (cache_read, transform_layout).
// - `inner`: the loop of the sum that stands innermost; `outer`: the loop over tiles that does.
//
// What is possible is asked of the steps themselves.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"
#include "templates/cpu/sketch.h"
#include "templates/cpu/sketch_lanes.h"

namespace tc {
namespace {

constexpr int64_t kMostRows = 16, kMostColumns = 256, kMostSums = 1024;  // of a tile; 4 KiB of floats

/// Of n neighbouring elements: whole vectors of every length, or all of them.
KnobValues columns_of(int64_t n, int64_t most) {
  std::vector<int64_t> list;
  for (int64_t v = kMaxLanes; v < std::min(n, most + 1); v += v < 4 * kMaxLanes ? kMaxLanes : v) list.push_back(v);
  if (n <= most || list.empty()) list.push_back(n);
  return KnobValues::list(std::move(list));
}

class CpuNest : public SketchedNest {
 public:
  CpuNest(Schedule& s, const Buffer& result, const std::set<Var>& shared, const std::string& suffix,
          const TemplateArgs& a)
      : SketchedNest(s, result, shared, suffix, a.plan), a_(a) {}

  void run() {
    choose();
    if (!apart_.empty()) copy_operands();
    if (!lane_ || is_space(lane_))
      over_results();
    else
      over_sums();
  }

 private:
  bool may_join_lanes(const Var& v) const {
    return may_join_parts(a_.options.strict_fp) && !is_space(v) && op_has_lanes(*sum_->reduce, sum_->buffer->dtype) &&
           has_vector_form(sum_->value, v, false);
  }

  /// How good lanes along `v` promise to be, from 3: results side by side, 2: partial sums, 1: results side by side in copies; 0: there are none.
  int64_t rank_of_lanes(const Var& v) const {
    if (!is_space(v)) return may_join_lanes(v) ? 2 : 0;
    if (runs_in_lanes(nest_, v)) return 3;
    if (red_.empty() || space_.size() < 2) return 0;
    const auto apart = operands_apart(nest_, v);
    return apart && runs_in_lanes(brought_together(nest_, *apart), v) ? 1 : 0;
  }

  /// The outermost loop that is not the one over lanes.
  const Var& first() const { return space_[space_[0] == lane_ ? 1 : 0]; }

  void choose() {
    const std::vector<Var> all = loops();
    std::vector<int64_t> possible = {0};
    int64_t own = 0, best = 0;
    for (size_t i = 0; i < all.size(); i++) {
      if (*trips(s_, all[i]) < kMaxLanes) continue;
      const int64_t rank = rank_of_lanes(all[i]);
      if (rank == 0) continue;
      possible.push_back(int64_t(i) + 1);
      if (rank >= best) best = rank, own = int64_t(i) + 1;
    }
    const int64_t lanes = kind("lanes", own, KnobValues::list(std::move(possible)));
    if (lanes > 0) lane_ = all[size_t(lanes) - 1];
    choose_tile();
    choose_sum();
    if (const auto n = int64_t(space_.size()); n > 1) {
      const int64_t outer = number("outer", 0, KnobValues::range(0, n));
      if (outer > 0) last_ = space_[size_t(outer) - 1];
    }
    if (!lane_ || !is_space(lane_) || runs_in_lanes(nest_, lane_)) return;
    apart_ = *operands_apart(nest_, lane_);
    const int64_t n = *trips(s_, first());
    copied_ = number("copied", n, KnobValues::divisors(n, n / 2));
  }

  void choose_tile() {
    int64_t left = kMostSums / (lane_ && !is_space(lane_) ? kMaxLanes : 1);
    for (size_t i = space_.size(); i-- > 0;) {
      const Var& v = space_[i];
      const int64_t n = *trips(s_, v);
      if (v == lane_)
        size_[v] = red_.empty() ? number(name_[v], n, columns_of(n, n))
                                : number(name_[v], 32, columns_of(n, std::min(left, kMostColumns)));
      else
        size_[v] = number(name_[v], !red_.empty() && left >= 4 * kMaxLanes && i + 2 >= space_.size() ? 4 : 1,
                          parts_of(n, std::clamp<int64_t>(left / (lane_ ? 1 : kMaxLanes), 1, kMostRows)));
      left = std::max<int64_t>(1, left / size_[v]);
    }
  }

  void choose_sum() {
    choose_inner();
    for (int64_t i = 0; i < int64_t(red_.size()); i++) {
      const Var& v = red_[size_t(i)];
      const int64_t n = *trips(s_, v);
      if (v == lane_)
        size_[v] = number(name_[v], kMaxLanes, columns_of(n, kMostColumns));
      else
        size_[v] = number(name_[v], i == inner_ && n <= 4 ? n : 1, parts_of(n, i == inner_ ? kMostUnrolled : 1));
    }
  }

  /// Copies operands so that results along the lanes lie side by side, a copy for `copied_` iterations of the outermost loop.
  void copy_operands() {
    Var outermost = first();
    std::vector<Var> order = space_;
    const auto at = std::find(order.begin(), order.end(), outermost);
    std::rotate(order.begin(), at, at + 1);
    reorder(order);
    order.erase(order.begin());
    if (copied_ > 1) {
      const auto [o, i] = s_.split(outermost, copied_);
      size_[i] = size_[outermost];
      if (last_ == outermost) last_ = i;
      order.insert(order.begin(), i);
      outermost = o;
    }
    space_ = order;
    std::vector<Buffer> in_order;  // in which they are read
    walk(
        nest_, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          const Load* l = as<Load>(e);
          if (l && apart_.count(l->buffer) != 0 &&
              std::find(in_order.begin(), in_order.end(), l->buffer) == in_order.end())
            in_order.push_back(l->buffer);
          return true;
        });
    for (const Buffer& b : in_order) {
      const Buffer copy = s_.cache_read(b, outermost, Scope::Workspace);
      s_.transform_layout(copy, order_with(b->shape.size(), apart_.at(b)));
    }
  }

  /// Cuts the loops over results and puts those of the tile inside, the one over lanes last. Returns these.
  std::vector<Var> tile() {
    std::vector<Var> outer, inner;
    Var last, in_lanes;
    for (const Var& v : space_) {
      const auto [o, i] = cut(v, size_[v]);
      if (o && v == last_)
        last = o;
      else if (o)
        outer.push_back(o);
      if (i && v == lane_)
        in_lanes = i;
      else if (i)
        inner.push_back(i);
    }
    if (last) outer.push_back(last);
    if (in_lanes) inner.push_back(in_lanes);
    outer.insert(outer.end(), inner.begin(), inner.end());
    reorder(outer);
    return inner;
  }

  /// The loops of the sum but for that over lanes, the innermost one last, which is cut where some of its iterations are unrolled.
  std::vector<Var> sum_loops(Var& unrolled) {
    std::vector<Var> list;
    for (size_t i = 0; i < red_.size(); i++)
      if (int64_t(i) != inner_ && red_[i] != lane_) list.push_back(red_[i]);
    const Var& v = red_[size_t(inner_)];
    if (v == lane_) return list;
    const auto [o, i] = cut(v, size_[v]);
    if (o) list.push_back(o);
    if (i) list.push_back(unrolled = i);
    return list;
  }

  /// Lanes are results, or there are none.
  void over_results() {
    std::vector<Var> inner = tile();
    if (red_.empty()) return finish(inner, bool(lane_));
    std::vector<Var> made;
    if (!inner.empty()) made = s_.decompose_reduction(inner[0]);
    Var unrolled;
    std::vector<Var> order = sum_loops(unrolled);
    order.insert(order.end(), inner.begin(), inner.end());
    reorder(order);
    if (unrolled) finish({unrolled}, false);
    finish_tile(inner, made, bool(lane_));
  }

  /// Lanes are iterations of the sum.
  void over_sums() {
    std::vector<Var> inner = tile();
    Var part_loop = lane_;
    Var unrolled;
    std::vector<Var> order = sum_loops(unrolled);
    if (size_[lane_] < *trips(s_, lane_)) {
      const auto [o, i] = s_.split(lane_, size_[lane_]);
      order.push_back(o);
      part_loop = i;
    }
    order.push_back(part_loop);
    reorder(order);
    const Buffer part = s_.rfactor(part_loop);
    const Var start = first_loop_of(part);
    order.pop_back();
    if (inner.empty()) {
      s_.vectorize(part_loop);
      if (start) s_.vectorize(start);
      return;
    }
    s_.decompose_reduction(inner[0]);
    const std::vector<Var> made = s_.decompose_reduction(inner[0]);
    // The loops of partial sums have got other variables: those of the tile, then those of the sum.
    const std::vector<Var> sums = nest_from(s_, made.at(1));
    const auto rows_end = sums.begin() + std::ptrdiff_t(inner.size());
    for (size_t i = 0; i < order.size(); i++) {
      if (order[i] == unrolled) unrolled = rows_end[std::ptrdiff_t(i)];
      order[i] = rows_end[std::ptrdiff_t(i)];
    }
    std::vector<Var> in_tile(sums.begin(), rows_end);
    in_tile.push_back(sums.back());
    order.insert(order.end(), in_tile.begin(), in_tile.end());
    reorder(order);
    if (unrolled) finish({unrolled}, false);
    finish(in_tile, true);
    finish(nest_from(s_, made.at(0)), true);
    std::vector<Var> joins = nest_from(s_, made.at(2));
    joins.pop_back();
    finish(joins, false);
  }

  /// The loop that gives partial sums their start.
  Var first_loop_of(const Buffer& part) const {
    for (const For* f : loops_in(s_.body())) {
      const Store* k = as<Store>(f->body);
      if (k && k->buffer == part && !k->reduce) return f->var;
    }
    return nullptr;
  }

  const TemplateArgs& a_;
  Var lane_;
  Var last_;  // of the loops over tiles the innermost one; null: as they are
  int64_t copied_ = 1;
  OperandsApart apart_;  // looked up only
};

}  // namespace

void sketch_nest(Schedule& s, const Buffer& result, const std::set<Var>& shared, const std::string& suffix,
                 const TemplateArgs& a) {
  CpuNest nest(s, result, shared, suffix, a);
  if (nest.has_loops()) nest.run();
}

}  // namespace tc
