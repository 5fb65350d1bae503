// Extremes and where they are, across rows: ArgMax over channels that come first.
//
//   for blocks of columns that lie side by side:      shared among threads
//     best[v], index[v] = (x[0, v], 0)                vectors; indices are counted in 32 bits
//     for r from 1:  (best, index)[v] = combine((best, index)[v], (x[r, v], r))
//     y[column] = what follows from best and index    one after the other, in their own type
//
// The last block ends where the columns end, and so overlaps the one before.
//
// Where what is compared lies side by side, and is short (classes that come last), a block of it is turned first:
//
//     turned[r, i] = x[column i, r]                   element by element, on the stack
//
// or, of rows that are longer than a vector, for tiles of VL by VL, in registers.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/cpu/tuple_lanes.h"
#include "templates/rows.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kMostTurned = 1024;  // elements, on the stack
constexpr int64_t kShort = 512;        // rows of more are compared in vectors along them (arg_rows.cc)

struct ArgReduce {
  Rows r;
  Axis n;                   // columns, side by side
  std::vector<Axis> outer;  // the other ones
  TupleLanes lanes;         // over n
  bool from_first = false;  // the state starts as the first element
  std::vector<RowStep> results;
  // Of a block that is turned: where its elements are read from, and the numbers of the block, which `lanes` reads `turned` by.
  Expr from;
  Buffer turned;
  Var first = make_var("first"), size = make_var("size");
  const Axis& along() const { return r.columns[0]; }
  // Rows that are long enough for tiles are turned in registers, others on the stack.
  bool in_registers() const {
    return from.get() != nullptr && from_first && turned->dtype == DType::F32 && along().extent.value >= kMaxLanes;
  }
};

struct ArgReducePlan {
  int64_t columns = kMaxLanes;  // of a block
  bool parallel = false;        // on threads: the outermost axis, or parts of the blocks
  int64_t parts = 1;            // of two blocks and more, since the last ones may overlap; 1: the outermost axis
};

ArgReducePlan decide(const ArgReduce& p, const PlanEntry& plan) {
  constexpr int64_t kMostVectors = 8, kMostParts = 16;
  ArgReducePlan d;
  int64_t vectors = std::min(p.n.extent.value / kMaxLanes, kMostVectors);
  if (p.in_registers())
    vectors = 1;
  else if (p.from)
    vectors = std::min(vectors, kMostTurned / (p.along().extent.value * kMaxLanes));
  d.columns = plan.in_range(
      "columns", [&] { return std::min<int64_t>(vectors, 4) * kMaxLanes; }, kMaxLanes, vectors * kMaxLanes, kMaxLanes);
  const int64_t most = ceil_div(p.n.extent.value, d.columns) / 2;
  const int64_t outer = p.outer.empty() ? 1 : p.outer[0].extent.value;
  const bool pays = points(p.r.c.axes) * p.along().extent.value >= kParallelThreshold;
  d.parallel =
      plan.flag("parallel", pays && (outer >= 4 || most >= 2), outer > 1 || most >= 2, "there is nothing to share");
  if (!d.parallel)
    d.parts = plan.number(
        "parts", [] { return 1; }, KnobValues::only(1, "it is not on threads"));
  else
    d.parts = plan.in_range(
        "parts", [&] { return outer >= 4 || most < 2 ? 1 : std::min(kMostParts, most); }, outer > 1 ? 1 : 2,
        std::max<int64_t>(1, most));
  return d;
}

// Columns: the axis that lies side by side in all results.
bool find_columns(ArgReduce& p) {
  for (const Axis& a : p.r.c.axes) {
    const bool unit = std::all_of(p.results.begin(), p.results.end(), [&](const RowStep& s) {
      const auto f = affine_in(s.out_index, {a.var});
      return f && f->coefficients[0] == 1;
    });
    if (unit)
      p.n = a;
    else
      p.outer.push_back(a);
  }
  return p.n.var && p.n.extent.value >= kMaxLanes;
}

