#include "passes/graph/groups.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// Edges that one search for a cycle may look at. More means that the two groups are far apart, where joining them
/// would keep values alive for long anyway.
constexpr int kSearchedEdges = 512;

bool is_single_load(const Expr& e) { return as<Load>(e) != nullptr; }

/// condition ? x[...] : constant
bool is_padded_load(const Expr& e) {
  const Select* s = as<Select>(e);
  if (!s) return false;
  const auto is_constant = [](const Expr& x) { return as<FloatImm>(x) || as<IntImm>(x); };
  return (as<Load>(s->yes) && is_constant(s->no)) || (as<Load>(s->no) && is_constant(s->yes));
}

/// Of a load, or of one that stands beside a constant.
bool is_affine_load(const Stage& s) {
  const Select* choice = as<Select>(s.values[0]);
  const Load* l = as<Load>(!choice ? s.values[0] : as<Load>(choice->yes) ? choice->yes : choice->no);
  return l && std::all_of(l->index.begin(), l->index.end(),
                          [&](const Expr& e) { return is_affine_index(e, s.axes, false); });
}

struct Rows {
  Dims domain, reduced;
  bool operator==(const Rows&) const = default;
};

/// The load's buffer and reduced axes if it walks every element once through plain indices.
std::optional<Rows> rows_of(const Load& l, const Stage& s, const Dims& points) {
  if (!is_static(l.buffer->shape)) return std::nullopt;
  Rows r{static_dims(l.buffer->shape), {}};
  if (std::is_neq(compare_elements(r.domain, points))) return std::nullopt;
  for (size_t d = 0; d < l.index.size(); ++d) {
    const VarRef* v = as<VarRef>(l.index[d]);
    if (!v && !as<IntImm>(l.index[d])) return std::nullopt;
    if (v && std::any_of(s.raxes.begin(), s.raxes.end(), [&](const Axis& a) { return a.var == v->var; }))
      r.reduced.push_back(int64_t(d));
  }
  return r;
}

/// Is every axis an index by itself, and every element read?
bool is_permutation(const Stage& s) {
  const Load* l = as<Load>(s.values[0]);
  if (!l || !is_static(l->buffer->shape)) return false;
  Dims made;
  for (const Axis& a : s.axes) made.push_back(a.extent.value);
  return std::is_eq(compare_elements(static_dims(l->buffer->shape), made)) &&
         std::all_of(l->index.begin(), l->index.end(), [](const Expr& e) { return as<VarRef>(e) || is_const(e, 0); });
}

bool is_one(const Dim& d) { return d.is_const() && d.value == 1; }

/// The index of a load along the last axis that has more than one element; null: there is none.
const Expr* last_index(const Load& l) {
  for (size_t d = l.index.size(); d-- > 0;)
    if (!is_one(l.buffer->shape[d])) return &l.index[d];
  return nullptr;
}

/// Is the last axis of the operand also the last one of the result?
bool keeps_last_axis(const Stage& s) {
  const Expr* from = last_index(*as<Load>(s.values[0]));
  size_t to = s.axes.size();
  while (to > 0 && is_one(s.axes[to - 1].extent)) --to;
  if (!from || to == 0) return true;
  const VarRef* v = as<VarRef>(*from);
  return v && v->var == s.axes[to - 1].var;
}

bool reads_constant(const Node& n, const Load& l) {
  const auto& inputs = n.fn->inputs;
  const size_t k = size_t(std::find(inputs.begin(), inputs.end(), l.buffer) - inputs.begin());
  if (k == inputs.size()) return false;
  const Value* v = n.inputs[n.fn->operands.empty() ? k : size_t(n.fn->operands[k])];
  return v && v->is_constant();
}

/// Is the index an axis of the sum, or one behind multiples of its size: the channels of a group?
bool walks_sum(const Expr& index, const Stage& s) {
  const Apply* sum = as<Apply>(index);
  const bool split = sum && sum->op == Op::Add;
  for (const Axis& a : s.raxes) {
    const auto is_axis = [&](const Expr& e) { return as<VarRef>(e) && as<VarRef>(e)->var == a.var; };
    if (is_axis(index)) return true;
    if (!split || !a.extent.is_const() || !(is_axis(sum->args[0]) || is_axis(sum->args[1]))) continue;
    const Apply* block = as<Apply>(sum->args[is_axis(sum->args[0]) ? 1 : 0]);
    const auto size = block && block->op == Op::Mul ? as_const_int(block->args[1]) : std::nullopt;
    if (size && *size % a.extent.value == 0) return true;
  }
  return false;
}

