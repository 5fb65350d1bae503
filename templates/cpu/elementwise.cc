// No reduction: every point of the result on its own.
//
// Neighbouring axes which all operands walk as one are merged, so that most functions are one flat loop; the innermost
// axis runs over vectors, the outermost is shared among threads in chunks of a fixed number of elements. A
// transposition goes tile by tile: what is read lies side by side along one axis, what is written along another.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/lane_conditions.h"
#include "passes/schedule/primitives.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

constexpr int64_t kChunk = 8192;  // elements: 32 KiB, a first-level cache

bool vectorizable(const Canonical& c) {
  if (c.axes.empty() || c.axes.back().extent.value < fewest_lanes(c.epilogue)) return false;
  const Var lane = c.axes.back().var;
  const auto f = affine_in(c.out_index, {lane});
  if (!f || f->coefficients[0] != 1) return false;
  auto stored = [&](const Expr& e) { return has_stored_form(e, c.out->dtype, lane); };
  const std::optional<Stairs> stairs = stairs_of(c.epilogue, lane);
  return stairs ? stored(stairs->before) && stored(stairs->behind) : stored(c.epilogue);
}

// Does it combine truths in memory by logic alone? Compilers make vectors of bytes of loops of such steps, as many lanes as a register
// has bytes; masks of our own vectors have a lane for every float.
bool is_logic(const Expr& e) {
  const Apply* a = as<Apply>(e);
  const auto is_truth = [](const Expr& x) { return x->dtype == DType::Bool && (as<Load>(x) || is_logic(x)); };
  return a && (a->op == Op::And || a->op == Op::Or || a->op == Op::Not || a->op == Op::Eq || a->op == Op::Ne) &&
         std::all_of(a->args.begin(), a->args.end(), is_truth);
}

// Is it one of two elements in memory, as a truth in memory says, whose types have no vectors of our own? Both are there, whatever it says.
bool is_choice(const Canonical& c) {
  const Select* k = as<Select>(c.epilogue);
  if (!k || c.out->dtype == DType::String || !(is_logic(k->condition) || as<Load>(k->condition))) return false;
  Ranges ranges;
  for (const Axis& a : c.axes) ranges[a.var.get()] = {0, a.extent.value - 1};
  const Exprs both = {k->yes, k->no};
  return std::all_of(both.begin(), both.end(), [&](const Expr& e) {
    const Load* l = as<Load>(e);
    if (!l) return false;
    for (size_t d = 0; d < l->index.size(); d++) {
      const Range r = interval(l->index[d], ranges);
      if (!reads_nothing(l->index[d]) || r.min < 0 || r.max >= l->buffer->shape[d].value) return false;
    }
    return true;
  });
}

// The steps of a value for which is_logic() or is_choice(): what is asked for whatever another truth is needs no branch.
class ValueInSteps {
 public:
  Stmt store(const Buffer& out, const Expr& at, const Expr& value) {
    name_of(value);
    Stmt s = tc::store(out, {at}, steps_.back().second);
    for (size_t i = steps_.size() - 1; i-- > 0;) s = let(steps_[i].first, steps_[i].second, s);
    return s;
  }

 private:
  Expr name_of(const Expr& e) {
    if (const Load* l = as<Load>(e)) return named(e, l->buffer->name + "_v");
    if (const Select* k = as<Select>(e)) {
      const Expr condition = name_of(k->condition), yes = name_of(k->yes);
      return named(select(condition, yes, name_of(k->no)), "chosen");
    }
    Exprs args;
    for (const Expr& x : as<Apply>(e)->args) args.push_back(name_of(x));
    return named(apply(as<Apply>(e)->op, args), "test");
  }
  Expr named(const Expr& e, const std::string& name) {
    for (const auto& [v, known] : steps_)
      if (structurally_equal(known, e)) return v;
    steps_.push_back({make_var(name, e->dtype), e});
    return steps_.back().first;
  }

  std::vector<std::pair<Var, Expr>> steps_;
};

// A chunk that divides n, where there is one not much smaller.
int64_t chunk_of(int64_t n) {
  for (int64_t size = kChunk; size >= kChunk / 4; size -= kMaxLanes)
    if (n % size == 0) return size;
  return kChunk;
}

// One flat axis: whole chunks in parallel, then the rest. The loops that are left for vectors.
std::vector<Var> share_flat(Schedule& s, Var v, int64_t n) {
  if (n < 2 * kChunk) return {v};
  const int64_t size = chunk_of(n);
  std::vector<Var> inner_loops;
  if (n % size != 0) {
    const std::vector<Var> parts = s.partition(v, {n / size * size});
    v = parts[0];
    inner_loops = {parts[1]};
  }
  const auto [part, inner] = s.split(v, size);
  s.parallel(s.rename(part, "part"));
  inner_loops.push_back(inner);
  return inner_loops;
}