// What the reduction reads along its rows, as if it were turned, block by block; null where that is not one load.
std::optional<RowStep> turned(ArgReduce& p, RowStep reduce) {
  if (p.along().extent.value >= kShort) return {};
  std::vector<const Load*> crossed;
  for (const RowComponent& c : reduce.tuple)
    for (const Load* l : loads_of(c.value))
      if (uses_var(l->index[0], p.n.var)) crossed.push_back(l);
  if (crossed.size() != 1 || crossed[0]->index.size() != 1) return {};
  const Load* l = crossed[0];
  const auto at = affine_in(l->index[0], {p.n.var, p.along().var});
  if (!at || at->coefficients[1] != 1) return {};
  p.from = load(l->buffer, l->index);
  p.turned = make_buffer(l->buffer->name + "_turned", l->buffer->dtype, {Dim(kMostTurned)}, Scope::Stack);
  if (!p.in_registers() && p.along().extent.value * kMaxLanes > kMostTurned / 2) return {};
  const Expr read = load(p.turned, {Expr(p.along().var) * Expr(p.size) + (Expr(p.n.var) - Expr(p.first))});
  for (RowComponent& c : reduce.tuple)
    c.value = rewrite(c.value, [&](const Expr& e) -> Expr {
      const Load* x = as<Load>(e);
      return x && x->buffer == l->buffer && structurally_equal(x->index[0], l->index[0]) ? read : Expr();
    });
  return reduce;
}

std::optional<ArgReduce> match(const TemplateArgs& a) {
  auto r = match_rows(a.fn, KeptRows::Nowhere, RowForm::Any);
  if (!r || !is_tuple_reduction(*r)) return {};
  const RowStep reduce = r->steps[0];
  ArgReduce p;
  p.r = std::move(*r);
  p.results.assign(p.r.steps.begin() + 1, p.r.steps.end());
  if (!find_columns(p)) return {};
  p.from_first = starts_from_nothing(reduce);
  auto lanes = tuple_in_lanes(reduce, p.along().var, p.along().var, p.n.var, p.from_first);
  const auto other = lanes ? std::nullopt : turned(p, reduce);
  if (other) lanes = tuple_in_lanes(*other, p.along().var, p.along().var, p.n.var, p.from_first);
  if (!lanes) return {};
  p.lanes = std::move(*lanes);
  return p;
}

class Builder {
 public:
  Builder(const ArgReduce& p, const ArgReducePlan& plan)
      : p_(p), plan_(plan), size_(plan.columns), blocks_(ceil_div(p.n.extent.value, size_)) {
    for (const Axis& a : p.outer) at_.push_back({a.var, Expr(a.var)});
    for (const Buffer& b : p.lanes.state) acc_.push_back(make_buffer(b->name, b->dtype, {Dim(size_)}, Scope::Register));
  }

  Stmt build() {
    const int64_t parts = plan_.parts;
    const bool outermost = plan_.parallel && parts == 1;
    auto over_outer = [&](Stmt body) {
      for (size_t i = p_.outer.size(); i-- > 0;)
        body =
            loop(p_.outer[i].var, p_.outer[i].extent, body, outermost && i == 0 ? ForKind::Parallel : ForKind::Serial);
      return body;
    };
    if (parts < 2) return over_outer(over_blocks(0, blocks_));
    const Var part = make_var("part");
    auto first = [&](const Expr& i) {
      return blocks_ % parts == 0 ? i * Expr(blocks_ / parts) : i * Expr(blocks_) / Expr(parts);
    };
    const Expr count = blocks_ % parts == 0 ? Expr(blocks_ / parts) : first(Expr(part) + Expr(1)) - first(part);
    return loop(part, parts, over_outer(over_blocks(first(part), count)), ForKind::Parallel);
  }

 private:
  Stmt over_blocks(const Expr& begin, const Expr& count) {
    const Var o = make_var(p_.n.var->name + "_o");
    if (blocks_ == 1) return block(0);
    if (p_.n.extent.value % size_ == 0) return loop(o, count, block(Expr(o) * Expr(size_)), ForKind::Serial, begin);
    const Var first = make_var(p_.n.var->name);
    const Expr last = min(Expr(o) * Expr(size_), Expr(p_.n.extent.value - size_));
    return loop(o, count, let(first, last, block(Expr(first))), ForKind::Serial, begin);
  }

