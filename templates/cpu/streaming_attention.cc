// Attention over as many keys as there are: one pass over them, with the softmax corrected on the way (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).
//
//   for batches and heads of keys:                     shared among threads
//     for queries:
//       for blocks of the keys that the mask allows:
//         scores = f(q * keys)                         f: the scale and the mask
//         top' = max(top, scores); scores = exp(scores - top'); keep = exp(top - top')
//         total = total * keep + sum(scores); acc = acc * keep + scores * values
//       y = acc / total                              with a sink: / (total + exp(sink - top))
//
// For functions whose mask has a bound that is known at run time only: the number of keys in a cache. Keys behind that bound are
// not looked at, so that a run takes time by what there is, and no matrix of scores exists. Query heads that share keys read
// them together. Many queries are faster in strips (attention.cc), which copy the keys first: where a run may have one query only, that
// is a kernel of its own, if the queries lie side by side.
#include "templates/cpu/streaming_attention.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"
#include "support/text.h"
#include "templates/cpu/attention.h"
#include "templates/points.h"

namespace tc {
namespace {

constexpr int64_t kBlock = 64, kMostBlock = 512;  // keys: the model's, and what may be stated
constexpr int64_t kFewQueries = 4;

// Are queries and keys the same words? Then a run with one query has one key. Where a mask says so, row i sees no key behind i + a
// number; without one both have the same bound. Behind a cache one query sees many keys.
bool is_self_attention(const StreamedAttention& s) {
  const auto from_start = [&](const Expr& e) {
    const auto f = affine_in(e, {s.i.var});
    return f && f->coefficients[0] == 1 && as_const_int(f->rest);
  };
  const auto by_row = [&](const Expr& e) { return uses_var(e, s.i.var); };
  if (std::any_of(s.ends.begin(), s.ends.end(), from_start)) return true;
  return s.i.extent == s.j.extent && std::none_of(s.ends.begin(), s.ends.end(), by_row) &&
         std::none_of(s.begins.begin(), s.begins.end(), by_row);
}

// In strips? 512 queries and keys of 12 heads on Zen 4: 8.5 ms there, 34 ms here; causal 4.6 and 11.7.
bool strips_pay(const StreamedAttention& s, const TemplateArgs& a) {
  const std::vector<int>& open = a.options.open_axes;
  ScheduleOptions silent = a.options;
  silent.planner = nullptr;
  if (s.i.extent.value <= kFewQueries || !match_attention({a.fn, a.canonical, a.constant_input, a.cpu, silent}))
    return false;
  if (is_self_attention(s)) return true;
  const auto row =
      std::find_if(s.out_index.begin(), s.out_index.end(), [&](const Expr& e) { return uses_var(e, s.i.var); });
  const int axis = int(row - s.out_index.begin());
  if (std::find(open.begin(), open.end(), axis) == open.end()) return true;
  // A run with one query gets a kernel of its own where memory says how far its rows lie apart.
  const Dims out = static_dims(a.fn.outputs[0]->shape);
  return std::none_of(out.begin(), out.begin() + axis, [](int64_t n) { return is_open(n); });
}

class Builder {
 public:
  Builder(const StreamedAttention& s, const TensorFn& fn)
      : s_(s), fn_(fn), room_(round_up(s.value_d.extent.value, kMaxLanes)) {
    const int64_t g = s.group;
    top_ = make_buffer("top", DType::F32, {Dim(g)}, Scope::Workspace);
    total_ = make_buffer("total", DType::F32, {Dim(g)}, Scope::Workspace);
    scores_ = make_buffer("scores", DType::F32, {Dim(g), Dim(s.block)}, Scope::Workspace);
    acc_ = make_buffer("acc", DType::F32, {Dim(g), Dim(room_)}, Scope::Workspace);
  }

  Scheduled build() {
    const int64_t groups = s_.h.extent.value / s_.group, chunks = groups * s_.b.extent.value;
    const Var part = make_var("part");
    kv_ = apply(Op::Mod, {Expr(part), Expr(groups)});
    batch_ = Expr(part) / Expr(groups);
    if (groups == 1) batch_ = Expr(part), kv_ = Expr(0);
    if (s_.b.extent.value == 1) batch_ = Expr(0), kv_ = Expr(part);
    Stmt body = loop(s_.i.var, s_.i.extent, row());
    body = alloc(acc_, alloc(scores_, alloc(total_, alloc(top_, body))));
    Scheduled r;
    r.body = chunks == 1 ? substitute(body, {{part.get(), Expr(0)}}) : loop(part, chunks, body, ForKind::Parallel);
    r.inputs = fn_.inputs;
    for (size_t k = 0; k < fn_.inputs.size(); k++) r.input_index.push_back(int(k));
    r.outputs = fn_.outputs;
    r.family = "attention";
    r.description = "one pass over the keys that there are, " + to_text(s_.block) +
                    " at a time; the softmax is corrected on the way" +
                    (s_.group > 1 ? "; " + to_text(s_.group) + " heads read them together" : "");
    return r;
  }

