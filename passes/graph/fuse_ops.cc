// Joins nodes into kernels, so that values between them stay in registers or caches.
//   c = tc.fused(x, w, b)  conv2d            y = tc.fused(x, w, b, r)  conv2d[n, oc, h, w] = ...
//   s = tc.fused(c, r)     add         ->                              add[n, oc, h, w] = conv2d[...] + r[...]
//   y = tc.fused(s)        relu                                        relu[n, oc, h, w] = max(add[...], 0)
// Which values may stay inside a kernel, the post-dominator tree says: one that several nodes use only if all ways from
// it join again, a few nodes later, and only through work that kernels have inside; then the schedules' functions of
// one output suffice. Which nodes join is decided along the edges, in list order, from what the stages look like:
//   - a contraction or a window takes the elementwise work after it, then a final Pad or (contractions) a Transpose;
//   - elementwise work on one shape joins; so do the moves (Transpose, Slice) of values nobody else reads;
//   - reductions over rows join with the elementwise work before and after them (softmax, normalisations);
//   - a contraction reads an operand through a move, if the index stays affine; on CUDA, also if the move repeats it.
// A DequantizeLinear that would end a kernel begins the one that reads its result, if there is only one and each element
// is read once there: bytes lie between the two instead of floats. So does a fill behind what a run needs, in front of a sum: both
// kernels end there then.
// No join makes a cycle. Long groups are cut at nodes whose definitions have locally the smallest hash, so that an
// insertion moves no other cut. Where not all joined that might have, or where a cut goes through a diamond, a group
// has several outputs: each of these nodes then ends a kernel, which has the nodes that it post-dominates in the group.
//
// Preconditions, of a value v between two nodes that join: it is no output of the model; all of its readers are in the group,
// or all ways from it join again through elementwise work, rows and moves alone. And of the reader
//   elementwise   element i of its result needs element i of v, or v is a move of no more elements than the result; behind
//                 a sum of products or a window it is the first such work, or its value is the group's own
//   a move        nobody else reads v, and the move repeats none of it; behind a sum of products it permutes whole axes,
//                 on a processor with vectors none of them the last if the sum runs along the last axis of an operand
//   a Pad         nobody else reads v, and behind sums its index is affine; nothing joins behind it
//   rows          v has the shape that is reduced; the work before is elementwise or an affine move, or other rows of
//                 the same shape along the same axes
//   a contraction nobody else reads v, which only affine moves make
// Nothing is computed in another order, so that results are those of the nodes one by one.
//
// Needs: to_functions. Leaves: the same kinds of nodes, fewer of them, in a topological order near the old one.
#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/views.h"
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/graph/cut_group.h"
#include "passes/graph/fusion_reasons.h"
#include "passes/graph/groups.h"
#include "passes/graph/join.h"
#include "passes/graph/passes.h"
#include "passes/graph/post_dominators.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr size_t kDiamond = 64;  // nodes on the ways from a value to where they join

bool has_more(const Value* v, const Value* than) { return std::is_gt(compare_elements(dims_of(v), dims_of(than))); }

/// Does `n` compute element i of its result from element i of v (and anything of its other operands)?
bool is_pointwise_in(const Node* n, const Value* v) { return dims_of(v) == dims_of(n->outputs[0]); }

class Fusion {
 public:
  /// `kept`: where the edges between kernels go, with reasons; null: nobody asks.
  Fusion(Graph& g, const TargetTraits& target, std::vector<KeptEdge>* kept)
      : g_(g), groups_(g), dominators_(g), part_(g.num_nodes(), -1), target_(target), kept_(kept) {}

  void run() {
    for (const auto& owned : g_.nodes()) visit(owned.get());
    std::vector<std::vector<Node*>> runs;
    for (size_t i = 0; i < groups_.size(); ++i) {
      Group& group = groups_[int(i)];
      if (group.nodes.size() > 1) cut_group(group.nodes, runs);
    }
    std::vector<std::vector<Node*>> kernels;
    for (const auto& nodes : runs) split_at_outputs(nodes, kernels);
    begin_where_read(kernels);
    if (kept_) list_kept(runs, kernels);
    for (const auto& nodes : kernels)
      if (nodes.size() > 1) join_nodes(g_, nodes);
    sort_nodes(g_);
  }