  Stmt block(const Expr& begin) {
    const auto point_of = [&](const Var& v) { return LanePoint{at_, p_.n.var, begin + Expr(v) * lanes(), {}, {}}; };
    const Stmt start = over_vectors([&](const Var& v) {
      LanePoint first = point_of(v);
      first.at.push_back({p_.along().var, 0});
      return p_.from_first ? first_element(v, first) : store_lanes_of(v, [&](size_t k) { return p_.lanes.start[k]; });
    });
    const Stmt join = over_vectors([&](const Var& v) { return join_lanes(p_.lanes, acc_, v, point_of(v)); });
    const int64_t first = p_.from_first ? 1 : 0;
    const Stmt rest = p_.in_registers() ? over_tiles(begin)
                                        : loop(p_.along().var, Expr(p_.along().extent) - Expr(first), join,
                                               ForKind::Serial, Expr(first));
    Stmt body = seq({start, rest, results(begin)});
    for (const Buffer& b : acc_) body = alloc(b, body);
    return bool(p_.from) && !p_.in_registers() ? in_turned(begin, body) : body;
  }

  Stmt in_turned(const Expr& begin, const Stmt& body) {
    const Var i = make_var("i"), r = make_var(p_.along().var->name);
    Point at = at_;
    at.push_back({p_.n.var, begin + Expr(i)});
    at.push_back({p_.along().var, Expr(r)});
    const Buffer memory =
        make_buffer(p_.turned->name, p_.turned->dtype, {Dim(p_.along().extent.value * size_)}, Scope::Stack);
    const Stmt copy =
        loop(i, size_,
             loop(r, p_.along().extent, store(memory, {Expr(r) * Expr(size_) + Expr(i)}, scalar_form(p_.from, at))));
    const Stmt read = substitute(body, {{p_.first.get(), begin}, {p_.size.get(), Expr(size_)}});
    return alloc(memory, seq({copy, substitute_buffers(read, {{p_.turned.get(), memory}})}));
  }

  Stmt store_lanes_of(const Var& v, const std::function<Expr(size_t k)>& value) const {
    Stmts list;
    for (size_t k = 0; k < acc_.size(); k++) list.push_back(store(acc_[k], lanes_of(v), broadcast(value(k))));
    return seq(list);
  }

  // The state of vector v becomes the first element of its rows.
  Stmt first_element(const Var& v, const LanePoint& p) const {
    if (!p_.in_registers()) return store_lanes_of(v, [&](size_t k) { return vector_form(p_.lanes.value[k], p); });
    const Load& from = *as<Load>(p_.from);
    Point at = p.at;
    at.push_back({p_.n.var, p.base});
    const Buffer taken = make_buffer(from.buffer->name + "_first", DType::F32, {Dim(kMaxLanes)}, Scope::Register);
    const Stmt start = store_lanes_of(
        v, [&](size_t k) { return in_place_of_turned(vector_form(p_.lanes.value[k], p), load(taken, {ramp(0)})); });
    return alloc(taken, seq({intrin("load_strided", {{taken, {}}, {from.buffer, {0}}},
                                    {index_at(from.index[0], at), Expr(row_stride())}),
                             start}));
  }

  int64_t row_stride() const { return affine_in(as<Load>(p_.from)->index[0], {p_.n.var})->coefficients[0]; }

