// Gives every value its type and turns the shape arithmetic of exporters into constants, in one sweep: each needs the
// other. Types follow from the operators' meanings; what reads constants only (or nothing, like Shape of a value whose
// sizes are known) and is small is evaluated on the spot, so that Reshape, Expand, Slice and Resize get constant
// operands.
//   s = Shape(x)  b = Gather(s, 0)  t = Concat(b, [-1])  y = Reshape(x, t)   ->   y = Reshape(x, [1, -1])
// An operator whose row has an expansion becomes the operators that this inserts.
// Results whose sizes depend on data get the capacity of their upper bounds and are counted (bounded_sizes.h), in
// bodies too; so do inputs whose sizes the caller chooses.
// Sequences and optionals whose contents are known become their tensors (sequences.h).
// An If with a constant condition becomes the branch it takes, a loop that runs once its body, and a loop whose states grow its
// iterations (unroll_loop.h). Constants that a body
// captures move into the body. The condition that a Loop hands to its body is true there. A state that no iteration
// changes becomes a capture.
//
// Needs: inputs of the graph have types. Leaves: all values have types. Problems of all nodes are collected in
// cx.diagnostics; what depends on a node with a problem is not looked at.
#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

#include "ir/graph/bodies.h"
#include "ir/graph/origin.h"
#include "ir/ops/expansion.h"
#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/branch_tables.h"
#include "passes/graph/declared_shapes.h"
#include "passes/graph/input_behind.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/sequences.h"
#include "passes/graph/single_iteration.h"
#include "passes/graph/unroll_loop.h"

namespace tc {

namespace {

/// Shapes, axes, scales, position ids: anything larger waits for fold_constant.
constexpr int64_t kSmallBytes = 64 << 10;

class Sweep {
 public:
  explicit Sweep(PassContext& cx) : cx_(cx) {}

  void outermost(Graph& g) {
    if (!bodies_fit(g)) return;
    whole_ = &g;
    // Exporters write the positions of one mask once for each tensor that it selects from: there are as many of each,
    // which shows only if they are counted once.
    if (counts_results(g)) eliminate_common_subexpr(g, cx_);
    graph(g, sizes_, true);
    for (Node* n : lists_.finish(g)) node(g, n, sizes_, true);
    sizes_.finish(g);
  }

 private:
  /// Everything below walks bodies beside their nodes, long before types are inferred.
  bool bodies_fit(const Graph& outer) {
    bool fit = true;
    for (const Graph* g : with_bodies(outer)) {
      for (const auto& n : g->nodes()) {
        if (n->regions.empty()) continue;
        try {
          require_regions(*n);
        } catch (const Error& e) {
          if (!cx_.diagnostics) throw;
          cx_.diagnostics->add(e.diagnostic());
          fit = false;
        }
      }
    }
    return fit;
  }

  void graph(Graph& g, BoundedSizes& sizes, bool outermost) {
    spread_declared_shapes(g);
    if (outermost) sizes.open_inputs(g);
    LoopUnroller growing("a loop whose states grow", "TC0301");
    std::set<int> behind_problems;  // ids of values
    sizes.hold_counts(g);
    for (auto it = g.nodes().begin(); !sizes.holds_counts(it->get());) {
      Node* n = it->get();
      ++it;
      sizes.hold_counts(g);
      const bool known = inputs_known(*n), unsure = !known || reads_sizes_of(behind_problems, *n);
      for (const Value* v : n->outputs)
        if (v && unsure) behind_problems.insert(v->id);
      if (!known) continue;
      if (n->is("If") && n->inputs.at(0)->constant) {
        it = take_branch(g, n);
        continue;
      }
      if (const auto first = sizes.take_branch(g, n)) {
        it = *first;
        continue;
      }
      if (!growing.has_begun(*n) && runs_once(*n) && !is_followed(*n, sizes, outermost)) {
        it = inline_iteration(g, n);
        continue;
      }
      const Loc here = location_of(*n);
      const bool counted = reads_counted(*n, sizes);
      // Where it is refused, what it has kept behind the loop goes, and `it` with it.
      const auto unrolled = [&](const auto& step) {
        try {
          return step();
        } catch (const Error&) {
          it = std::next(NodeIterator(n->self));
          throw;
        }
      };
      try {
        if (outermost && lists_.carries_lists(*n))
          it = unrolled([&] { return lists_.unroll(g, n); });
        else if (growing.has_begun(*n))
          it = unrolled([&] { return growing.step(g, n); });
        else if (const auto first = first_iteration(*n); first && is_unrolled(*n, *first))
          it = unrolled([&] { return growing.step(g, n); });
        else
          node(g, n, sizes, outermost, first);
      } catch (const Error& e) {
        if (!cx_.diagnostics) throw;
        Diagnostic d = e.diagnostic();
        const bool follows = unsure && d.code == "TC0301" && cx_.diagnostics->has_errors();
        if (follows) continue;  // a size is not known since that of something else is not
        if (d.loc.op.empty()) d.loc = here;
        if (counted && d.exit == ExitCode::Rejected) {  // of the largest sizes; those of a run may fit
          d.exit = ExitCode::Unsupported;
          d.notes.push_back("sizes of its operands are known at run time only, and the largest are looked at");
        }
        if (outermost)
          tell_choice(d, it != g.nodes().begin() && std::prev(it)->get() == n ? n : nullptr);
        else
          tell_branch(d);
        cx_.diagnostics->add(std::move(d));
      }
      sizes.follow_copies(g, it);
    }
  }

