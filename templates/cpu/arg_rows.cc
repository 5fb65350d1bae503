// Extremes along rows, and where they are: ArgMax over the last axis, the largest element of each row.
//
//   for rows:                                         shared among threads
//     best[v], place[v] = (x[row, v], 0)              vectors: a lane sees every size-th element of the row
//     for o from 1:  (best, place)[v] = combine((best, place)[v], (x[row, o * size + v], o))
//     for v:  (value, index) = combine((value, index), (best[v], place[v] * size + v))     one after the other,
//     for what is left of the row:  likewise                                               in their own types
//     y[row] = what follows from value and index
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/template.h"
#include "templates/cpu/tuple_lanes.h"

namespace tc {
namespace {

constexpr int64_t kShortestRow = 2 * kMaxLanes;

struct ArgRows {
  Rows r;
  RowStep reduce;
  std::vector<RowStep> results;
  Var block;         // counts the elements of a lane
  TupleLanes lanes;  // over along()
  const Axis& along() const { return r.columns[0]; }
};

/// Is every component the position itself, which tuple_in_lanes() asks for, or a float?
bool compares_floats(const RowStep& reduce) {
  return std::all_of(reduce.tuple.begin(), reduce.tuple.end(),
                     [](const RowComponent& c) { return c.name->dtype == DType::I64 || is_float(c.value->dtype); });
}

/// Lanes see elements in another order, which shows where a combiner lets the first of two equal elements win without a look at
/// their positions.
bool compares_positions(const RowStep& reduce) {
  bool found = false;
  for (const Expr& e : reduce.combiner.result)
    walk(e, [&](const Expr& x) { return !(found = found || compares_positions(reduce.combiner, x)); });
  return found;
}

std::optional<ArgRows> match(const TemplateArgs& a) {
  auto r = match_rows(a.fn, KeptRows::Nowhere, RowForm::Any);
  if (!r || !is_tuple_reduction(*r) || r->columns[0].extent.value < kShortestRow) return {};
  ArgRows p{*r, r->steps[0], {r->steps.begin() + 1, r->steps.end()}, make_var(r->columns[0].var->name + "_o"), {}};
  if (!compares_floats(p.reduce) || !compares_positions(p.reduce)) return {};
  auto lanes = tuple_in_lanes(p.reduce, p.along().var, p.block, p.along().var, true);
  if (!lanes) return {};
  p.lanes = std::move(*lanes);
  return p;
}

struct ArgRowsPlan {
  int64_t size = kMaxLanes;  // lanes, of one vector or several
  bool parallel = false;     // the outermost axis
};

ArgRowsPlan decide(const ArgRows& p, const PlanEntry& plan) {
  constexpr int64_t kMostVectors = 4, kElementsOfALane = 8;
  const int64_t n = p.along().extent.value, rows = points(p.r.c.axes);
  ArgRowsPlan d;
  d.size = plan.in_range(
      "columns", [&] { return std::clamp<int64_t>(n / kElementsOfALane / kMaxLanes, 1, kMostVectors) * kMaxLanes; },
      kMaxLanes, kMostVectors * kMaxLanes, kMaxLanes);
  const int64_t outermost = p.r.c.axes.empty() ? 1 : p.r.c.axes[0].extent.value;
  d.parallel = plan.flag("parallel", outermost >= 4 && rows * n >= kParallelThreshold, outermost > 1,
                         "there is nothing to share");
  return d;
}

class Builder {
 public:
  Builder(const ArgRows& p, int64_t size) : p_(p), size_(size), blocks_(p.along().extent.value / size) {
    for (const Axis& a : p.r.c.axes) at_.push_back({a.var, Expr(a.var)});
    for (size_t k = 0; k < p.lanes.state.size(); k++) {
      const Buffer& b = p.lanes.state[k];
      acc_.push_back(make_buffer(b->name, b->dtype, {Dim(size_)}, Scope::Register));
      arrays_.push_back(make_buffer(b->name + "s", b->dtype, {Dim(size_)}, Scope::Stack));
      all_.push_back(make_buffer("acc" + to_text(int64_t(k)), p.reduce.tuple[k].name->dtype, {}, Scope::Register));
    }
  }

