// Step 3b: inputs that are sequences or optionals become tensors, whose number and shapes --elements states. The rest
// of the model sees what it saw before:
//
//   input x: seq(float[N, 4])  with  --elements x=3x4,5x4
//   ->   inputs x_0: float[3, 4], x_1: float[5, 4]   x = SequenceConstruct(x_0, x_1)
//
// An optional is what its one element makes it; --elements x=none makes it empty. A map is its keys and its values, and
// the operators that read maps take both:
//
//   input x: map(string, float)  y = DictVectorizer(x)   with  --elements x=5
//   ->   inputs x_keys: string[5], x_values: float[5]    y = DictVectorizer(x_keys, x_values)
#include <algorithm>

#include "importer/context.h"
#include "importer/scope.h"
#include "importer/tensors.h"

namespace tc::importer {

namespace {

class ListInputs {
 public:
  ListInputs(Context& c, onnx::ModelProto& m) : c_(c), graph_(*m.mutable_graph()) { names_.add_graph(graph_); }

  void run() {
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
    for (const auto& v : graph_.input()) {
      if (v.type().has_sequence_type() || v.type().has_optional_type())
        open(v, inputs);
      else if (v.type().has_map_type())
        open_map(v, inputs);
      else
        *inputs.Add() = v;
    }
    for (const auto& [name, elements] : c_.options.elements)
      if (!used_.count(name))
        c_.error("TC0151", ExitCode::Usage, nullptr,
                 "--elements " + printable(name) + " names no sequence, optional or map input");
    if (made_.empty() && !maps_) return;
    graph_.mutable_input()->Swap(&inputs);
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes(made_.begin(), made_.end());
    nodes.MergeFrom(graph_.node());
    graph_.mutable_node()->Swap(&nodes);
  }

 private:
  void open(const onnx::ValueInfoProto& v, google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& inputs) {
    const auto it = c_.options.elements.find(v.name());
    if (it == c_.options.elements.end()) {
      *inputs.Add() = v;  // whoever looks into it says what is missing
      return;
    }
    used_.insert(v.name());
    const bool optional = v.type().has_optional_type();
    const onnx::TypeProto& inside = optional ? v.type().optional_type().elem_type() : v.type();
    const onnx::TypeProto& element = inside.has_sequence_type() ? inside.sequence_type().elem_type() : inside;
    const ListElements& given = it->second;
    const std::string by = "--elements " + printable(v.name());
    if (!element.has_tensor_type())
      return c_.error("TC0304", ExitCode::Unsupported, nullptr, "input " + quoted(v.name()) + " does not hold tensors");
    if (!given.present && !optional)
      return c_.error("TC0152", ExitCode::Usage, nullptr, by + "=none: the input is a sequence, no optional");
    if (given.present && !inside.has_sequence_type() && given.shapes.size() != 1)
      return c_.error("TC0152", ExitCode::Usage, nullptr, by + ": the input holds one tensor");
    std::vector<std::string> tensors;
    for (const Dims& shape : given.shapes) {
      onnx::ValueInfoProto& t = *inputs.Add();
      t.set_name(names_.make(v.name() + "_" + to_text(int64_t(tensors.size()))));
      *t.mutable_type() = element;
      if (!set_shape(*t.mutable_type()->mutable_tensor_type(), shape))
        return c_.error("TC0152", ExitCode::Usage, nullptr,
                        by + ": the shape of tensor " + to_text(int64_t(tensors.size())) + " contradicts the model");
      tensors.push_back(t.name());
    }
    if (!given.present) return optional_node(v, {});
    const std::string list = optional && inside.has_sequence_type() ? names_.make(v.name() + "_elements") : v.name();
    if (inside.has_sequence_type()) sequence_node(list, element, tensors);
    if (optional) optional_node(v, inside.has_sequence_type() ? list : tensors.at(0));
  }

