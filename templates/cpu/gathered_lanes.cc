// Costly functions of elements that do not lie side by side: behind steps, borders that mirror, positions that are tensors.
//
//   for rows, vectors of VL along the innermost axis:
//     t[i] = x[anywhere]                  one element after the other
//     y[.. + lane] = f(t[lane])           in vectors
//
// What no vector can read comes from a small array; a function of the C library takes longer for one element than the way through
// memory. Under a condition that lanes do not share, elements are read only where it holds.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/vector_form.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

constexpr size_t kMostArrays = 4;

struct Gathered {
  Buffer array;  // of VL elements
  Expr element;  // over the axes
};

struct GatheredLanes {
  Canonical c;
  Axis lane;
  std::vector<Gathered> arrays;
  Expr value;  // the epilogue, reading the arrays at [lane]
};

// Is a function of floats in it that costs? Quotients of positions do not count.
bool costs(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const bool of_floats = as<Apply>(x) && x->dtype == DType::F32;
    found = found || (of_floats && is_costly(x));
    return !found && !as<Load>(x);
  });
  return found;
}

// Takes what vectors cannot read out of a formula.
class Gather {
 public:
  explicit Gather(GatheredLanes& g) : g_(g) {}

  // Null: something costly has no vector form.
  Expr in_lanes(const Expr& e) { return part(e, {}); }

 private:
  // `where`: under which condition `e` is asked for; null: always.
  Expr part(const Expr& e, const Expr& where) {
    if (!where && has_vector_form(e, g_.lane.var)) return e;
    if (!reads(e) && has_vector_form(e, g_.lane.var)) return e;
    if (!costs(e) && !is_arithmetic(e)) return element(e, where);
    if (const Select* k = as<Select>(e)) return choice(*k, where);
    if (const Cast* k = as<Cast>(e)) {
      const Expr value = part(k->value, where);
      return bool(value) && cast_has_lanes(value, e->dtype) ? cast(e->dtype, value, k->saturate) : Expr();
    }
    const Apply* k = as<Apply>(e);
    const bool decides = k && (k->op == Op::And || k->op == Op::Or);  // whether its second operand is asked for
    if (!k || decides || !op_has_lanes(k->op, k->args[0]->dtype)) return {};
    Exprs args;
    for (const Expr& x : k->args) {
      args.push_back(part(x, where));
      if (!args.back()) return {};
    }
    return apply(k->op, std::move(args));
  }

  Expr choice(const Select& k, const Expr& where) {
    if (costs(k.condition)) return {};
    const bool shared = !uses_var(k.condition, g_.lane.var);  // by all lanes: a branch
    const Expr condition = shared ? k.condition : part(k.condition, where);
    if (!condition) return {};
    const Expr holds = where ? where && k.condition : k.condition;
    const Expr fails = where ? where && logical_not(k.condition) : logical_not(k.condition);
    const Expr yes = part(k.yes, holds), no = yes ? part(k.no, fails) : Expr();
    return no ? select(condition, yes, no) : Expr();
  }

  Expr element(const Expr& e, const Expr& where) {
    const bool truth = e->dtype == DType::Bool;
    const DType type = truth ? DType::I32 : e->dtype;
    if (type != DType::F32 && type != DType::I32) return {};
    Expr one = truth ? select(e, make_int(type, 1), make_int(type, 0)) : e;
    if (where) one = select(where, one, zero(type));
    const Expr read = load(array_of(one), {Expr(g_.lane.var)});
    return truth ? apply(Op::Ne, {read, make_int(type, 0)}) : read;
  }

  const Buffer& array_of(const Expr& one) {
    for (const Gathered& known : g_.arrays)
      if (structurally_equal(known.element, one)) return known.array;
    const std::string name = g_.arrays.empty() ? "gathered" : "gathered" + to_text(int64_t(g_.arrays.size()));
    g_.arrays.push_back({make_buffer(name, one->dtype, {Dim(kMaxLanes)}, Scope::Stack), one});
    return g_.arrays.back().array;
  }

