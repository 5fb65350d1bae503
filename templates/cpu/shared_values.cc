// Values that many results share: positions and weights of samples that are the same in every channel.
//
//   for a block of points:                        shared among threads
//     at[i], weight[i], ... = what does not depend on the channel
//     for channels:
//       for the points of the block (and what is summed there):
//         y[channel, point] = f(x[channel, at[i]], weight[i], ...)
//
// The plain loops would compute all of it once more for every channel. Taken are the largest parts of the expression that
// do not use the channel and cost something: conversions to integers, roundings, divisions, long formulas. Where there is
// no position among them, the function is left to others. What stands behind a condition is taken only if it reads no
// memory that is not read anyway.
#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

constexpr int64_t kBlock = 256, kMostBlock = 2048;    // points: the model's, and what may be stated
constexpr int64_t kStackBytes = 4096;                 // of a local array
constexpr int64_t kFewest = 4;                        // results that share
constexpr int64_t kTogether = 4, kMostTogether = 16;  // channels that take what a point needs out of the arrays at once
constexpr int64_t kLongestPeriod = 8;
constexpr int kFewOperations = 8;
constexpr int64_t kLargest = 40000;  // nodes of a formula

struct SharedPart {
  Expr value;
  std::vector<Axis> axes;  // of the block and of the reduction
  Buffer array;
};

struct Shared {
  Canonical c;
  Axis over;                 // the channels
  std::vector<Axis> around;  // loops around a block
  std::vector<Axis> block;   // of `most` points at most
  int64_t most = kBlock;
  std::optional<Axis> cut;  // chunks of an axis of `length` points: `block` then is the axis within a chunk
  int64_t length = 0;
  std::vector<SharedPart> parts;
};

// Whether positions are computed from numbers. Divisions by small numbers go away where loops are cut by their period.
bool converts(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const Apply* k = as<Apply>(x);
    const Cast* to = as<Cast>(x);
    const bool divides = k && (k->op == Op::FloorDiv || k->op == Op::FloorMod);
    found = found || (to && is_int(x->dtype) && is_float(to->value->dtype)) ||
            (divides && as_const_int(k->args[1]).value_or(kLongestPeriod + 1) > kLongestPeriod) ||
            (k && (k->op == Op::Floor || k->op == Op::Ceil || k->op == Op::Round));
    return !found;
  });
  return found;
}

// That, or more than a few sums and products of what is at hand.
bool is_work(const Expr& e) {
  int operations = 0;
  walk(e, [&](const Expr& x) {
    operations += as<Apply>(x) ? 1 : 0;
    return operations <= kFewOperations;
  });
  return operations > kFewOperations || converts(e);
}

// What may be read, and checked, at any point: what lies inside of its buffer, and what is read wherever the whole
// expression is evaluated.
class Always {
 public:
  explicit Always(std::vector<Axis> axes) : axes_(std::move(axes)) {}
  void add(const Expr& e) {
    if (!e) return;
    walk(e, [&](const Expr& x) {
      if (as<Load>(x) || is_check(x)) list_.push_back(x);
      if (const Select* s = as<Select>(x)) return add(s->condition), false;
      const Apply* k = as<Apply>(x);
      if (k && (k->op == Op::And || k->op == Op::Or)) return add(k->args[0]), false;
      return true;
    });
  }
  bool covers(const Expr& e) const { return covers(e, true); }
  bool covers_loads(const Expr& e) const { return covers(e, false); }

 private:
  bool covers(const Expr& e, bool checks) const {
    bool all = true;
    walk(e, [&](const Expr& x) {
      if ((as<Load>(x) && !is_inside(*as<Load>(x))) || (checks && is_check(x)))
        all = all && std::any_of(list_.begin(), list_.end(), [&](const Expr& y) { return structurally_equal(x, y); });
      return all;
    });
    return all;
  }
  static bool is_check(const Expr& e) {
    const Apply* k = as<Apply>(e);
    return k && k->op == Op::Index;
  }
  bool is_inside(const Load& l) const {
    const auto o = l.index.size() == 1 ? offset_of(l.index[0], vars_of(axes_)) : std::nullopt;
    if (!o) return false;
    int64_t least = o->constant, most = o->constant;
    for (const Axis& a : axes_) (o->of(a.var) < 0 ? least : most) += o->of(a.var) * (a.extent.value - 1);
    return least >= 0 && most < l.buffer->shape[0].value;
  }
  const std::vector<Axis> axes_;
  Exprs list_;
};

// Replaces the largest parts that use neither the channels nor what is reduced for each of them by elements of arrays.
class Taker {
 public:
  Taker(Shared& s, const Always& always) : s_(s), always_(always) {
    points_ = s.block;
    points_.insert(points_.end(), s.c.raxes.begin(), s.c.raxes.end());
  }

