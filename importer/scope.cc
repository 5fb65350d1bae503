#include "importer/scope.h"

namespace tc::importer {

namespace {

/// Adds what `g` reads and does not define to `out`. The depth of the recursion is that of the bodies, which is
/// limited.
void collect_free(const onnx::GraphProto& g, std::unordered_set<std::string>& seen, std::vector<std::string>& out) {
  std::unordered_set<std::string> own;
  for_each_definition(g, [&](const std::string& name) { own.insert(name); });
  auto use = [&](const std::string& name) {
    if (!name.empty() && !own.count(name) && seen.insert(name).second) out.push_back(name);
  };
  for (const auto& n : g.node()) {
    for (const auto& i : n.input()) use(i);
    for (const onnx::GraphProto* body : bodies_of(n))
      for (const std::string& name : free_names(*body)) use(name);
  }
  for (const auto& o : g.output()) use(o.name());
}

}  // namespace

std::vector<std::string> free_names(const onnx::GraphProto& g) {
  std::unordered_set<std::string> seen;
  std::vector<std::string> out;
  collect_free(g, seen, out);
  return out;
}

void for_each_definition(const onnx::GraphProto& g, const std::function<void(const std::string&)>& f) {
  for (const auto& v : g.input()) f(v.name());
  for (const auto& t : g.initializer()) f(t.name());
  for (const auto& s : g.sparse_initializer()) f(s.values().name());
  for (const auto& n : g.node())
    for (const auto& o : n.output())
      if (!o.empty()) f(o);
}

std::vector<const onnx::GraphProto*> bodies_of(const onnx::NodeProto& n) {
  std::vector<const onnx::GraphProto*> out;
  for (const auto& a : n.attribute()) {
    if (a.has_g()) out.push_back(&a.g());
    for (const auto& g : a.graphs()) out.push_back(&g);
  }
  return out;
}

std::vector<onnx::GraphProto*> mutable_bodies_of(onnx::NodeProto& n) {
  std::vector<onnx::GraphProto*> out;
  for (auto& a : *n.mutable_attribute()) {
    if (a.has_g()) out.push_back(a.mutable_g());
    for (auto& g : *a.mutable_graphs()) out.push_back(&g);
  }
  return out;
}

void UniqueNames::add_graph(onnx::GraphProto& g) {
  for_each_graph(g, [&](onnx::GraphProto& inner) {
    for_each_definition(inner, [&](const std::string& name) { taken_.insert(name); });
  });
}

std::string UniqueNames::make(const std::string& wish) {
  if (taken_.insert(wish).second) return wish;
  for (int64_t& n = next_[wish];;) {
    std::string name = wish + "_" + to_text(++n);
    if (taken_.insert(name).second) return name;
  }
}

}  // namespace tc::importer
