// Step 6: graph and bodies are brought to the newest operator set, so that one version of every operator has to be defined
// here. The rules are a table (upgrade_rules.cc): ONNX's own converter lacks many, and has some wrong. Shapes are inferred
// before, because several rules look at them.
//
// Needs: weights stored away (tensors.h), calls inlined. Leaves: a model at newest_opset() with the types that ONNX
// infers.
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <map>
#include <set>

#include "importer/infer.h"
#include "importer/norms.h"
#include "importer/shape_registry.h"
#include "importer/types.h"
#include "importer/upgrade.h"

namespace tc::importer {

namespace {

/// IR version that conversion works with: adapters add initializers that are no inputs, older versions do not allow
/// that.
constexpr int64_t kIrVersion = 10;

const onnx::OpSchema* schema_of(const onnx::ModelProto& m, const onnx::NodeProto& n) {
  const std::string domain = domain_of(n.domain());
  return onnx::OpSchemaRegistry::Schema(n.op_type(), int(opset_of(m.opset_import(), domain)), domain);
}

/// Initializers that are listed as inputs become plain constants; stale types go, but for outputs of operators that
/// ONNX knows nothing about, where the model's word is all there is.
void tidy(onnx::ModelProto& m) {
  m.set_ir_version(std::max<int64_t>(m.ir_version(), kIrVersion));
  // Operators that have rows are taken from domains that the model forgot to import; inference insists on an import.
  std::set<std::string> missing;
  for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& g) {
    for (const auto& n : g.node())
      if (opset_of(m.opset_import(), domain_of(n.domain())) == 0) missing.insert(domain_of(n.domain()));
  });
  for (const std::string& domain : missing) {
    if (domain.empty()) continue;
    auto* o = m.add_opset_import();
    o->set_domain(domain);
    o->set_version(1);
  }
  for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& g) {
    std::unordered_set<std::string> initializers, foreign;
    for (const auto& t : g.initializer()) initializers.insert(t.name());
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs, infos;
    for (auto& v : *g.mutable_input())
      if (!initializers.count(v.name())) *inputs.Add() = std::move(v);
    g.mutable_input()->Swap(&inputs);
    for (const auto& n : g.node())
      if (!schema_of(m, n)) foreign.insert(n.output().begin(), n.output().end());
    for (auto& v : *g.mutable_value_info())
      if (foreign.count(v.name())) *infos.Add() = std::move(v);
    g.mutable_value_info()->Swap(&infos);
  });
}

}  // namespace

bool try_infer(onnx::ModelProto& m, std::string& why) {
  onnx::ModelProto copy = m;
  try {
    const onnx::ShapeInferenceOptions options(/*check_type=*/false, /*strict_mode=*/0, /*data_prop=*/true);
    const ShapeRegistry schemas;
    onnx::shape_inference::InferShapes(copy, &schemas, options);
  } catch (const std::exception& e) {
    why = e.what();
    return false;
  }
  m = std::move(copy);
  return true;
}

namespace {

/// Every operator of the default set is one of ONNX's; the others are reported, and nothing can be said about what
/// follows them.
bool all_known(const onnx::ModelProto& m) {
  bool known = true;
  for_each_graph(const_cast<onnx::GraphProto&>(m.graph()), [&](onnx::GraphProto& g) {
    for (const auto& n : g.node())
      known = known && (!domain_of(n.domain()).empty() || onnx::OpSchemaRegistry::Schema(n.op_type()));
  });
  return known;
}

/// Some operator has no definition in the model's operator set: inference did not know it.
bool some_too_new(const onnx::ModelProto& m) {
  bool found = false;
  for_each_graph(const_cast<onnx::GraphProto&>(m.graph()), [&](onnx::GraphProto& g) {
    for (const auto& n : g.node()) found = found || (domain_of(n.domain()).empty() && !schema_of(m, n));
  });
  return found;
}

void set_default_opset(onnx::ModelProto& m, int64_t version) {
  for (auto& o : *m.mutable_opset_import())
    if (domain_of(o.domain()).empty()) return o.set_version(version);
  m.add_opset_import()->set_version(version);
}

/// What the model declares of its outputs is set aside while types are inferred, because ONNX's inference lets it pass
/// when it contradicts the operators, and comes back where nothing better is known.
class DeclaredOutputs {
 public:
  explicit DeclaredOutputs(onnx::ModelProto& m) : declared_(m.graph().output()) {
    std::unordered_set<std::string> known;
    for (const auto& n : m.graph().node())
      if (schema_of(m, n) && n.op_type() != "DictVectorizer")  // its type is that of a map's values
        known.insert(n.output().begin(), n.output().end());
    for (auto& v : *m.mutable_graph()->mutable_output())
      if (known.count(v.name()) && v.type().has_tensor_type()) v.clear_type();
  }

  /// Compares and completes the inferred types.
  void settle(Context& c, onnx::ModelProto& m) const {
    auto& outputs = *m.mutable_graph()->mutable_output();
    check(outputs.size() == declared_.size(), "conversion changed the number of outputs");
    for (int k = 0; k < outputs.size(); ++k) {
      const auto& before = declared_[k];
      auto& now = outputs[k];
      if (now.type().value_case() == onnx::TypeProto::VALUE_NOT_SET) *now.mutable_type() = before.type();
      if (!before.type().has_tensor_type()) continue;
      const auto& declared = before.type().tensor_type();
      if (now.type().has_tensor_type() && now.type().tensor_type().elem_type() == 0)  // inference knew the shape alone
        now.mutable_type()->mutable_tensor_type()->set_elem_type(declared.elem_type());
      const std::string who = "output " + quoted(before.name());
      if (!now.type().has_tensor_type() ||
          (declared.elem_type() != 0 && declared.elem_type() != now.type().tensor_type().elem_type())) {
        c.reject("TC0161", nullptr,
                 who + " is declared as " + to_text(value_type(before.type())) + ", but its node makes " +
                     to_text(value_type(now.type())));
        continue;
      }
      complete(c, who, before.type(), *now.mutable_type());
    }
  }

