#include "ir/graph/graph.h"

#include <algorithm>

namespace tc {

namespace {

/// The attribute as T, `otherwise` when it is not given.
template <class T>
T attr_or(const Node& n, const std::string& name, const T& otherwise, std::string_view kind) {
  auto it = n.attrs.find(name);
  if (it == n.attrs.end() || std::holds_alternative<std::monostate>(it->second)) return otherwise;
  if (const T* v = std::get_if<T>(&it->second)) return *v;
  Diagnostic d{"TC0203", ExitCode::Rejected, {}, "", {}, false};
  d.loc.node = n.name.raw();
  d.loc.op = n.op;
  d.message = "attribute \"" + printable(name) + "\" is not " + std::string(kind);
  throw Error(std::move(d));
}

/// The cached meaning is stale once an operand changed; that of a fused node is its definition and stays.
void forget_fn(Node& n) {
  if (n.domain != "tc" || n.op != "fused") n.fn = nullptr;
}

}  // namespace

int64_t Node::attr_int(const std::string& name, int64_t otherwise) const {
  return attr_or<int64_t>(*this, name, otherwise, "an integer");
}
float Node::attr_float(const std::string& name, float otherwise) const {
  return attr_or<float>(*this, name, otherwise, "a float");
}
std::string Node::attr_string(const std::string& name, const std::string& otherwise) const {
  return attr_or<std::string>(*this, name, otherwise, "a string");
}
std::vector<int64_t> Node::attr_ints(const std::string& name, const std::vector<int64_t>& otherwise) const {
  return attr_or<std::vector<int64_t>>(*this, name, otherwise, "a list of integers");
}

Value* Graph::new_value(ModelText name, ValueType type) {
  values_.push_back(std::make_unique<Value>());
  Value* v = values_.back().get();
  v->id = next_value_++;
  v->name = std::move(name);
  v->type = std::move(type);
  v->self = std::prev(values_.end());
  return v;
}

void Graph::add_use(Value* v, Node* n) {
  if (v) v->users.push_back(n);
}

void Graph::drop_use(Value* v, Node* n) {
  if (!v) return;
  // The latest use is the likeliest to go: passes add a use and then erase the node that it replaces.
  auto it = std::find(v->users.rbegin(), v->users.rend(), n);
  check(it != v->users.rend(), "a use is not on its value's list");
  v->users.erase(std::next(it).base());
}

void Graph::erase_value(Value* v) {
  check(!v->is_used(), "a value that is erased is still used");
  values_.erase(v->self);
}

Value* Graph::add_input(ModelText name, ValueType type) {
  Value* v = new_value(std::move(name), std::move(type));
  inputs_.push_back(v);
  return v;
}

Value* Graph::add_constant(ModelText name, Constant data) {
  check(data != nullptr, "a constant without data");
  Value* v = new_value(std::move(name), ValueType::tensor(data->dtype, to_shape(data->dims)));
  v->constant = std::move(data);
  return v;
}

void Graph::set_outputs(std::vector<Value*> values) {
  for (Value* v : outputs_) --v->output_uses;
  outputs_ = std::move(values);
  for (Value* v : outputs_) {
    check(v != nullptr, "an output of the graph is absent");
    ++v->output_uses;
  }
}

void Graph::set_output(size_t k, Value* v) {
  check(k < outputs_.size() && v, "set_output: no such output");
  --outputs_[k]->output_uses;
  outputs_[k] = v;
  ++v->output_uses;
}

Node* Graph::insert(Node* before, std::string op, std::vector<Value*> inputs, std::vector<ModelText> output_names,
                    Attrs attrs, std::string domain) {
  auto at = nodes_.insert(before ? before->self : nodes_.end(), std::make_unique<Node>());
  Node* n = at->get();
  n->self = at;
  n->id = next_node_++;
  n->domain = std::move(domain);
  n->op = std::move(op);
  n->attrs = std::move(attrs);
  n->inputs = std::move(inputs);
  for (Value* v : n->inputs) add_use(v, n);
  for (size_t k = 0; k < output_names.size(); ++k) {
    Value* v = k > 0 && output_names[k].empty() ? nullptr : new_value(std::move(output_names[k]), {});
    if (v) {
      v->producer = n;
      v->index = int(k);
    }
    n->outputs.push_back(v);
  }
  return n;
}

void Graph::erase(Node* n) {
  for (Value* v : n->inputs) drop_use(v, n);
  for (Value* v : n->outputs)
    if (v) erase_value(v);
  nodes_.erase(n->self);
}

void Graph::drop_output(Node* n, size_t k) {
  check(k < n->outputs.size() && n->outputs[k], "drop_output: no such output");
  erase_value(n->outputs[k]);
  n->outputs[k] = nullptr;
}

void Graph::set_input(Node* n, size_t i, Value* v) {
  check(i < n->inputs.size(), "set_input: no such input");
  if (n->inputs[i] == v) return;
  drop_use(n->inputs[i], n);
  n->inputs[i] = v;
  add_use(v, n);
  forget_fn(*n);
}

void Graph::add_node_input(Node* n, Value* v) {
  n->inputs.push_back(v);
  add_use(v, n);
  forget_fn(*n);
}

void Graph::erase_node_input(Node* n, size_t i) {
  check(i < n->inputs.size(), "erase_node_input: no such input");
  drop_use(n->inputs[i], n);
  n->inputs.erase(n->inputs.begin() + int64_t(i));
  forget_fn(*n);
}

void Graph::erase_input(size_t k) {
  check(k < inputs_.size(), "erase_input: no such input");
  check(sizes_.chosen.empty() && sizes_.states.empty(), "erase_input: sizes and states are said by numbers of inputs");
  erase_value(inputs_[k]);
  inputs_.erase(inputs_.begin() + int64_t(k));
}

void Graph::replace_uses(Value* from, Value* to) {
  check(to != nullptr, "replace_uses by nothing");
  if (from == to) return;
  for (Node* n : from->users) {
    // One entry per use: the first visit of a node moves all its uses, later ones find none.
    for (Value*& v : n->inputs)
      if (v == from) {
        v = to;
        to->users.push_back(n);
      }
    forget_fn(*n);
  }
  from->users.clear();
  if (from->output_uses == 0) return;
  for (Value*& v : outputs_)
    if (v == from) v = to;
  to->output_uses += from->output_uses;
  from->output_uses = 0;
}

void Graph::set_type(Value* v, ValueType t) {
  if (v->type == t) return;
  v->type = std::move(t);
  for (Node* n : v->users) forget_fn(*n);
}

void Graph::move_before(Node* n, Node* before) { nodes_.splice(before ? before->self : nodes_.end(), nodes_, n->self); }

Graph Graph::clone() const {
  Graph g(name_);
  std::vector<Value*> twin(size_t(next_value_), nullptr);
  auto map = [&](const Value* v) { return v ? twin[size_t(v->id)] : nullptr; };
  for (const auto& v : values_) {
    Value* c = g.new_value(v->name, v->type);
    c->id = v->id;
    c->constant = v->constant;
    c->index = v->index;
    twin[size_t(v->id)] = c;
  }
  for (const auto& n : nodes_) {
    std::vector<Value*> inputs;
    for (const Value* v : n->inputs) inputs.push_back(map(v));
    Node* c = g.insert(nullptr, n->op, std::move(inputs), {}, n->attrs, n->domain);
    c->row = n->row;
    c->id = n->id;
    c->name = n->name;
    c->captures = n->captures;
    c->origins = n->origins;
    c->fn = n->fn;
    for (const Value* v : n->outputs) {
      c->outputs.push_back(map(v));
      if (v) c->outputs.back()->producer = c;
    }
    for (const auto& r : n->regions) c->regions.push_back(std::make_unique<Graph>(r->clone()));
  }
  g.next_value_ = next_value_;
  g.next_node_ = next_node_;
  for (const Value* v : inputs_) g.inputs_.push_back(map(v));
  std::vector<Value*> outputs;
  for (const Value* v : outputs_) outputs.push_back(map(v));
  g.set_outputs(std::move(outputs));
  g.sizes_ = sizes_;
  return g;
}

void Graph::drop_unused_constants() {
  for (auto it = values_.begin(); it != values_.end();) {
    const Value& v = **it;
    it = v.is_constant() && !v.is_used() ? values_.erase(it) : std::next(it);
  }
}

void Graph::renumber() {
  next_value_ = next_node_ = 0;
  const auto number = [this](Value* v) {
    v->id = next_value_++;
    v->users.clear();
    values_.splice(values_.end(), values_, v->self);
  };
  std::vector<Value*> constants;
  for (const auto& v : values_)
    if (v->is_constant()) constants.push_back(v.get());
  for (Value* v : inputs_) number(v);
  for (Value* v : constants) number(v);
  for (const auto& n : nodes_) {
    n->id = next_node_++;
    for (Value* v : n->outputs)
      if (v) number(v);
    for (const auto& r : n->regions) r->renumber();
  }
  check(size_t(next_value_) == values_.size(), "a value is no input, no constant and no result");
  for (const auto& n : nodes_)
    for (Value* v : n->inputs) add_use(v, n.get());
}

}  // namespace tc
