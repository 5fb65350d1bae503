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
#include <map>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"
#include "support/text.h"
#include "templates/cpu/sketch.h"
#include "templates/cpu/sketch_lanes.h"

namespace tc {
namespace {

constexpr int64_t kMostRows = 16, kMostColumns = 256, kMostSums = 1024;  // of a tile; 4 KiB of floats
constexpr int64_t kMostUnrolled = 16;

/// Of n iterations: what divides them, powers of two, and all of them.
KnobValues parts_of(int64_t n, int64_t most) {
  std::vector<int64_t> list;
  for (int64_t v = 1; v <= std::min(n, most); v++)
    if (n % v == 0 || ((v & (v - 1)) == 0 && n >= 2 * v)) list.push_back(v);
  return KnobValues::list(std::move(list));
}

/// Of n neighbouring elements: whole vectors of every length, or all of them.
KnobValues columns_of(int64_t n, int64_t most) {
  std::vector<int64_t> list;
  for (int64_t v = kMaxLanes; v < std::min(n, most + 1); v += v < 4 * kMaxLanes ? kMaxLanes : v) list.push_back(v);
  if (n <= most || list.empty()) list.push_back(n);
  return KnobValues::list(std::move(list));
}

/// The store that joins into a sum; null where there is none, or several.
const Store* joining_store(const Stmt& s) {
  const Store* found = nullptr;
  int count = 0;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x); k && k->reduce) found = k, count++;
    return true;
  });
  return count == 1 ? found : nullptr;
}

/// The loops of a nest from `v` on, each right inside the other.
std::vector<Var> nest_from(const Schedule& s, const Var& v) {
  std::vector<Var> list;
  const std::optional<LoopSite> site = find_loop(s.body(), v);
  if (!site) return list;  // it runs once
  const std::optional<Chain> chain = chain_of(site->stmt, nullptr);
  for (const For* f : chain->loops) list.push_back(f->var);
  return list;
}

/// The sum of which `result` is made at last; null where there is none.
Buffer sum_of(const Stmt& body, const Buffer& result) {
  Buffer sum;
  walk(body, [&](const Stmt& s) {
    const Store* k = as<Store>(s);
    if (!k || k->buffer != result) return true;
    walk(k->value, [&](const Expr& e) {
      if (const Load* l = as<Load>(e); l && l->index.empty() && l->buffer->scope == Scope::Register) sum = l->buffer;
      return true;
    });
    return true;
  });
  return sum;
}

class NestSketch {
 public:
  NestSketch(Schedule& s, const Buffer& result, const std::set<Var>& shared, const std::string& suffix,
             const TemplateArgs& a)
      : s_(s), suffix_(suffix), a_(a) {
    const std::map<const void*, std::string> names = printed_names(s.body());
    const auto take = [&](const std::vector<Var>& loops, std::vector<Var>& list) {
      for (const Var& v : loops)
        if (const auto n = trips(s, v); shared.count(v) == 0 && n && *n > 1) {
          list.push_back(v);
          name_[v] = names.at(v.get());
        }
    };
    take(s.loops(result), space_);
    if (const Buffer acc = sum_of(s.body(), result)) {
      std::vector<Var> loops = s.loops(acc);
      std::erase_if(loops, [&](const Var& v) { return is_space(v); });
      take(loops, red_);
    }
    const std::vector<Var>& outermost = space_.empty() ? red_ : space_;
    if (!outermost.empty()) nest_ = find_loop(s.body(), outermost[0])->stmt;
    if (!red_.empty()) sum_ = joining_store(nest_);
  }

  void run() {
    if (!nest_ || (!red_.empty() && !sum_)) return;
    choose();
    if (!apart_.empty()) copy_operands();
    if (!lane_ || is_space(lane_))
      over_results();
    else
      over_sums();
  }

 private:
  bool is_space(const Var& v) const { return std::find(space_.begin(), space_.end(), v) != space_.end(); }
  int64_t number(const std::string& name, int64_t model, KnobValues values) const {
    return a_.plan.number(
        name + suffix_, [&] { return values.at(values.below(model)); }, values);
  }