  /// Whether something that costs has to stay where every channel computes it again.
  bool left() const { return left_; }

  Expr operator()(const Expr& e) {
    if (!uses_var(e, s_.over.var) && !uses_buffer(e, s_.c.reduced)) {
      if (!uses_any(e, points_) || !is_work(e)) return e;
      if (always_.covers(e)) return element(e);
      left_ = left_ || !always_.covers_loads(e);
    }
    if (const auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    keep_.push_back(e);
    return memo_[e.get()] = inside(e);
  }

 private:
  Expr inside(const Expr& e) {
    return visit(
        e,
        [&](const Apply& k) {
          Exprs args;
          for (const Expr& a : k.args) args.push_back((*this)(a));
          return apply(k.op, std::move(args));
        },
        [&](const Select& k) { return select((*this)(k.condition), (*this)(k.yes), (*this)(k.no)); },
        [&](const Cast& k) { return cast(e->dtype, (*this)(k.value), k.saturate); },
        [&](const Bitcast& k) { return bitcast(e->dtype, (*this)(k.value)); },
        [&](const Load& k) {
          Exprs index;
          for (const Expr& i : k.index) {
            const auto f = affine_in(i, {s_.over.var});
            index.push_back(f ? Expr(s_.over.var) * Expr(f->coefficients[0]) + (*this)(f->rest) : (*this)(i));
          }
          return load(k.buffer, index);
        },
        [&](const auto&) { return e; });
  }

  Expr element(const Expr& e) {
    for (const SharedPart& p : s_.parts)
      if (structurally_equal(p.value, e)) return load(p.array, {point_number(p.axes)});
    SharedPart p{e, {}, nullptr};
    for (const Axis& a : points_)
      if (uses_var(e, a.var)) p.axes.push_back(a);
    const int64_t n = points(p.axes);
    const bool local = n * info(e->dtype).bytes <= kStackBytes;
    const char* name = e->dtype == DType::Bool ? "inside" : is_int(e->dtype) ? "at" : "weight";
    p.array = make_buffer(name, e->dtype, {Dim(n)}, local ? Scope::Stack : Scope::Workspace);
    s_.parts.push_back(p);
    return load(p.array, {point_number(p.axes)});
  }

  Shared& s_;
  const Always& always_;
  std::vector<Axis> points_;
  std::map<const ExprNode*, Expr> memo_;  // looked up only
  Exprs keep_;
  bool left_ = false;
};

// The function with the axis number `over` as channels, in blocks of `most` points at most; no parts: nothing is shared.
Shared share(const Canonical& c, size_t over, int64_t most) {
  Shared s;
  s.c = c;
  s.most = most;
  s.over = c.axes[over];
  std::vector<Axis> inner(c.axes.begin() + std::ptrdiff_t(over) + 1, c.axes.end());
  s.around.assign(c.axes.begin(), c.axes.begin() + std::ptrdiff_t(over));
  if (inner.back().extent.value > most) {
    const Axis last = inner.back();
    inner.pop_back();
    s.cut = Axis{make_var(last.var->name + "_o"), Dim(ceil_div(last.extent.value, most))};
    s.length = last.extent.value;
    s.block = {{make_var(last.var->name + "_i"), Dim(most)}};
    const VarMap to{{last.var.get(), Expr(s.cut->var) * Expr(most) + Expr(s.block[0].var)}};
    for (Expr* e : {&s.c.value, &s.c.init, &s.c.epilogue, &s.c.out_index})
      if (*e) *e = substitute(*e, to);
  } else {
    while (!inner.empty() && points(s.block) * inner.back().extent.value <= most) {
      s.block.insert(s.block.begin(), inner.back());
      inner.pop_back();
    }
  }
  s.around.insert(s.around.end(), inner.begin(), inner.end());
  std::vector<Axis> axes = c.axes;
  axes.insert(axes.end(), s.block.begin(), s.block.end());
  axes.insert(axes.end(), c.raxes.begin(), c.raxes.end());
  if (s.cut) axes.push_back(*s.cut);
  Always always(axes);
  for (const Expr& e : {s.c.value, s.c.init, s.c.epilogue}) always.add(e);
  Taker take(s, always);
  for (Expr* e : {&s.c.value, &s.c.init, &s.c.epilogue})
    if (*e) *e = take(*e);
  const bool positions = std::any_of(s.parts.begin(), s.parts.end(), [](const SharedPart& p) {
    return p.value->dtype == DType::I64 && converts(p.value);
  });
  if (take.left() || !positions) s.parts.clear();
  return s;
}

// Points of a block of at most `most`.
int64_t block_points(const Canonical& c, size_t over, int64_t most) {
  if (c.axes.back().extent.value > most) return most;
  int64_t n = 1;
  for (size_t i = c.axes.size(); i-- > over + 1 && n * c.axes[i].extent.value <= most;) n *= c.axes[i].extent.value;
  return n;
}

// `s` in blocks of another size, if the plan says so. False if nothing is shared then.
bool decide_points(Shared& s, const Canonical& c, size_t over, const PlanEntry& plan) {
  std::set<int64_t> sizes;
  for (int64_t most = 32; most <= kMostBlock; most *= 2) sizes.insert(block_points(c, over, most));
  const int64_t own = block_points(c, over, kBlock);
  const int64_t points = plan.number(
      "points", [&] { return own; },
      KnobValues::list({sizes.begin(), sizes.end()}, "whole axes, or a power of two of one"));
  if (points != own) s = share(c, over, points);
  return !s.parts.empty();
}

std::optional<Shared> match(const TemplateArgs& a) {
  // What is computed once may be long.
  const std::optional<Canonical> found = a.canonical ? *a.canonical : canonicalize(a.fn, kLargest);
  if (!found) return {};
  Canonical c = *found;
  std::vector<Expr*> values = {&c.epilogue};
  if (c.value) values.insert(values.end(), {&c.value, &c.init});
  merge_axes(c.axes, values, {&c.out_index});
  if (c.axes.size() < 2 || (!c.value && has_vector_form(c.epilogue, c.axes.back().var))) return {};
  std::optional<Shared> best;
  size_t over = 0;
  for (size_t i = 0; i + 1 < c.axes.size(); i++) {
    if (c.axes[i].extent.value < kFewest) continue;
    if (best && c.axes[i].extent.value <= best->over.extent.value) continue;
    Shared s = share(c, i, kBlock);
    if (s.parts.empty()) continue;
    best = std::move(s);
    over = i;
  }
  if (best && !decide_points(*best, c, over, a.plan)) a.plan.refuse("nothing is shared by blocks of so many points");
  return best;
}

bool has_conditions(const Shared& s) {
  return std::any_of(s.parts.begin(), s.parts.end(), [](const SharedPart& p) { return p.value->dtype == DType::Bool; });
}

class Builder {
 public:
  Builder(const Shared& s, int64_t together) : s_(s), together_(together) {}

