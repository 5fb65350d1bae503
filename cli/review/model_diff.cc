#include "cli/review/model_diff.h"

#include <algorithm>
#include <map>
#include <set>

#include "cli/review/weight_diff.h"

namespace tc {
namespace {

using Kind = Change::Kind;

constexpr size_t kMostAligned = 4000;  // nodes that are compared each with each

/// A node with what it is found by.
struct Entry {
  const Node* node;
  std::string path;          // of the body that it is in: "loop/", "" outside
  std::string result, name;  // with the path; empty: unnamed
  std::string meaning;       // hash of what it computes, names left out
  std::string shape;         // operator, attributes, types of constants: what can be seen without its neighbours
  int partner = -1;          // in the other model
};

std::string op_of(const Node& n) { return (n.domain.empty() ? "" : n.domain + "::") + n.op; }

std::string label(const Entry& e) {
  const std::string& name = e.name.empty() ? e.result : e.name;
  return name;
}

template <class T>
std::string numbers(const std::vector<T>& list) {
  std::string s = "[";
  for (size_t i = 0; i < list.size(); i++) s += (i ? "," : "") + to_text(list[i]);
  return s + "]";
}

std::string bytes_id(const TensorData& t) {
  std::string text(reinterpret_cast<const char*>(t.bytes.get()), t.num_bytes);
  for (const std::string& s : t.strings) text += s + '\0';
  return hex(hash_text(text), 8);
}

struct AttrText {
  std::string operator()(std::monostate) const { return "absent"; }
  std::string operator()(int64_t v) const { return to_text(v); }
  std::string operator()(float v) const { return to_text(v); }
  std::string operator()(const std::string& v) const { return "\"" + v + "\""; }
  std::string operator()(const std::vector<int64_t>& v) const { return numbers(v); }
  std::string operator()(const std::vector<float>& v) const { return numbers(v); }
  std::string operator()(const std::vector<std::string>& v) const { return "[" + join(v, ",") + "]"; }
  std::string operator()(const Constant& c) const {
    return c ? to_text(ValueType::tensor(c->dtype, to_shape(c->dims))) + " #" + bytes_id(*c) : "none";
  }
};

}  // namespace

std::string attr_text(const Attr& a) { return std::visit(AttrText{}, a); }

namespace {

std::string attrs_text(const Node& n) {
  std::string s;
  for (const auto& [key, value] : n.attrs) s += key + "=" + attr_text(value) + ";";
  return s;
}

/// One model: its nodes in order, those of bodies behind their own.
class Side {
 public:
  explicit Side(const Graph& g) : graph_(g) {
    std::vector<std::pair<const Graph*, std::string>> left{{&g, ""}};
    while (!left.empty()) {  // bodies may be nested deeply
      const auto [graph, path] = left.back();
      left.pop_back();
      for (size_t i = 0; i < graph->inputs().size(); i++) inputs_[graph->inputs()[i]] = {path, i};
      for (const auto& n : graph->nodes()) {
        add(*n, path);
        for (size_t r = 0; r < n->regions.size(); r++)
          left.emplace_back(n->regions[r].get(),
                            label(entries.back()) + "/" + (r == 0 ? "" : to_text(int64_t(r)) + "/"));
      }
    }
  }

  std::vector<Entry> entries;
  const Graph& graph() const { return graph_; }
  int index_of(const Node* n) const {
    const auto it = index_.find(n);
    return it == index_.end() ? -1 : it->second;
  }
  /// Where a value comes from, for people.
  std::string source(const Value* v) const {
    if (!v) return "nothing";
    if (v->is_constant()) return "constant \"" + v->name.raw() + "\"";
    if (!v->producer) return "input \"" + v->name.raw() + "\"";
    const Entry& e = entries[size_t(index_of(v->producer))];
    return "\"" + label(e) + "\"" + (v->index > 0 ? " (result " + to_text(int64_t(v->index)) + ")" : "");
  }
  std::pair<std::string, size_t> input(const Value* v) const { return inputs_.at(v); }

