#include "cli/review/package_sections.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "cli/review/renamed_files.h"
#include "cli/review/weight_diff.h"
#include "ir/open_size.h"
#include "support/text.h"

namespace tc {
namespace {

using Kind = Change::Kind;
using Tensor = PackageFacts::Tensor;

std::string type_text(const Tensor& t) {
  std::string s = t.dtype + "[";
  for (size_t i = 0; i < t.shape.size(); i++) s += (i ? "," : "") + axis_text(t.shape[i]);
  return s + "]";
}

/// f(what, index in a or -1, index in b or -1) for every name of either list, in b's order, those that are gone first.
template <class T, class F>
void by_name(const std::vector<T>& a, const std::vector<T>& b, F f) {
  std::map<std::string, const T*> before, after;
  for (const T& x : a) before.emplace(x.name, &x);
  for (const T& x : b) after.emplace(x.name, &x);
  for (const T& x : a)
    if (after.count(x.name) == 0) f(&x, static_cast<const T*>(nullptr));
  for (const T& y : b) {
    const auto it = before.find(y.name);
    f(it == before.end() ? nullptr : it->second, &y);
  }
}

void compare_ports(const char* what, const std::vector<Tensor>& a, const std::vector<Tensor>& b, Section& s) {
  by_name(a, b, [&](const Tensor* x, const Tensor* y) {
    if (!y)
      s.changes.push_back({Kind::Removed, what, x->name, type_text(*x)});
    else if (!x)
      s.changes.push_back({Kind::Added, what, y->name, type_text(*y)});
    else if (type_text(*x) != type_text(*y))
      s.changes.push_back({Kind::Changed, what, y->name, type_text(*x) + " -> " + type_text(*y)});
  });
  const auto same_name = [](const Tensor& x, const Tensor& y) { return x.name == y.name; };
  std::set<std::string> x, y;
  for (const Tensor& t : a) x.insert(t.name);
  for (const Tensor& t : b) y.insert(t.name);
  if (x == y && a.size() == b.size() && !std::equal(a.begin(), a.end(), b.begin(), same_name))
    s.changes.push_back({Kind::Changed, what, "", std::string("the ") + what + "s have another order"});
}

void compare_text(const char* what, const std::string& a, const std::string& b, Section& s) {
  if (a != b)
    s.changes.push_back({Kind::Changed, what, "", (a.empty() ? "none" : a) + " -> " + (b.empty() ? "none" : b)});
}

/// The blob's part of a tensor; null where it has none.
Constant stored(const PackageFacts& p, const Tensor& t) {
  const OutputFile* blob = p.file(p.name + "_weights.bin");
  const DType d = dtype_of(t.dtype);
  if (!blob || t.at < 0 || d == DType::Undefined || d == DType::String) return nullptr;
  const int64_t bytes = byte_size(t);
  if (t.at > int64_t(blob->bytes.size()) || bytes > int64_t(blob->bytes.size()) - t.at) return nullptr;
  return make_constant(d, t.shape, blob->bytes.data() + t.at);
}

/// Weights by the kernels that read them: a packed weight lies as its kernel wants it.
std::map<std::string, std::set<std::string>> readers(const PackageFacts& p) {
  std::map<std::string, std::set<std::string>> r;
  for (const PackageFacts::Step& s : p.steps)
    for (const std::string& t : s.reads)
      if (t.starts_with("w.")) r[t.substr(2)].insert(s.kernel);
  return r;
}

std::string sorted_nodes(const PackageFacts::Step& s) {
  std::vector<std::string> list = s.nodes;
  std::sort(list.begin(), list.end());
  return join(list, "\n");
}

/// For every set of nodes that a step stands for, the nodes whose results its steps read.
std::map<std::string, std::set<std::string>> sources(const PackageFacts& p) {
  std::map<std::string, std::string> made_by;  // tensor -> nodes
  std::map<std::string, std::set<std::string>> r;
  for (const PackageFacts::Step& s : p.steps) {
    const std::string own = sorted_nodes(s);
    for (const std::string& t : s.reads) {
      if (t.starts_with("w.")) continue;
      const auto it = made_by.find(t);
      const std::string from = it == made_by.end() ? (t.starts_with("in.") ? "input " + t.substr(3) : t) : it->second;
      if (from != own) r[own].insert(from);
    }
    if (s.kind == "kernel")
      for (const std::string& t : s.writes) made_by[t] = own;
  }
  return r;
}

std::string shown(const std::set<std::string>& sets) {
  std::vector<std::string> list;
  for (std::string s : sets) {
    for (size_t at = 0; (at = s.find('\n', at)) != std::string::npos;) s.replace(at, 1, "+");
    list.push_back(s);
  }
  return list.empty() ? "nothing" : join(list, ", ");
}

}  // namespace

std::string stem_of(const std::string& kernel) {
  const size_t at = kernel.find_last_of('_');
  return at == std::string::npos ? kernel : kernel.substr(0, at);
}

Section compare_options(const PackageFacts& a, const PackageFacts& b) {
  Section s{"options", {}};
  compare_text("target", a.target, b.target, s);
  compare_text(b.target == "c" ? "cpu" : "arch", a.cpu, b.cpu, s);
  compare_text("options", join(a.options, " "), join(b.options, " "), s);
  return s;
}

Section compare_nodes(const PackageFacts& a, const PackageFacts& b) {
  Section s{"model", {}};
  if (a.steps.empty() != b.steps.empty()) {
    s.changes.push_back({Kind::Note, "nodes", "", "one of the manifests does not list steps: nodes are not compared"});
    return s;
  }
  std::set<std::string> before, after;
  for (const PackageFacts::Step& x : a.steps) before.insert(x.nodes.begin(), x.nodes.end());
  for (const PackageFacts::Step& y : b.steps) after.insert(y.nodes.begin(), y.nodes.end());
  for (const std::string& n : before)
    if (after.count(n) == 0) s.changes.push_back({Kind::Removed, "node", n});
  for (const std::string& n : after)
    if (before.count(n) == 0) s.changes.push_back({Kind::Added, "node", n});
  const auto x = sources(a), y = sources(b);
  for (const auto& [nodes, from] : y) {
    const auto it = x.find(nodes);
    if (nodes.empty() || it == x.end() || it->second == from) continue;
    s.changes.push_back(
        {Kind::Changed, "step", shown({nodes}), "reads " + shown(from) + ", read " + shown(it->second)});
  }
  return s;
}

Section compare_interface(const PackageFacts& a, const PackageFacts& b) {
  Section s{"interface", {}};
  compare_text("name", a.name, b.name, s);
  compare_ports("input", a.inputs, b.inputs, s);
  compare_ports("output", a.outputs, b.outputs, s);
  return s;
}

Section compare_memory(const PackageFacts& a, const PackageFacts& b) {
  Section s{"memory", {}};
  const std::map<std::string, int64_t> before(a.memory.begin(), a.memory.end());
  for (const auto& [key, value] : b.memory) {
    const auto it = before.find(key);
    if (it != before.end() && it->second != value)
      s.changes.push_back({Kind::Changed, key, "", from_to(it->second, value)});
  }
  if (a.macs != b.macs) s.changes.push_back({Kind::Changed, "macs", "", from_to(a.macs, b.macs)});
  return s;
}

Section compare_stored_weights(const PackageFacts& a, const PackageFacts& b) {
  Section s{"weights", {}};
  const auto before = readers(a), after = readers(b);
  const auto read_by = [](const auto& map, const std::string& name) {
    const auto it = map.find(name);
    return it == map.end() ? std::set<std::string>() : it->second;
  };
  by_name(a.weights, b.weights, [&](const Tensor* x, const Tensor* y) {
    if (!y) return s.changes.push_back({Kind::Removed, "weight", x->name, type_text(*x)});
    if (!x) return s.changes.push_back({Kind::Added, "weight", y->name, type_text(*y)});
    const std::string type = type_text(*y);
    if (type_text(*x) != type)
      return s.changes.push_back(
          {Kind::Note, "weight", y->name,
           type_text(*x) + " -> " + type + ": stored in another form, elements are not compared"});
    const Constant u = stored(a, *x), v = stored(b, *y);
    if (!u || !v) return;
    const std::string differ = weight_difference(*u, *v);
    if (differ.empty()) return;
    const bool other_form = y->name.ends_with("_packed") && read_by(before, x->name) != read_by(after, y->name);
    if (other_form)
      s.changes.push_back({Kind::Note, "weight", y->name,
                           type + ": read by another kernel, perhaps in another order; elements are not compared"});
    else
      s.changes.push_back({Kind::Changed, "weight", y->name, type + ": " + differ});
  });
  return s;
}

std::vector<FileChange> compare_files(const PackageFacts& a, const PackageFacts& b) {
  std::vector<FileChange> list;
  std::set<std::string> paths;
  for (const OutputFile& f : a.files) paths.insert(f.path);
  for (const OutputFile& f : b.files) paths.insert(f.path);
  for (const std::string& path : paths) {
    const OutputFile *x = a.file(path), *y = b.file(path);
    if (x && y && x->bytes == y->bytes) continue;
    list.push_back({!x ? Kind::Added : !y ? Kind::Removed : Kind::Changed, path, x ? x->bytes : "", y ? y->bytes : ""});
  }
  return join_renamed(std::move(list));
}

}  // namespace tc
