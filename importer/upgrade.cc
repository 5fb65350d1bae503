// Goes over the nodes and applies the rules of upgrade_rules.cc. A rule that needs the type of an operand may have to
// wait: while nodes before it are of an old definition, inference may know less about their results. Such a node moves
// into a domain of its own, of which inference knows nothing, and is tried again when the others are new.
#include "importer/upgrade.h"

#include <onnx/defs/schema.h>

#include <algorithm>

namespace tc::importer {

namespace {

constexpr const char* kWaiting = "tc.waiting";

onnx::AttributeProto typed(const std::string& name, onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(type);
  return a;
}

}  // namespace

onnx::AttributeProto attribute(const std::string& name, int64_t value) {
  onnx::AttributeProto a = typed(name, onnx::AttributeProto::INT);
  a.set_i(value);
  return a;
}

onnx::AttributeProto attribute(const std::string& name, const std::string& value) {
  onnx::AttributeProto a = typed(name, onnx::AttributeProto::STRING);
  a.set_s(value);
  return a;
}

void Upgrade::set_input(int k, const std::string& name) {
  while (node.input_size() <= k) node.add_input("");
  node.set_input(k, name);
}

void Upgrade::keep_inputs(int count) {
  while (node.input_size() > count) node.mutable_input()->RemoveLast();
}

void Upgrade::keep_outputs(int count) {
  while (node.output_size() > count) node.mutable_output()->RemoveLast();
}

const onnx::AttributeProto* Upgrade::find(const std::string& name) const {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

std::optional<onnx::AttributeProto> Upgrade::take(const std::string& name) {
  auto& list = *node.mutable_attribute();
  for (int i = 0; i < list.size(); ++i)
    if (list[i].name() == name) {
      onnx::AttributeProto a = std::move(list[i]);
      list.DeleteSubrange(i, 1);
      return a;
    }
  return std::nullopt;
}

int64_t Upgrade::take_int(const std::string& name, int64_t otherwise) {
  const auto a = take(name);
  return a ? a->i() : otherwise;
}

void Upgrade::set(const onnx::AttributeProto& a) {
  take(a.name());
  *node.add_attribute() = a;
}

const onnx::TypeProto& Upgrade::type(int k) const {
  const std::string name = k < node.input_size() ? node.input(k) : "";
  const onnx::TypeProto* t = types_.type(name);
  if (!t || !t->has_tensor_type()) throw TypeNotKnown{name};
  return *t;
}

std::optional<int> Upgrade::known_rank(int k) const {
  const int r = k < node.input_size() ? rank_of(types_.type(node.input(k))) : -1;
  return r < 0 ? std::nullopt : std::optional<int>(r);
}

int Upgrade::rank(int k) const {
  const int r = rank_of(&type(k));
  if (r < 0) throw TypeNotKnown{node.input(k)};
  return r;
}

std::optional<int64_t> Upgrade::known_size(int k, int axis) const {
  const std::optional<int> r = known_rank(k);
  if (!r || axis >= *r) return std::nullopt;
  const auto& d = type(k).tensor_type().shape().dim(axis);
  return d.has_dim_value() ? std::optional<int64_t>(d.dim_value()) : std::nullopt;
}

int64_t Upgrade::size(int k, int axis) const {
  if (axis >= rank(k)) throw NoCounterpart{"has an operand of too few axes"};
  if (const auto n = known_size(k, axis)) return *n;
  throw TypeNotKnown{node.input(k)};
}

int Upgrade::element_type(int k) const {
  const int t = type(k).tensor_type().elem_type();
  if (t == onnx::TensorProto::UNDEFINED) throw TypeNotKnown{node.input(k)};
  return t;
}

std::string Upgrade::stem() const {
  for (const auto& o : node.output())
    if (!o.empty()) return o + "/";
  return node.name() + "/";
}

std::string Upgrade::constant(const std::string& label, const onnx::TensorProto& t) {
  onnx::AttributeProto value = typed("value", onnx::AttributeProto::TENSOR);
  *value.mutable_t() = t;
  return add("Constant", {}, {value}, label);
}

std::string Upgrade::ints(const std::string& label, std::vector<int64_t> values) {
  onnx::TensorProto t;
  t.set_data_type(onnx::TensorProto::INT64);
  t.add_dims(int64_t(values.size()));
  for (const int64_t v : values) t.add_int64_data(v);
  return constant(label, t);
}

std::string Upgrade::int_scalar(const std::string& label, int64_t value) {
  onnx::TensorProto t;
  t.set_data_type(onnx::TensorProto::INT64);
  t.add_int64_data(value);
  return constant(label, t);
}

std::string Upgrade::floats(const std::string& label, const std::vector<float>& values) {
  onnx::TensorProto t;
  t.set_data_type(onnx::TensorProto::FLOAT);
  t.add_dims(int64_t(values.size()));
  for (const float v : values) t.add_float_data(v);
  return constant(label, t);
}

std::string Upgrade::bool_scalar(const std::string& label, bool value) {
  onnx::TensorProto t;
  t.set_data_type(onnx::TensorProto::BOOL);
  t.add_int32_data(value);
  return constant(label, t);
}

std::string Upgrade::scalar(const std::string& label, double value, int element_type) {
  onnx::TensorProto t;
  t.set_data_type(element_type == onnx::TensorProto::DOUBLE ? onnx::TensorProto::DOUBLE : onnx::TensorProto::FLOAT);
  if (element_type == onnx::TensorProto::DOUBLE)
    t.add_double_data(value);
  else
    t.add_float_data(float(value));
  const std::string name = constant(label, t);
  return element_type == t.data_type() ? name : add("Cast", {name}, {attribute("to", int64_t(element_type))}, label);
}

std::string Upgrade::add(const std::string& op, const Inputs& inputs, const Attributes& attributes,
                         const std::string& label) {
  onnx::NodeProto& n = *before.Add();
  n.set_op_type(op);
  n.set_name(node.name());
  for (const auto& i : inputs) n.add_input(i);
  for (const auto& a : attributes) *n.add_attribute() = a;
  n.add_output(names_.make(stem() + label));
  return n.output(0);
}

void Upgrade::finish_output(int k, const std::string& op, const Inputs& more, const Attributes& attributes) {
  const std::string raw = names_.make(node.output(k) + "/raw");
  Inputs inputs = {raw};
  inputs.insert(inputs.end(), more.begin(), more.end());
  make_output(k, op, inputs, attributes);
  node.set_output(k, raw);
}

void Upgrade::make_output(int k, const std::string& op, const Inputs& inputs, const Attributes& attributes) {
  onnx::NodeProto& n = *after.Add();
  n.set_op_type(op);
  n.set_name(node.name());
  for (const auto& i : inputs) n.add_input(i);
  for (const auto& a : attributes) *n.add_attribute() = a;
  n.add_output(node.output(k));
}

namespace {

/// One walk over all nodes that are not of the newest operator set yet.
class Walk {
 public:
  Walk(Context& c, onnx::ModelProto& m, int from, bool first) : c_(c), from_(from), first_(first) {
    names_.add_graph(*m.mutable_graph());
    for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& g) {
      for (const auto& n : g.node()) used_.insert(n.input().begin(), n.input().end());
      for (const auto& o : g.output()) used_.insert(o.name());
    });
  }

  bool changed = false;
  struct Waiting {
    onnx::NodeProto node;
    std::string value;
  };
  std::vector<Waiting> waiting;

  void run(onnx::GraphProto& g, const TypeScope* outer) {
    const TypeScope scope(g, outer);
    Nodes out;
    for (const auto& n : g.node()) {  // copies: `scope` points into the old nodes
      onnx::NodeProto copy = n;
      for (onnx::GraphProto* body : mutable_bodies_of(copy)) run(*body, &scope);
      if (is_old(copy))
        upgrade(copy, scope, out);
      else
        *out.Add() = std::move(copy);
    }
    g.mutable_node()->Swap(&out);
  }

 private:
  bool is_old(const onnx::NodeProto& n) const {
    return first_ ? domain_of(n.domain()).empty() : n.domain() == kWaiting;
  }

  void upgrade(onnx::NodeProto& n, const TypeScope& scope, Nodes& out) {
    n.clear_domain();
    Upgrade u(n, from_, scope, used_, names_);
    bool applied = false;
    try {
      for (const UpgradeRule& rule : upgrade_rules())
        if (rule.version > from_ && rule.op == u.node.op_type()) {
          rule.apply(u);
          applied = true;
        }
    } catch (const TypeNotKnown& unknown) {
      waiting.push_back({n, unknown.value});
      n.set_domain(kWaiting);
      *out.Add() = std::move(n);
      return;
    } catch (const NoCounterpart& problem) {
      c_.error("TC0160", ExitCode::Unsupported, &n,
               "the node, which is written for opset " + to_text(int64_t(from_)) + ", " + problem.reason,
               {"export the model with a newer opset_version"});
      return;
    }
    changed = changed || applied;
    if (!c_.charge_nodes(u.before.size() + u.after.size(), &n)) return;
    for (auto& b : u.before) *out.Add() = std::move(b);
    if (!u.dropped) *out.Add() = std::move(u.node);
    for (auto& b : u.after) *out.Add() = std::move(b);
  }

  Context& c_;
  int from_;
  bool first_;
  UniqueNames names_;
  std::unordered_set<std::string> used_;
};

bool any_rule(onnx::GraphProto& root, int from) {
  bool any = false;
  for_each_graph(root, [&](onnx::GraphProto& g) {
    for (const auto& n : g.node())
      for (const UpgradeRule& rule : upgrade_rules())
        any = any || (rule.version > from && rule.op == n.op_type() && domain_of(n.domain()).empty());
  });
  return any;
}

void remove_import(onnx::ModelProto& m, const std::string& domain) {
  auto& imports = *m.mutable_opset_import();
  for (int i = imports.size(); i-- > 0;)
    if (imports[i].domain() == domain) imports.DeleteSubrange(i, 1);
}

}  // namespace