  Stmt row() const {
    const Var v = make_var("v"), l = make_var("l"), &o = p_.block;
    const auto over_vectors = [&](const Stmt& body) { return loop(v, Expr(size_) / lanes(), body, ForKind::Unroll); };
    Stmts first, kept, start;
    for (size_t k = 0; k < acc_.size(); k++) {
      first.push_back(store(acc_[k], lanes_of(v), broadcast(vector_form(p_.lanes.value[k], point(0, v)))));
      kept.push_back(store(arrays_[k], lanes_of(v), load(acc_[k], lanes_of(v))));
      start.push_back(store(all_[k], {}, p_.reduce.tuple[k].init));
    }
    Stmts list = {over_vectors(seq(first)),
                  loop(o, Expr(blocks_ - 1), over_vectors(join_lanes(p_.lanes, acc_, v, point(Expr(o), v))),
                       ForKind::Serial, Expr(1)),
                  over_vectors(seq(kept)), seq(start), loop(l, Expr(size_), join(of_lane(Expr(l))))};
    const int64_t done = blocks_ * size_, left = p_.along().extent.value - done;
    if (left > 0) list.push_back(loop(p_.along().var, Expr(left), join(of_element()), ForKind::Serial, Expr(done)));
    list.push_back(results());
    Stmt body = seq(list);
    for (const auto* buffers : {&acc_, &arrays_, &all_})
      for (const Buffer& b : *buffers) body = alloc(b, body);
    return body;
  }

 private:
  // Vector v of block o; positions are those of blocks.
  LanePoint point(const Expr& o, const Var& v) const {
    LanePoint at{at_, p_.along().var, o * Expr(size_) + Expr(v) * lanes(), {}, {}};
    at.at.push_back({p_.block, o});
    return at;
  }

  Exprs of_lane(const Expr& l) const {
    Exprs value;
    for (size_t k = 0; k < arrays_.size(); k++) {
      const DType t = all_[k]->dtype;
      const Expr e = cast(t, load(arrays_[k], {l}));
      value.push_back(t == DType::I64 ? e * Expr(size_) + l : e);
    }
    return value;
  }
  Exprs of_element() const {
    Exprs value;
    for (const RowComponent& c : p_.reduce.tuple) value.push_back(scalar_form(c.value, at_));
    return value;
  }

  // All values are computed before one of them is stored.
  Stmt join(const Exprs& value) const {
    const Combiner& c = p_.reduce.combiner;
    VarMap to;
    Stmts stores;
    std::vector<std::pair<Var, Expr>> names;
    for (size_t k = 0; k < all_.size(); k++) {
      const auto name = [&](const char* prefix, const Expr& e) {
        names.push_back({make_var(prefix + to_text(int64_t(k)), all_[k]->dtype), e});
        return Expr(names.back().first);
      };
      to[c.lhs[k].get()] = name("a", load(all_[k], {}));
      to[c.rhs[k].get()] = name("b", value[k]);
    }
    for (size_t k = 0; k < all_.size(); k++) {
      names.push_back({make_var("next" + to_text(int64_t(k)), all_[k]->dtype), substitute(c.result[k], to)});
      stores.push_back(store(all_[k], {}, Expr(names.back().first)));
    }
    Stmt body = seq(stores);
    for (size_t k = names.size(); k-- > 0;) body = let(names[k].first, names[k].second, body);
    return body;
  }

  Stmt results() const {
    VarMap to;
    for (size_t k = 0; k < all_.size(); k++) to[p_.reduce.tuple[k].name.get()] = load(all_[k], {});
    Stmts stores;
    for (const RowStep& s : p_.results)
      stores.push_back(store(s.out, {index_at(s.out_index, at_)}, substitute(scalar_form(s.value, at_), to)));
    return seq(stores);
  }

  const ArgRows& p_;
  const int64_t size_, blocks_;  // lanes; how many elements each has
  std::vector<std::pair<Var, Expr>> at_;
  std::vector<Buffer> acc_, arrays_, all_;  // in vectors, in memory, joined
};

}  // namespace

std::optional<Scheduled> schedule_arg_rows(const TemplateArgs& a) {
  const auto p = match(a);
  if (!p) return {};
  Scheduled s;
  const ArgRowsPlan plan = decide(*p, a.plan);
  s.body = Builder(*p, plan.size).row();
  const std::vector<Axis>& rows = p->r.c.axes;
  for (size_t i = rows.size(); i-- > 0;)
    s.body = loop(rows[i].var, rows[i].extent, s.body, plan.parallel && i == 0 ? ForKind::Parallel : ForKind::Serial);
  bind_rows(s, p->r, a.fn);
  s.family = "places";
  s.description = to_text(plan.size) + " elements of a row at a time, in vectors; then these, one after the other";
  return s;
}

}  // namespace tc
