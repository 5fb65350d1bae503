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
// them together.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"
#include "support/text.h"
#include "templates/canonical.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

constexpr int64_t kBlock = 64, kMostBlock = 512;  // keys: the model's, and what may be stated
constexpr int64_t kMostHeads = 16;                // that read keys together
constexpr int64_t kMostSize = 256;                // of a head, in registers

struct Streamed {
  Axis b, h, i, j, d;  // of the scores and their products
  Axis value_d;        // of the values
  Expr q, k;           // factors of a score, over these
  Expr v;              // over b, h, j and value_d
  Var dot = make_var("dot", DType::F32);
  Expr score;              // of `dot` and b, h, i, j, where begins and ends allow j
  std::vector<Expr> ends;  // keys from here on are masked, over b, h, i
  std::vector<Expr> begins;
  Exprs out_index;             // over b, h, i, value_d
  std::vector<DType> rounded;  // what a result is converted to, in order
  int64_t group = 1;           // heads that read the same keys and values
  int64_t block = kBlock;      // keys at a time
  Expr sink;                   // the score of one more key, whose value is zero, over b, h, i; null: there is none
};

/// What exponentials subtract.
Expr shift_of(const Expr& top) { return select(eq(top, lowest(DType::F32)), zero(DType::F32), top); }

bool is_load_of(const Expr& e, const Buffer& b) {
  const Load* l = as<Load>(e);
  return l && l->buffer == b;
}

/// `e` with the values of pointwise stages for their loads, but of `stops`.
Expr inlined(const TensorFn& fn, const Expr& e, const std::vector<Buffer>& stops) {
  return rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    if (!l || std::find(stops.begin(), stops.end(), l->buffer) != stops.end()) return {};
    const Stage* s = producer(fn, l->buffer);
    if (!s || s->kind != Stage::Kind::Compute || s->outputs.size() != 1 || s->scan >= 0) return {};
    VarMap at;
    for (size_t k = 0; k < s->axes.size(); k++) at[s->axes[k].var.get()] = l->index[k];
    return inlined(fn, substitute(s->values[0], at), stops);
  });
}

Exprs refs(const std::vector<Axis>& axes) {
  Exprs list;
  for (const Axis& a : axes) list.push_back(Expr(a.var));
  return list;
}

bool same(const Exprs& a, const Exprs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return structurally_equal(x, y); });
}

/// The sums and the maximum, in order.
struct Reductions {
  const Stage *products = nullptr, *top = nullptr, *total = nullptr, *result = nullptr;
};

std::optional<Reductions> reductions(const TensorFn& fn) {
  std::vector<const Stage*> list;
  for (const Stage& s : fn.stages) {
    if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1) return {};
    if (s.kind == Stage::Kind::Reduce) list.push_back(&s);
  }
  constexpr Op kOps[] = {Op::Add, Op::Max, Op::Add, Op::Add};
  if (list.size() != 4 || fn.outputs.size() != 1) return {};
  for (size_t k = 0; k < 4; k++)
    if (list[k]->combiner.op != kOps[k] || list[k]->raxes.size() != 1 || list[k]->outputs[0]->dtype != DType::F32 ||
        list[k]->axes.size() != (k == 0 || k == 3 ? 4u : 3u))
      return {};
  return Reductions{list[0], list[1], list[2], list[3]};
}

/// a * b of which only one reads `v`; the other first.
bool factors(const Expr& e, const Var& v, Expr& without, Expr& with) {
  const Apply* m = as<Apply>(e);
  if (!m || m->op != Op::Mul) return false;
  without = m->args[0];
  with = m->args[1];
  if (uses_var(without, v)) std::swap(without, with);
  return !uses_var(without, v) && uses_var(with, v);
}

/// Bounds of j that a conjunction says; returns what else it says, null for nothing.
Expr find_bounds(const Expr& condition, Streamed& s) {
  const Apply* a = as<Apply>(condition);
  if (!a) return condition;
  if (a->op == Op::And) {
    Expr rest;
    for (const Expr& e : a->args)
      if (const Expr more = find_bounds(e, s)) rest = rest ? rest && more : more;
    return rest;
  }
  if ((a->op != Op::Lt && a->op != Op::Le) || !is_int(a->args[0]->dtype)) return condition;
  const int64_t closed = a->op == Op::Le ? 1 : 0;
  const auto left = affine_in(a->args[0], {s.j.var}), right = affine_in(a->args[1], {s.j.var});
  const int64_t c = left && right ? left->coefficients[0] - right->coefficients[0] : 0;
  if (c != 1 && c != -1) return condition;
  if (c == 1) s.ends.push_back(right->rest - left->rest + Expr(closed));
  if (c == -1) s.begins.push_back(left->rest - right->rest + Expr(1 - closed));
  return {};
}