  bool may_join_lanes(const Var& v) const {
    if (!sum_ || is_space(v) || !op_has_lanes(*sum_->reduce, sum_->buffer->dtype)) return false;
    const bool rounds = is_float(sum_->buffer->dtype) && (*sum_->reduce == Op::Add || *sum_->reduce == Op::Mul);
    return !(a_.options.strict_fp && rounds) && has_vector_form(sum_->value, v, false);
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
    std::vector<Var> loops = space_;
    loops.insert(loops.end(), red_.begin(), red_.end());
    std::vector<int64_t> possible = {0};
    int64_t own = 0, best = 0;
    for (size_t i = 0; i < loops.size(); i++) {
      if (*trips(s_, loops[i]) < kMaxLanes) continue;
      const int64_t rank = rank_of_lanes(loops[i]);
      if (rank == 0) continue;
      possible.push_back(int64_t(i) + 1);
      if (rank >= best) best = rank, own = int64_t(i) + 1;
    }
    const KnobValues values = KnobValues::list(std::move(possible));
    const int64_t lanes = a_.plan.kind(
        "lanes" + suffix_, [&] { return own; }, values);
    if (lanes > 0) lane_ = loops[size_t(lanes) - 1];
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
    const auto count = int64_t(red_.size());
    if (count > 0) inner_ = count > 1 ? number("inner", count, KnobValues::range(1, count)) - 1 : 0;
    for (int64_t i = 0; i < count; i++) {
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
      const int64_t n = *trips(s_, v), size = size_[v];
      Var o = v, i;
      if (size >= n)
        i = v, o = nullptr;
      else if (size > 1)
        std::tie(o, i) = s_.split(v, size);
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

  void reorder(const std::vector<Var>& order) {
    if (order.size() > 1) s_.reorder(order);
  }

  /// Loops of a tile: the last one in vectors where `lanes` is set, the others unrolled.
  void finish(const std::vector<Var>& loops, bool lanes) {
    for (size_t i = 0; i < loops.size(); i++)
      if (lanes && i + 1 == loops.size())
        s_.vectorize(loops[i]);
      else if (*trips(s_, loops[i]) <= kMostUnrolled)
        s_.unroll(loops[i]);
  }

  /// The loops of the sum but for that over lanes, the innermost one last, which is cut where some of its iterations are unrolled.
  std::vector<Var> sum_loops(Var& unrolled) {
    std::vector<Var> list;
    for (size_t i = 0; i < red_.size(); i++)
      if (int64_t(i) != inner_ && red_[i] != lane_) list.push_back(red_[i]);
    const Var& v = red_[size_t(inner_)];
    if (v == lane_) return list;
    const int64_t n = *trips(s_, v), size = size_[v];
    list.push_back(v);
    if (size >= n) unrolled = v;
    if (size > 1 && size < n) {
      const auto [o, i] = s_.split(v, size);
      list.back() = o;
      list.push_back(unrolled = i);
    }
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
    if (unrolled && *trips(s_, unrolled) <= kMostUnrolled) s_.unroll(unrolled);
    finish(inner, bool(lane_));
    for (const Var& v : made)
      if (std::find(inner.begin(), inner.end(), v) == inner.end()) finish(nest_from(s_, v), bool(lane_));
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
    if (unrolled && *trips(s_, unrolled) <= kMostUnrolled) s_.unroll(unrolled);
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

  Schedule& s_;
  const std::string suffix_;
  const TemplateArgs& a_;
  std::vector<Var> space_, red_;  // loops of several iterations, outermost first
  Stmt nest_;
  const Store* sum_ = nullptr;
  Var lane_;
  std::map<Var, std::string> name_;  // looked up only
  std::map<Var, int64_t> size_;      // looked up only
  Var last_;                         // of the loops over tiles the innermost one; null: as they are
  int64_t inner_ = -1, copied_ = 1;
  OperandsApart apart_;  // looked up only
};

}  // namespace

std::optional<int64_t> trips(const Schedule& s, const Var& v) { return as_const_int(s.loop_of(v).extent); }

void sketch_nest(Schedule& s, const Buffer& result, const std::set<Var>& shared, const std::string& suffix,
                 const TemplateArgs& a) {
  NestSketch(s, result, shared, suffix, a).run();
}

}  // namespace tc
