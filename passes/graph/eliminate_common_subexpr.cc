// Computes equal things once: nodes with the same operator, attributes and operands, and constants with the same
// content.
//   a = Relu(x)   b = Relu(x)   y = Add(a, b)   ->   a = Relu(x)   y = Add(a, a)
//   a = Add(x, z)   b = Add(z, x)   ...         ->   a = Add(x, z)   ...
// An If, Loop or Scan is equal to another whose bodies are, node by node. Of two equal outputs of the model, which keep
// their names, one becomes a copy of the other.
//
// Preconditions: operator, domain, attributes (bit by bit), operands, and which results there are and of which types,
// are equal; nothing random, in bodies neither; constants: type, sizes and bytes. Operands may be exchanged where the
// operator has two and does not care (Max and Min tell 0 from -0 by their order). Bodies: the same nodes in the same
// order, and the same sizes. A copy: the type is known, and the node reads as much as it writes at least, so that the
// copy costs no more.
//
// Needs: nothing. Leaves: no two equal nodes, but those that make what they write from less, and random ones.
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr size_t kHashedBytes = 4096;  // of a constant; equality compares all of them

uint64_t hash_of(const TensorData& t) {
  uint64_t h = hash_text("constant", uint64_t(t.dtype) + 1);
  for (int64_t d : t.dims) h = hash_text(to_text(d) + ",", h);
  for (const std::string& s : t.strings) h = hash_text(s, h);
  const char* p = reinterpret_cast<const char*>(t.bytes.get());
  if (p) h = hash_text(std::string_view(p, std::min(t.num_bytes, kHashedBytes)), h);
  return h;
}

bool equal(const TensorData& a, const TensorData& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.num_bytes == b.num_bytes && a.strings == b.strings &&
         (a.num_bytes == 0 || a.bytes == b.bytes || std::memcmp(a.bytes.get(), b.bytes.get(), a.num_bytes) == 0);
}

/// Bit by bit: 0 and -0 differ, and NaN is equal to itself.
bool equal(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

bool equal(const Attr& a, const Attr& b) {
  const Constant *x = std::get_if<Constant>(&a), *y = std::get_if<Constant>(&b);
  const float *f = std::get_if<float>(&a), *g = std::get_if<float>(&b);
  if (f && g) return equal(*f, *g);
  const auto *l = std::get_if<std::vector<float>>(&a), *m = std::get_if<std::vector<float>>(&b);
  if (l && m)
    return std::equal(l->begin(), l->end(), m->begin(), m->end(), [](float p, float q) { return equal(p, q); });
  if (x && y) return *x == *y || (*x && *y && equal(**x, **y));
  return a == b;
}

bool equal(const Attrs& a, const Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
}

/// Which outputs exist is part of the meaning: a random node or a training mode may depend on it. So are their types,
/// where the model declares how large they get.
bool same_outputs(const Node& a, const Node& b) {
  return std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    [](const Value* x, const Value* y) { return x && y ? x->type == y->type : !x && !y; });
}

bool commutes(const Node& n) {
  return n.inputs.size() == 2 && n.inputs[0] && n.inputs[1] && has_trait(n, OpTrait::Commutes);
}

/// The operands in an order that is the same for all nodes that may exchange theirs.
std::vector<Value*> operands_of(const Node& n) {
  std::vector<Value*> in = n.inputs;
  if (commutes(n) && in[0]->id > in[1]->id) std::swap(in[0], in[1]);
  return in;
}

/// The same work, whatever its operands are.
bool equal_but_operands(const Node& a, const Node& b) {
  return a.op == b.op && a.domain == b.domain && a.captures == b.captures && a.inputs.size() == b.inputs.size() &&
         a.regions.size() == b.regions.size() && same_outputs(a, b) && equal(a.attrs, b.attrs) && !is_random(a);
}