/// Does a stage sum along the last axis of an operand that is computed?
bool sums_last_axis(const Node& n, const Stage& s) {
  bool found = false;
  walk(s.values[0], [&](const Expr& e) {
    const Load* l = as<Load>(e);
    const Expr* last = l && !reads_constant(n, *l) ? last_index(*l) : nullptr;
    return !(found = found || (last && walks_sum(*last, s)));
  });
  return found;
}

/// What all reductions of the function have in common, if each reads a tensor of that shape once.
std::optional<Rows> common_rows(const TensorFn& fn) {
  std::optional<Rows> common;
  for (const Stage& s : fn.stages) {
    if (s.kind != Stage::Kind::Reduce) continue;
    Dims points;
    for (const auto* axes : {&s.axes, &s.raxes})
      for (const Axis& a : *axes) {
        if (!a.extent.is_const()) return std::nullopt;
        points.push_back(a.extent.value);
      }
    bool found = false;
    for (const Expr& value : s.values)
      walk(value, [&](const Expr& e) {
        const Load* l = as<Load>(e);
        const auto rows = l ? rows_of(*l, s, points) : std::nullopt;
        if (!rows) return true;
        if (!common) common = rows;
        found = found || rows == common;
        return true;
      });
    if (!found) return std::nullopt;
  }
  return common;
}

/// Does it compute what no memory holds, from the same element of operands that none holds, and elements of others anywhere? A kernel
/// that computes it block by block reads these where they are.
bool is_pointwise_in_blocks(const TensorFn& fn) {
  if (!has_several_open(static_dims(fn.outputs[0]->shape)) || fn.stages.size() != 1) return false;
  const Stage& s = fn.stages[0];
  bool pointwise = s.kind == Stage::Kind::Compute && s.scan < 0;
  walk(s.values[0], [&](const Expr& e) {
    const Load* l = as<Load>(e);
    if (!l || !has_several_open(static_dims(l->buffer->shape))) return pointwise;
    pointwise = l->index.size() == s.axes.size();
    for (size_t k = 0; k < l->index.size() && pointwise; k++) {
      const VarRef* v = as<VarRef>(l->index[k]);
      pointwise = (v && v->var == s.axes[k].var) || (is_const(l->index[k], 0) && is_one(l->buffer->shape[k]));
    }
    return pointwise;
  });
  return pointwise;
}

GroupKind move_kind(const TensorFn& fn) {
  if (fn.stages.size() != 1) return GroupKind::Opaque;
  const Expr& e = fn.stages[0].values[0];
  if (is_single_load(e)) return GroupKind::Move;
  return is_padded_load(e) ? GroupKind::Pad : GroupKind::Opaque;
}

}  // namespace

bool is_affine_index(const Expr& index, const std::vector<Axis>& axes, bool quotients) {
  std::vector<Var> vars;
  for (const Axis& a : axes) vars.push_back(a.var);
  auto extent_of = [&](const Expr& e) {
    const VarRef* v = as<VarRef>(e);
    for (const Axis& a : axes)
      if (v && v->var == a.var) return a.extent.value;
    return int64_t(0);
  };
  const Expr e = !quotients ? index : rewrite(index, [&](const Expr& x) -> Expr {
    const Apply* k = as<Apply>(x);
    if (!k || k->op != Op::FloorDiv) return {};
    const auto by = as_const_int(k->args[1]);
    if (!by || *by < 1 || extent_of(k->args[0]) % *by != 0 || extent_of(k->args[0]) == 0) return {};
    vars.push_back(make_var("quotient"));
    return Expr(vars.back());
  });
  return affine_in(e, vars).has_value();
}

