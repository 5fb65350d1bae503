// Between steps 4 and 5: maps at the end of classifiers, as converters of scikit-learn write them, become tensors: C
// has no dictionaries, and the keys are known.
//   y = ZipMap(p) {classlabels_int64s = [0, 1, 2]}, an output  ->  y = Identity(p), columns in the order of the labels
//   label, p = TreeEnsembleClassifier(x) {classlabels_strings = ["a", "b"]}, label an output
//                                                              ->  the same with labels 0, 1, if number_labels asks for it
// Each says so in a warning, with the labels.
//
// Needs: a valid structure. Leaves: no ZipMap whose only use is as an output.
#include "importer/context.h"

namespace tc::importer {

namespace {

constexpr const char* kMl = "ai.onnx.ml";
constexpr int kShownLabels = 20;

/// "0 \"setosa\", 1 \"virginica\"": what the columns or numbers stand for.
std::string list_labels(const onnx::NodeProto& n) {
  std::vector<std::string> labels;
  for (const auto& a : n.attribute()) {
    if (!a.name().starts_with("classlabels_")) continue;
    for (const auto& s : a.strings()) labels.push_back(quoted(s));
    for (const auto v : a.ints()) labels.push_back(to_text(int64_t(v)));
  }
  std::string text;
  for (size_t k = 0; k < labels.size() && k < size_t(kShownLabels); ++k)
    text += (k ? ", " : "") + to_text(int64_t(k)) + ": " + labels[k];
  return text + (labels.size() > size_t(kShownLabels) ? ", ..." : "");
}

std::set<std::string> values_read(onnx::GraphProto& root) {
  std::set<std::string> read;
  for_each_graph(root, [&](onnx::GraphProto& g) {
    for (const auto& n : g.node()) read.insert(n.input().begin(), n.input().end());
    if (&g != &root)
      for (const auto& o : g.output()) read.insert(o.name());
  });
  return read;
}

onnx::ValueInfoProto* output_named(onnx::GraphProto& g, const std::string& name) {
  for (auto& o : *g.mutable_output())
    if (o.name() == name) return &o;
  return nullptr;
}

void replace_zip_map(Context& c, onnx::NodeProto& n, onnx::ValueInfoProto& output) {
  c.warn("TC0163", &n,
         "output " + quoted(output.name()) +
             " is a list of maps in the model and becomes a tensor, one column for each key",
         {"columns: " + list_labels(n)});
  n.set_op_type("Identity");
  n.clear_domain();
  n.clear_attribute();
  output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

/// Labels that are strings become their indices in the list.
void number_labels(Context& c, onnx::NodeProto& n, onnx::ValueInfoProto& output) {
  const std::string ints = n.op_type() == "TreeEnsembleClassifier" ? "classlabels_int64s" : "classlabels_ints";
  for (auto& a : *n.mutable_attribute()) {
    if (a.name() != "classlabels_strings" || a.strings_size() == 0) continue;
    c.warn("TC0163", &n,
           "output " + quoted(output.name()) + " is text in the model and becomes the number of the label",
           {"labels: " + list_labels(n)});
    a.set_name(ints);
    a.set_type(onnx::AttributeProto::INTS);
    for (int k = 0; k < a.strings_size(); ++k) a.add_ints(k);
    a.clear_strings();
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
    return;
  }
}

}  // namespace

void replace_maps(Context& c, onnx::ModelProto& m) {
  onnx::GraphProto& g = *m.mutable_graph();
  const std::set<std::string> read = values_read(g);
  for (auto& n : *g.mutable_node()) {
    if (n.domain() != kMl || n.output_size() == 0 || read.count(n.output(0))) continue;
    onnx::ValueInfoProto* output = output_named(g, n.output(0));
    if (!output) continue;
    if (n.op_type() == "ZipMap" && n.input_size() == 1 && n.output_size() == 1) replace_zip_map(c, n, *output);
    if (c.options.number_labels && n.op_type().ends_with("Classifier")) number_labels(c, n, *output);
  }
}

}  // namespace tc::importer