 private:
  /// Offers n to the groups of its operands: contractions first, then the one produced last.
  void visit(Node* n) {
    if (groups_.traits(n).kind == GroupKind::Opaque) return;
    std::vector<Value*> operands;
    for (Value* v : n->inputs)
      if (v->producer && std::find(operands.begin(), operands.end(), v) == operands.end()) operands.push_back(v);
    auto rank = [&](const Value* v) {
      const GroupKind k = groups_[groups_.group_of(v->producer)].kind;
      return std::pair(k == GroupKind::Contraction                      ? 0
                       : k == GroupKind::Rows || k == GroupKind::Window ? 1
                                                                        : 2,
                       -groups_.position(v->producer));
    };
    std::stable_sort(operands.begin(), operands.end(),
                     [&](const Value* a, const Value* b) { return rank(a) < rank(b); });
    for (Value* v : operands) {
      const int a = groups_.group_of(v->producer), b = groups_.group_of(n);
      if (a == b) continue;
      const char* obstacle = why_not(a, b, n, v);
      if (!obstacle && !groups_.can_join(a, b))
        obstacle = "another way between the two leads through a third kernel, which would have to run before and after";
      if (obstacle) {
        if (kept_) refusals_[{v, n}] = obstacle;
        continue;
      }
      settle(a, b);
    }
  }

  /// What ends a kernel by making floats of bytes (a DequantizeLinear) goes to the one kernel that reads them, if that
  /// reads each once: what is stored between the two is a quarter as large. So does a fill in front of a sum.
  void begin_where_read(std::vector<std::vector<Node*>>& kernels) {
    std::map<const Node*, size_t> kernel;  // looked up only
    for (size_t i = 0; i < kernels.size(); ++i)
      for (const Node* n : kernels[i]) kernel[n] = i;
    for (size_t i = 0, all = kernels.size(); i < all; ++i)
      while (kernels[i].size() > 1 && begins_where_read(i, kernels, kernel)) {
      }
  }
  bool begins_where_read(size_t i, std::vector<std::vector<Node*>>& kernels, std::map<const Node*, size_t>& kernel) {
    Node* const last = kernels[i].back();
    if (!widens(*last) && !fills(*last)) return false;
    const Value* const wide = last->outputs[0];
    Node* const first = wide->users.front();
    if (!kernel.contains(first)) {
      kernel[first] = kernels.size();
      kernels.push_back({first});
    }
    const size_t reader = kernel.at(first);
    if (!std::all_of(wide->users.begin(), wide->users.end(), [&](const Node* n) {
          return kernel.contains(n) && kernel.at(n) == reader && reads_once(n, wide);
        }))
      return false;
    std::vector<Node*>& there = kernels[reader];
    kernels[i].pop_back();
    kernel[last] = reader;
    there.insert(std::find_if(there.begin(), there.end(),
                              [&](const Node* n) { return groups_.position(n) > groups_.position(last); }),
                 last);
    return true;
  }

  /// Does n make floats of bytes that the same kernel has, and that nobody else reads?
  bool widens(const Node& n) const {
    const Value *narrow = n.inputs.empty() ? nullptr : n.inputs[0], *wide = n.outputs[0];
    if (!narrow || !narrow->producer || groups_.traits(&n).kind != GroupKind::Elementwise) return false;
    const auto is_known = [&](const Value* v) { return v == narrow || (v && v->is_constant()); };
    const DType t = narrow->type.dtype;
    return (t == DType::I8 || t == DType::U8) && is_float(wide->type.dtype) && dims_of(narrow) == dims_of(wide) &&
           std::all_of(n.inputs.begin(), n.inputs.end(), is_known) && n.outputs.size() == 1 && !wide->users.empty() &&
           wide->output_uses == 0 && narrow->output_uses == 0 &&
           std::all_of(narrow->users.begin(), narrow->users.end(), [&](const Node* user) { return user == &n; });
  }