NodeTraits traits_of(const Node& n) {
  NodeTraits t;
  if (!is_fused(&n)) return t;
  const TensorFn& fn = *n.fn;
  if (fn.outputs.empty() || !is_static(fn.outputs[0]->shape)) return t;
  t.domain = static_dims(fn.outputs[0]->shape);
  switch (pattern_of(fn)) {
    case Pattern::View:
    case Pattern::Elementwise:
    case Pattern::Broadcast: t.kind = GroupKind::Elementwise; break;
    case Pattern::Injective: t.kind = is_pointwise_in_blocks(fn) ? GroupKind::Elementwise : move_kind(fn); break;
    case Pattern::Reduction: {
      const auto rows = common_rows(fn);
      t.kind = rows ? GroupKind::Rows : GroupKind::Window;
      if (rows) {
        t.domain = rows->domain;
        t.reduced = rows->reduced;
      }
      break;
    }
    case Pattern::Contraction: t.kind = GroupKind::Contraction; break;
    case Pattern::Opaque: break;
  }
  t.affine = (t.kind == GroupKind::Move || t.kind == GroupKind::Pad) && is_affine_load(fn.stages[0]);
  t.permutes = t.kind == GroupKind::Move && is_permutation(fn.stages[0]);
  t.keeps_last = t.permutes && keeps_last_axis(fn.stages[0]);
  for (const Stage& stage : fn.stages)
    t.sums_last = t.sums_last ||
                  (t.kind == GroupKind::Contraction && stage.kind == Stage::Kind::Reduce && sums_last_axis(n, stage));
  return t;
}

Groups::Groups(const Graph& g) : position_(size_t(g.node_ids()), -1) {
  for (const auto& owned : g.nodes()) {
    const int at = int(parent_.size());
    position_[size_t(owned->id)] = at;
    parent_.push_back(at);
    traits_.push_back(traits_of(*owned));
    Group group;
    group.kind = traits_.back().kind;
    group.domain = traits_.back().domain;
    group.reduced = traits_.back().reduced;
    group.nodes = {owned.get()};
    group.first = group.last = at;
    groups_.push_back(std::move(group));
  }
}

int Groups::find(int i) {
  while (parent_[size_t(i)] != i) i = parent_[size_t(i)] = parent_[size_t(parent_[size_t(i)])];
  return i;
}

bool Groups::used_only_by(const Value* v, int g) {
  return v->output_uses == 0 &&
         std::all_of(v->users.begin(), v->users.end(), [&](const Node* n) { return group_of(n) == g; });
}

bool Groups::can_join(int a, int b) {
  const int earliest = groups_[size_t(a)].first;
  std::set<int> seen = {b};
  std::vector<int> work = {b};
  int edges = 0;
  while (!work.empty()) {
    const int at = work.back();
    work.pop_back();
    for (const Node* n : groups_[size_t(at)].nodes)
      for (const Value* v : n->inputs) {
        if (!v || !v->producer) continue;
        if (++edges > kSearchedEdges) return false;
        const int from = group_of(v->producer);
        if (from == a) {
          if (at != b) return false;
          continue;
        }
        // Nothing that ends before a begins can depend on it.
        if (groups_[size_t(from)].last < earliest || !seen.insert(from).second) continue;
        work.push_back(from);
      }
  }
  return true;
}

int Groups::join(int a, int b) {
  // The larger list is kept, so that a long chain is moved once, not once a node.
  const int keep = groups_[size_t(a)].nodes.size() > groups_[size_t(b)].nodes.size() ? a : b, gone = keep == a ? b : a;
  Group &k = groups_[size_t(keep)], &l = groups_[size_t(gone)];
  k.kind = groups_[size_t(b)].kind;
  k.domain = groups_[size_t(b)].domain;
  k.reduced = groups_[size_t(b)].reduced;
  k.closed = groups_[size_t(b)].closed;
  const auto before = [&](const Node* x, const Node* y) { return position(x) < position(y); };
  const auto middle = int64_t(k.nodes.size());
  k.nodes.insert(k.nodes.end(), l.nodes.begin(), l.nodes.end());
  if (!before(k.nodes[size_t(middle) - 1], k.nodes[size_t(middle)]))
    std::inplace_merge(k.nodes.begin(), k.nodes.begin() + middle, k.nodes.end(), before);
  k.first = std::min(k.first, l.first);
  k.last = std::max(k.last, l.last);
  l.nodes.clear();
  l.nodes.shrink_to_fit();
  parent_[size_t(gone)] = keep;
  return keep;
}

}  // namespace tc
