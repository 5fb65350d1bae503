#include <algorithm>

#include "ir/graph/graph.h"

namespace tc {

namespace {

constexpr int64_t kShownElements = 8;

bool is_plain(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_./:-").find(char(c)) != std::string_view::npos;
  });
}

std::string name_text(const ModelText& t) { return is_plain(t.raw()) ? t.raw() : "\"" + printable(t.raw()) + "\""; }

std::string value_text(const Value* v) {
  if (!v) return "_";
  return "%" + (v->name.empty() ? "_" + to_text(int64_t(v->id)) : name_text(v->name));
}

std::string element_text(const TensorData& t, int64_t i) {
  if (t.dtype == DType::String) return "\"" + printable(t.strings.at(size_t(i)), 40) + "\"";
  if (is_float(t.dtype)) return t.dtype == DType::F64 ? to_text(t.as_double(i)) : to_text(float(t.as_double(i)));
  return to_text(t.as_int(i));
}

std::string constant_text(const TensorData& t) {
  if (t.size() > kShownElements || is_complex(t.dtype)) return "const";
  std::vector<std::string> parts;
  for (int64_t i = 0; i < t.size(); ++i) parts.push_back(element_text(t, i));
  std::string s = join(parts, ", ");
  return "const " + (t.dims.empty() ? s : "[" + s + "]");
}

struct AttrText {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(int64_t v) const { return to_text(v); }
  std::string operator()(float v) const { return to_text(v); }
  std::string operator()(const std::string& v) const { return "\"" + printable(v) + "\""; }
  std::string operator()(const Constant& c) const { return c ? constant_text(*c) : "none"; }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> parts;
    for (const T& v : list) parts.push_back((*this)(v));
    return "[" + join(parts, ", ") + "]";
  }
};

std::string attrs_text(const Attrs& attrs) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : attrs)
    if (!std::holds_alternative<std::monostate>(value))
      parts.push_back(printable(name) + " = " + std::visit(AttrText{}, value));
  return parts.empty() ? "" : " {" + join(parts, ", ") + "}";
}

std::string list_text(const std::vector<Value*>& values, bool typed) {
  std::vector<std::string> parts;
  for (const Value* v : values) parts.push_back(value_text(v) + (typed && v ? ": " + to_text(v->type) : ""));
  return join(parts, ", ");
}

/// Every line of `text` indented by `n` blanks.
std::string indented(const std::string& text, int n) {
  std::string s;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    s += std::string(size_t(n), ' ') + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return s;
}

std::string origins_text(const Node& n) {
  std::vector<std::string> parts;
  for (const ModelText& t : n.origins) parts.push_back("\"" + printable(t.raw()) + "\"");
  return parts.empty() ? "" : "  # " + join(parts, ", ");
}

/// "%y: %n along 0, %n": the size of %y along axis 0 is the number %n.
std::string outputs_text(const Graph& g) {
  std::vector<std::string> parts;
  for (size_t k = 0; k < g.outputs().size(); k++) {
    parts.push_back(value_text(g.outputs()[k]));
    for (const OutputSize& s : g.output_sizes())
      if (s.output == k)
        parts.back() += ": " + value_text(g.outputs().at(s.count)) + " along " + to_text(int64_t(s.axis));
  }
  return join(parts, ", ");
}

void print_graph(const Graph& g, int indent, std::string& out);

void print_node(const Node& n, int indent, std::string& out) {
  const std::string pad(size_t(indent), ' ');
  out += pad + list_text(n.outputs, true) + " = " + (n.domain.empty() ? "" : printable(n.domain) + ".") +
         printable(n.op) + "(" + list_text(n.inputs, false) + ")" + attrs_text(n.attrs) + origins_text(n) + "\n";
  if (n.domain == "tc" && n.op == "fused" && n.fn) out += indented(to_text(*n.fn), indent + 4);
  for (const auto& r : n.regions) print_graph(*r, indent + 2, out);
}

void print_graph(const Graph& g, int indent, std::string& out) {
  const std::string pad(size_t(indent), ' ');
  out += pad + "graph " + (g.name().empty() ? "" : name_text(g.name())) + "(" + list_text(g.inputs(), true) + ") -> (" +
         outputs_text(g) + ") {\n";
  for (const auto& v : g.values())
    if (v->is_constant())
      out += pad + "  " + value_text(v.get()) + ": " + to_text(v->type) + " = " + constant_text(*v->constant) + "\n";
  for (const auto& n : g.nodes()) print_node(*n, indent + 2, out);
  out += pad + "}\n";
}

}  // namespace

std::string to_text(const Graph& g) {
  std::string out;
  print_graph(g, 0, out);
  return out;
}

}  // namespace tc