 private:
  /// Of head `own` of the group.
  Expr at(const Expr& e, const Expr& own) const {
    const Expr head = s_.group == 1 ? kv_ : kv_ * Expr(s_.group) + own;
    VarMap to = {{s_.h.var.get(), head}, {s_.b.var.get(), batch_}};
    Ranges ranges;
    if (const VarRef* v = as<VarRef>(own)) ranges[v->var.get()] = {0, s_.group - 1};
    return simplify(substitute(e, to), ranges);
  }
  Exprs at(Exprs list, const Expr& own) const {
    for (Expr& e : list) e = at(e, own);
    return list;
  }
  Stmt heads(const std::function<Stmt(const Expr& own)>& body) const {
    if (s_.group == 1) return body(Expr(0));
    const Var own = make_var("own");
    return loop(own, s_.group, body(Expr(own)));
  }
  /// Whole vectors of n elements, and as many as `count` says of the last one; null: all.
  static Stmt lanes_of(int64_t n, const std::string& name, ForKind kind,
                       const std::function<Stmt(const Expr& base, const Expr& count)>& body) {
    const Var v = make_var(name);
    Stmt whole = loop(v, Expr(n) / lanes(), body(Expr(v) * lanes(), {}), kind);
    if (n % kMaxLanes == 0) return whole;
    const Expr end = Expr(n) / lanes() * lanes();
    return seq({whole, body(end, Expr(n) - end)});
  }
  /// `e` along the lanes of an axis: 0 behind the last of them.
  static Expr vector_of(const Expr& e, const Var& axis, const Expr& base, const Expr& count) {
    const Expr v = in_lanes(e, axis, base);
    return !count ? v : rewrite(v, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      return l && !l->index.empty() && as<Ramp>(l->index.back()) ? partial(x, count) : Expr();
    });
  }

  Stmt row() {
    const Stmt start = heads([&](const Expr& own) {
      return seq({store(top_, {own}, lowest(DType::F32)), store(total_, {own}, zero(DType::F32)),
                  lanes_of(room_, "v", ForKind::Serial, [&](const Expr& base, const Expr&) {
                    return store(acc_, {own, ramp(base)}, broadcast(zero(DType::F32)));
                  })});
    });
    Expr end = Expr(s_.j.extent.value), begin = 0;
    for (const Expr& e : s_.ends) end = min(end, at(e, Expr(0)));
    for (const Expr& e : s_.begins) begin = max(begin, at(e, Expr(0)));
    const Var first = make_var("first"), last = make_var("last"), block = make_var("block"), from = make_var("from"),
              count = make_var("count");
    Stmt blocks = let(from, Expr(first) + Expr(block) * Expr(s_.block),
                      let(count, min(Expr(last) - Expr(from), Expr(s_.block)), keys(Expr(from), Expr(count))));
    blocks = loop(block, (max(Expr(last) - Expr(first), Expr(0)) + Expr(s_.block - 1)) / Expr(s_.block), blocks);
    return seq({start, let(first, begin, let(last, end, seq({blocks, finish(Expr(last))})))});
  }

  Stmt keys(const Expr& from, const Expr& count) {
    const Var j = make_var("j"), pad = make_var("pad");
    const Stmt scores = loop(j, count, heads([&](const Expr& own) { return score(from, Expr(j), own); }));
    const Stmt rest = heads([&](const Expr& own) {
      return loop(pad, Expr(s_.block) - count, store(scores_, {own, count + Expr(pad)}, lowest(DType::F32)));
    });
    return seq({scores, rest, heads([&](const Expr& own) { return join(from, count, own); })});
  }

  Stmt score(const Expr& from, const Expr& j, const Expr& own) {
    const VarMap key = {{s_.j.var.get(), from + j}};
    const Buffer sum = make_buffer("sum", DType::F32, {Dim(kMaxLanes)}, Scope::Register);
    const Stmt products = lanes_of(s_.d.extent.value, "v", ForKind::Serial, [&](const Expr& base, const Expr& count) {
      const Expr q = vector_of(at(s_.q, own), s_.d.var, base, count),
                 k = vector_of(substitute(at(s_.k, own), key), s_.d.var, base, count);
      return store(sum, {ramp(0)}, broadcast(q * k), Op::Add);
    });
    const Stmt done = let(s_.dot, apply(Op::ReduceAdd, {load(sum, {ramp(0)})}),
                          store(scores_, {own, j}, substitute(at(s_.score, own), key)));
    return alloc(sum, seq({store(sum, {ramp(0)}, broadcast(zero(DType::F32))), products, done}));
  }