  Stmt build(bool parallel) {
    Stmt body = seq({fill(), channels()});
    for (const SharedPart& p : s_.parts) body = alloc(p.array, body);
    std::vector<Axis> around = s_.around;
    if (s_.cut) around.push_back(*s_.cut);
    for (size_t i = around.size(); i-- > 0;)
      body = loop(around[i].var, around[i].extent, body, parallel && i == 0 ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

 private:
  // The last chunk of an axis may be short.
  Expr extent(const Axis& a) const {
    if (!s_.cut || a.var != s_.block[0].var) return a.extent;
    const Expr left = Expr(s_.length) - Expr(s_.cut->var) * Expr(s_.most);
    return s_.length % s_.most == 0 ? Expr(s_.most) : min(Expr(s_.most), left);
  }

  Stmt over_block(const std::vector<Axis>& axes, Stmt body) const {
    for (size_t i = axes.size(); i-- > 0;) body = loop(axes[i].var, extent(axes[i]), body);
    return body;
  }

  // Parts over the same axes are computed together.
  Stmt fill() const {
    Stmts list;
    std::vector<bool> done(s_.parts.size());
    auto same_axes = [](const SharedPart& a, const SharedPart& b) {
      return a.axes.size() == b.axes.size() && std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(),
                                                          [](const Axis& x, const Axis& y) { return x.var == y.var; });
    };
    for (size_t i = 0; i < s_.parts.size(); i++) {
      if (done[i]) continue;
      Stmts stores;
      for (size_t k = i; k < s_.parts.size(); k++) {
        if (done[k] || !same_axes(s_.parts[i], s_.parts[k])) continue;
        done[k] = true;
        stores.push_back(store(s_.parts[k].array, {point_number(s_.parts[k].axes)}, s_.parts[k].value));
      }
      list.push_back(over_block(s_.parts[i].axes, seq(stores)));
    }
    return comment("the same for every " + s_.over.var->name, seq(list));
  }

  // A few channels at a time, so that what a point needs is read, and tested, once for these; then the others.
  Stmt channels() const {
    const int64_t n = s_.over.extent.value, groups = n / together_, rest = n % together_;
    if (together_ == 1) return loop(s_.over.var, n, over_block(s_.block, results(Expr(s_.over.var), 1)));
    const Var o = make_var(s_.over.var->name + "_o");
    const Stmt whole = loop(o, groups, over_block(s_.block, results(Expr(o) * Expr(together_), together_)));
    return seq({whole, rest > 0 ? over_block(s_.block, results(Expr(groups * together_), rest)) : Stmt()});
  }

  // Of `count` channels from `first` on.
  Stmt results(const Expr& first, int64_t count) const {
    const Canonical& c = s_.c;
    auto each = [&](const std::function<Stmt(const Expr& i)>& body) {
      const Var i = make_var("i");
      const Stmt s = count == 1 ? body(0) : loop(i, count, body(Expr(i)), ForKind::Unroll);
      return substitute(s, {{s_.over.var.get(), count == 1 ? first : first + Expr(i)}});
    };
    if (!c.value) {
      const auto stores = [&](const Expr& value) {
        return each([&](const Expr&) { return store(c.out, {c.out_index}, value); });
      };
      const Exprs tests = shared_tests(c.epilogue);
      if (tests.size() < 2) return stores(c.epilogue);
      Expr all = tests[0];
      for (size_t i = 1; i < tests.size(); i++) all = apply(Op::And, {all, tests[i]});
      return if_then(all, comment("most points: nothing is tested sample by sample", stores(passed(c.epilogue, tests))),
                     stores(c.epilogue));
    }
    const Buffer acc = make_buffer("acc", c.value->dtype, count == 1 ? Shape() : Shape{Dim(count)}, Scope::Register);
    auto element = [&](const Expr& i) { return count == 1 ? Exprs() : Exprs{i}; };
    const Stmt start = each([&](const Expr& i) { return store(acc, element(i), c.init); });
    const Stmt join =
        over_block(c.raxes, each([&](const Expr& i) { return store(acc, element(i), c.value, c.combine); }));
    const Stmt finish = each([&](const Expr& i) {
      return store(c.out, {c.out_index}, with_reduced(c.epilogue, c.reduced, load(acc, element(i))));
    });
    return alloc(acc, seq({start, join, finish}));
  }

  // What all channels ask in front of what they read: elements of the arrays.
  Exprs shared_tests(const Expr& value) const {
    Exprs tests;
    walk(value, [&](const Expr& e) {
      const Select* s = as<Select>(e);
      const Load* l = s ? as<Load>(s->condition) : nullptr;
      const auto is_array = [&](const SharedPart& p) { return l && p.array == l->buffer; };
      const auto is_known = [&](const Expr& t) { return structurally_equal(t, s->condition); };
      if (std::any_of(s_.parts.begin(), s_.parts.end(), is_array) && std::none_of(tests.begin(), tests.end(), is_known))
        tests.push_back(s->condition);
      return true;
    });
    return tests;
  }

  // The value where all of them are true.
  static Expr passed(const Expr& value, const Exprs& tests) {
    return rewrite(value, [&](const Expr& e) -> Expr {
      const Select* s = as<Select>(e);
      const auto holds = [&](const Expr& t) { return structurally_equal(t, s->condition); };
      return s && std::any_of(tests.begin(), tests.end(), holds) ? s->yes : Expr();
    });
  }

  const Shared& s_;
  const int64_t together_;  // channels
};

}  // namespace

// Positions in tensors without an upper bound are known to lie inside by what they are computed from, which arrays do not keep.
bool hides_positions(const Shared& s) {
  const auto open = [](const Axis& a) { return is_open(a.extent.value); };
  return std::any_of(s.c.axes.begin(), s.c.axes.end(), open) &&
         std::any_of(s.parts.begin(), s.parts.end(), [](const SharedPart& p) { return !is_float(p.value->dtype); });
}

std::optional<Scheduled> schedule_shared_values(const TemplateArgs& a) {
  const auto s = match(a);
  if (!s || hides_positions(*s)) return {};
  Scheduled r;
  const int64_t work = num_elements(static_dims(a.fn.outputs[0]->shape)) * points(s->c.raxes);
  const bool parallel = a.plan.flag("parallel", work >= kParallelThreshold, bool(s->cut) || !s->around.empty(),
                                    "nothing is around the blocks");
  const int64_t together = a.plan.number(
      "together", [&] { return has_conditions(*s) ? kTogether : 1; },
      KnobValues::powers_of_two(1, std::min(s->over.extent.value, kMostTogether)));
  r.body = seq({fill_border(s->c), Builder(*s, together).build(parallel)});
  bind_operands(r, s->c);
  r.family = "shared_values";
  r.description = "what all " + s->over.var->name + " share is computed once, for " + to_text(points(s->block)) +
                  " points at a time";
  return r;
}

}  // namespace tc