  // Of an expression or a statement.
  template <typename Node>
  Node in_place_of_turned(const Node& node, const Expr& elements) const {
    return rewrite(node, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      return l && l->buffer == p_.turned ? elements : Expr();
    });
  }

  // Joins all elements of a block's rows to the state, tile by tile; the last one has elements that were joined before, and leaves them out.
  Stmt over_tiles(const Expr& begin) const {
    const Expr n = p_.along().extent;
    const Var o = make_var(p_.along().var->name + "_o"), i = make_var("i");
    const auto joined = [&](const Expr& first, const Expr& skipped) {
      return over_vectors([&](const Var& v) { return over_tile(begin + Expr(v) * lanes(), v, i, first, skipped); });
    };
    Stmt whole = loop(o, n / lanes(), joined(Expr(o) * lanes(), 0));
    if (p_.along().extent.value % kMaxLanes == 0) return whole;
    return seq({whole, joined(n - lanes(), lanes() - (n - n / lanes() * lanes()))});
  }

  // The elements of as many rows as a vector has lanes, `skipped` of them behind `first` and those that follow.
  Stmt over_tile(const Expr& column, const Var& v, const Var& i, const Expr& first, const Expr& skipped) const {
    const Load& from = *as<Load>(p_.from);
    const Buffer tile =
        make_buffer(from.buffer->name + "_tile", DType::F32, {Dim(kMaxLanes), Dim(kMaxLanes)}, Scope::Register);
    Point at = at_;
    at.push_back({p_.n.var, column});
    at.push_back({p_.along().var, first});
    LanePoint point{at_, p_.n.var, column, {}, {}};
    const Var row = make_var(p_.along().var->name);
    point.at.push_back({p_.along().var, Expr(row)});
    const Stmt join = in_place_of_turned(join_lanes(p_.lanes, acc_, v, point), load(tile, {Expr(i), ramp(0)}));
    const Stmt read =
        intrin("load_transposed", {{tile, {0}}, {from.buffer, {index_at(from.index[0], at)}}}, {Expr(row_stride())});
    return alloc(tile,
                 seq({read, loop(i, lanes() - skipped, let(row, first + Expr(i), join), ForKind::Unroll, skipped)}));
  }

  Stmt over_vectors(const std::function<Stmt(const Var& v)>& body) const {
    const Var v = make_var("v");
    return loop(v, Expr(size_) / lanes(), body(v), ForKind::Unroll);
  }

  // The vectors that results are made of go through memory, since results may have any type.
  Stmt results(const Expr& begin) const {
    const Var i = make_var("i");
    Point p = at_;
    p.push_back({p_.n.var, begin + Expr(i)});
    VarMap to;
    std::vector<Buffer> arrays;
    Stmts list;
    const std::vector<RowComponent>& tuple = p_.r.steps[0].tuple;
    for (size_t k = 0; k < tuple.size(); k++) {
      const bool read = std::any_of(p_.results.begin(), p_.results.end(),
                                    [&](const RowStep& s) { return uses_var(s.value, tuple[k].name); });
      if (!read) continue;
      const Buffer array = make_buffer(p_.lanes.state[k]->name + "s", acc_[k]->dtype, {Dim(size_)}, Scope::Stack);
      arrays.push_back(array);
      list.push_back(over_vectors([&](const Var& v) { return store(array, lanes_of(v), load(acc_[k], lanes_of(v))); }));
      to[tuple[k].name.get()] = cast(tuple[k].name->dtype, load(array, {Expr(i)}));
    }
    Stmts stores;
    for (const RowStep& s : p_.results)
      stores.push_back(store(s.out, {index_at(s.out_index, p)}, scalar_form(substitute(s.value, to), p)));
    list.push_back(loop(i, size_, seq(stores)));
    Stmt body = seq(list);
    for (const Buffer& b : arrays) body = alloc(b, body);
    return body;
  }

  const ArgReduce& p_;
  const ArgReducePlan plan_;
  const int64_t size_, blocks_;  // columns of a block
  Point at_;
  std::vector<Buffer> acc_;
};

}  // namespace

std::optional<Scheduled> schedule_arg_reduce(const TemplateArgs& a) {
  const auto p = match(a);
  if (!p) return {};
  Scheduled s;
  const ArgReducePlan plan = decide(*p, a.plan);
  s.body = Builder(*p, plan).build();
  bind_rows(s, p->r, a.fn);
  s.family = "places";
  s.description = to_text(plan.columns) +
                  (p->from ? " rows at a time, turned into columns, in vectors" : " columns at a time, in vectors");
  return s;
}

}  // namespace tc
