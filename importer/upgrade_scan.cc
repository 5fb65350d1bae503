// Scan of version 8 has a batch axis in front of every operand; later versions have none. The Scan goes into the body of
// another one, which runs over the batch axis.
#include "importer/upgrade.h"

namespace tc::importer {

void batch_scan(Upgrade& u) {
  if (u.has_input(0)) throw NoCounterpart{"has sequence lengths, which is not supported"};
  onnx::NodeProto& n = u.node;
  if (n.input_size() > 0) n.mutable_input()->DeleteSubrange(0, 1);
  if (auto directions = u.take("directions")) {
    directions->set_name("scan_input_directions");
    u.set(*directions);
  }
  onnx::NodeProto outer;
  outer.set_op_type("Scan");
  outer.set_name(n.name());
  *outer.mutable_input() = n.input();
  *outer.mutable_output() = n.output();
  *outer.add_attribute() = attribute("num_scan_inputs", int64_t(n.input_size()));
  auto* body = outer.add_attribute();
  body->set_name("body");
  body->set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& g = *body->mutable_g();
  g.set_name("batch");
  onnx::NodeProto& inner = *g.add_node();
  inner = n;
  for (auto& name : *inner.mutable_input()) g.add_input()->set_name(name = u.names().make(name + "/batch"));
  for (auto& name : *inner.mutable_output())
    g.add_output()->set_name(name = u.names().make((name.empty() ? "unused" : name) + "/batch"));
  n = std::move(outer);
}

}  // namespace tc::importer
