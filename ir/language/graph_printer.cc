// Graph -> text. Values of one name are told apart as w, w~2, w~3 in the order in which they appear.
#include <algorithm>
#include <map>

#include "ir/language/elements_text.h"
#include "ir/language/function_text.h"
#include "ir/language/graph_text.h"
#include "ir/ops/op.h"
#include "support/text.h"
#include "support/xxh64.h"

namespace tc {
namespace language {
namespace {

constexpr int64_t kShownElements = 8;
constexpr size_t kAlign = 64;  // of elements in the file of data

/// The values of one graph have a name each.
class ValueNames {
 public:
  explicit ValueNames(const Graph& g) : names_(size_t(g.value_ids())) {
    std::map<std::string, int64_t> taken;
    for (const auto& v : g.values()) {
      const int64_t k = ++taken[v->name.raw()];
      names_[size_t(v->id)] = name_text(v->name.raw()) + (k > 1 ? "~" + tc::to_text(k) : "");
    }
  }
  std::string operator()(const Value* v) const { return v ? names_[size_t(v->id)] : "_"; }
  std::string list(const std::vector<Value*>& values) const {
    std::vector<std::string> parts;
    for (const Value* v : values) parts.push_back((*this)(v));
    return join(parts, ", ");
  }
  std::string typed(const std::vector<Value*>& values) const {
    std::vector<std::string> parts;
    for (const Value* v : values) parts.push_back((*this)(v) + (v ? ": " + type_text(v->type) : ""));
    return join(parts, ", ");
  }

 private:
  std::vector<std::string> names_;
};

class GraphPrinter {
 public:
  explicit GraphPrinter(Elements elements) : elements_(elements) {}

  GraphText run(const Graph& g) {
    count_uses(g);
    for (const OpRow* row : rows_) out_.text += row->definition + "\n";
    graph(g, 0);
    return std::move(out_);
  }

 private:
  static ValueType type_of(const TensorData& t) { return ValueType::tensor(t.dtype, to_shape(t.dims)); }

  // --- what several places share
  void count_uses(const Graph& g) {
    for (const auto& v : g.values())
      if (v->constant) uses_[v->constant.get()]++;
    for (const auto& n : g.nodes()) {
      for (const auto& [name, a] : n->attrs)
        if (const Constant* c = std::get_if<Constant>(&a); c && *c) uses_[c->get()]++;
      if (n->row && std::find(rows_.begin(), rows_.end(), n->row.get()) == rows_.end()) rows_.push_back(n->row.get());
      for (const auto& r : n->regions) count_uses(*r);
    }
  }

  // "const [1, 2]", "const data(0, 6912, "90f4...")", and for what several share "const [1, 2] as @1", then "const @1".
  // The type stands there where it is not said before: "const i64[2] [1, 2]".
  std::string constant(const Constant& c, bool typed) {
    if (!c) return "const none";
    int64_t& number = numbers_[c.get()];
    if (number > 0) return "const @" + tc::to_text(number);
    std::string s = "const " + (typed ? type_text(type_of(*c)) + " " : "") + elements(c);
    if (uses_[c.get()] < 2 || elements_ == Elements::Omitted) return s;
    number = ++shared_;
    return s + " as @" + tc::to_text(number);
  }

  std::string elements(const Constant& c) {
    const bool short_enough =
        c->size() <= kShownElements || (c->dtype == DType::String && elements_ != Elements::Omitted);
    if (short_enough)
      if (const auto digits = elements_text(*c)) return c->dims.empty() ? *digits : "[" + *digits + "]";
    if (elements_ == Elements::Omitted) return "data";
    DataPlace at{end_, c->num_bytes, ""};
    if (elements_ == Elements::Hashed) at.hash = hex(xxh64(c->bytes.get(), c->num_bytes), 16);
    end_ += std::max<size_t>(1, (c->num_bytes + kAlign - 1) / kAlign) * kAlign;
    out_.data.emplace_back(at, c);
    return "data(" + tc::to_text(int64_t(at.offset)) + ", " + tc::to_text(int64_t(at.bytes)) +
           (at.hash.empty() ? "" : ", " + quoted(at.hash)) + ")";
  }

  // --- nodes
  std::string attribute(const Attr& a) {
    const auto list = [](const auto& values, const char* kind, const auto& text) {
      std::vector<std::string> parts;
      for (const auto& v : values) parts.push_back(text(v));
      return (parts.empty() ? kind : "") + ("[" + join(parts, ", ") + "]");
    };
    const auto integer = [](int64_t v) { return v == INT64_MIN ? std::string("lowest") : tc::to_text(v); };
    return std::visit(Cases{[](std::monostate) { return std::string("none"); }, [&](int64_t v) { return integer(v); },
                            [](float v) { return float_text(v); }, [](const std::string& v) { return quoted(v); },
                            [&](const std::vector<int64_t>& v) { return list(v, "ints", integer); },
                            [&](const std::vector<float>& v) { return list(v, "floats", float_text); },
                            [&](const std::vector<std::string>& v) { return list(v, "strings", quoted); },
                            [&](const Constant& c) { return constant(c, true); }},
                      a);
  }

  // Nodes are called like the last of their origins, if nothing else is said.
  static std::string names_of(const Node& n) {
    std::string s;
    if (n.name != (n.origins.empty() ? ModelText() : n.origins.back())) s += " as " + name_text(n.name.raw());
    std::vector<std::string> origins;
    for (const ModelText& t : n.origins) origins.push_back(quoted(t.raw()));
    return s + (origins.empty() ? "" : " from " + join(origins, ", "));
  }

