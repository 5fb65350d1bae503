#include "passes/graph/rewrite.h"

#include <algorithm>

#include "ir/graph/views.h"
#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/graph/constant_arithmetic.h"

namespace tc {

namespace {

/// A fold may take this many scalar operations: a fraction of a second.
constexpr int64_t kFoldSteps = int64_t(1) << 28;

bool is_numeric(DType t) { return is_float(t) || is_int(t) || t == DType::Bool; }

}  // namespace

std::optional<double> scalar_of(const Value* v) {
  if (!v || !v->constant || !is_numeric(v->constant->dtype) || v->constant->size() != 1) return std::nullopt;
  return v->constant->as_double(0);
}

bool is_scalar(const Value* v, double number) {
  const auto s = scalar_of(v);
  return s && *s == number;
}

std::optional<std::vector<int64_t>> ints_of(const Value* v) {
  if (!v || !v->constant || !is_int(v->constant->dtype)) return std::nullopt;
  return v->constant->as_ints();
}

Node* only_user(const Value* v) { return v->users.size() == 1 && v->output_uses == 0 ? v->users[0] : nullptr; }

Node* made_by(const Value* v, std::string_view op) {
  return v && v->producer && v->index == 0 && v->producer->is(op) ? v->producer : nullptr;
}

bool is_fused(const Node* n) { return n && n->domain == "tc" && n->op == "fused" && n->fn; }
bool fills_behind(const Node& n, std::string_view fill) {
  return n.domain == "tc" && n.op == "fill_behind" && n.inputs.size() == 2 && n.attr_string("fill", "") == fill;
}

bool is_contraction(const Node* n) { return is_fused(n) && pattern_of(*n->fn) == Pattern::Contraction; }

Buffer stored_as(DType t, const Buffer& b) {
  BufferDef d = *b;
  d.dtype = t;
  return std::make_shared<const BufferDef>(d);
}

void read_stored_as(TensorFn& fn, size_t input, DType t) {
  const Buffer from = fn.inputs[input], to = stored_as(t, from);
  fn.inputs[input] = to;
  for (Stage& s : fn.stages)
    for (Exprs* list : {&s.values, &s.init})
      for (Expr& e : *list)
        e = rewrite(e, [&](const Expr& x) -> Expr {
          const Load* l = as<Load>(x);
          return l && l->buffer == from ? cast(from->dtype, load(to, l->index)) : Expr();
        });
}

int rank_of(const Value* v) { return int(v->type.shape.size()); }
Dims dims_of(const Value* v) { return static_dims(v->type.shape); }

Dims numbers_of(const Node& n, const char* attr, size_t count, int64_t otherwise) {
  const Dims given = n.attr_ints(attr);
  return given.empty() ? Dims(count, otherwise) : given;
}

std::vector<int64_t> moved_axis(int64_t rank, int64_t from, int64_t to) {
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank; d++)
    if (d != from) perm.push_back(d);
  perm.insert(perm.begin() + to, from);
  return perm;
}

ModelText derived(const ModelText& base, std::string_view suffix) {
  return ModelText(base.raw() + std::string(suffix));
}

Value* add_op(Graph& g, Node* before, std::string op, std::vector<Value*> inputs, ModelText name, Attrs attrs) {
  Node* n = g.insert(before, std::move(op), std::move(inputs), {std::move(name)}, std::move(attrs));
  if (before) {
    n->name = before->name;
    n->origins = before->origins;
  }
  infer_types(g, *n);
  return n->outputs[0];
}

Attrs sizes_as_given(const Value* like) {
  return like->type.is_static_tensor() && has_no_elements(dims_of(like)) ? Attrs{{"allowzero", int64_t(1)}} : Attrs{};
}

void add_origins(std::vector<ModelText>& to, const std::vector<ModelText>& from) {
  for (const ModelText& t : from)
    if (std::find(to.begin(), to.end(), t) == to.end()) to.push_back(t);
}

bool forward(Graph& g, Value* from, Value* to) {
  if (g.is_output(from)) {
    if (!to->producer || g.is_output(to)) return false;
    to->name = from->name;
  }
  g.replace_uses(from, to);
  return true;
}

void replace_value(Graph& g, Node* at, Value* from, Value* to) {
  if (forward(g, from, to)) return;
  Node* copy = insert_for(g, *at, at, "Identity", {to}, {from->name});
  g.set_type(copy->outputs[0], to->type.is_static_tensor() ? to->type : from->type);
  g.replace_uses(from, copy->outputs[0]);
}

void replace_node(Graph& g, Node* n, Value* v) {
  if (v->producer) add_origins(v->producer->origins, n->origins);
  replace_value(g, n, n->outputs[0], v);
  erase_unused(g, n);
}