  /// Does n put numbers behind what a run needs of sums, for a reduction that alone reads them? There it need not be stored, and the sums
  /// end where the run's sizes say.
  bool fills(const Node& n) const {
    const Value *x = n.inputs.empty() ? nullptr : n.inputs[0], *y = n.outputs[0];
    if (!x || !x->producer || n.outputs.size() != 1 || y->output_uses != 0 || y->users.size() != 1) return false;
    if (x->output_uses != 0 || x->users.size() != 1 || dims_of(x) != dims_of(y)) return false;
    if (!n.fn || n.fn->stages.size() != 1 || n.fn->stages[0].kind != Stage::Kind::Compute) return false;
    const Select* k = as<Select>(n.fn->stages[0].values[0]);
    const Apply* below = k ? as<Apply>(k->condition) : nullptr;
    const Load* count = below && below->op == Op::Lt ? as<Load>(below->args[1]) : nullptr;
    if (!count || !count->index.empty() || !as<VarRef>(below->args[0])) return false;
    const Node& reader = *y->users[0];
    return as<Load>(k->yes) && as_const_number(k->no) && reader.fn &&
           (pattern_of(*reader.fn) == Pattern::Reduction || fills(reader));
  }

  bool reads_once(const Node* n, const Value* v) const {
    const NodeTraits& t = groups_.traits(n);
    return dims_of(v) == t.domain && (t.kind == GroupKind::Rows || t.kind == GroupKind::Elementwise);
  }

  /// Reasons of the edges between kernels, in the order of their readers.
  void list_kept(const std::vector<std::vector<Node*>>& runs, const std::vector<std::vector<Node*>>& kernels) {
    std::map<const Node*, size_t> run, kernel;  // looked up only; 1 + index
    std::map<const Node*, const Node*> last;
    for (size_t i = 0; i < runs.size(); ++i)
      for (const Node* n : runs[i]) run[n] = i + 1;
    for (size_t i = 0; i < kernels.size(); ++i)
      for (const Node* n : kernels[i]) kernel[n] = i + 1, last[n] = kernels[i].back();
    for (const auto& n : g_.nodes()) {
      const Node* end = last[n.get()] ? last[n.get()] : n.get();
      if (is_view(*n) || end->outputs.empty() || !end->outputs[0]) continue;
      for (const Value* v : n->inputs) {
        const Value* root = v ? root_of(v) : nullptr;
        if (!root || !root->producer || (kernel[n.get()] != 0 && kernel[n.get()] == kernel[v->producer])) continue;
        const auto refused = refusals_.find({v, n.get()});
        const bool together = groups_.group_of(n.get()) == groups_.group_of(v->producer);
        std::string why = "the work of one of the two shares its kernel with none";
        if (root != v)
          why = "a reshape stands between, which costs nothing, and through which nothing joins";
        else if (refused != refusals_.end() && !together)
          why = refused->second;
        else if (together && run[n.get()] != run[v->producer])
          why = "so many nodes would be one kernel that they are cut into several";
        else if (together)
          why = "a kernel of both would have more than one result";
        kept_->push_back({root->name, end->outputs[0]->name, std::move(why)});
      }
    }
  }

  /// Joins and says what the result is.
  void settle(int a, int b) {
    const GroupKind from = groups_[a].kind, to = groups_[b].kind;
    const Dims domain = groups_[a].domain, reduced = groups_[a].reduced;
    Group& g = groups_[groups_.join(a, b)];
    const bool anchored = from == GroupKind::Contraction || from == GroupKind::Window || from == GroupKind::Rows;
    if (anchored && (to == GroupKind::Move || to == GroupKind::Pad)) g.closed = true;
    if (anchored && to != GroupKind::Contraction) {
      g.kind = from;
      g.domain = domain;
      g.reduced = reduced;
    } else if (to == GroupKind::Move || to == GroupKind::Pad) {
      // Only moves of moves can still be read through by a contraction.
      g.kind = from == GroupKind::Move && to == GroupKind::Move ? GroupKind::Move : GroupKind::Elementwise;
    }
  }

  /// May v stay inside a kernel, as far as its uses tell? One use may; several have to join again, and all work until
  /// there has to be of the kinds that follow others inside a kernel.
  bool reconverges(const Value* v) {
    if (v->output_uses > 0) return false;
    std::vector<const Node*> ways(v->users.begin(), v->users.end());
    const Node* const join = dominators_.immediate(v->producer);
    if (!join) return false;
    std::set<const Node*> seen;
    while (!ways.empty()) {
      const Node* at = ways.back();
      ways.pop_back();
      if (!seen.insert(at).second) continue;
      const GroupKind k = groups_.traits(at).kind;
      if (seen.size() > kDiamond || k == GroupKind::Opaque || k == GroupKind::Contraction || k == GroupKind::Window)
        return false;
      if (at == join) continue;
      for (const Value* w : at->outputs)
        if (w) ways.insert(ways.end(), w->users.begin(), w->users.end());
    }
    return true;
  }

