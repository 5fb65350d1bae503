// A sketch of one nest as a launch: which steps there are, and the numbers that are left open.
//
//   for n: for c: { acc = 0; for k: acc += x[n, k] * w[k, c]; y[n, c] = acc }
//
// - `lanes`: the loop whose iterations are neighbouring threads. One of the results' (c), or one of the sum's (k), whose threads
//   then have a sum each and join them at the end (bind_reduction).
// - each loop's own number: of a loop over results how many of them a thread has, all of whose sums are kept in registers
//   (decompose_reduction); `NAME_threads`: the threads of a block along it, those that share a sum if it is the sum's.
// - `vectors`: whether the results of a thread along the lanes lie side by side, and not the block's threads apart.
// - `inner`: the loop of the sum that stands innermost; `unrolled`: how many of its iterations are written out.
// - `shared`: whether what several threads of a block read is copied to shared memory first (cache_read), a part for each step
//   of the sum; then of each of its loops the iterations that make a step.
//
// What is possible is asked of the steps themselves.
#include <algorithm>
#include <bit>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/vector_form.h"
#include "templates/cuda/sketch.h"

namespace tc {
namespace {

constexpr int64_t kMostResults = 16, kMostSums = 64;  // of a thread along a loop, together
constexpr int64_t kThreads = 128;                     // of a block, where the model decides
constexpr int64_t kThreadsToFill = 128;               // of a multiprocessor
constexpr int64_t kLongSum = 64;                      // terms that are worth sharing
constexpr int64_t kStep = 64, kMostStep = 256;        // terms of a step: the model's, and along a loop at most
constexpr int64_t kReads = 2;                         // of an element, for which a copy pays

/// The largest divisor of n up to `most`, or, where that is far below, a power of two.
int64_t part_below(int64_t n, int64_t most) {
  most = std::clamp<int64_t>(most, 1, n);
  int64_t d = most;
  while (n % d != 0) d--;
  return 2 * d >= most ? d : int64_t(std::bit_floor(uint64_t(most)));
}

class CudaNest : public SketchedNest {
 public:
  CudaNest(Schedule& s, const Buffer& result, const std::string& suffix, const CudaArgs& a)
      : SketchedNest(s, result, {}, suffix, a.plan), a_(a), to_fill_(a.gpu.multiprocessors * kThreadsToFill) {
    walk(
        nest_, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e); l && !l->index.empty()) reads_.push_back(l);
          return true;
        });
  }

  void run() {
    choose_lanes();
    choose_results();
    choose_threads();
    choose_sum();
    bind_results();
    if (!red_.empty())
      sums();
    else
      finish(tile_, vectors_);
  }

 private:
  /// Threads share sums.
  bool shares() const { return !is_space(lane_); }
  int64_t length(const Var& v) const { return *trips(s_, v); }
  int64_t points(const std::vector<Var>& list) const {
    int64_t n = 1;
    for (const Var& v : list) n = checked_mul(n, length(v));
    return n;
  }
  /// Reads that move by `step` elements along a loop.
  int64_t reads(const Var& v, int step) const {
    return std::count_if(reads_.begin(), reads_.end(), [&](const Load* l) { return lane_step(l->index, v) == step; });
  }
  static bool moves(const Load& l, const Var& v) {
    return std::any_of(l.index.begin(), l.index.end(), [&](const Expr& e) { return uses_var(e, v); });
  }

  bool may_share(const Var& v) const {
    if (is_space(v) || !may_join_parts(a_.options.strict_fp)) return false;
    const Op op = *sum_->reduce;
    const int64_t bytes = info(sum_->buffer->dtype).bytes;
    return (op == Op::Add || op == Op::Mul || op == Op::Max || op == Op::Min) && (bytes == 4 || bytes == 8);
  }

  void choose_lanes() {
    const bool few = points(space_) < to_fill_ && points(red_) >= kLongSum;
    const std::vector<Var> all = loops();
    std::vector<int64_t> possible;
    int64_t own = 0, best = 0;
    for (size_t i = 0; i < all.size(); i++) {
      const Var& v = all[i];
      if (!is_space(v) && !may_share(v)) continue;
      possible.push_back(int64_t(i) + 1);
      // A sum is shared where there are too few of them; then that counts whose neighbours lie side by side.
      const int64_t rank = (is_space(v) != few ? 100 : 0) + 4 * reads(v, 1) + (length(v) >= kWarp / 2 ? 8 : 0);
      if (own == 0 || rank >= best) best = rank, own = int64_t(i) + 1;
    }
    if (possible.empty()) throw ScheduleError("no loop may run over threads");
    lane_ = all[size_t(kind("lanes", own, KnobValues::list(std::move(possible)))) - 1];
  }

  /// Where threads share sums, every thread has all of its results: accumulators without a start cannot be joined.
  KnobValues parts(int64_t n, int64_t most) const {
    return shares() ? KnobValues::divisors(n, most) : parts_of(n, most);
  }

  /// The model lets a thread have several results whose sums share a factor, unless that leaves the machine idle.
  void choose_results() {
    int64_t sums = 1, left = points(space_) * (shares() ? kWarp : 1) / to_fill_;
    for (const Var& v : space_) {
      const bool again = v != lane_ && !red_.empty() && reads(v, 0) > 0;
      const int64_t own = again ? part_below(length(v), std::min<int64_t>(left, sums > 1 ? 2 : 4)) : 1;
      size_[v] = number(name_[v], own, parts(length(v), std::min(kMostResults, kMostSums / sums)));
      sums *= size_[v];
      left /= size_[v];
    }
    if (shares() || size_[lane_] == 1) return;
    const bool possible = std::has_single_bit(uint64_t(size_[lane_]));
    vectors_ = number("vectors", red_.empty() && possible, KnobValues::flag(possible)) == 1;
  }

  void choose_threads() {
    int64_t left = shares() ? kWarp : kMaxBlockThreads, wanted = shares() ? kThreads / kWarp : kThreads;
    const auto choose = [&](const Var& v, int64_t model) {
      const int64_t n = (length(v) + size_[v] - 1) / size_[v];
      threads_[v] = number(name_[v] + "_threads", part_below(n, model), parts(n, left));
      left /= threads_[v];
      wanted = std::max<int64_t>(1, wanted / threads_[v]);
    };
    if (!shares()) choose(lane_, space_.size() == 1 ? kThreads : kWarp);
    // Few sums are shared by more than a warp, which then is the whole block.
    const bool whole = shares() && points(space_) * kWarp < to_fill_;
    for (size_t i = space_.size(); i-- > 0;)
      if (space_[i] != lane_) choose(space_[i], !whole && reads(space_[i], 0) > 0 ? wanted : 1);
    if (!shares()) return;
    int64_t others = 1;
    for (const Var& v : space_) others *= threads_[v];
    std::vector<int64_t> possible;
    const int64_t most = std::clamp<int64_t>(length(lane_), kWarp, kMaxBlockThreads);
    for (int64_t t = 2; t <= most; t *= 2)
      if (others * t % kWarp == 0 && (t <= kWarp || others == 1)) possible.push_back(t);
    threads_[lane_] =
        number(name_[lane_] + "_threads", whole ? kBlockThreads : kWarp, KnobValues::list(std::move(possible)));
  }

  void choose_sum() {
    if (red_.empty()) return;
    choose_inner();
    const bool again = !shares() && std::any_of(reads_.begin(), reads_.end(), [&](const Load* l) {
      return std::any_of(space_.begin(), space_.end(), [&](const Var& v) { return threads_[v] > 1 && !moves(*l, v); });
    });
    shared_ = plan_.flag("shared" + suffix_, again);
    int64_t left = shares() ? std::max<int64_t>(1, kStep / threads_[lane_]) : kStep;
    for (size_t i = red_.size(); i-- > 0;) {
      const Var& v = red_[i];
      size_[v] = v == lane_ ? threads_[v] : length(v);
      if (v == lane_ || !shared_) continue;
      size_[v] = number(name_[v], part_below(length(v), left), parts_of(length(v), kMostStep));
      left = std::max<int64_t>(1, left / size_[v]);
    }
    const Var& v = red_[size_t(inner_)];
    const int64_t n = v == lane_ ? std::max<int64_t>(1, length(v) / size_[v]) : size_[v];
    unrolled_ = number("unrolled", part_below(n, 4), parts_of(n, kMostUnrolled));
  }

  /// Cuts a loop over results into blocks, threads, and what a thread has of it.
  void cut_results(const Var& v, std::vector<Var>& blocks, std::vector<Var>& threads) {
    const bool beside = vectors_ && v == lane_;  // a thread's results lie side by side, or a block's threads apart
    const std::string &name = name_[v], block = name + "_block", thread = name + "_thread", own = name + "_own";
    const int64_t inner = beside ? size_[v] : threads_[v], outer = beside ? threads_[v] : size_[v];
    const auto [rest, within] = cut(v, inner, {{outer > 1 ? name + "_o" : block, beside ? own : thread}});
    const auto [above, between] = rest ? cut(rest, outer, {{block, beside ? thread : own}}) : std::pair<Var, Var>();
    if (above) blocks.push_back(above);
    for (const Var& x : {within, between})
      if (x) ((x == within) == beside ? tile_ : threads).push_back(x);
  }

  void bind_results() {
    std::vector<Var> blocks, threads;
    for (const Var& v : space_)
      if (v != lane_) cut_results(v, blocks, threads);
    if (!shares()) cut_results(lane_, blocks, threads);
    std::vector<Var> order = blocks;
    for (const auto* list : {&threads, &tile_}) order.insert(order.end(), list->begin(), list->end());
    reorder(order);
    if (!blocks.empty()) s_.bind(s_.fuse(blocks, {{unused_name(s_, "block" + suffix_)}, true}), ForKind::BlockX);
    if (threads.empty()) return;
    thread_ = s_.fuse(threads, {{unused_name(s_, "thread" + suffix_)}, true});
    s_.bind(thread_, shares() ? ForKind::ThreadY : ForKind::ThreadX);
  }

  void sums() {
    std::vector<Var> made;
    if (!tile_.empty()) made = s_.decompose_reduction(tile_[0]);
    std::vector<Var> order, step;
    Var sharer, last;
    for (size_t i = 0; i < red_.size(); i++) {
      const Var& v = red_[i];
      const bool own = v == lane_;
      auto [outer, inner] = own ? share(v) : cut(v, size_[v], {{name_[v] + "_o", name_[v] + "_i"}});
      if (own) sharer = inner, inner = shared_ ? nullptr : std::exchange(outer, nullptr);
      if (outer) order.push_back(outer);
      if (inner) (int64_t(i) == inner_ ? last : step.emplace_back()) = inner;
    }
    if (last) step.push_back(last);
    const Var where = order.empty() ? thread_ : order.back();
    if (sharer) order.push_back(sharer);
    const Var written_out = cut_last(step);
    for (const auto* list : {&step, &tile_}) order.insert(order.end(), list->begin(), list->end());
    reorder(order);
    if (sharer) s_.bind_reduction(sharer);
    if (shared_ && where) copy_operands(where);
    if (written_out) finish({written_out}, false);
    finish_tile(tile_, made, vectors_);
  }

  /// Cuts a loop of a sum: its turns, and the threads that share them, of which some may have nothing to do.
  std::pair<Var, Var> share(const Var& v) {
    if (size_[v] == length(v)) return {nullptr, v};
    return s_.split(v, size_[v], Tail::Guard,
                    {{unused_name(s_, name_[v] + "_o"), unused_name(s_, name_[v] + "_thread")}});
  }

  /// Cuts the innermost loop of a step where only some of its iterations are written out. Returns the loop over these.
  Var cut_last(std::vector<Var>& step) {
    if (step.empty()) return nullptr;
    const auto [outer, inner] = cut(step.back(), unrolled_);
    step.pop_back();
    for (const Var& v : {outer, inner})
      if (v) step.push_back(v);
    return inner;
  }

  /// What the threads of a block read several times, from a copy for each iteration of a loop.
  void copy_operands(const Var& where) {
    std::vector<const Load*> each;
    for (const Load* l : reads_)
      if (std::none_of(each.begin(), each.end(), [&](const Load* x) { return x->buffer == l->buffer; }))
        each.push_back(l);
    int64_t bytes = 0;
    for (const Load* l : each)
      s_.attempt([&](Schedule& t) {
        const Buffer tile = t.cache_read(l->buffer, where, Scope::Shared);
        const int64_t elements = num_elements(static_dims(tile->shape));
        const int64_t all = bytes + elements * info(tile->dtype).bytes;
        if (kReads * elements > reads_in_step(*l) || all > kStaticSharedBytes / 2) throw ScheduleError("no copy pays");
        bytes = all;
        // Threads that read down a column meet different banks.
        for (size_t d = 0; d + 1 < l->index.size(); d++)
          if (uses_var(l->index[d], lane_) && tile->shape[d].value > 1)
            t.attempt([&](Schedule& u) { u.storage_align(tile, d, 2, 1); });
      });
  }

  int64_t reads_in_step(const Load& l) const {
    int64_t n = 1;
    for (const Var& v : space_) n *= threads_.at(v) * (moves(l, v) ? size_.at(v) : 1);
    for (const Var& v : red_) n *= moves(l, v) ? size_.at(v) : 1;
    return n;
  }

  const CudaArgs& a_;
  const int64_t to_fill_;           // threads
  std::vector<const Load*> reads_;  // of the plain nest
  Var lane_, thread_;               // thread_: the loop over threads
  std::map<Var, int64_t> threads_;  // looked up only
  std::vector<Var> tile_;           // loops over the results of a thread
  bool vectors_ = false, shared_ = false;
  int64_t unrolled_ = 1;
};

}  // namespace

void sketch_launch(Schedule& s, const Buffer& result, const std::string& suffix, const CudaArgs& a) {
  CudaNest nest(s, result, suffix, a);
  if (nest.has_loops()) nest.run();
}

}  // namespace tc
