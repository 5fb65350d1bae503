// Are two graphs the same? Names, types, elements, attributes, functions, regions; which constants share their elements.
#include <cstring>
#include <map>

#include "ir/graph/graph.h"
#include "ir/identity.h"
#include "ir/ops/op.h"

namespace tc {
namespace {

class Comparison {
 public:
  std::string graphs(const Graph& a, const Graph& b) {
    if (a.name() != b.name()) return "the graphs' names";
    if (a.inputs().size() != b.inputs().size()) return "the number of inputs";
    for (size_t k = 0; k < a.inputs().size(); k++)
      if (!same_definition(a.inputs()[k], b.inputs()[k])) return "input " + to_text(int64_t(k));
    if (std::string s = constants(a, b); !s.empty()) return s;
    if (a.num_nodes() != b.num_nodes()) return "the number of nodes";
    for (auto i = a.nodes().begin(), j = b.nodes().begin(); i != a.nodes().end(); ++i, ++j)
      if (std::string s = nodes(**i, **j); !s.empty())
        return "node \"" + printable((*i)->name.raw()) + "\" (" + printable((*i)->op) + "): " + s;
    if (!same_values(a.outputs(), b.outputs())) return "the outputs";
    return a.sizes() == b.sizes() ? "" : "the sizes of inputs and outputs";
  }

 private:
  // From here on the two stand for each other.
  bool same_definition(const Value* a, const Value* b) {
    if (!a || !b) return a == b;
    twins_[a] = b;
    return a->name == b->name && a->type == b->type;
  }

  bool same_values(const std::vector<Value*>& a, const std::vector<Value*>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Value* x, const Value* y) {
      const auto twin = twins_.find(x);
      return x ? twin != twins_.end() && twin->second == y : !y;
    });
  }

  bool same_constant(const Constant& a, const Constant& b) {
    if (!a || !b) return !a && !b;
    if (const auto [it, first] = data_.try_emplace(a.get(), b.get()); it->second != b.get()) return false;
    if (const auto [it, first] = back_.try_emplace(b.get(), a.get()); it->second != a.get()) return false;
    if (a == b) return true;
    return a->dtype == b->dtype && a->dims == b->dims && a->strings == b->strings && a->num_bytes == b->num_bytes &&
           (a->num_bytes == 0 || std::memcmp(a->bytes.get(), b->bytes.get(), a->num_bytes) == 0);
  }

  std::string constants(const Graph& a, const Graph& b) {
    std::vector<const Value*> of_a, of_b;
    for (const auto& v : a.values())
      if (v->is_constant()) of_a.push_back(v.get());
    for (const auto& v : b.values())
      if (v->is_constant()) of_b.push_back(v.get());
    if (of_a.size() != of_b.size()) return "the number of constants";
    for (size_t k = 0; k < of_a.size(); k++)
      if (!same_definition(of_a[k], of_b[k]) || !same_constant(of_a[k]->constant, of_b[k]->constant))
        return "constant \"" + printable(of_a[k]->name.raw()) + "\"";
    return "";
  }

  template <class T>
  static bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  }

  bool same_attribute(const Attr& a, const Attr& b) {
    if (a.index() != b.index()) return false;
    if (const Constant* c = std::get_if<Constant>(&a)) return same_constant(*c, std::get<Constant>(b));
    if (const float* v = std::get_if<float>(&a)) return same_bits(*v, std::get<float>(b));
    if (const auto* v = std::get_if<std::vector<float>>(&a)) {
      const auto& w = std::get<std::vector<float>>(b);
      return std::equal(v->begin(), v->end(), w.begin(), w.end(), same_bits<float>);
    }
    return a == b;
  }

  std::string nodes(const Node& a, const Node& b) {
    if (a.name != b.name || a.origins != b.origins) return "names";
    if (a.op != b.op || a.domain != b.domain) return "operators";
    if ((a.row ? a.row->definition : "") != (b.row ? b.row->definition : "")) return "definitions of the operator";
    if (!same_values(a.inputs, b.inputs)) return "operands";
    if (a.captures != b.captures || a.regions.size() != b.regions.size()) return "regions or captures";
    if (a.outputs.size() != b.outputs.size()) return "the number of results";
    for (size_t k = 0; k < a.outputs.size(); k++)
      if (!same_definition(a.outputs[k], b.outputs[k])) return "result " + to_text(int64_t(k));
    if (a.attrs.size() != b.attrs.size()) return "the number of attributes";
    for (auto i = a.attrs.begin(), j = b.attrs.begin(); i != a.attrs.end(); ++i, ++j)
      if (i->first != j->first || !same_attribute(i->second, j->second)) return "attribute " + printable(i->first);
    const bool fused = a.domain == "tc" && a.op == "fused";
    if (fused && (!a.fn != !b.fn || (a.fn && identity_of(*a.fn) != identity_of(*b.fn)))) return "functions";
    for (size_t k = 0; k < a.regions.size(); k++)
      if (std::string s = graphs(*a.regions[k], *b.regions[k]); !s.empty())
        return "region " + to_text(int64_t(k)) + ": " + s;
    return "";
  }

  std::map<const Value*, const Value*> twins_;                  // looked up only
  std::map<const TensorData*, const TensorData*> data_, back_;  // the same
};

}  // namespace

std::string difference_of(const Graph& a, const Graph& b) { return Comparison().graphs(a, b); }

}  // namespace tc