 private:
  void add(const Node& n, const std::string& path) {
    Entry e{&n, path, "", "", "", "", -1};
    if (!n.outputs.empty() && n.outputs[0] && !n.outputs[0]->name.empty()) e.result = path + n.outputs[0]->name.raw();
    if (!n.name.empty()) e.name = path + n.name.raw();
    e.shape = path + "|" + op_of(n) + "|" + attrs_text(n);
    for (const Value* v : n.inputs) e.shape += "|" + (v && v->is_constant() ? to_text(v->type) : std::string());
    std::string text = e.shape;
    for (const Value* v : n.inputs) text += "|" + meaning(v);
    e.meaning = hex(hash_text(text), 16);
    index_[&n] = int(entries.size());
    entries.push_back(std::move(e));
  }
  std::string meaning(const Value* v) const {
    if (!v) return "-";
    if (v->is_constant()) return to_text(v->type);
    if (!v->producer) return "in" + to_text(int64_t(inputs_.at(v).second));
    return entries[size_t(index_.at(v->producer))].meaning + "." + to_text(int64_t(v->index));
  }

  const Graph& graph_;
  std::map<const Node*, int> index_;                               // looked up only
  std::map<const Value*, std::pair<std::string, size_t>> inputs_;  // looked up only
};

class ModelDiff {
 public:
  ModelDiff(const Graph& a, const Graph& b) : a_(a), b_(b) {
    pair_by([](const Entry& e) { return e.name.empty() ? "" : e.name + "|" + op_of(*e.node); }, false);
    pair_by([](const Entry& e) { return e.result.empty() ? "" : e.result + "|" + op_of(*e.node); }, false);
    pair_by([](const Entry& e) { return e.meaning; }, true);
    pair_in_order();
    pair_by([](const Entry& e) { return e.result; }, false);
  }

  std::vector<Section> sections() {
    for (const Entry& e : a_.entries)
      if (e.partner < 0) model_.changes.push_back({Kind::Removed, "node", label(e), op_of(*e.node)});
    for (const Entry& e : b_.entries) {
      if (e.partner < 0)
        model_.changes.push_back({Kind::Added, "node", label(e), op_of(*e.node) + reads(e)});
      else
        compare(a_.entries[size_t(e.partner)], e);
    }
    compare_outputs();
    if (renamed_ > 0)
      model_.changes.push_back(
          {Kind::Note, "names", "",
           to_text(renamed_) + (renamed_ == 1 ? " node has" : " nodes have") + " other names and the same meaning"});
    return {std::move(model_), std::move(weights_)};
  }

 private:
  /// Nodes of one key are the same; `in_order`: also where several have it, the first with the first.
  template <class F>
  void pair_by(F key, bool in_order) {
    std::map<std::string, std::vector<int>> found;
    std::map<std::string, int> wanted;
    for (size_t i = 0; i < a_.entries.size(); i++)
      if (a_.entries[i].partner < 0) found[key(a_.entries[i])].push_back(int(i));
    for (const Entry& e : b_.entries)
      if (e.partner < 0) wanted[key(e)]++;
    std::map<std::string, size_t> used;
    for (size_t j = 0; j < b_.entries.size(); j++) {
      Entry& y = b_.entries[j];
      const std::string k = y.partner < 0 ? key(y) : "";
      const auto it = found.find(k);
      if (k.empty() || it == found.end()) continue;
      if (!in_order && (it->second.size() != 1 || wanted[k] != 1)) continue;
      if (used[k] == it->second.size()) continue;
      y.partner = it->second[used[k]++];
      a_.entries[size_t(y.partner)].partner = int(j);
    }
  }

  /// A longest common subsequence of what is left, by what a node looks like by itself: exporters number their names, and
  /// one node more gives other names to all that follow.
  void pair_in_order() {
    std::vector<int> x, y;
    for (size_t i = 0; i < a_.entries.size(); i++)
      if (a_.entries[i].partner < 0) x.push_back(int(i));
    for (size_t j = 0; j < b_.entries.size(); j++)
      if (b_.entries[j].partner < 0) y.push_back(int(j));
    if (x.size() > kMostAligned || y.size() > kMostAligned) return;
    const size_t width = y.size() + 1;
    std::vector<uint16_t> longest((x.size() + 1) * width, 0);  // of the nodes from i and j on
    const auto alike = [&](size_t i, size_t j) {
      return a_.entries[size_t(x[i])].shape == b_.entries[size_t(y[j])].shape;
    };
    for (size_t i = x.size(); i-- > 0;)
      for (size_t j = y.size(); j-- > 0;)
        longest[i * width + j] = alike(i, j) ? uint16_t(longest[(i + 1) * width + j + 1] + 1)
                                             : std::max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {
      if (alike(i, j)) {
        a_.entries[size_t(x[i])].partner = y[j];
        b_.entries[size_t(y[j++])].partner = x[i++];
      } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
        i++;
      } else {
        j++;
      }
    }
  }