  /// The one input that decides which branch of an If of the outermost graph is taken; "" where there is none, or several.
  std::string decided_by(const Node* n) const {
    return n && n->is("If") ? only_input_behind(*whole_, n->inputs.at(0)) : "";
  }
  void tell_choice(Diagnostic& d, const Node* n) const {
    if (const std::string by = decided_by(n); !by.empty())
      d.notes.push_back("input \"" + by + "\" decides which branch is taken: --input-value " + by +
                        "=VALUE leaves one");
  }
  /// Of a node in a branch, by which a run may never come.
  void tell_branch(Diagnostic& d) const {
    const std::string by = d.exit == ExitCode::Rejected ? decided_by(branching_) : "";
    if (by.empty()) return;
    d.exit = ExitCode::Unsupported;
    d.notes.push_back("it is in a branch, and input \"" + by + "\" decides whether that is taken: --input-value " + by +
                      "=VALUE leaves the other one");
  }

  static bool reads_counted(const Node& n, const BoundedSizes& sizes) {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) { return v && sizes.is_counted(v); });
  }
  /// Does it read a tensor that is counted, or carry lists?
  bool is_followed(const Node& n, const BoundedSizes& sizes, bool outermost) const {
    return (outermost && lists_.carries_lists(n)) || reads_counted(n, sizes);
  }

  struct FirstIteration {
    std::vector<ValueType> states;  // behind it
    bool end_is_known = false;
  };
  /// Does a state have other sizes behind an iteration than before, in a loop of which can be known when it ends?
  static bool is_unrolled(const Node& n, const FirstIteration& first) {
    const LoopFacts facts = loop_facts(n);
    if (facts.asks_limit || facts.asks_start || !facts.ends() || !may_be_unrolled(n, facts.limit)) return false;
    if (!first.end_is_known) return false;
    for (size_t k = 0; k < first.states.size(); k++)
      if (first.states[k] != n.inputs[2 + k]->type) return true;
    return false;
  }

  /// What the first iteration of a Loop makes of its states, if these may grow; nothing where it has a problem, which is told when the
  /// loop itself is looked at.
  static std::optional<FirstIteration> first_iteration(const Node& n) {
    if (!n.is("Loop") || !states_may_grow(n)) return std::nullopt;
    Graph first = n.regions.at(0)->clone();
    for (size_t k = 0; k < n.inputs.size(); k++) {
      Value* in = first.inputs()[k];
      if (k < 2) {
        in = first.add_constant(in->name, scalar_constant(k == 0 ? DType::I64 : DType::Bool, double(k)));
        first.replace_uses(first.inputs()[k], in);
      } else {
        first.set_type(in, n.inputs[k]->type);
        if (n.inputs[k]->constant) first.replace_uses(in, first.add_constant(in->name, n.inputs[k]->constant));
      }
    }
    Diagnostics problems;
    PassContext cx;
    cx.diagnostics = &problems;
    try {
      Sweep(cx).outermost(first);
    } catch (const Error&) {
      return std::nullopt;
    }
    if (problems.has_errors()) return std::nullopt;
    FirstIteration r;
    r.end_is_known = behind_identities(first.outputs()[0])->constant != nullptr;
    for (size_t k = 2; k < own_inputs(n); k++) r.states.push_back(first.outputs()[k - 1]->type);
    return r;
  }

  /// Does the body leave open whether its states keep their sizes?
  static bool states_may_grow(const Node& n) {
    for (size_t k = 2; k < own_inputs(n); k++) {
      const ValueType& after = n.regions.at(0)->outputs().at(k - 1)->type;
      if (!after.is_static_tensor() || after != n.inputs[k]->type) return true;
    }
    return false;
  }