  Stmt join(const Expr& from, const Expr& count, const Expr& own) {
    const Var most = make_var("most", DType::F32), shift = make_var("shift", DType::F32),
              keep = make_var("keep", DType::F32), j = make_var("j");
    const Buffer high = make_buffer("high", DType::F32, {Dim(kMaxLanes)}, Scope::Register),
                 sum = make_buffer("sum", DType::F32, {Dim(kMaxLanes)}, Scope::Register),
                 held = make_buffer("held", DType::F32, {Dim(room_)}, Scope::Register);
    const auto scores = [&](const Expr& base) { return load(scores_, {own, ramp(base)}); };
    const Stmt exps = lanes_of(s_.block, "v", ForKind::Serial, [&](const Expr& base, const Expr&) {
      return seq({store(scores_, {own, ramp(base)}, exp(scores(base) - broadcast(Expr(shift)))),
                  store(sum, {ramp(0)}, scores(base), Op::Add)});
    });
    const Stmt take = lanes_of(room_, "v", ForKind::Unroll, [&](const Expr& base, const Expr&) {
      return store(held, {ramp(base)}, load(acc_, {own, ramp(base)}) * broadcast(Expr(keep)));
    });
    const Stmt add =
        loop(j, count, lanes_of(s_.value_d.extent.value, "v", ForKind::Unroll, [&](const Expr& base, const Expr& some) {
               const Expr v =
                   vector_of(substitute(at(s_.v, own), {{s_.j.var.get(), from + Expr(j)}}), s_.value_d.var, base, some);
               return store(held, {ramp(base)}, broadcast(load(scores_, {own, Expr(j)})) * v, Op::Add);
             }));
    const Stmt give = lanes_of(room_, "v", ForKind::Unroll, [&](const Expr& base, const Expr&) {
      return store(acc_, {own, ramp(base)}, load(held, {ramp(base)}));
    });
    Stmt rest = seq(
        {exps, store(total_, {own}, load(total_, {own}) * Expr(keep) + apply(Op::ReduceAdd, {load(sum, {ramp(0)})})),
         store(top_, {own}, Expr(most)), alloc(held, seq({take, add, give}))});
    rest = alloc(sum, seq({store(sum, {ramp(0)}, broadcast(zero(DType::F32))), rest}));
    rest = let(keep, exp(load(top_, {own}) - Expr(shift)), rest);
    rest = let(shift, shift_of(Expr(most)), rest);
    rest = let(most, max(load(top_, {own}), apply(Op::ReduceMax, {load(high, {ramp(0)})})), rest);
    const Stmt highest = lanes_of(s_.block, "v", ForKind::Serial, [&](const Expr& base, const Expr&) {
      return store(high, {ramp(0)}, scores(base), Op::Max);
    });
    return alloc(high, seq({store(high, {ramp(0)}, broadcast(lowest(DType::F32))), highest, rest}));
  }

  /// `last`: the end of the keys.
  Stmt finish(const Expr& last) {
    return heads([&](const Expr& own) {
      const Var inverse = make_var("inverse", DType::F32);
      Expr total = load(total_, {own});
      if (s_.sink) total = total + exp(at(s_.sink, own) - shift_of(load(top_, {own})));
      using None = StreamedAttention::None;
      const Expr nothing = zero(DType::F32), one = make_const(DType::F32, 1);
      const Expr none = s_.none == None::NaN ? last <= Expr(0) : eq(total, nothing);
      const Expr value = one / select(none, one, total);
      return let(inverse, value,
                 lanes_of(s_.value_d.extent.value, "v", ForKind::Serial, [&](const Expr& base, const Expr& count) {
                   Exprs index = at(s_.out_index, own);
                   index.back() = ramp(substitute(index.back(), {{s_.value_d.var.get(), base}}));
                   Expr y = load(acc_, {own, ramp(base)}) * broadcast(Expr(inverse));
                   if (s_.none == None::ZeroIfNaN) y = select(total >= nothing, y, broadcast(nothing));  // NaN is not
                   for (const DType t : s_.rounded) y = cast(t, y);
                   if (s_.after) y = after(y, own, base, count);
                   return store(fn_.outputs[0], index, y, std::nullopt, count);
                 }));
    });
  }

  /// What becomes of values `y`.
  Expr after(const Expr& y, const Expr& own, const Expr& base, const Expr& count) const {
    const Expr v = in_lanes(at(s_.after, own), s_.value_d.var, base);
    return rewrite(v, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      if (!l) return {};
      if (l->buffer == s_.own) return y;
      return bool(count) && !l->index.empty() && as<Ramp>(l->index.back()) ? partial(x, count) : Expr();
    });
  }

  const StreamedAttention& s_;
  const TensorFn& fn_;
  const int64_t room_;  // for a row of values, in whole vectors
  Expr batch_, kv_;
  Buffer top_, total_, scores_, acc_;
};

}  // namespace

std::optional<Scheduled> schedule_streaming_attention(const TemplateArgs& a) {
  auto s = match_streaming_attention(a);
  const bool stated = a.options.planner && a.options.planner->applies();
  if (!s || (!stated && strips_pay(*s, a))) return {};
  s->block = a.plan.in_range(
      "keys", [] { return kBlock; }, kMaxLanes, kMostBlock, kMaxLanes);
  const int64_t group = s->group;
  s->group = a.plan.number(
      "heads", [&] { return group; },
      KnobValues::divisors(group, INT64_MAX, to_text(group) + " heads read the same keys"));
  return Builder(*s, a.fn).build();
}

}  // namespace tc