  void open_map(const onnx::ValueInfoProto& v, google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& inputs) {
    const std::string who = "input " + quoted(v.name());
    const auto& type = v.type().map_type();
    const auto it = c_.options.elements.find(v.name());
    if (!type.value_type().has_tensor_type() || element_type(type.key_type()) == DType::Undefined ||
        element_type(type.value_type().tensor_type().elem_type()) == DType::Undefined)
      return c_.error("TC0153", ExitCode::Unsupported, nullptr, who + " is a map of a type that is not supported");
    if (it == c_.options.elements.end())
      return c_.reject("TC0150", nullptr, who + " is a map; code is made for a fixed number of entries",
                       {"say how many it has: --elements " + printable(v.name()) + "=5 (for example)"});
    used_.insert(v.name());
    if (!it->second.present || it->second.shapes.size() != 1 || it->second.shapes[0].size() != 1)
      return c_.error("TC0152", ExitCode::Usage, nullptr,
                      "--elements " + printable(v.name()) + " needs the number of entries of the map, as in 5");
    std::string names[2];
    for (int k = 0; k < 2; ++k) {
      onnx::ValueInfoProto& t = *inputs.Add();
      t.set_name(names[k] = names_.make(v.name() + (k == 0 ? "_keys" : "_values")));
      auto& tensor = *t.mutable_type()->mutable_tensor_type();
      tensor.set_elem_type(k == 0 ? type.key_type() : type.value_type().tensor_type().elem_type());
      tensor.mutable_shape()->add_dim()->set_dim_value(it->second.shapes[0][0]);
    }
    maps_ = true;
    for_each_graph(graph_, [&](onnx::GraphProto& g) {
      for (auto& n : *g.mutable_node()) take_parts(n, v.name(), names);
    });
  }

  /// A node that reads a map reads its keys and values.
  void take_parts(onnx::NodeProto& n, const std::string& map, const std::string (&names)[2]) {
    if (std::find(n.input().begin(), n.input().end(), map) == n.input().end()) return;
    if (n.domain() != "ai.onnx.ml" || (n.op_type() != "DictVectorizer" && n.op_type() != "CastMap"))
      return c_.error("TC0153", ExitCode::Unsupported, &n,
                      "only DictVectorizer and CastMap take an input that is a map");
    n.set_input(0, names[0]);
    n.add_input(names[1]);
  }

  static bool set_shape(onnx::TypeProto::Tensor& t, const Dims& shape) {
    if (t.has_shape() && t.shape().dim_size() != int(shape.size())) return false;
    auto& dims = *t.mutable_shape();
    while (dims.dim_size() < int(shape.size())) dims.add_dim();
    for (int k = 0; k < dims.dim_size(); ++k) {
      if (dims.dim(k).has_dim_value() && dims.dim(k).dim_value() >= 0 && dims.dim(k).dim_value() != shape[size_t(k)])
        return false;
      dims.mutable_dim(k)->set_dim_value(shape[size_t(k)]);
    }
    return true;
  }

  void sequence_node(const std::string& name, const onnx::TypeProto& element, const std::vector<std::string>& tensors) {
    onnx::NodeProto n;
    n.set_op_type(tensors.empty() ? "SequenceEmpty" : "SequenceConstruct");
    for (const std::string& t : tensors) n.add_input(t);
    n.add_output(name);
    if (tensors.empty()) {
      auto& a = *n.add_attribute();
      a.set_name("dtype");
      a.set_type(onnx::AttributeProto::INT);
      a.set_i(element.tensor_type().elem_type());
    }
    made_.push_back(std::move(n));
  }

  void optional_node(const onnx::ValueInfoProto& v, const std::string& value) {
    onnx::NodeProto n;
    n.set_op_type("Optional");
    n.add_output(v.name());
    if (!value.empty()) {
      n.add_input(value);
    } else {
      auto& a = *n.add_attribute();
      a.set_name("type");
      a.set_type(onnx::AttributeProto::TYPE_PROTO);
      *a.mutable_tp() = v.type().optional_type().elem_type();
    }
    made_.push_back(std::move(n));
  }

  Context& c_;
  onnx::GraphProto& graph_;
  UniqueNames names_;
  std::set<std::string> used_;
  bool maps_ = false;  // an input was one
  std::vector<onnx::NodeProto> made_;
};

}  // namespace

void open_lists(Context& c, onnx::ModelProto& m) { ListInputs(c, m).run(); }

}  // namespace tc::importer