  /// What keeps n, which reads v of group a, from joining; null: nothing.
  const char* why_not(int a, int b, const Node* n, const Value* v) {
    const Group &p = groups_[a], &q = groups_[b];
    if (p.kind == GroupKind::Opaque) return "what is read comes from work that shares its kernel with none";
    if (p.closed || p.kind == GroupKind::Pad)
      return "the kernel before ends with padding or a transposition, behind which nothing joins";
    const bool private_value = groups_.used_only_by(v, b);
    if (!private_value && !reconverges(v))
      return v->output_uses > 0 ? "it is an output of the model"
                                : "others read it too, and their ways do not join again inside one kernel";
    switch (groups_.traits(n).kind) {
      case GroupKind::Elementwise: return why_not_elementwise(p, q, n, v, private_value);
      case GroupKind::Move:
        if (!private_value) return "others read it, too";
        if (has_more(n->outputs[0], v)) return "the move repeats elements, which would be computed again";
        if (p.kind == GroupKind::Elementwise || p.kind == GroupKind::Move) return nullptr;
        if (p.kind == GroupKind::Contraction && groups_.traits(n).permutes)
          return groups_.traits(n).keeps_last || !has_vectors_of_sums(p)
                     ? nullptr
                     : "vectors of sums would be stored element by element: transposing what is there is faster";
        return "behind sums, a move can only permute whole axes of a sum of products";
      case GroupKind::Pad:
        if (!private_value) return "others read it without the padding";
        return groups_.traits(n).affine || p.kind == GroupKind::Elementwise || p.kind == GroupKind::Move
                   ? nullptr
                   : "behind sums, padding can only move whole axes";
      case GroupKind::Rows: return why_not_rows(p, n, v, private_value);
      case GroupKind::Contraction:
        return private_value && (is_affine_move(p) || (target_.splits_axes && repeats(p, n, v)))
                   ? nullptr
                   : "a sum of products reads its operand many times: it would be computed again each time";
      case GroupKind::Window: return "a window reads its operand several times: it would be computed again each time";
      case GroupKind::Opaque: break;
    }
    return "the work that reads it shares its kernel with none";
  }

  const char* why_not_elementwise(const Group& p, const Group& q, const Node* n, const Value* v, bool private_value) {
    const bool anchored = q.kind != GroupKind::Elementwise;  // n has found its contraction or rows already
    const char* const other_shape = "the shapes differ: elements do not meet one by one";
    const char* const taken = "the reader is in the kernel of another of its operands already";
    switch (p.kind) {
      case GroupKind::Elementwise:
        // What nobody can store is computed where it is read.
        if (!is_pointwise_in(n, v) && !(private_value && has_several_open(dims_of(v)))) return other_shape;
        return !anchored || private_value ? nullptr : taken;
      case GroupKind::Move:
        if (!private_value) return "others read it, too";
        return has_more(v, n->outputs[0]) ? other_shape : nullptr;
      case GroupKind::Contraction:
      case GroupKind::Window:
        if (anchored) return taken;
        return is_pointwise_in(n, v) ? nullptr : other_shape;
      case GroupKind::Rows:
        if (anchored && (q.kind != GroupKind::Rows || q.domain != p.domain || q.reduced != p.reduced)) return taken;
        return is_pointwise_in(n, v) || dims_of(n->outputs[0]) == p.domain ? nullptr : other_shape;
      case GroupKind::Pad:
      case GroupKind::Opaque: break;
    }
    return "nothing joins behind it";
  }

  const char* why_not_rows(const Group& p, const Node* n, const Value* v, bool private_value) {
    const Dims& domain = groups_.traits(n).domain;
    if (dims_of(v) != domain) return "the shape is not the one that is reduced";
    if (p.kind == GroupKind::Rows)
      return p.domain == domain && p.reduced == groups_.traits(n).reduced ? nullptr : "the two reduce other rows";
    if (p.kind != GroupKind::Elementwise && p.kind != GroupKind::Move)
      return "rows behind sums of products or windows have a kernel of their own";
    if (!private_value) return "others read it, too";
    // Rows are read as vectors: no gathers by index tensors inside.
    return std::all_of(p.nodes.begin(), p.nodes.end(),
                       [&](const Node* m) {
                         const NodeTraits& t = groups_.traits(m);
                         return t.kind == GroupKind::Elementwise || (t.kind == GroupKind::Move && t.affine);
                       })
               ? nullptr
               : "rows are read as vectors, and the work before gathers single elements";
  }