 private:
  static void complete(Context& c, const std::string& who, const onnx::TypeProto& before, onnx::TypeProto& now) {
    const auto& declared = before.tensor_type();
    auto& tensor = *now.mutable_tensor_type();
    if (!declared.has_shape()) return;
    if (!tensor.has_shape()) {
      *tensor.mutable_shape() = declared.shape();
      return;
    }
    bool differs = declared.shape().dim_size() != tensor.shape().dim_size();
    for (int i = 0; !differs && i < declared.shape().dim_size(); ++i) {
      const auto& theirs = declared.shape().dim(i);
      auto& ours = *tensor.mutable_shape()->mutable_dim(i);
      if (!theirs.has_dim_value()) continue;
      if (!ours.has_dim_value()) ours.set_dim_value(theirs.dim_value());
      differs = ours.dim_value() != theirs.dim_value();
    }
    if (differs)
      c.warn(
          "TC0162", nullptr,
          who + " is declared as " + to_text(value_type(before)) + ", but its node makes " + to_text(value_type(now)));
  }

  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> declared_;
};

/// What the model declares of values inside of the main graph: taken where inference has no number for a size, as where
/// it depends on data. It is said of inputs of the model's own sizes: with others, or with ranges, it says nothing.
class DeclaredInside {
 public:
  explicit DeclaredInside(const Context& c, const onnx::ModelProto& m) {
    const auto& dims = c.options.dims;
    const bool others = !c.options.input_shapes.empty() || std::any_of(dims.begin(), dims.end(), [](const auto& d) {
      return d.first.find(':') != std::string::npos || !d.second.is_fixed();
    });
    if (others) return;
    for (const auto& v : m.graph().value_info())
      if (rank_of(&v.type()) >= 0) declared_[v.name()] = v.type().tensor_type().shape();
  }

  void settle(onnx::ModelProto& m) const {
    for (auto& v : *m.mutable_graph()->mutable_value_info()) {
      const auto found = declared_.find(v.name());
      if (found == declared_.end() || rank_of(&v.type()) != found->second.dim_size()) continue;
      for (int i = 0; i < found->second.dim_size(); ++i) {
        auto& ours = *v.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(i);
        if (found->second.dim(i).has_dim_value() && !ours.has_dim_value())
          ours.set_dim_value(found->second.dim(i).dim_value());
      }
    }
  }

 private:
  std::map<std::string, onnx::TensorShapeProto> declared_;
};

}  // namespace

void infer_shapes(Context& c, onnx::ModelProto& m) {
  std::string why;
  if (try_infer(m, why)) return;
  // Declared shapes of outputs are often stale; they are not needed.
  onnx::ModelProto bare = m;
  for_each_graph(*bare.mutable_graph(), [&](onnx::GraphProto& g) {
    g.clear_value_info();
    for (auto& v : *g.mutable_output())
      if (v.type().has_tensor_type()) v.mutable_type()->mutable_tensor_type()->clear_shape();
  });
  std::string second;
  if (try_infer(bare, second)) {
    c.warn("TC0162", nullptr,
           "declared shapes of the model contradict its operators and are not used: " + reason_of(why));
    m = std::move(bare);
    return;
  }
  c.reject("TC0161", nullptr, "the types of the model contradict each other: " + reason_of(second));
}

void materialise_defaults(onnx::ModelProto& m) {
  for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node()) {
      const onnx::OpSchema* schema = schema_of(m, n);
      if (!schema) continue;
      std::set<std::string> given;
      for (const auto& a : n.attribute()) given.insert(a.name());
      const std::map<std::string, onnx::OpSchema::Attribute> sorted(schema->attributes().begin(),
                                                                    schema->attributes().end());
      for (const auto& [name, spec] : sorted)
        if (!given.count(name) && spec.default_value.type() != onnx::AttributeProto::UNDEFINED) {
          *n.add_attribute() = spec.default_value;
          n.mutable_attribute(n.attribute_size() - 1)->set_name(name);
        }
    }
  });
}

bool convert_to_newest(Context& c, onnx::ModelProto& m) {
  const int before = c.errors;
  const DeclaredInside inside(c, m);
  name_norms(m);
  name_encoders(m);
  give_intercepts(m);
  tidy(m);
  if (!all_known(m)) return false;
  const DeclaredOutputs outputs(m);
  const int64_t version = opset_of(m.opset_import(), "");
  if (version == 0) set_default_opset(m, newest_opset());
  // Inference knows less of old definitions; what it knows of newer ones stays true.
  bool changed = version > 0 && (version <= 10 || some_too_new(m));
  infer_shapes(c, m);
  if (c.errors != before) return false;
  if (version > 0 && version < newest_opset() && !upgrade_nodes(c, m, changed)) return false;
  materialise_defaults(m);
  if (changed) infer_shapes(c, m);
  outputs.settle(c, m);
  inside.settle(m);
  return c.errors == before;
}

}  // namespace tc::importer

namespace tc {

int newest_opset() {
  static const int version = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second;
  return version;
}

}  // namespace tc