constexpr int64_t kTileRead = 8, kTileWritten = 16;  // rows that fall into one set of a cache are eight at most; a line

// The axis along which an operand lies side by side that the innermost axis walks with a stride; null if there is none.
Var crossing_axis(const Canonical& c) {
  if (c.axes.size() < 2 || c.axes.back().extent.value < kTileWritten) return nullptr;
  for (const Load* l : loads_of(c.epilogue)) {
    for (size_t i = 0; l->index.size() == 1 && i + 1 < c.axes.size(); i++) {
      const auto f = affine_in(l->index[0], {c.axes[i].var, c.axes.back().var});
      const bool side_by_side = f && f->coefficients[0] == 1 && f->coefficients[1] > 1;
      if (side_by_side && c.axes[i].extent.value >= kTileRead) return c.axes[i].var;
    }
  }
  return nullptr;
}

// The loops of a transposition, tile by tile; what is read lies side by side along `read`.
void cross(Schedule& s, const Canonical& c, const Var& read) {
  const auto [read_o, read_i] = s.split(read, kTileRead, Tail::Min);
  const auto [last_o, last_i] = s.split(c.axes.back().var, kTileWritten, Tail::Min);
  std::vector<Var> order;
  for (size_t i = 0; i + 1 < c.axes.size(); i++)
    if (c.axes[i].var != read) order.push_back(c.axes[i].var);
  order.insert(order.end(), {read_o, last_o, last_i, read_i});
  s.reorder(order);
  if (points(c.axes) >= kParallelThreshold) s.parallel(order[0]);
}

void straight(Schedule& s, const Canonical& c, bool vector) {
  if (c.axes.empty()) return;
  std::vector<Var> inner_loops = {c.axes.back().var};
  if (c.axes.size() == 1)
    inner_loops = share_flat(s, c.axes[0].var, c.axes[0].extent.value);
  else if (points(c.axes) >= kParallelThreshold)
    s.parallel(c.axes[0].var);
  for (const Var& v : inner_loops)
    if (vector) s.vectorize(v);
}

// One element at a time, the axes in order; indices with larger strides first.
Stmt plain_loops(const Canonical& c, bool vector) {
  std::vector<std::pair<Var, Expr>> point;
  for (const Axis& a : c.axes) point.push_back({a.var, Expr(a.var)});
  const Expr at = index_at(c.out_index, point), value = scalar_form(c.epilogue, point);
  const bool in_steps = !vector && (is_logic(c.epilogue) || is_choice(c));
  Stmt nest = in_steps ? ValueInSteps().store(c.out, at, value) : store(c.out, {at}, value);
  for (size_t i = c.axes.size(); i-- > 0;) nest = loop(c.axes[i].var, c.axes[i].extent, nest);
  return nest;
}

// What the steps make of the loops, whoever has chosen them.
std::string description(const Schedule& s, const Canonical& c) {
  std::vector<int64_t> tile;
  bool vectors = false;
  for (const PlanLine& l : s.lines()) {
    vectors = vectors || l.name == "vectorize";
    if (l.name == "split") tile.push_back(std::get<int64_t>(l.args.at(1).value));
  }
  const std::string merged = c.axes.size() > 1 ? ", outer axes merged where memory allows" : "";
  if (s.only({"split", "reorder", "parallel"}) && tile.size() == 2)
    return "tiles of " + to_text(tile[0]) + " by " + to_text(tile[1]) + " elements" + merged;
  if (!s.only({"partition", "split", "rename", "parallel", "vectorize"}) || tile.size() > 1)
    return join(s.steps(), "; ");
  if (!vectors) return "one element at a time" + merged;
  return "vectors along " + std::string(c.axes.size() == 1 ? "the flat tensor" : "the innermost axis") + merged;
}

}  // namespace

std::optional<Scheduled> schedule_elementwise(const TemplateArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  Canonical c = *a.canonical;
  merge_axes(c.axes, {&c.epilogue}, {&c.out_index});
  const bool vector = !is_logic(c.epilogue) && vectorizable(c);
  const Var read = vector ? nullptr : crossing_axis(c);
  Schedule loops(plain_loops(c, vector), a.options);
  a.plan.steps(
      loops,
      [&](Schedule& steps) {
        if (!read || !steps.attempt([&](Schedule& tiles) { cross(tiles, c, read); })) straight(steps, c, vector);
      },
      false);
  Scheduled s;
  s.body = seq({fill_border(c), loops.body()});
  bind_operands(s, c);
  s.family = "elementwise";
  const bool stairs = vector && stairs_of(c.epilogue, c.axes.back().var);
  s.description = description(loops, c) + (stairs ? ", before and behind where a row's condition ends" : "");
  return s;
}

}  // namespace tc
