#include "importer/splice.h"

#include <unordered_map>

namespace tc::importer {

namespace {

using AttrMap = std::map<std::string, const onnx::AttributeProto*>;

/// Names of one function or of one body inside it; inner scopes hide outer ones.
struct Renames {
  std::unordered_map<std::string, std::string> map;
  const Renames* outer = nullptr;

  const std::string* find(const std::string& name) const {
    for (const Renames* r = this; r; r = r->outer)
      if (const auto it = r->map.find(name); it != r->map.end()) return &it->second;
    return nullptr;
  }
};

class Instantiator {
 public:
  Instantiator(const onnx::FunctionProto& f, const onnx::NodeProto& call, const Naming& naming)
      : f_(f), call_(call), naming_(naming) {
    for (const auto& a : f.attribute_proto()) attrs_[a.name()] = &a;
    for (const auto& a : call.attribute()) attrs_[a.name()] = &a;
  }

  Nodes run() {
    Renames names;
    for (int i = 0; i < f_.input_size(); ++i)
      names.map[f_.input(i)] = i < call_.input_size() ? call_.input(i) : std::string();
    // An output takes the name that the call gives it, unless it is an input too or was listed before.
    std::vector<std::pair<int, std::string>> copies;
    for (int k = 0; k < f_.output_size() && k < call_.output_size(); ++k) {
      if (call_.output(k).empty()) continue;
      if (!names.map.emplace(f_.output(k), call_.output(k)).second) copies.push_back({k, f_.output(k)});
    }
    for (const auto& n : f_.node())
      for (const auto& o : n.output())
        if (!o.empty() && !names.map.count(o)) names.map[o] = fresh(o);
    Nodes out;
    for (const auto& n : f_.node()) add(n, names, *out.Add());
    for (const auto& [k, source] : copies) {
      onnx::NodeProto& copy = *out.Add();
      copy.set_op_type("Identity");
      copy.set_name(node_name(call_.output(k)));
      copy.add_input(rename(source, names));
      copy.add_output(call_.output(k));
    }
    return out;
  }

 private:
  std::string fresh(const std::string& name) const {
    return naming_.unique ? naming_.unique->make(naming_.prefix + "/" + name) : name;
  }
  std::string node_name(const std::string& inner) const {
    return naming_.unique ? naming_.prefix + "/" + inner : inner;
  }
  static std::string rename(const std::string& name, const Renames& names) {
    const std::string* to = name.empty() ? nullptr : names.find(name);
    return to ? *to : name;
  }

  void add(const onnx::NodeProto& from, const Renames& names, onnx::NodeProto& n) {
    n = from;
    n.set_name(node_name(from.name().empty() ? from.op_type() : from.name()));
    for (auto& i : *n.mutable_input()) i = rename(i, names);
    for (auto& o : *n.mutable_output()) o = rename(o, names);
    bind_attributes(n);
    for (onnx::GraphProto* body : mutable_bodies_of(n)) rename_body(*body, names);
  }

  /// Attributes that refer to the call's take its value; without a value they go.
  void bind_attributes(onnx::NodeProto& n) const {
    google::protobuf::RepeatedPtrField<onnx::AttributeProto> bound;
    for (auto& a : *n.mutable_attribute()) {
      if (a.ref_attr_name().empty()) {
        *bound.Add() = std::move(a);
        continue;
      }
      const auto it = attrs_.find(a.ref_attr_name());
      if (it == attrs_.end()) continue;
      onnx::AttributeProto& b = *bound.Add();
      b = *it->second;
      b.set_name(a.name());
    }
    n.mutable_attribute()->Swap(&bound);
  }

  /// The depth of the recursion is that of the bodies, which is limited.
  void rename_body(onnx::GraphProto& g, const Renames& outer) {
    Renames names{{}, &outer};
    for_each_definition(g, [&](const std::string& name) {
      if (!names.map.count(name)) names.map[name] = fresh(name);
    });
    for (auto& v : *g.mutable_input()) v.set_name(rename(v.name(), names));
    for (auto& v : *g.mutable_output()) v.set_name(rename(v.name(), names));
    for (auto& v : *g.mutable_value_info()) v.set_name(rename(v.name(), names));
    for (auto& t : *g.mutable_initializer()) t.set_name(rename(t.name(), names));
    for (auto& n : *g.mutable_node()) {
      const onnx::NodeProto from = std::move(n);
      add(from, names, n);
    }
  }

  const onnx::FunctionProto& f_;
  const onnx::NodeProto& call_;
  const Naming& naming_;
  AttrMap attrs_;
};

}  // namespace

Nodes instantiate(const onnx::FunctionProto& f, const onnx::NodeProto& call, const Naming& naming) {
  return Instantiator(f, call, naming).run();
}

std::string call_prefix(const onnx::NodeProto& call) {
  if (!call.name().empty()) return call.name();
  return call.output_size() > 0 && !call.output(0).empty() ? call.output(0) : call.op_type();
}

}  // namespace tc::importer
