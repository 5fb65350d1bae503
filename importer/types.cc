#include "importer/types.h"

namespace tc::importer {

TypeScope::TypeScope(const onnx::GraphProto& g, const TypeScope* outer) : outer_(outer) {
  auto add = [&](const onnx::ValueInfoProto& v) {
    if (v.has_type() && v.type().value_case() != onnx::TypeProto::VALUE_NOT_SET) types_[v.name()] = &v.type();
  };
  for (const auto& v : g.value_info()) add(v);
  for (const auto& v : g.input()) add(v);
  for (const auto& v : g.output()) add(v);
  auto add_constant = [&](const std::string& name, const onnx::TensorProto& t) {
    constants_[name] = &t;
    auto& tensor = *constant_types_[name].mutable_tensor_type();
    tensor.set_elem_type(t.data_type());
    tensor.mutable_shape();
    for (const int64_t d : t.dims()) tensor.mutable_shape()->add_dim()->set_dim_value(d);
  };
  for (const auto& t : g.initializer()) add_constant(t.name(), t);
  for (const auto& n : g.node())
    if (n.op_type() == "Constant" && domain_of(n.domain()).empty() && n.output_size() == 1)
      for (const auto& a : n.attribute())
        if (a.name() == "value" && a.has_t()) add_constant(n.output(0), a.t());
}

const onnx::TypeProto* TypeScope::type(const std::string& name) const {
  for (const TypeScope* s = this; s; s = s->outer_) {
    if (const auto it = s->constant_types_.find(name); it != s->constant_types_.end()) return &it->second;
    if (const auto it = s->types_.find(name); it != s->types_.end()) return it->second;
  }
  return nullptr;
}

const onnx::TensorProto* TypeScope::constant(const std::string& name) const {
  for (const TypeScope* s = this; s; s = s->outer_)
    if (const auto it = s->constants_.find(name); it != s->constants_.end()) return it->second;
  return nullptr;
}

int rank_of(const onnx::TypeProto* t) {
  return t && t->has_tensor_type() && t->tensor_type().has_shape() ? t->tensor_type().shape().dim_size() : -1;
}

}  // namespace tc::importer