  /// Do the templates walk the operands as they lie, along the sum, and have neighbours of the result in vectors?
  bool has_vectors_of_sums(const Group& p) {
    return target_.vector_lanes > 1 &&
           std::any_of(p.nodes.begin(), p.nodes.end(), [&](const Node* m) { return groups_.traits(m).sums_last; });
  }

  bool is_affine_move(const Group& p) {
    return p.kind == GroupKind::Move &&
           std::all_of(p.nodes.begin(), p.nodes.end(), [&](const Node* n) { return groups_.traits(n).affine; });
  }

  /// Is v a move that divides only axes which the sum of products n has for its own: heads that share keys?
  bool repeats(const Group& p, const Node* n, const Value* v) {
    if (p.nodes.size() != 1 || p.nodes[0]->fn->stages.size() != 1) return false;
    const Stage &move = p.nodes[0]->fn->stages[0], &sum = n->fn->stages[0];
    const Load* from = as<Load>(move.values[0]);
    const Apply* product = as<Apply>(sum.values[0]);
    if (!from || !product) return false;
    for (const Expr& e : from->index)
      if (!is_affine_index(e, move.axes, true)) return false;
    for (const Expr& factor : product->args) {
      const Load* l = as<Load>(factor);
      const auto operand = l ? std::find(n->fn->inputs.begin(), n->fn->inputs.end(), l->buffer) : n->fn->inputs.end();
      if (operand == n->fn->inputs.end()) return false;
      const size_t k = size_t(operand - n->fn->inputs.begin());
      if (n->inputs[n->fn->operands.empty() ? k : size_t(n->fn->operands[k])] != v) continue;
      for (size_t d = 0; d < l->index.size(); ++d) {
        const VarRef* r = as<VarRef>(l->index[d]);
        const bool own =
            r && std::any_of(sum.axes.begin(), sum.axes.end(), [&](const Axis& a) { return a.var == r->var; });
        const bool divided = std::any_of(from->index.begin(), from->index.end(),
                                         [&](const Expr& e) { return !affine_in(e, {move.axes[d].var}); });
        if (divided && !own) return false;
      }
    }
    return true;
  }

  /// Cuts a run into parts of one output each: a node is in the part that has all of its uses, or else ends one.
  void split_at_outputs(const std::vector<Node*>& nodes, std::vector<std::vector<Node*>>& kernels) {
    const int first = parts_;
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      int part = -1;
      bool together = true;
      for (const Value* v : (*it)->outputs) {
        if (!v) continue;
        together = together && v->output_uses == 0;
        for (const Node* user : v->users) {
          const int there = part_[size_t(groups_.position(user))];
          together = together && there >= first && (part == -1 || part == there);
          part = there;
        }
      }
      part_[size_t(groups_.position(*it))] = together && part != -1 ? part : parts_++;
    }
    std::vector<std::vector<Node*>> parts(size_t(parts_ - first));
    for (Node* n : nodes) parts[size_t(part_[size_t(groups_.position(n))] - first)].push_back(n);
    for (auto& p : parts) kernels.push_back(std::move(p));
  }

  Graph& g_;
  Groups groups_;
  const PostDominators dominators_;
  std::vector<int> part_;  // by position: the part that a node is in, -1 before it is in one
  int parts_ = 0;
  const TargetTraits& target_;
  std::vector<KeptEdge>* const kept_;
  std::map<std::pair<const Value*, const Node*>, const char*> refusals_;  // looked up only
};

void fuse(Graph& g, const PassContext& cx, std::vector<KeptEdge>* kept) {
  for (const auto& n : g.nodes())
    for (const auto& r : n->regions) fuse(*r, cx, kept);
  Fusion(g, cx.target, kept).run();
}

}  // namespace

void fuse_ops(Graph& g, PassContext& cx) { fuse(g, cx, nullptr); }

std::vector<KeptEdge> edges_between_kernels(const Graph& g, const TargetTraits& target) {
  std::vector<KeptEdge> kept;
  Graph copy = g.clone();
  PassContext cx{target, Options()};
  fuse(copy, cx, &kept);
  return kept;
}

}  // namespace tc