/// x of the first max(m, x) in `e`; null if there is none.
Expr compared_with(const Expr& e, const Expr& m) {
  Expr other;
  walk(e, [&](const Expr& x) {
    const Apply* a = as<Apply>(x);
    if (!other && a && a->op == Op::Max && structurally_equal(a->args[0], m)) other = a->args[1];
    return !other;
  });
  return other;
}

/// The softmax between the scores and the weights of the values, as the definition writes it.
bool is_softmax(const TensorFn& fn, const Reductions& r, const Expr& weight, const Exprs& at, Expr& sink) {
  const Load* terms = as<Load>(r.total->values[0]);
  const Stage* e = terms ? producer(fn, terms->buffer) : nullptr;
  if (!e || e->kind != Stage::Kind::Compute || e->axes.size() != 4) return false;
  const Exprs row = {refs(e->axes)[0], refs(e->axes)[1], refs(e->axes)[2]};
  VarMap to;
  for (size_t k = 0; k < 3; k++) to[r.top->axes[k].var.get()] = row[k];
  to[r.top->raxes[0].var.get()] = Expr(e->axes[3].var);
  const Expr m = load(r.top->outputs[0], row), own_sink = compared_with(e->values[0], m);
  const Expr shift = shift_of(own_sink ? max(m, own_sink) : m);
  if (!structurally_equal(e->values[0], exp(substitute(r.top->values[0], to) - shift))) return false;
  VarMap to_row;
  for (size_t k = 0; k < 3; k++) to_row[e->axes[k].var.get()] = at[k];
  if (own_sink) sink = substitute(own_sink, to_row);
  Exprs summed = refs(r.total->axes);
  summed.push_back(Expr(r.total->raxes[0].var));
  if (!same(terms->index, summed)) return false;
  Expr s = load(r.total->outputs[0], {at[0], at[1], at[2]});
  if (sink) s = s + exp(sink - substitute(shift, to_row));
  const Expr inverse = select(eq(s, zero(DType::F32)), make_const(DType::F32, 1), s);
  return structurally_equal(inlined(fn, weight, {terms->buffer}), load(terms->buffer, at) / inverse);
}

bool is_half_or_single(DType t) { return is_half(t) || t == DType::F32; }

/// Where element (b, h, i, d) of the result lies in the output.
bool find_output(const TensorFn& fn, const Reductions& r, Streamed& s) {
  const Exprs at = {Expr(s.b.var), Expr(s.h.var), Expr(s.i.var), Expr(s.value_d.var)};
  s.out_index = at;
  if (fn.outputs[0] == r.result->outputs[0]) return true;
  const Stage* last = producer(fn, fn.outputs[0]);
  if (!last || last->kind != Stage::Kind::Compute || last->axes.size() != 3) return false;
  s.out_index = {at[0], at[2], at[1] * Expr(s.value_d.extent) + at[3]};
  VarMap to;
  for (size_t k = 0; k < 3; k++) to[last->axes[k].var.get()] = s.out_index[k];
  const Expr value = substitute(inlined(fn, last->values[0], {r.result->outputs[0]}), to);
  Expr result = value;
  for (const Cast* c = as<Cast>(result); c; c = as<Cast>(result)) {
    s.rounded.insert(s.rounded.begin(), result->dtype);
    result = c->value;
  }
  const Load* l = as<Load>(result);
  if (!l || l->buffer != r.result->outputs[0]) return false;
  if (s.rounded.size() > 2 || !std::all_of(s.rounded.begin(), s.rounded.end(), is_half_or_single)) return false;
  Ranges ranges;
  const Axis* axes[] = {&s.b, &s.h, &s.i, &s.value_d};
  for (const Axis* a : axes) ranges[a->var.get()] = {0, a->extent.value - 1};
  for (size_t k = 0; k < 4; k++)
    if (axes[k]->extent.value > 1 && !structurally_equal(simplify(l->index[k], ranges), at[k])) return false;
  return true;
}

/// As many heads as read the same keys and values.
void find_group(Streamed& s) {
  const int64_t heads = s.h.extent.value;
  for (int64_t n = std::min(heads, kMostHeads); n > 1; n--) {
    if (heads % n != 0) continue;
    const Var g = make_var("g"), own = make_var("own");
    const Ranges ranges = {{g.get(), {0, heads / n - 1}}, {own.get(), {0, n - 1}}};
    const auto reads_own = [&](const Expr& e) {
      return uses_var(simplify(substitute(e, {{s.h.var.get(), Expr(g) * Expr(n) + Expr(own)}}), ranges), own);
    };
    if (reads_own(s.k) || reads_own(s.v)) continue;
    s.group = n;
    return;
  }
}

