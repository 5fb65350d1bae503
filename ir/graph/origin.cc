#include "ir/graph/origin.h"

#include <algorithm>

#include "ir/open_size.h"

namespace tc {

Loc location_of(const Node& n) {
  Loc l;
  l.node = (n.origins.empty() ? n.name : n.origins.front()).raw();
  l.op = n.op;
  const auto made = std::find_if(n.outputs.begin(), n.outputs.end(), [](const Value* v) { return v != nullptr; });
  if (l.node.empty() && made != n.outputs.end()) l.output = (*made)->name.raw();
  return l;
}

Diagnostic problem_of(const Node& n, std::string code, ExitCode exit, std::string what, std::vector<std::string> notes,
                      int input) {
  Diagnostic d{std::move(code), exit, location_of(n), with_open_sizes(what), std::move(notes), false};
  d.loc.input = input;
  if (input >= 0 && size_t(input) < n.inputs.size() && n.inputs[size_t(input)])
    d.loc.value = n.inputs[size_t(input)]->name.raw();
  return d;
}

Node* insert_for(Graph& g, const Node& n, Node* before, std::string op, std::vector<Value*> inputs,
                 std::vector<ModelText> outputs, Attrs attrs, std::string domain) {
  Node* made =
      g.insert(before, std::move(op), std::move(inputs), std::move(outputs), std::move(attrs), std::move(domain));
  made->name = n.name;
  made->origins = n.origins;
  return made;
}

std::vector<ModelText> output_names(const Node& n) {
  std::vector<ModelText> names;
  for (const Value* v : n.outputs) names.push_back(v ? v->name : ModelText());
  return names;
}

InsertionPoint::InsertionPoint(const Graph& g, const Node& n)
    : g_(g), first_(n.self == g.nodes().begin()), before_(first_ ? n.self : std::prev(n.self)) {}

}  // namespace tc