  /// Sizes are open only behind a node with a problem, which has been told.
  bool inputs_known(const Node& n) const {
    const bool told = cx_.diagnostics && cx_.diagnostics->has_errors();
    return std::none_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) {
      return v &&
             (v->type.kind == ValueType::Kind::None || (told && v->type.is_tensor() && !v->type.is_static_tensor()));
    });
  }

  /// Does it read a list of sizes, or one, that is among these?
  static bool reads_sizes_of(const std::set<int>& ids, const Node& n) {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) {
      return v && ids.contains(v->id) && v->type.is_static_tensor() && is_int(v->type.dtype) && rank_of(v) < 2;
    });
  }

  void node(Graph& g, Node* n, BoundedSizes& sizes, bool outermost,
            const std::optional<FirstIteration>& first = std::nullopt) {
    if (outermost) n = lists_.resolve(g, n);
    if (!n) return;
    if (!n->regions.empty()) {
      return loop(g, sizes.loop_of_scan(g, n), sizes, outermost, first);
    }
    n = sizes.transform(g, n);
    if (expand(g, n, sizes)) return;
    if (sizes.replace_shape(g, n)) return;
    n = sizes.look_across(g, n);
    if (sizes.counted_already(g, n)) return;
    n = sizes.count_results(g, n);
    infer_types(g, *n);
    sizes.follow(g, n);
    sizes.hold_counts(g);  // what was made for this node may be all that it has been read by
    if (sizes.fold_sizes(g, n)) return;
    // Exporters expand masks to the size that they have; what is counted is then the same mask.
    if (n->is("Expand") && n->outputs[0]->type == n->inputs[0]->type && sizes.sized_alike(n->outputs[0], n->inputs[0]))
      return replace_node(g, n, n->inputs[0]);
    const bool counted =
        std::any_of(n->outputs.begin(), n->outputs.end(), [&](const Value* v) { return v && sizes.is_counted(v); });
    // realize_quantization wants weights as they are.
    const bool quantised = n->is("DequantizeLinear");
    if (!counted && !quantised) fold_node(g, n, kSmallBytes);
  }

  /// An If, a Loop or a Scan.
  void loop(Graph& g, Node* n, BoundedSizes& sizes, bool outermost, const std::optional<FirstIteration>& first) {
    const size_t problems = cx_.diagnostics ? cx_.diagnostics->list().size() : 0;
    std::vector<GrowingState> growing;
    if (first) n = sizes.widen_states(g, n, first->states, growing);
    regions(g, n, sizes, growing);
    if (cx_.diagnostics && cx_.diagnostics->list().size() > problems) return;  // a body has told its own
    n = sizes.count_iterations(g, n);
    sizes.note_grown(*n, growing);
    infer_types(g, *n);
    for (Node* m : sizes.finish_stacked(g, n)) node(g, m, sizes, outermost);
  }

  /// Rewrites a node whose operator's row says how; the nodes that it becomes have types, and counts follow.
  bool expand(Graph& g, Node* n, BoundedSizes& sizes) {
    const OpRow* row = row_of(*n);
    if (!row || !row->expand) return false;
    const bool counted =
        std::any_of(n->inputs.begin(), n->inputs.end(), [&](const Value* v) { return v && sizes.is_counted(v); });
    sizes.give_counts(g, n);
    const InsertionPoint point(g, *n);
    try {
      if (!row->expand(g, n)) return false;
    } catch (const std::out_of_range&) {  // rows ask for axes by at()
      Expansion(g, n).reject("an operand has fewer elements or axes than the operator reads");
    }
    for (size_t k = 0; k < n->outputs.size(); ++k)  // of com.microsoft no schema has counted them
      if (n->outputs[k] && n->outputs[k]->is_used())
        Expansion(g, n).reject("the operator has no output " + to_text(int64_t(k)));
    if (counted) sizes.follow_expanded(g, point.next(), n->self);
    erase_unused(g, n);
    return true;
  }

  /// Replaces an If by the nodes of one branch; returns the first of them, which the sweep has still to see.
  static NodeIterator take_branch(Graph& g, Node* n) {
    const bool yes = n->inputs[0]->constant->as_int(0) != 0;
    const InsertionPoint point(g, *n);
    const auto results = inline_graph(g, n, *n->regions.at(yes ? 0 : 1), {n->inputs.begin() + 1, n->inputs.end()});
    for (size_t k = 0; k < n->outputs.size(); ++k)
      if (n->outputs[k]) replace_value(g, n, n->outputs[k], results.at(k));
    g.erase(n);
    return point.next();
  }

  void regions(Graph& g, Node* n, BoundedSizes& sizes, const std::vector<GrowingState>& growing) {
    if (n->is("If")) align_tables(*n);
    if (n->is("Loop")) {
      Graph& body = *n->regions.at(0);
      if (Value* go = body.inputs()[1]; go->is_used())
        body.replace_uses(go, body.add_constant(go->name, scalar_constant(DType::Bool, 1)));
      capture_states(g, n, 2, own_inputs(*n), 1, sizes);
    }
    if (n->is("Scan")) {
      capture_states(g, n, 0, own_inputs(*n) - size_t(n->attr_int("num_scan_inputs", 0)), 0, sizes);
    }
    const size_t own = own_inputs(*n);
    std::vector<BoundedSizes> inside = sizes.capture(g, n, own, growing);
    bind_inputs(*n, own);
    sink_constants(g, n, own);
    const Node* const before = branching_;
    if (&g == whole_) branching_ = n;
    for (size_t k = 0; k < inside.size(); k++) {
      std::vector<ValueType> declared;
      // An input has the type that it gets; what is declared of it says no more.
      for (const Value* v : n->regions[k]->outputs()) declared.push_back(v->producer ? v->type : ValueType());
      graph(*n->regions[k], inside[k], false);
      inside[k].fit_states(*n->regions[k], growing);
      inside[k].keep_declared(*n->regions[k], declared);
    }
    branching_ = before;
    sizes.take_results(*n, inside, growing);
    for (size_t k = 0; k < inside.size(); k++) inside[k].release_counts(*n->regions[k]);
  }

  /// Operands [first, last) of a Loop or Scan are its states; `skip` outputs of the body come before the next states.
  static void capture_states(Graph& g, Node* n, size_t first, size_t last, size_t skip, BoundedSizes& sizes) {
    Graph& body = *n->regions.at(0);
    for (size_t k = first; k < last; ++k) {
      Value* state = body.inputs()[k];
      if (behind_identities(body.outputs()[skip + k - first]) != state) continue;
      g.add_node_input(n, n->inputs[k]);
      ++n->captures;
      body.replace_uses(state, body.add_input(state->name, state->type));
      Value* last_state = n->outputs[k - first];
      if (!last_state || !last_state->is_used()) continue;
      replace_value(g, n, last_state, n->inputs[k]);
      sizes.follow_copies(g, n->self);
    }
  }

  /// Where the bodies' inputs for captures begin.
  static size_t first_capture(const Node& n, const Graph& body) { return body.inputs().size() - size_t(n.captures); }

  /// Types of the operands become types of the bodies' inputs.
  void bind_inputs(const Node& n, size_t own) {
    for (const auto& r : n.regions) {
      Graph& body = *r;
      const auto& in = body.inputs();
      for (size_t k = 0; k < size_t(n.captures); ++k)
        body.set_type(in[first_capture(n, body) + k], n.inputs[own + k]->type);
      if (n.is("Loop")) {
        body.set_type(in.at(0), ValueType::tensor(DType::I64, {}));
        body.set_type(in.at(1), ValueType::tensor(DType::Bool, {}));
        for (size_t k = 2; k < own; ++k) body.set_type(in.at(k), n.inputs[k]->type);
      } else if (n.is("Scan")) {
        const size_t states = own - size_t(n.attr_int("num_scan_inputs", 0));
        for (size_t k = 0; k < own; ++k) {
          ValueType t = n.inputs[k]->type;
          if (k >= states) {
            t.shape.erase(t.shape.begin() + scan_axis(n, "scan_input_axes", k - states, t.shape.size()));
          }
          body.set_type(in.at(k), t);
        }
      }
    }
  }

  /// A captured constant is the same in every run of a body: the body gets its own.
  void sink_constants(Graph& g, Node* n, size_t own) {
    for (size_t k = size_t(n->captures); k-- > 0;) {
      const Constant c = n->inputs[own + k]->constant;
      if (!c) continue;
      for (const auto& r : n->regions) {
        const size_t at = first_capture(*n, *r) + k;
        Value* in = r->inputs()[at];
        if (in->is_used()) r->replace_uses(in, r->add_constant(in->name, c));
        r->erase_input(at);
      }
      g.erase_node_input(n, own + k);
      --n->captures;
    }
  }

  PassContext& cx_;
  const Graph* whole_ = nullptr;
  const Node* branching_ = nullptr;  // of the whole graph: whose bodies are looked at
  BoundedSizes sizes_;
  Sequences lists_{sizes_};
};

}  // namespace

void dynamic_to_static(Graph& g, PassContext& cx) { Sweep(cx).outermost(g); }

}  // namespace tc
