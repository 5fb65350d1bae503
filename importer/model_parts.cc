#include "importer/model_parts.h"

#include <algorithm>
#include <unordered_map>

#include "importer/context.h"
#include "importer/decode.h"
#include "importer/external_data.h"
#include "importer/infer.h"
#include "importer/quiet_protobuf.h"
#include "importer/scope.h"
#include "importer/tensors.h"
#include "ir/ops/op.h"

namespace tc {

namespace {

using namespace importer;
using Names = std::unordered_set<std::string>;
using Types = std::unordered_map<std::string, onnx::TypeProto>;

/// Data in other files, or set aside when the model was read, becomes part of the model.
bool embed(Context& c, onnx::TensorProto& t, ExternalData& files) {
  const bool external = t.data_location() == onnx::TensorProto::EXTERNAL;
  if (!external && !t.has_segment()) return true;
  ExternalData::Range r{c.file.fd(), t.segment().begin(), t.segment().end() - t.segment().begin(), ""};
  if (external) {
    int64_t elements = 1;
    for (const int64_t d : t.dims()) elements = checked_mul(elements, d);
    if (!files.locate(t, packed_bytes(element_type(t.data_type()), elements), r)) return false;
  }
  std::string bytes(size_t(r.length), '\0');
  if (!read_at(r.fd, r.offset, bytes.data(), bytes.size())) {
    c.reject("TC0101", nullptr, "tensor " + quoted(t.name()) + ": its data cannot be read");
    return false;
  }
  t.clear_external_data();
  t.clear_data_location();
  t.clear_segment();
  t.set_raw_data(std::move(bytes));
  return true;
}

void embed_all(Context& c, onnx::GraphProto& graph) {
  ExternalData files(c);
  for_each_graph(graph, [&](onnx::GraphProto& g) {
    for (auto& t : *g.mutable_initializer()) embed(c, t, files);
    for (auto& s : *g.mutable_sparse_initializer()) {
      embed(c, *s.mutable_values(), files);
      embed(c, *s.mutable_indices(), files);
    }
    for (auto& n : *g.mutable_node())
      for (auto& a : *n.mutable_attribute()) {
        if (a.has_t()) embed(c, *a.mutable_t(), files);
        for (auto& t : *a.mutable_tensors()) embed(c, t, files);
      }
  });
}

/// The graph with the types of all values that ONNX can tell; those that it had, where its inference gives up, or where the
/// model is not fit for a library that trusts it.
void infer_types(const std::string& path, const ImportOptions& options, onnx::ModelProto& m) {
  onnx::ModelProto copy = m;
  Diagnostics of_validation;
  Context validation(path, options, of_validation);
  validate_model(validation, copy);
  if (validation.errors > 0) return;
  std::string why_not;    // of a model that is wrong
  try_infer(m, why_not);  // not `copy`: validation gives names and an order of its own
}

/// What ONNX's inference does not know, since a definition of the user's or of another domain than its own makes it: the types
/// that the operators' rows give, as far as they have fixed sizes.
void add_types_of_rows(const std::string& path, const ImportOptions& options, onnx::GraphProto& g) {
  Names known;
  for (const auto* list : {&g.input(), &g.output(), &g.value_info()})
    for (const auto& v : *list)
      if (v.has_type()) known.insert(v.name());
  const auto has_type = [&](const onnx::NodeProto& n) {
    return std::all_of(n.output().begin(), n.output().end(), [&](const auto& y) { return known.count(y) > 0; });
  };
  if (std::all_of(g.node().begin(), g.node().end(), has_type)) return;
  Diagnostics of_import;
  ImportOptions all = options;
  all.keep_dead_nodes = true;
  Graph imported = import_model(path, all, of_import);
  try {
    for (const auto& n : imported.nodes()) infer_types(imported, *n);
  } catch (const Error&) {  // what is wrong with the model is told elsewhere; types before it are good
  }
  Names ours;  // a value that the importer has renamed, or replaced, has none
  for (const auto& n : g.node()) ours.insert(n.output().begin(), n.output().end());
  for (const auto& n : imported.nodes())
    for (const Value* v : n->outputs) {
      if (!v || !ours.count(v->name.raw()) || known.count(v->name.raw()) || !v->type.is_static_tensor()) continue;
      onnx::ValueInfoProto& info = *g.add_value_info();
      info.set_name(v->name.raw());
      auto& type = *info.mutable_type()->mutable_tensor_type();
      type.set_elem_type(int(v->type.dtype));
      type.mutable_shape();
      for (const int64_t d : static_dims(v->type.shape)) type.mutable_shape()->add_dim()->set_dim_value(d);
    }
}

Types types_of(const onnx::GraphProto& g) {
  Types types;
  for (const auto* list : {&g.input(), &g.output(), &g.value_info()})
    for (const auto& v : *list)
      if (v.has_type() && v.type().value_case() != onnx::TypeProto::VALUE_NOT_SET) types[v.name()] = v.type();
  for (const auto& t : g.initializer()) {
    onnx::TypeProto& type = types[t.name()];
    type.mutable_tensor_type()->set_elem_type(t.data_type());
    type.mutable_tensor_type()->mutable_shape();
    for (const int64_t d : t.dims()) type.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(d);
  }
  return types;
}

void for_each_read(const onnx::NodeProto& n, const std::function<void(const std::string&)>& f) {
  for (const auto& i : n.input())
    if (!i.empty()) f(i);
  for (const onnx::GraphProto* body : bodies_of(n))
    for (const std::string& name : free_names(*body)) f(name);
}

onnx::ValueInfoProto info_of(const std::string& name, const Types& types) {
  onnx::ValueInfoProto v;
  v.set_name(name);
  if (const auto it = types.find(name); it != types.end()) *v.mutable_type() = it->second;
  return v;
}

NodeOutline outline_of(const onnx::NodeProto& n, const Types& types) {
  NodeOutline o{ModelText(n.name()), (domain_of(n.domain()).empty() ? "" : n.domain() + "::") + n.op_type(), {}, {}};
  for (const auto& y : n.output()) {
    o.outputs.emplace_back(y);
    const auto it = types.find(y);
    o.types.push_back(it == types.end() ? ValueType() : value_type(it->second));
  }
  o.bodies = int(bodies_of(n).size());
  o.is_constant = domain_of(n.domain()).empty() && n.op_type() == "Constant";
  return o;
}

std::vector<ModelText> names_of(const auto& list) {
  std::vector<ModelText> names;
  for (const auto& v : list) names.emplace_back(v.name());
  return names;
}

}  // namespace

ModelParts::ModelParts(const std::string& path, const ImportOptions& options, Diagnostics& problems)
    : model_(std::make_unique<onnx::ModelProto>()) {
  const QuietProtobuf quiet;
  Context c(path, options, problems);
  if (load_model(c, *model_) && c.errors == 0) embed_all(c, *model_->mutable_graph());
  if (c.errors == 0) {
    Diagnostics of_binding;
    Context binding(path, options, of_binding);
    onnx::ModelProto changed = *model_;
    fix_inputs(binding, changed);
    bind_dims(binding, changed);
    bound_ = binding.errors == 0;
    if (bound_) *model_ = std::move(changed);
    infer_types(path, options, *model_);
    add_types_of_rows(path, options, *model_->mutable_graph());
    const Types types = types_of(model_->graph());
    for (const auto& n : model_->graph().node()) nodes_.push_back(outline_of(n, types));
  }
  c.close();
}

ModelParts::~ModelParts() = default;
ModelParts::ModelParts(ModelParts&&) noexcept = default;

std::vector<ModelText> ModelParts::outputs() const { return names_of(model_->graph().output()); }
std::vector<ModelText> ModelParts::initializers() const { return names_of(model_->graph().initializer()); }

std::string ModelParts::with_outputs(const std::vector<ModelText>& names) const {
  onnx::ModelProto m = *model_;
  const Types types = types_of(m.graph());
  m.mutable_graph()->clear_output();
  for (const ModelText& name : names) *m.mutable_graph()->add_output() = info_of(name.raw(), types);
  return m.SerializeAsString();
}

std::string ModelParts::part(const Selection& s) const {
  const onnx::GraphProto& whole = model_->graph();
  const Types types = types_of(whole);
  onnx::ModelProto m = *model_;
  onnx::GraphProto& g = *m.mutable_graph();
  g.clear_node();
  g.clear_output();
  g.clear_input();
  g.clear_initializer();
  g.clear_sparse_initializer();
  g.clear_value_info();
  g.clear_doc_string();
  g.clear_quantization_annotation();
  m.clear_doc_string();
  m.clear_metadata_props();
  m.set_ir_version(std::max<int64_t>(m.ir_version(), 4));  // before, initializers had to be inputs
  Names made, read, wanted, as_input, dropped;
  for (const ModelText& name : s.inputs) as_input.insert(name.raw());
  for (const ModelText& name : s.no_outputs) dropped.insert(name.raw());
  std::vector<std::string> reads;  // in order
  for (int i = 0; i < whole.node_size(); i++) {
    if (!s.nodes.at(size_t(i))) continue;
    *g.add_node() = whole.node(i);
    g.mutable_node(g.node_size() - 1)->clear_doc_string();
    for_each_read(whole.node(i), [&](const std::string& name) {
      if (read.insert(name).second) reads.push_back(name);
    });
    made.insert(whole.node(i).output().begin(), whole.node(i).output().end());
  }
  for (const auto& t : whole.initializer())
    if (read.count(t.name()) && !as_input.count(t.name())) {
      *g.add_initializer() = t;
      made.insert(t.name());
    }
  for (const auto& t : whole.sparse_initializer())
    if (read.count(t.values().name())) {
      *g.add_sparse_initializer() = t;
      made.insert(t.values().name());
    }
  for (const std::string& name : reads) {
    if (made.count(name)) continue;
    if (types.find(name) == types.end()) return "";
    *g.add_input() = info_of(name, types);
  }
  const auto add_output = [&](const std::string& name) {
    if (!name.empty() && !dropped.count(name) && wanted.insert(name).second) *g.add_output() = info_of(name, types);
  };
  for (const auto& v : whole.output())
    if (made.count(v.name())) add_output(v.name());
  Names read_before;  // what nobody has read is not needed now
  for (const auto& n : whole.node()) for_each_read(n, [&](const std::string& name) { read_before.insert(name); });
  for (const auto& n : g.node())
    for (const auto& y : n.output())
      if (!read.count(y) && read_before.count(y)) add_output(y);
  return g.output_size() > 0 ? m.SerializeAsString() : "";
}

}  // namespace tc