  // Vectors do that as well, and of one element that stands in it several times there is one array.
  static bool is_arithmetic(const Expr& e) {
    const Apply* k = as<Apply>(e);
    return k && op_has_lanes(k->op, DType::F32) &&
           std::all_of(k->args.begin(), k->args.end(), [](const Expr& x) { return x->dtype == DType::F32; });
  }

  static bool reads(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      found = found || as<Load>(x);
      return !found;
    });
    return found;
  }

  GatheredLanes& g_;
};

std::optional<GatheredLanes> match(const TemplateArgs& a) {
  if (!a.canonical || bool(a.canonical->value) || a.canonical->axes.empty()) return {};
  GatheredLanes g;
  g.c = *a.canonical;
  if (!costs(g.c.epilogue)) return {};
  merge_axes(g.c.axes, {&g.c.epilogue}, {&g.c.out_index});
  g.lane = g.c.axes.back();
  const auto out = affine_in(g.c.out_index, {g.lane.var});
  if (!out || out->coefficients[0] != 1 || g.lane.extent.value < fewest_lanes(g.c.epilogue)) return {};
  if (has_stored_form(g.c.epilogue, g.c.out->dtype, g.lane.var)) return {};
  // What is rounded by the store stays behind what is gathered.
  const Cast* rounded = as<Cast>(g.c.epilogue);
  const Expr f = rounded ? rounded->value : g.c.epilogue;
  if (!costs(f)) return {};
  const Expr lanes = Gather(g).in_lanes(f);
  if (!lanes || g.arrays.empty() || g.arrays.size() > kMostArrays) return {};
  g.value = rounded ? cast(g.c.epilogue->dtype, lanes, rounded->saturate) : lanes;
  if (!has_stored_form(g.value, g.c.out->dtype, g.lane.var)) return {};
  return g;
}

class Builder {
 public:
  explicit Builder(const GatheredLanes& g) : g_(g) {
    for (size_t i = 0; i + 1 < g.c.axes.size(); i++) at_.push_back({g.c.axes[i].var, Expr(g.c.axes[i].var)});
  }

  Stmt build(bool parallel) const {
    Stmt body = over_lanes(g_.lane.var->name + "_o", g_.lane.extent.value,
                           [&](const Expr& base, const Expr& count) { return vector_at(base, count); });
    for (const Gathered& t : g_.arrays) body = alloc(t.array, body);
    for (size_t i = at_.size(); i-- > 0;)
      body =
          loop(g_.c.axes[i].var, g_.c.axes[i].extent, body, parallel && i == 0 ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

 private:
  Stmt vector_at(const Expr& base, const Expr& count) const {
    const Var i = make_var("i");
    auto point = at_;
    point.push_back({g_.lane.var, base + Expr(i)});
    Stmts fill;
    for (const Gathered& t : g_.arrays) fill.push_back(store(t.array, {Expr(i)}, scalar_form(t.element, point)));
    const LanePoint at{at_, g_.lane.var, base, count, {}};
    const Stmt put = store_lanes(g_.c.out, g_.c.out_index, g_.value, at);
    return seq({loop(i, count ? count : lanes(), seq(fill)), from_the_first(put)});
  }

  // Arrays begin with the vector.
  Stmt from_the_first(const Stmt& s) const {
    return rewrite(s, [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      const bool gathered =
          l && std::any_of(g_.arrays.begin(), g_.arrays.end(), [&](const Gathered& t) { return t.array == l->buffer; });
      return gathered ? load(l->buffer, {ramp(0)}) : Expr();
    });
  }

  const GatheredLanes& g_;
  std::vector<std::pair<Var, Expr>> at_;
};

}  // namespace

std::optional<Scheduled> schedule_gathered_lanes(const TemplateArgs& a) {
  const auto m = match(a);
  if (!m) return {};
  Scheduled s;
  const bool parallel = a.plan.flag("parallel", points(m->c.axes) >= kParallelThreshold, m->c.axes.size() > 1,
                                    "there are no rows around the vectors");
  s.body = seq({fill_border(m->c), Builder(*m).build(parallel)});
  bind_operands(s, m->c);
  s.family = "gathered";
  s.description = "vectors along " + m->lane.var->name + ", of elements gathered one by one";
  return s;
}

}  // namespace tc