  // "Conv", "tc.fused", "com.microsoft.Gelu"; a domain that is no list of names is a text.
  static std::string op_text(const Node& n) {
    bool named = !n.domain.ends_with('.');
    for (size_t at = 0; at < n.domain.size();) {
      const size_t end = std::min(n.domain.find('.', at), n.domain.size());
      const std::string part = n.domain.substr(at, end - at);
      named = named && is_name(part) && part.find('~') == part.npos;
      at = end + 1;
    }
    return (n.domain.empty() ? "" : (named ? n.domain : quoted(n.domain)) + ".") + name_text(n.op);
  }

  void node(const ValueNames& names, const Node& n, int indent) {
    std::vector<std::string> attrs;
    for (const auto& [name, a] : n.attrs) attrs.push_back(name_text(name) + " = " + attribute(a));
    line(indent, names.typed(n.outputs) + " = " + op_text(n) + "(" + names.list(n.inputs) + ")" +
                     (attrs.empty() ? "" : " {" + join(attrs, ", ") + "}") +
                     (n.captures > 0 ? " captures " + tc::to_text(int64_t(n.captures)) : "") + names_of(n));
    if (n.domain == "tc" && n.op == "fused" && n.fn) function(n, indent + 2);
    for (const auto& r : n.regions) graph(*r, indent + 2);
  }

  void function(const Node& n, int indent) {
    const FunctionText f = braced_function_text(*n.fn);
    if (!f.text.empty()) return lines(indent, f.text, "");
    out_.unspeakable.push_back("node \"" + printable(n.name.raw()) + "\": " + f.why_not);
    line(indent, "# " + f.why_not);
    lines(indent, tc::to_text(*n.fn), "# ");
  }

  void lines(int indent, std::string_view text, const std::string& before) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      line(indent, before + std::string(text.substr(at, end - at)));
      at = end + 1;
    }
  }

  // --- graphs
  static std::string counted(int axis, const std::string& by) {
    return " counted " + tc::to_text(int64_t(axis)) + " by " + by;
  }

  // 3 plus 2 of 4 plus constant -1
  static std::string sum(const SizeSum& s) {
    std::vector<std::string> parts;
    for (const SizeSum::Term& t : s.terms)
      parts.push_back((t.factor == 1 ? "" : tc::to_text(t.factor) + " of ") + tc::to_text(int64_t(t.input)));
    if (s.addend != 0) parts.push_back("constant " + tc::to_text(s.addend));
    return join(parts, " plus ");
  }

  static std::string inputs(const ValueNames& names, const Graph& g) {
    std::vector<std::string> parts;
    for (size_t k = 0; k < g.inputs().size(); k++) {
      parts.push_back(names.typed({g.inputs()[k]}));
      for (const SizeInput& s : g.sizes().chosen)
        if (s.input == k)
          parts.back() +=
              " from " + tc::to_text(s.least) + " to " + tc::to_text(s.most) + (s.next ? " then " + sum(*s.next) : "");
      for (const InputSize& s : g.sizes().inputs)
        if (s.input == k) parts.back() += counted(s.axis, sum(s.count));
      for (const StatePair& s : g.sizes().states)
        if (s.input == k) parts.back() += " kept as " + tc::to_text(int64_t(s.output));
    }
    return join(parts, ", ");
  }

  static std::string outputs(const ValueNames& names, const Graph& g) {
    std::vector<std::string> parts;
    for (size_t k = 0; k < g.outputs().size(); k++) {
      parts.push_back(names(g.outputs()[k]));
      for (const OutputSize& s : g.sizes().outputs)
        if (s.output == k)
          parts.back() += counted(s.axis, s.of_inputs() ? "input " + sum(s.sum) : tc::to_text(int64_t(s.count)));
    }
    return join(parts, ", ");
  }

  void graph(const Graph& g, int indent) {
    const ValueNames names(g);
    line(indent, "graph" + (g.name().empty() ? "" : " " + name_text(g.name().raw())) + "(" + inputs(names, g) +
                     ") -> (" + outputs(names, g) + ") {");
    for (const auto& v : g.values()) {
      if (!v->is_constant()) continue;
      line(indent + 2, names(v.get()) + ": " + type_text(v->type) + " = " +
                           constant(v->constant, !(v->type == type_of(*v->constant))));
    }
    for (const auto& n : g.nodes()) node(names, *n, indent + 2);
    line(indent, "}");
  }

  void line(int indent, const std::string& s) { out_.text += std::string(size_t(indent), ' ') + s + "\n"; }

  const Elements elements_;
  GraphText out_;
  std::map<const TensorData*, int64_t> uses_, numbers_;  // looked up only
  std::vector<const OpRow*> rows_;
  int64_t shared_ = 0;
  size_t end_ = 0;  // of the file of data
};

}  // namespace

GraphText graph_text(const Graph& g, Elements elements) { return GraphPrinter(elements).run(g); }

DataReader data_of(const GraphText& g) {
  return [&g](const DataPlace& at, DType, const Dims&, std::string& why_not) -> Constant {
    const auto it = std::lower_bound(g.data.begin(), g.data.end(), at.offset,
                                     [](const auto& entry, size_t offset) { return entry.first.offset < offset; });
    if (it != g.data.end() && it->first.offset == at.offset) return it->second;
    why_not = "there are no elements";
    return nullptr;
  };
}

std::string to_text(const ModuleHeader& h) {
  std::string s = "ir " + tc::to_text(int64_t(kLanguageVersion)) + "\n";
  if (!h.after.empty()) s += "after " + quoted(h.after) + "\n";
  for (const auto& [flag, value] : h.options) s += "option " + quoted(flag) + " " + quoted(value) + "\n";
  return s + "\n";
}

}  // namespace language

std::string to_text(const Graph& g) { return language::graph_text(g, language::Elements::Omitted).text; }

}  // namespace tc
