// Names of one graph: each is defined once, each use has a definition, and nodes stand after what they read. A model
// whose nodes are out of order but free of cycles is put in order (exporters do write such models); a cycle is an
// error.
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "importer/validate.h"

namespace tc::importer {

namespace {

/// What a node reads: its inputs, and what its bodies read from outside. The index is that of the input, -1 for a body.
std::vector<std::pair<std::string, int>> uses_of(const onnx::NodeProto& n) {
  std::vector<std::pair<std::string, int>> uses;
  for (int i = 0; i < n.input_size(); ++i)
    if (!n.input(i).empty()) uses.push_back({n.input(i), i});
  for (const onnx::GraphProto* body : bodies_of(n))
    for (std::string& name : free_names(*body)) uses.push_back({std::move(name), -1});
  return uses;
}

/// A cycle among the nodes that could not be sorted, as "a -> b -> a" in node or output names.
std::string describe_cycle(const onnx::GraphProto& g, const std::vector<std::vector<int>>& needs,
                           const std::vector<int>& waiting) {
  int at = 0;
  while (waiting[size_t(at)] == 0) ++at;
  std::vector<int> path, seen(waiting.size(), -1);
  while (seen[size_t(at)] < 0) {
    seen[size_t(at)] = int(path.size());
    path.push_back(at);
    for (const int k : needs[size_t(at)])
      if (waiting[size_t(k)] > 0) {
        at = k;
        break;
      }
  }
  std::string text;
  for (size_t i = path.size(); i-- > size_t(seen[size_t(at)]);) {
    const auto& n = g.node(path[i]);
    if (text.size() > 300) return text + "...";
    text += quoted(n.name().empty() && n.output_size() > 0 ? n.output(0) : n.name()) + " -> ";
  }
  const auto& last = g.node(path.back());
  return text + quoted(last.name().empty() && last.output_size() > 0 ? last.output(0) : last.name());
}

/// Kahn's algorithm; among the nodes that are ready the one that stands first in the file goes first.
void reorder(Context& c, onnx::GraphProto& g, const std::vector<std::vector<int>>& needs) {
  const size_t n = needs.size();
  std::vector<std::vector<int>> feeds(n);
  std::vector<int> waiting(n, 0), order;
  for (size_t i = 0; i < n; ++i)
    for (const int k : needs[i]) {
      feeds[size_t(k)].push_back(int(i));
      ++waiting[i];
    }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < n; ++i)
    if (waiting[i] == 0) ready.push(int(i));
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const int k : feeds[size_t(i)])
      if (--waiting[size_t(k)] == 0) ready.push(k);
  }
  if (order.size() != n) {
    c.reject("TC0112", nullptr, "the graph has a cycle: " + describe_cycle(g, needs, waiting));
    return;
  }
  google::protobuf::RepeatedPtrField<onnx::NodeProto> sorted;
  for (const int i : order) *sorted.Add() = std::move(*g.mutable_node(i));
  g.mutable_node()->Swap(&sorted);
  c.warn("TC0113", nullptr,
         "the nodes of graph " + quoted(g.name()) + " are not in topological order; they were sorted");
}

}  // namespace

bool check_definitions(Context& c, const onnx::GraphProto& g, const NameScope& scope) {
  std::unordered_set<std::string> defined;
  const int before = c.errors;
  auto define = [&](const std::string& name, const char* what, const onnx::NodeProto* n) {
    if (name.empty()) return c.reject("TC0110", n, std::string(what) + " without a name");
    if (!defined.insert(name).second)
      return c.reject("TC0110", n,
                      std::string(what) + " " + quoted(name) + ": this name is already defined in the graph");
    if (scope.outer && scope.outer->knows(name))
      c.reject("TC0110", n,
               std::string(what) + " " + quoted(name) + ": this name is already defined in an outer graph");
  };
  for (const auto& v : g.input()) define(v.name(), "input", nullptr);
  std::unordered_set<std::string> initializers;
  auto initializer = [&](const std::string& name) {
    const bool again = !initializers.insert(name).second;
    // An initializer may give an input its default: then both have the same name.
    const bool is_input = defined.count(name) && !again;
    if (!is_input) define(name, "initializer", nullptr);
  };
  for (const auto& t : g.initializer()) initializer(t.name());
  for (const auto& s : g.sparse_initializer()) initializer(s.values().name());
  for (const auto& n : g.node())
    for (const auto& o : n.output())
      if (!o.empty()) define(o, "output", &n);
  return c.errors == before;
}

bool NameScope::knows(const std::string& name) const {
  for (const NameScope* s = this; s; s = s->outer)
    if (s->names.count(name)) return true;
  return false;
}

void check_uses(Context& c, onnx::GraphProto& g, const NameScope& scope) {
  std::unordered_map<std::string, int> producer;
  for (int i = 0; i < g.node_size(); ++i)
    for (const auto& o : g.node(i).output()) producer.emplace(o, i);
  std::vector<std::vector<int>> needs(size_t(g.node_size()));
  bool in_order = true, complete = true;
  for (int i = 0; i < g.node_size(); ++i) {
    const auto& n = g.node(i);
    for (const auto& [name, input] : uses_of(n)) {
      if (const auto it = producer.find(name); it != producer.end()) {
        needs[size_t(i)].push_back(it->second);
        in_order = in_order && it->second < i;
      } else if (!scope.knows(name)) {
        complete = false;
        c.error("TC0111", ExitCode::Rejected, &n,
                input >= 0 ? std::string("nothing in the graph defines this input")
                           : "a body of the node reads " + quoted(name) + ", which nothing defines",
                {}, input);
      }
    }
  }
  for (const auto& o : g.output())
    if (!producer.count(o.name()) && !scope.knows(o.name()))
      c.reject("TC0114", nullptr, "output " + quoted(o.name()) + " of graph " + quoted(g.name()) + " is never defined");
  if (!in_order && complete) reorder(c, g, needs);
}

}  // namespace tc::importer
