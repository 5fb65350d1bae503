// Computes equal things once: nodes with the same operator, attributes and operands, and constants with the same
// content.
//   a = Relu(x)   b = Relu(x)   y = Add(a, b)   ->   a = Relu(x)   y = Add(a, a)
// Preconditions: operator, domain, attributes (bit by bit), operands, and which results there are and of which types,
// are equal; no bodies, nothing random; constants: type, sizes and bytes.
//
// Needs: nothing. Leaves: no two equal nodes, but those whose results are outputs of the model, and random ones.
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

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

bool equal(const Node& a, const Node& b) {
  return a.op == b.op && a.domain == b.domain && a.inputs == b.inputs && same_outputs(a, b) && equal(a.attrs, b.attrs);
}

uint64_t hash_of(const Node& n) {
  uint64_t h = hash_text(n.op);
  for (const Value* v : n.inputs) h = hash_text(v ? to_text(int64_t(v->id)) + "," : "_,", h);
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

bool merge_into(Graph& g, Node* twin, Node* n) {
  bool all = true;
  for (size_t k = 0; k < n->outputs.size(); ++k)
    if (n->outputs[k]) all = forward(g, n->outputs[k], twin->outputs[k]) && all;
  if (!all) return false;
  add_origins(twin->origins, n->origins);
  g.erase(n);
  return true;
}

}  // namespace

void eliminate_common_subexpr(Graph& g, PassContext& cx) {
  merge_constants(g);
  NodeTable seen;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) eliminate_common_subexpr(*r, cx);
    if (!n->regions.empty() || is_random(*n)) continue;
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