  std::string reads(const Entry& e) const {
    std::vector<std::string> list;
    for (const Value* v : e.node->inputs)
      if (v && !v->is_constant()) list.push_back(b_.source(v));
    return list.empty() ? "" : ", reads " + join(list, ", ");
  }

  void compare(const Entry& x, const Entry& y) {
    const auto changed = [&](std::string detail) {
      model_.changes.push_back({Kind::Changed, "node", label(y), std::move(detail)});
    };
    if (label(x) != label(y)) renamed_++;
    if (op_of(*x.node) != op_of(*y.node)) changed("is " + op_of(*y.node) + ", was " + op_of(*x.node));
    std::set<std::string> keys;
    for (const auto* n : {x.node, y.node})
      for (const auto& [key, value] : n->attrs) keys.insert(key);
    for (const std::string& key : keys) {
      const auto text = [&key](const Node& n) {
        const auto it = n.attrs.find(key);
        return it == n.attrs.end() ? std::string("absent") : attr_text(it->second);
      };
      const std::string before = text(*x.node), after = text(*y.node);
      if (before != after) changed("attribute " + key + ": " + before + " -> " + after);
    }
    const size_t n = std::max(x.node->inputs.size(), y.node->inputs.size());
    for (size_t i = 0; i < n; i++) {
      const Value* u = i < x.node->inputs.size() ? x.node->inputs[i] : nullptr;
      const Value* v = i < y.node->inputs.size() ? y.node->inputs[i] : nullptr;
      if (u && v && u->is_constant() && v->is_constant())
        compare_weights(*u, *v, label(y), i);
      else if (!same(u, v))
        changed("input " + to_text(int64_t(i)) + " is " + b_.source(v) + ", was " + a_.source(u));
    }
  }

  bool same(const Value* u, const Value* v) const {
    if (!u || !v) return u == v;
    if (u->is_constant() != v->is_constant() || bool(u->producer) != bool(v->producer)) return false;
    if (u->is_constant()) return u->constant->dtype == v->constant->dtype && u->constant->dims == v->constant->dims;
    if (u->producer)
      return u->index == v->index && a_.entries[size_t(a_.index_of(u->producer))].partner == b_.index_of(v->producer);
    const auto [path, i] = a_.input(u);
    const auto [other, k] = b_.input(v);
    // Inputs of the model go by their names; those of bodies by their positions, for nobody else sees the names.
    return path.empty() && other.empty() ? u->name == v->name : i == k && path.empty() == other.empty();
  }

  void compare_weights(const Value& u, const Value& v, const std::string& node, size_t input) {
    if (!seen_.insert({&u, &v}).second) return;
    const TensorData &x = *u.constant, &y = *v.constant;
    const std::string name = v.name.empty() ? node + ", input " + to_text(int64_t(input)) : v.name.raw();
    std::string detail;
    if (x.dtype != y.dtype || x.dims != y.dims)
      detail = to_text(u.type) + " -> " + to_text(v.type);
    else
      detail = weight_difference(x, y);
    if (detail.empty()) return;
    if (x.dtype == y.dtype && x.dims == y.dims) detail = to_text(v.type) + ": " + detail;
    weights_.changes.push_back({Kind::Changed, "weight", name, std::move(detail)});
  }

  void compare_outputs() {
    const auto &x = a_.graph().outputs(), &y = b_.graph().outputs();
    for (size_t k = 0; k < std::min(x.size(), y.size()); k++)
      if (!same(x[k], y[k]))
        model_.changes.push_back({Kind::Changed, "output", y[k]->name.raw(),
                                  "comes from " + b_.source(y[k]) + ", came from " + a_.source(x[k])});
  }

  Side a_, b_;
  Section model_{"model", {}}, weights_{"weights", {}};
  std::set<std::pair<const Value*, const Value*>> seen_;  // looked up only
  int64_t renamed_ = 0;
};

}  // namespace

std::vector<Section> compare_models(const Graph& a, const Graph& b) { return ModelDiff(a, b).sections(); }

}  // namespace tc
