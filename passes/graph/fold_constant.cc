// Evaluates what depends on constants only, with the interpreter, so that it is the same on every host.
//   s = Sqrt(var)  t = Div(scale, s)  y = Mul(x, t)   ->   t = const   y = Mul(x, t)
// A result may take options.fold_limit_bytes, or twice the bytes of the constants that it reads: a table that a formula
// makes from nothing stays a formula, weights are always prepared. Random operators are left alone, and so are weights of
// few bits that products of floats read as they are in C (read_few_bits). A Loop or Scan of constants runs here, too, if
// it is a short one.
//
// Preconditions: every operand that the meaning reads is a constant, one of them at least; sizes are known; nothing
// random; the result and the work keep within their budgets. Bodies: how often they run is known, they have no bodies
// inside, and all iterations together make few numbers.
//
// Needs: types. Leaves: no node whose operands are all constant, but those over the budget.
#include <algorithm>

#include "ir/graph/origin.h"
#include "ir/ops/evaluate.h"
#include "ir/ops/regions.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

int64_t constant_bytes(const Node& n) {
  int64_t bytes = 0;
  for (const Value* v : n.inputs)
    if (v && v->constant) bytes = checked_add(bytes, int64_t(v->constant->num_bytes));
  return bytes;
}

bool any_constant(const Node& n) {
  return std::any_of(n.inputs.begin(), n.inputs.end(), [](const Value* v) { return v && v->constant; });
}

/// Numbers of few bits that have their scale in common with a whole number of words of neighbours along the sum.
bool has_whole_blocks(const Node& n) {
  if (n.domain != "tc") return false;
  if (n.op == "unpack_weights") return n.inputs.size() < 4 || !n.inputs[3];
  if (n.op != "unpack_bnb4") return false;
  constexpr int64_t kNumbersOfWord = 8;
  const int64_t depth = n.attr_int("K", 0), block = n.attr_int("block_size", 0);
  return depth > 0 && block > 0 && (block % depth == 0 || (depth % block == 0 && block % kNumbersOfWord == 0));
}

/// tc.unpack_weights or tc.unpack_bnb4 for products of floats, which loops of C do as they multiply.
bool stays_packed(const Node& n, const PassContext& cx) {
  if (!has_whole_blocks(n) || cx.target.picks_precision || cx.options.strict_fp) return false;
  const Value* w = n.outputs[0];
  const auto multiplies = [&](const Node* user) { return user->is("MatMul") && user->inputs[1] == w; };
  return w->type.dtype == DType::F32 && w->output_uses == 0 &&
         std::all_of(w->users.begin(), w->users.end(), multiplies);
}

/// Weights that stayed packed for a product which turns out to be constant, too.
void unpack_for_constant(Graph& g, const Node& n, const PassContext& cx) {
  if (!n.is("MatMul") || !n.inputs[0]->constant) return;
  Node* w = n.inputs[1]->producer;
  if (w && stays_packed(*w, cx)) fold_node(g, w, std::max(cx.options.fold_limit_bytes, 2 * constant_bytes(*w)));
}

constexpr int64_t kLoopNumbers = int64_t(1) << 14;  // that all iterations of a loop make
constexpr int64_t kLoopSteps = int64_t(1) << 22;    // that they all take

/// How often a Loop or Scan runs; -1: that is not known.
int64_t iterations_of(const Node& n) {
  if (n.is("Loop")) {
    const LoopFacts f = loop_facts(n);
    return f.exact() ? f.limit : -1;
  }
  const size_t scanned = size_t(n.attr_int("num_scan_inputs", 0)), own = own_inputs(n);
  if (!n.is("Scan") || scanned == 0 || scanned > own) return -1;
  const Dims dims = dims_of(n.inputs[own - scanned]);
  return dims[size_t(scan_axis(n, "scan_input_axes", 0, dims.size()))];
}

/// Is it a loop of constants that takes little to run?
bool is_short_loop(const Node& n) {
  if (!n.is("Loop") && !n.is("Scan")) return false;
  for (const Value* v : n.inputs)
    if (v && !v->constant) return false;
  int64_t made = 0;
  for (const Value* v : n.outputs) {
    if (v && !v->type.is_static_tensor()) return false;
    if (v) made = checked_add(made, num_elements(dims_of(v)));
  }
  const int64_t times = iterations_of(n);
  if (times < 0 || made > kLoopNumbers) return false;
  int64_t each = 0;
  for (const auto& m : n.regions.at(0)->nodes()) {
    if (!m->regions.empty() || is_random(*m)) return false;
    for (const Value* v : m->outputs) {
      if (v && !v->type.is_static_tensor()) return false;
      if (v) each = checked_add(each, num_elements(dims_of(v)));
    }
  }
  return times <= kLoopNumbers / std::max<int64_t>(each, 1);
}

/// Runs it in a graph of its own, and puts the results in its place.
bool fold_loop(Graph& g, Node* n) {
  if (!is_short_loop(*n)) return false;
  Graph alone(g.name());
  std::vector<Value*> in;
  for (const Value* v : n->inputs) in.push_back(v ? alone.add_constant(v->name, v->constant) : nullptr);
  Node* copy = alone.append(n->op, std::move(in), output_names(*n), n->attrs, n->domain);
  copy->captures = n->captures;
  copy->regions.push_back(std::make_unique<Graph>(n->regions[0]->clone()));
  std::vector<Value*> out;
  for (size_t k = 0; k < n->outputs.size(); ++k) {
    if (!n->outputs[k] && copy->outputs[k]) alone.drop_output(copy, k);
    if (!n->outputs[k]) continue;
    alone.set_type(copy->outputs[k], n->outputs[k]->type);
    out.push_back(copy->outputs[k]);
  }
  alone.set_outputs(std::move(out));
  std::vector<Constant> results;
  try {
    const int64_t runs = std::max<int64_t>(iterations_of(*n), 1) * int64_t(n->regions[0]->num_nodes() + 1);
    results = evaluate(alone, {}, {.max_steps = kLoopSteps / runs});
  } catch (const Error& e) {
    if (e.diagnostic().code == "TC0502") return false;  // a body of long sums: it stays in the program
    throw;
  }
  for (size_t k = 0, r = 0; k < n->outputs.size(); ++k)
    if (n->outputs[k]) g.replace_uses(n->outputs[k], g.add_constant(n->outputs[k]->name, results.at(r++)));
  g.erase(n);
  return true;
}

}  // namespace

void fold_constant(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) fold_constant(*r, cx);
    if (fold_loop(g, n)) continue;
    unpack_for_constant(g, *n, cx);
    if (!any_constant(*n) || stays_packed(*n, cx)) continue;
    fold_node(g, n, std::max(cx.options.fold_limit_bytes, 2 * constant_bytes(*n)));
  }
  g.drop_unused_constants();
}

}  // namespace tc
