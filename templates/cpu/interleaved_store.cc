// Results that lie between those of other vectors: nearest resizing, depth to space, rows of pairs, pictures of bytes whose
// colours come to lie side by side.
//
//   y[.., p * s + i] = f(x[.., p], i)        i = 0 .. s - 1; s is 2, 3 or 4
//
//   for rows, vectors along p:
//     t[i] = f(x[.., p .. p + VL - 1], i)    one for each i
//     tc_store_riffled_s(y + p * s, t)       s vectors that lie in one piece
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

struct InterleavedStore {
  Canonical c;
  std::vector<Axis> rows;
  Axis p, i;
};

std::optional<InterleavedStore> match(const TemplateArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  InterleavedStore s;
  s.c = *a.canonical;
  const DType type = s.c.out->dtype;
  if (type != DType::F32 && type != DType::U8 && type != DType::I8) return {};
  if (type != DType::F32) s.c.epilogue = cast(DType::I32, s.c.epilogue);  // lanes of bytes are those of integers
  merge_axes(s.c.axes, {&s.c.epilogue}, {&s.c.out_index});
  if (s.c.axes.size() < 2) return {};
  s.i = s.c.axes.back();
  const int64_t n = s.i.extent.value;
  if (n < 2 || n > 4) return {};
  for (const Axis& x : s.c.axes) {
    const auto f = affine_in(s.c.out_index, {x.var});
    if (!f) return {};
    if (x.var == s.i.var && f->coefficients[0] != 1) return {};
    if (f->coefficients[0] == n && !s.p.var)
      s.p = x;
    else if (x.var != s.i.var)
      s.rows.push_back(x);
  }
  if (!s.p.var || s.p.extent.value < kMaxLanes || !has_vector_form(s.c.epilogue, s.p.var)) return {};
  return s;
}

class Builder {
 public:
  explicit Builder(const InterleavedStore& s) : s_(s) {
    for (const Axis& a : s.rows) at_.push_back({a.var, Expr(a.var)});
  }

  // The last vectors end where the row ends, and so overlap those before.
  Stmt build(bool parallel) const {
    const int64_t n = s_.p.extent.value;
    const Var o = make_var(s_.p.var->name + "_o"), first = make_var(s_.p.var->name);
    Stmt body = n % kMaxLanes == 0
                    ? loop(o, Expr(n) / lanes(), vectors_at(Expr(o) * lanes()))
                    : loop(o, vectors(n), let(first, min(Expr(o) * lanes(), Expr(n) - lanes()), vectors_at(first)));
    const bool shared = parallel && !s_.rows.empty();
    for (size_t i = s_.rows.size(); i-- > 0;)
      body = loop(s_.rows[i].var, s_.rows[i].extent, body, shared && i == 0 ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

 private:
  Stmt vectors_at(const Expr& p) const {
    const int64_t n = s_.i.extent.value;
    const DType type = s_.c.epilogue->dtype;
    const Buffer t = make_buffer("t", type, {Dim(n), Dim(kMaxLanes)}, Scope::Register);
    const Var i = make_var(s_.i.var->name);
    auto point = [&](const Expr& at) {
      auto list = at_;
      list.push_back({s_.i.var, at});
      return list;
    };
    const LanePoint lanes_at{point(Expr(i)), s_.p.var, p, {}, {}};
    const Stmt fill =
        loop(i, n, store(t, {Expr(i), ramp(0)}, broadcast(vector_form(s_.c.epilogue, lanes_at))), ForKind::Unroll);
    auto to = point(0);
    to.push_back({s_.p.var, p});
    const Stmt put = intrin(type == DType::F32 ? "store_riffled" : "store_riffled_bytes",
                            {{s_.c.out, {index_at(s_.c.out_index, to)}}, {t, {0}}}, {Expr(n)});
    return alloc(t, seq({fill, put}));
  }

  const InterleavedStore& s_;
  std::vector<std::pair<Var, Expr>> at_;
};

}  // namespace

std::optional<Scheduled> schedule_interleaved_store(const TemplateArgs& a) {
  const auto m = match(a);
  if (!m) return {};
  Scheduled s;
  const bool parallel = a.plan.flag("parallel", points(m->c.axes) >= kParallelThreshold, !m->rows.empty(),
                                    "there are no rows around the vectors");
  s.body = seq({fill_border(m->c), Builder(*m).build(parallel)});
  bind_operands(s, m->c);
  s.family = "interleave";
  s.description = "vectors along " + m->p.var->name + ", riffled by " + to_text(m->i.extent.value);
  return s;
}

}  // namespace tc