std::optional<Streamed> match(const TemplateArgs& a) {
  const auto r = a.options.strict_fp ? std::nullopt : reductions(a.fn);
  if (!r) return {};
  Streamed s;
  const auto& axes = r->products->axes;
  s.b = axes[0], s.h = axes[1], s.i = axes[2], s.j = axes[3], s.d = r->products->raxes[0];
  if (!factors(inlined(a.fn, r->products->values[0], {}), s.j.var, s.q, s.k) || uses_var(s.k, s.i.var)) return {};
  // the score, over the axes of the products
  VarMap to;
  for (size_t k = 0; k < 3; k++) to[r->top->axes[k].var.get()] = Expr(axes[k].var);
  to[r->top->raxes[0].var.get()] = Expr(s.j.var);
  bool plain = true;
  s.score = rewrite(substitute(inlined(a.fn, r->top->values[0], {r->products->outputs[0]}), to), [&](const Expr& e) {
    if (!is_load_of(e, r->products->outputs[0])) return Expr();
    plain = plain && same(as<Load>(e)->index, refs(axes));
    return Expr(s.dot);
  });
  const Select* masked = as<Select>(s.score);
  if (!plain || !masked || !structurally_equal(masked->no, lowest(DType::F32))) return {};
  const Expr rest = find_bounds(masked->condition, s);
  s.score = rest ? select(rest, masked->yes, masked->no) : masked->yes;
  // the values
  const auto& out = r->result->axes;
  VarMap from;
  for (size_t k = 0; k < 3; k++) from[out[k].var.get()] = Expr(axes[k].var);
  from[r->result->raxes[0].var.get()] = Expr(s.j.var);
  s.value_d = out[3];
  Expr weight;
  if (!factors(substitute(r->result->values[0], from), s.value_d.var, weight, s.v)) return {};
  s.v = inlined(a.fn, s.v, {});
  if (uses_var(s.v, s.i.var) || !is_softmax(a.fn, *r, weight, refs(axes), s.sink) || !find_output(a.fn, *r, s))
    return {};
  // Bounds that are numbers are known to other templates, too.
  const bool open = std::any_of(s.ends.begin(), s.ends.end(), [](const Expr& e) {
    bool loads = false;
    walk(e, [&](const Expr& x) { return loads = loads || as<Load>(x), true; });
    return loads;
  });
  const int64_t size = s.d.extent.value, width = s.value_d.extent.value;
  if (!open || size % kMaxLanes != 0 || width % kMaxLanes != 0 || width > kMostSize) return {};
  if (!has_vector_form(s.q, s.d.var, false) || !has_vector_form(s.k, s.d.var, false) ||
      !has_vector_form(s.v, s.value_d.var, false))
    return {};
  find_group(s);
  return s;
}

