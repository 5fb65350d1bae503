#include "passes/graph/multiply_blocks.h"

#include <algorithm>

#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr int64_t kBytes = 4;  // accuracy_level

/// y = MatMul(x, tc.unpack_weights <accuracy_level = 4> (p, sw, zw)) as a product of blocks of bytes.
void multiply(Graph& g, Node* n) {
  constexpr int64_t kWordBits = 32;
  const Node* w = n->inputs[1]->producer;
  if (!w || w->domain != "tc" || w->op != "unpack_weights" || w->attr_int("accuracy_level", 0) != kBytes) return;
  Value* x = n->inputs[0];
  if (x->type.dtype != DType::F32 || !x->type.is_static_tensor() || n->outputs[0]->type.dtype != DType::F32) return;
  const auto known = [](const Value* v) { return !v || v->is_constant(); };
  if (!std::all_of(w->inputs.begin(), w->inputs.end(), known)) return;
  if (w->inputs.size() > 3 && w->inputs[3]) return;  // blocks whose k are not neighbours
  Value* zero = w->inputs.size() > 2 ? w->inputs[2] : nullptr;
  const int64_t block = w->attr_int("block_size", 0), bits = w->attr_int("bits", 4), columns = w->attr_int("N", 0);
  if (bits != 4 && bits != 8) return;
  if ((zero && zero->type.dtype != DType::U8) || block * bits % kWordBits != 0 || columns < 4) return;
  const Attrs attrs = {{"block_size", block}};
  auto op = [&](const char* name, std::vector<Value*> in, std::string_view suffix, Attrs a, Dims d, DType t) {
    Node* made = insert_for(g, *n, n, name, std::move(in), {derived(n->outputs[0]->name, suffix)}, std::move(a), "tc");
    g.set_type(made->outputs[0], ValueType::tensor(t, to_shape(d)));
    return made->outputs[0];
  };
  Dims d = dims_of(x);
  d.back() = (d.back() + block - 1) / block;
  Value* s = op("block_scales", {x}, "_scales", attrs, d, DType::F32);
  d.push_back(block);
  Value* q = op("quantize_blocks", {x, s}, "_bytes", attrs, d, DType::I8);
  std::vector<Value*> in = {q, s, w->inputs[0], w->inputs[1]};
  if (zero) in.push_back(zero);
  Value* y = op("matmul_blocks", in, "_blocks", {{"N", columns}, {"bits", bits}}, dims_of(n->outputs[0]), DType::F32);
  replace_node(g, n, y);
}

}  // namespace

void multiply_blocks(Graph& g) {
  std::vector<Node*> products;
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) multiply_blocks(*r);
    if (n->is("MatMul")) products.push_back(n.get());
  }
  for (Node* n : products) multiply(g, n);
}

void allow_byte_products(Graph& g) {
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) allow_byte_products(*r);
    if ((n->domain == "com.microsoft" && n->op == "MatMulNBits") || (n->domain == "tc" && n->op == "unpack_weights"))
      n->attrs["accuracy_level"] = kBytes;
  }
}

}  // namespace tc