void erase_unused(Graph& g, Node* n) {
  std::vector<Node*> work = {n};
  while (!work.empty()) {
    Node* m = work.back();
    work.pop_back();
    // A producer of several operands is listed once: it is pushed only when its last use goes.
    std::vector<Value*> inputs = m->inputs;
    std::sort(inputs.begin(), inputs.end(), [](const Value* a, const Value* b) { return a && (!b || a->id < b->id); });
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    g.erase(m);
    std::vector<Node*> dead;
    for (Value* v : inputs)
      if (v && v->producer && std::find(dead.begin(), dead.end(), v->producer) == dead.end() &&
          std::none_of(v->producer->outputs.begin(), v->producer->outputs.end(),
                       [](const Value* o) { return o && o->is_used(); }))
        dead.push_back(v->producer);
    work.insert(work.end(), dead.begin(), dead.end());
  }
}

std::vector<Value*> inline_graph(Graph& g, Node* at, const Graph& body, const std::vector<Value*>& args) {
  check(args.size() == body.inputs().size(), "inline_graph: one argument per input");
  std::vector<Value*> twin(size_t(body.value_ids()), nullptr);
  auto map = [&](const Value* v) { return v ? twin[size_t(v->id)] : nullptr; };
  for (size_t i = 0; i < args.size(); ++i) twin[size_t(body.inputs()[i]->id)] = args[i];
  for (const auto& v : body.values())
    if (v->is_constant()) twin[size_t(v->id)] = g.add_constant(v->name, v->constant);
  for (const auto& n : body.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* v : n->inputs) inputs.push_back(map(v));
    Node* c = insert_for(g, *n, at, n->op, std::move(inputs), output_names(*n), n->attrs, n->domain);
    c->row = n->row;
    c->captures = n->captures;
    for (const auto& r : n->regions) c->regions.push_back(std::make_unique<Graph>(r->clone()));
    for (size_t k = 0; k < n->outputs.size(); ++k) {
      if (!n->outputs[k]) {
        if (c->outputs[k]) g.drop_output(c, k);
        continue;
      }
      twin[size_t(n->outputs[k]->id)] = c->outputs[k];
      g.set_type(c->outputs[k], n->outputs[k]->type);
    }
  }
  std::vector<Value*> results;
  for (const Value* v : body.outputs()) results.push_back(map(v));
  return results;
}

bool is_random(const Node& n) {
  return has_trait(n, OpTrait::Random) ||
         (n.op == "Dropout" && n.inputs.size() > 2 && n.inputs[2] && !is_scalar(n.inputs[2], 0));
}

namespace {

/// The results of a node that reads constants only, nothing if that is not so or takes too much.
std::vector<Constant> evaluate_node(Node& n, int64_t max_bytes) {
  if (!n.regions.empty() || is_random(n)) return {};
  int64_t bytes = 0;
  for (const Value* v : n.outputs) {
    if (!v) continue;
    if (!v->type.is_static_tensor() || info(v->type.dtype).bytes == 0 || has_several_open(dims_of(v))) return {};
    bytes = checked_add(bytes, checked_mul(num_elements(dims_of(v)), info(v->type.dtype).bytes));
  }
  if (bytes > max_bytes) return {};
  if (is_view(n) && n.inputs[0]->constant) return {in_shape(n.inputs[0]->constant, dims_of(n.outputs.at(0)))};
  std::vector<Constant> operands;
  operands.reserve(n.inputs.size());
  for (const Value* v : n.inputs) operands.push_back(v ? v->constant : nullptr);
  if (n.domain.empty() && n.outputs.size() == 1)
    if (Constant c = constant_arithmetic(n.op, operands, n.attrs)) return {std::move(c)};
  const TensorFn& fn = tensor_fn(n);
  std::vector<Constant> args;
  for (int i : fn_operands(n)) {
    if (!operands[size_t(i)]) return {};
    args.push_back(operands[size_t(i)]);
  }
  try {
    RunOptions o;
    o.max_steps = kFoldSteps;
    return evaluate(fn, args, o);
  } catch (const Error& e) {
    Diagnostic d = e.diagnostic();
    if (d.code == "TC0502") return {};  // too much work: it stays in the program
    if (d.loc.op.empty()) d.loc = location_of(n);
    throw Error(std::move(d));
  }
}

}  // namespace

bool fold_node(Graph& g, Node* n, int64_t max_bytes) {
  const std::vector<Constant> results = evaluate_node(*n, max_bytes);
  if (results.empty()) return false;
  for (size_t k = 0, r = 0; k < n->outputs.size(); ++k)
    if (n->outputs[k]) g.replace_uses(n->outputs[k], g.add_constant(n->outputs[k]->name, results.at(r++)));
  g.erase(n);
  return true;
}

Value* constant_op(Graph& g, Node* before, std::string op, std::vector<Value*> inputs, ModelText name, Attrs attrs) {
  std::vector<Constant> operands;
  operands.reserve(inputs.size());
  for (const Value* in : inputs) operands.push_back(in ? in->constant : nullptr);
  if (Constant c = constant_arithmetic(op, operands, attrs)) return g.add_constant(std::move(name), std::move(c));
  Value* v = add_op(g, before, std::move(op), std::move(inputs), std::move(name), std::move(attrs));
  const std::vector<Constant> results = evaluate_node(*v->producer, INT64_MAX);
  if (results.empty()) return v;
  Value* c = g.add_constant(v->name, results[0]);
  g.erase(v->producer);
  return c;
}

}  // namespace tc