/// Two graphs that do the same with their inputs, node by node.
bool equal(const Graph& a, const Graph& b) {
  if (a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size() ||
      a.num_nodes() != b.num_nodes() || a.sizes() != b.sizes())
    return false;
  std::vector<const Value*> twin(size_t(a.value_ids()), nullptr);  // by id of a's values
  auto twins = [&](const Value* x, const Value* y) {
    if (!x || !y) return !x && !y;
    if (x->constant || y->constant) return x->constant && y->constant && equal(*x->constant, *y->constant);
    return twin[size_t(x->id)] == y;
  };
  auto all_twins = [&](const std::vector<Value*>& x, const std::vector<Value*>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), twins);
  };
  for (size_t k = 0; k < a.inputs().size(); ++k) {
    if (a.inputs()[k]->type != b.inputs()[k]->type) return false;
    twin[size_t(a.inputs()[k]->id)] = b.inputs()[k];
  }
  for (auto m = a.nodes().begin(), n = b.nodes().begin(); m != a.nodes().end(); ++m, ++n) {
    if (!equal_but_operands(**m, **n) || !all_twins((*m)->inputs, (*n)->inputs)) return false;
    for (size_t k = 0; k < (*m)->regions.size(); ++k)
      if (!equal(*(*m)->regions[k], *(*n)->regions[k])) return false;
    for (size_t k = 0; k < (*m)->outputs.size(); ++k)
      if ((*m)->outputs[k]) twin[size_t((*m)->outputs[k]->id)] = (*n)->outputs[k];
  }
  return all_twins(a.outputs(), b.outputs());
}

bool equal(const Node& a, const Node& b) {
  return equal_but_operands(a, b) && operands_of(a) == operands_of(b) &&
         std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                    [](const auto& x, const auto& y) { return equal(*x, *y); });
}

uint64_t hash_of(const Node& n) {
  uint64_t h = hash_text(n.op);
  for (const Value* v : operands_of(n)) h = hash_text(v ? to_text(int64_t(v->id)) + "," : "_,", h);
  for (const auto& [name, value] : n.attrs) h = hash_text(name, h);
  return h;
}

// Tables are looked up only, so their order shows nowhere.
using Table = std::unordered_multimap<uint64_t, Value*>;
using NodeTable = std::unordered_multimap<uint64_t, Node*>;

void merge_constants(Graph& g) {
  Table seen;
  for (const auto& owned : g.values()) {
    Value* v = owned.get();
    if (!v->constant || v->users.empty()) continue;
    const uint64_t h = hash_of(*v->constant);
    Value* twin = nullptr;
    for (auto [it, end] = seen.equal_range(h); it != end && !twin; ++it)
      if (equal(*it->second->constant, *v->constant)) twin = it->second;
    if (twin)
      forward(g, v, twin);
    else
      seen.emplace(h, v);
  }
  g.drop_unused_constants();
}

/// Is a copy of v, a result of n, no more work than n?
bool copy_pays(const Node& n, const Value* v) {
  if (!v->type.is_static_tensor() || n.is("Identity")) return false;
  const bool several = has_several_open(dims_of(v));
  int64_t read = 0;
  for (const Value* o : n.inputs) {
    if (!o || o->constant || !o->type.is_static_tensor()) continue;
    if (has_several_open(dims_of(o))) return true;
    if (!several) read += num_elements(dims_of(o));
  }
  return !several && read >= num_elements(dims_of(v));
}

void merge_into(Graph& g, Node* twin, Node* n) {
  bool all = true;
  for (size_t k = 0; k < n->outputs.size(); ++k) {
    Value* v = n->outputs[k];
    if (!v || forward(g, v, twin->outputs[k])) continue;
    if (copy_pays(*n, v))
      replace_value(g, n, v, twin->outputs[k]);
    else
      all = false;
  }
  if (!all) return;
  add_origins(twin->origins, n->origins);
  g.erase(n);
}

}  // namespace

void eliminate_common_subexpr(Graph& g, PassContext& cx) {
  merge_constants(g);
  NodeTable seen;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) eliminate_common_subexpr(*r, cx);
    if (is_random(*n)) continue;
    const uint64_t h = hash_of(*n);
    Node* twin = nullptr;
    for (auto [at, end] = seen.equal_range(h); at != end && !twin; ++at)
      if (equal(*at->second, *n)) twin = at->second;
    if (!twin)
      seen.emplace(h, n);
    else
      merge_into(g, twin, n);
  }
}

}  // namespace tc
