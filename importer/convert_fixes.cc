#include "importer/convert_fixes.h"

#include <algorithm>

#include "importer/types.h"

namespace tc::importer {

namespace {

/// The depth of the recursion is that of the bodies, which is limited.
void fix_prelu_in(onnx::GraphProto& g, const TypeScope* outer, UniqueNames& names) {
  const TypeScope scope(g, outer);
  google::protobuf::RepeatedPtrField<onnx::NodeProto> out;
  for (auto& n : *g.mutable_node()) {
    for (onnx::GraphProto* body : mutable_bodies_of(n)) fix_prelu_in(*body, &scope, names);
    const bool is_prelu = n.op_type() == "PRelu" && domain_of(n.domain()).empty() && n.input_size() == 2;
    const onnx::TypeProto* slope = is_prelu ? scope.type(n.input(1)) : nullptr;
    const int rank = is_prelu ? rank_of(scope.type(n.input(0))) : -1;
    if (rank > 2 && rank_of(slope) == 1 && slope->tensor_type().shape().dim(0).dim_value() != 1) {
      onnx::NodeProto& unsqueeze = *out.Add();
      unsqueeze.set_op_type("Unsqueeze");
      unsqueeze.set_name(n.name().empty() ? "" : n.name() + "/slope");
      unsqueeze.add_input(n.input(1));
      unsqueeze.add_output(names.make(n.input(1) + "/unsqueezed"));
      auto* axes = unsqueeze.add_attribute();
      axes->set_name("axes");
      axes->set_type(onnx::AttributeProto::INTS);
      for (int k = 1; k < rank - 1; ++k) axes->add_ints(k);
      n.set_input(1, unsqueeze.output(0));
    }
    *out.Add() = n;  // a copy: `scope` points into the old nodes
  }
  g.mutable_node()->Swap(&out);
}

bool is_scan(const onnx::NodeProto& n) { return n.op_type() == "Scan" && domain_of(n.domain()).empty(); }

constexpr const char* kSimplifiedNorm = "SimplifiedLayerNormalization";
constexpr const char* kNorm = "LayerNormalization";
constexpr int64_t kFirstNorm = 17;  // the first operator set that has it
constexpr const char* kHiddenDomain = "com.microsoft";

std::string first_output(const onnx::NodeProto& n) {
  for (const auto& o : n.output())
    if (!o.empty()) return o;
  return "";
}

}  // namespace

void fix_prelu_slopes(onnx::ModelProto& m) {
  UniqueNames names;
  names.add_graph(*m.mutable_graph());
  fix_prelu_in(*m.mutable_graph(), nullptr, names);
}

bool is_early_norm(const onnx::NodeProto& n, int64_t version) {
  return n.op_type() == kNorm && domain_of(n.domain()).empty() && version < kFirstNorm;
}

void give_intercepts(onnx::ModelProto& m) {
  for_each_graph(*m.mutable_graph(), [](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node()) {
      if (n.op_type() != "LinearClassifier" || domain_of(n.domain()) != "ai.onnx.ml") continue;
      int labels = 0;
      bool given = false;
      for (const auto& a : n.attribute()) {
        if (a.name() == "classlabels_ints") labels = std::max(labels, a.ints_size());
        if (a.name() == "classlabels_strings") labels = std::max(labels, a.strings_size());
        given = given || a.name() == "intercepts";
      }
      if (given || labels < 3) continue;  // two labels may have one row of coefficients
      onnx::AttributeProto* intercepts = n.add_attribute();
      intercepts->set_name("intercepts");
      intercepts->set_type(onnx::AttributeProto::FLOATS);
      for (int k = 0; k < labels; k++) intercepts->add_floats(0);
    }
  });
}

void hide_norms(onnx::ModelProto& m) {
  const int64_t version = opset_of(m.opset_import(), "");
  for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node())
      if ((n.op_type() == kSimplifiedNorm && domain_of(n.domain()).empty()) || is_early_norm(n, version))
        n.set_domain(kHiddenDomain);
  });
}

bool show_norms(onnx::ModelProto& m) {
  bool changed = false;
  for_each_graph(*m.mutable_graph(), [&](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node()) {
      if (n.domain() != kHiddenDomain) continue;
      // A second output, the inverse deviation, has no counterpart: such a node stays and is reported.
      if (n.op_type() == kSimplifiedNorm && n.output_size() == 1) {
        n.set_op_type("RMSNormalization");
        n.clear_domain();
      }
      if (n.op_type() == kNorm) n.clear_domain();
      changed = changed || n.domain().empty();
    }
  });
  return changed;
}

void restore_upsample(onnx::ModelProto& m) {
  for_each_graph(*m.mutable_graph(), [](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node()) {
      if (n.op_type() != "Resize" || !domain_of(n.domain()).empty() || n.input_size() != 3) continue;
      n.set_op_type("Upsample");
      n.mutable_input()->DeleteSubrange(1, 1);  // the region of interest
      google::protobuf::RepeatedPtrField<onnx::AttributeProto> kept;
      for (auto& a : *n.mutable_attribute())
        if (a.name() == "mode") *kept.Add() = std::move(a);
      n.mutable_attribute()->Swap(&kept);
    }
  });
}

bool Scan8::collect(Context& c, onnx::GraphProto& root) {
  bool ok = true;
  for_each_graph(root, [&](onnx::GraphProto& g) {
    for (const auto& n : g.node()) {
      if (!is_scan(n)) continue;
      outputs_.insert(first_output(n));
      if (n.input_size() > 0 && !n.input(0).empty()) {
        c.error("TC0160", ExitCode::Unsupported, &n, "Scan of opset 8 with sequence lengths is not supported",
                {"export the model with opset_version=9 or newer"});
        ok = false;
      }
    }
  });
  return ok;
}

void Scan8::batch(onnx::GraphProto& root) {
  if (outputs_.empty()) return;
  UniqueNames names;
  names.add_graph(root);
  std::vector<onnx::NodeProto*> scans;
  for_each_graph(root, [&](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node())
      if (is_scan(n) && outputs_.count(first_output(n))) scans.push_back(&n);
  });
  // Inner ones first: wrapping an outer one moves it.
  for (size_t i = scans.size(); i-- > 0;) {
    onnx::NodeProto& n = *scans[i];
    onnx::NodeProto outer;
    outer.set_op_type("Scan");
    outer.set_name(n.name());
    *outer.mutable_input() = n.input();
    *outer.mutable_output() = n.output();
    auto* count = outer.add_attribute();
    count->set_name("num_scan_inputs");
    count->set_type(onnx::AttributeProto::INT);
    count->set_i(n.input_size());
    auto* body = outer.add_attribute();
    body->set_name("body");
    body->set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& g = *body->mutable_g();
    g.set_name("batch");
    onnx::NodeProto& inner = *g.add_node();
    inner = n;
    for (auto& name : *inner.mutable_input()) g.add_input()->set_name(name = names.make(name + "/batch"));
    for (auto& name : *inner.mutable_output())
      g.add_output()->set_name(name = names.make((name.empty() ? "unused" : name) + "/batch"));
    n = std::move(outer);
  }
}

}  // namespace tc::importer
