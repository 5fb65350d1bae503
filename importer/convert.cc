// Step 6: graph and bodies are converted to the newest operator set by ONNX's own converter, so that one version of
// every operator has to be defined here. Shapes are inferred before (several adapters look at them), and what the
// converter is known to get wrong is put right: PRelu before version 7, Scan of version 8, Resize of version 10
// (convert_fixes.cc).
//
// Needs: weights stored away (tensors.h), calls inlined. Leaves: a model at newest_opset() with the types that ONNX
// infers.
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>
#include <onnx/version_converter/adapters/compatible.h>
#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <set>

#include "importer/convert_fixes.h"
#include "importer/shape_registry.h"

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

/// Runs ONNX's inference on a copy; false and the reason if it throws.
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

/// Every operator of the default set has a schema in the version that the model uses; the converter gives up otherwise.
bool all_known(const onnx::ModelProto& m) {
  bool known = true;
  for_each_graph(const_cast<onnx::GraphProto&>(m.graph()), [&](onnx::GraphProto& g) {
    for (const auto& n : g.node()) known = known && (!domain_of(n.domain()).empty() || schema_of(m, n));
  });
  return known;
}

bool defined_anew(const std::string& op, int from, int to) {
  return onnx::OpSchemaRegistry::Schema(op, from) != onnx::OpSchemaRegistry::Schema(op, to);
}

/// What the converter would do with an operator.
class Adapters : public onnx::version_conversion::DefaultVersionConverter {
 public:
  /// Nothing, on the way from one operator set to another: where its definition changes, it only takes more types.
  bool keep(const std::string& op, int from, int to) const {
    const auto of_op = adapters.find(op);
    for (int v = from; v < to; ++v) {
      if (!defined_anew(op, v, v + 1)) continue;
      if (of_op == adapters.end()) return false;
      const auto step = of_op->second.find(onnx::OpSetID("", v).toString());
      if (step == of_op->second.end()) return false;
      const auto adapter = step->second.find(onnx::OpSetID("", v + 1).toString());
      if (adapter == step->second.end()) return false;
      if (!dynamic_cast<const onnx::version_conversion::CompatibleAdapter*>(adapter->second.get())) return false;
    }
    return true;
  }
};

/// Some node changes between the model's operator set and the newest one. Most models need none of the converter's work,
/// which takes as long as the rest of an import. Sets up to 10 always do: their fixes go around the converter.
bool needs_converter(const onnx::ModelProto& m) {
  const int version = int(opset_of(m.opset_import(), ""));
  if (version <= 10) return true;
  std::set<std::string> operators;
  for_each_graph(const_cast<onnx::GraphProto&>(m.graph()), [&](onnx::GraphProto& g) {
    for (const auto& n : g.node())
      if (domain_of(n.domain()).empty() && defined_anew(n.op_type(), version, newest_opset()))
        operators.insert(n.op_type());
  });
  if (operators.empty()) return false;
  const Adapters adapters;  // takes as long as an import of many nodes
  return !std::all_of(operators.begin(), operators.end(),
                      [&](const std::string& op) { return adapters.keep(op, version, newest_opset()); });
}

void set_default_opset(onnx::ModelProto& m, int64_t version) {
  for (auto& o : *m.mutable_opset_import())
    if (domain_of(o.domain()).empty()) return o.set_version(version);
  m.add_opset_import()->set_version(version);
}

/// The declared types of inputs and outputs, which adapters may have changed on their way.
void restore_ports(const onnx::GraphProto& from, onnx::GraphProto& to) {
  *to.mutable_input() = from.input();
  *to.mutable_output() = from.output();
  *to.mutable_value_info() = from.value_info();
  to.set_name(from.name());
}

/// What the model declares of its outputs is set aside while types are inferred, because ONNX's inference lets it pass
/// when it contradicts the operators, and comes back where nothing better is known.
class DeclaredOutputs {
 public:
  explicit DeclaredOutputs(onnx::ModelProto& m) : declared_(m.graph().output()) {
    std::unordered_set<std::string> known;
    for (const auto& n : m.graph().node())
      if (schema_of(m, n)) known.insert(n.output().begin(), n.output().end());
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

bool run_converter(Context& c, onnx::ModelProto& m) {
  onnx::ModelProto converted;
  try {
    converted = onnx::version_conversion::ConvertVersion(m, newest_opset());
  } catch (const std::exception& e) {
    c.error("TC0160", ExitCode::Unsupported, nullptr,
            "the model cannot be converted from opset " + to_text(opset_of(m.opset_import(), "")) + " to " +
                to_text(int64_t(newest_opset())) + ": " + first_line(e.what()),
            {"export the model with a newer opset_version"});
    return false;
  }
  if (opset_of(converted.opset_import(), "") != newest_opset()) {
    c.error("TC0160", ExitCode::Unsupported, nullptr, "the model cannot be converted to the newest operator set");
    return false;
  }
  restore_ports(m.graph(), *converted.mutable_graph());
  m.mutable_graph()->Swap(converted.mutable_graph());
  return true;
}

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
           "declared shapes of the model contradict its operators and are not used: " + first_line(why));
    m = std::move(bare);
    return;
  }
  c.reject("TC0161", nullptr, "the types of the model contradict each other: " + first_line(second));
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
  hide_norms(m);
  give_intercepts(m);
  tidy(m);
  if (!all_known(m)) return false;
  const DeclaredOutputs outputs(m);
  const int64_t version = opset_of(m.opset_import(), "");
  if (version == 0) set_default_opset(m, newest_opset());
  infer_shapes(c, m);
  if (c.errors != before) return false;
  bool changed = false;
  if (version > 0 && version < newest_opset()) {
    if (needs_converter(m)) {
      changed = true;
      if (version < 7) fix_prelu_slopes(m);
      Scan8 scans;
      if (version <= 8 && !scans.collect(c, *m.mutable_graph())) return false;
      if (!run_converter(c, m)) return false;
      scans.batch(*m.mutable_graph());
      if (version <= 10) restore_upsample(m);
    }
    set_default_opset(m, newest_opset());
  }
  if (show_norms(m)) changed = true;
  materialise_defaults(m);
  if (changed) infer_shapes(c, m);
  outputs.settle(c, m);
  return c.errors == before;
}

}  // namespace tc::importer

namespace tc {

int newest_opset() {
  static const int version = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second;
  return version;
}

}  // namespace tc