bool upgrade_nodes(Context& c, onnx::ModelProto& m, bool& changed) {
  const int before = c.errors;
  const int from = int(opset_of(m.opset_import(), ""));
  for (auto& o : *m.mutable_opset_import())
    if (domain_of(o.domain()).empty()) o.set_version(newest_opset());
  if (!any_rule(*m.mutable_graph(), from)) return true;
  size_t left = 0;
  for (bool first = true;; first = false) {
    Walk walk(c, m, from, first);
    walk.run(*m.mutable_graph(), nullptr);
    changed = changed || walk.changed;
    if (c.errors != before || walk.waiting.empty()) break;
    if (!first && walk.waiting.size() >= left) {
      for (const auto& w : walk.waiting)
        c.error("TC0160", ExitCode::Unsupported, &w.node,
                "the shape of " + quoted(w.value) + " is not known, and what the node means in opset " +
                    to_text(int64_t(from)) + " depends on it",
                {"export the model with a newer opset_version"});
      break;
    }
    left = walk.waiting.size();
    if (first) {
      auto* o = m.add_opset_import();
      o->set_domain(kWaiting);
      o->set_version(1);
    }
    infer_shapes(c, m);
    if (c.errors != before) break;
  }
  remove_import(m, kWaiting);
  return c.errors == before;
}

}  // namespace tc::importer