class Builder {
 public:
  Builder(const Streamed& s, const TensorFn& fn) : s_(s), fn_(fn) {
    const int64_t g = s.group, width = s.value_d.extent.value;
    top_ = make_buffer("top", DType::F32, {Dim(g)}, Scope::Workspace);
    total_ = make_buffer("total", DType::F32, {Dim(g)}, Scope::Workspace);
    scores_ = make_buffer("scores", DType::F32, {Dim(g), Dim(s.block)}, Scope::Workspace);
    acc_ = make_buffer("acc", DType::F32, {Dim(g), Dim(width)}, Scope::Workspace);
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
  static Stmt lanes_of(int64_t n, const std::string& name, ForKind kind,
                       const std::function<Stmt(const Expr& base)>& body) {
    const Var v = make_var(name);
    return loop(v, Expr(n) / lanes(), body(Expr(v) * lanes()), kind);
  }

  Stmt row() {
    const int64_t width = s_.value_d.extent.value;
    const Stmt start = heads([&](const Expr& own) {
      return seq({store(top_, {own}, lowest(DType::F32)), store(total_, {own}, zero(DType::F32)),
                  lanes_of(width, "v", ForKind::Serial, [&](const Expr& base) {
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
    return seq({start, let(first, begin, let(last, end, blocks)), finish()});
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
    const Stmt products = lanes_of(s_.d.extent.value, "v", ForKind::Serial, [&](const Expr& base) {
      const Expr q = in_lanes(at(s_.q, own), s_.d.var, base),
                 k = in_lanes(substitute(at(s_.k, own), key), s_.d.var, base);
      return store(sum, {ramp(0)}, broadcast(q * k), Op::Add);
    });
    const Stmt done = let(s_.dot, apply(Op::ReduceAdd, {load(sum, {ramp(0)})}),
                          store(scores_, {own, j}, substitute(at(s_.score, own), key)));
    return alloc(sum, seq({store(sum, {ramp(0)}, broadcast(zero(DType::F32))), products, done}));
  }

  Stmt join(const Expr& from, const Expr& count, const Expr& own) {
    const int64_t width = s_.value_d.extent.value;
    const Var most = make_var("most", DType::F32), shift = make_var("shift", DType::F32),
              keep = make_var("keep", DType::F32), j = make_var("j");
    const Buffer high = make_buffer("high", DType::F32, {Dim(kMaxLanes)}, Scope::Register),
                 sum = make_buffer("sum", DType::F32, {Dim(kMaxLanes)}, Scope::Register),
                 held = make_buffer("held", DType::F32, {Dim(width)}, Scope::Register);
    const auto scores = [&](const Expr& base) { return load(scores_, {own, ramp(base)}); };
    const Stmt exps = lanes_of(s_.block, "v", ForKind::Serial, [&](const Expr& base) {
      return seq({store(scores_, {own, ramp(base)}, exp(scores(base) - broadcast(Expr(shift)))),
                  store(sum, {ramp(0)}, scores(base), Op::Add)});
    });
    const Stmt take = lanes_of(width, "v", ForKind::Unroll, [&](const Expr& base) {
      return store(held, {ramp(base)}, load(acc_, {own, ramp(base)}) * broadcast(Expr(keep)));
    });
    const Stmt add = loop(
        j, count, lanes_of(width, "v", ForKind::Unroll, [&](const Expr& base) {
          const Expr v = in_lanes(substitute(at(s_.v, own), {{s_.j.var.get(), from + Expr(j)}}), s_.value_d.var, base);
          return store(held, {ramp(base)}, broadcast(load(scores_, {own, Expr(j)})) * v, Op::Add);
        }));
    const Stmt give = lanes_of(width, "v", ForKind::Unroll, [&](const Expr& base) {
      return store(acc_, {own, ramp(base)}, load(held, {ramp(base)}));
    });
    Stmt rest = seq(
        {exps, store(total_, {own}, load(total_, {own}) * Expr(keep) + apply(Op::ReduceAdd, {load(sum, {ramp(0)})})),
         store(top_, {own}, Expr(most)), alloc(held, seq({take, add, give}))});
    rest = alloc(sum, seq({store(sum, {ramp(0)}, broadcast(zero(DType::F32))), rest}));
    rest = let(keep, exp(load(top_, {own}) - Expr(shift)), rest);
    rest = let(shift, shift_of(Expr(most)), rest);
    rest = let(most, max(load(top_, {own}), apply(Op::ReduceMax, {load(high, {ramp(0)})})), rest);
    const Stmt highest = lanes_of(s_.block, "v", ForKind::Serial,
                                  [&](const Expr& base) { return store(high, {ramp(0)}, scores(base), Op::Max); });
    return alloc(high, seq({store(high, {ramp(0)}, broadcast(lowest(DType::F32))), highest, rest}));
  }

  Stmt finish() {
    return heads([&](const Expr& own) {
      const Var inverse = make_var("inverse", DType::F32);
      Expr total = load(total_, {own});
      if (s_.sink) total = total + exp(at(s_.sink, own) - shift_of(load(top_, {own})));
      const Expr value =
          make_const(DType::F32, 1) / select(eq(total, zero(DType::F32)), make_const(DType::F32, 1), total);
      return let(inverse, value, lanes_of(s_.value_d.extent.value, "v", ForKind::Serial, [&](const Expr& base) {
                   Exprs index = at(s_.out_index, own);
                   index.back() = ramp(substitute(index.back(), {{s_.value_d.var.get(), base}}));
                   Expr y = load(acc_, {own, ramp(base)}) * broadcast(Expr(inverse));
                   for (const DType t : s_.rounded) y = cast(t, y);
                   return store(fn_.outputs[0], index, y);
                 }));
    });
  }

  const Streamed& s_;
  const TensorFn& fn_;
  Expr batch_, kv_;
  Buffer top_, total_, scores_, acc_;
};

}  // namespace

std::optional<Scheduled> schedule_streaming_attention(const TemplateArgs& a) {
  auto s = match(a);
  if (!s) return {};
  s->block = a.plan.in_range(
      "keys", [] { return kBlock; }, kMaxLanes, kMostBlock, kMaxLanes);
  const int64_t group = s->group;
  s->group = a.plan.number(
      "heads", [&] { return group; },
      KnobValues::divisors(group, INT64_MAX, to_text(group) + " heads read the same keys"));
  return Builder(*s, a.fn).build();
}

}  // namespace tc
