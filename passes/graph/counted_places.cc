// Places in an image whose sizes are known at run time, as MaxPool gives them and MaxUnpool takes them: one number for all axes,
// which depends on the sizes. Where the tensor has room for the largest image, the same place has another number.
//   y, at = MaxPool(x)   x: [1, 8, h, w], room for [1, 8, 64, 64]   ->   y, r = MaxPool(x)
//       at = (r / 4096 * h + r / 64 % 64) * w + r % 64
//   y = MaxUnpool(x, at)   ->   r = (at / (h w) * 64 + at / w % h) * 64 + at % w, but the last place of all behind what is counted
//       y = MaxUnpool(x, r)
//
// Preconditions: axis 0 may be counted as it likes; MaxUnpool has no output_shape.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

std::vector<SizeForm> fixed_sizes(const Dims& dims) {
  std::vector<SizeForm> all;
  for (const int64_t d : dims) all.push_back(fixed_size(d));
  return all;
}

}  // namespace

// `at` counts in an image of sizes `from`, the result in one of sizes `to`; axes from the slowest to the fastest.
Value* BoundedSizes::renumbered(Graph& g, Node* before, Value* at, const std::vector<SizeForm>& from,
                                const std::vector<SizeForm>& to, const ModelText& name) {
  if (std::equal(from.begin() + 1, from.end(), to.begin() + 1)) return at;
  size_t part = 0;
  const auto op = [&](const char* kind, Value* a, const SizeForm& f) {
    const std::string suffix = "_part" + to_text(int64_t(part++));
    return made(g, before, kind, {a, number_of(g, before, f, derived(name, suffix + "_size"))}, derived(name, suffix));
  };
  std::vector<Value*> places(from.size());
  for (size_t d = from.size(); d-- > 1;) {
    places[d] = op("Mod", at, counts_.larger(from[d], fixed_size(1)));
    at = op("Div", at, counts_.larger(from[d], fixed_size(1)));
  }
  for (size_t d = 1; d < from.size(); d++)
    at = made(g, before, "Add", {op("Mul", at, to[d]), places[d]}, derived(name, "_sum" + to_text(int64_t(d))));
  return at;
}

// The positions of a MaxPool that has been told its sizes.
Node* BoundedSizes::pool_places(Graph& g, Node* n, const std::vector<SizeForm>& in) {
  Value* places = n->outputs[1];
  const ModelText name = places->name;
  Node* pool = insert_for(g, *n, n, n->op, n->inputs, {n->outputs[0]->name, derived(name, "_room")}, n->attrs);
  infer_types(g, *pool);
  for (Value* v : pool->outputs)
    for (const BoundedSize& s : std::vector<BoundedSize>(sizes(n->outputs[0]))) note(v, s);
  std::vector<SizeForm> from = fixed_sizes(dims_of(n->inputs[0])), to = in;
  if (n->attr_int("storage_order", 0) != 0)
    for (auto* list : {&from, &to}) std::reverse(list->begin() + 2, list->end());
  Value* actual = renumbered(g, n, pool->outputs[1], from, to, derived(name, "_place"));
  g.replace_uses(n->outputs[0], pool->outputs[0]);
  actual->name = name;
  g.replace_uses(places, actual);
  g.erase(n);
  return pool;
}

Node* BoundedSizes::unpool(Graph& g, Node* n) {
  Value *x = n->inputs[0], *at = operand(*n, 1);
  if (operand(*n, 2) || !at || !at->type.is_static_tensor() || rank_of(at) != rank_of(x) || forms(at) != forms(x))
    return n;
  const size_t rank = size_t(rank_of(x)) - 2;
  const Dims kernel = n->attr_ints("kernel_shape");
  Dims strides = n->attr_ints("strides"), pads = n->attr_ints("pads");
  if (strides.empty()) strides.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank) return n;
  const std::vector<SizeForm> in = forms(x);
  std::vector<SizeForm> out = in;
  Dims room = dims_of(x);
  for (size_t d = 0; d < rank; d++) {
    const int64_t more = kernel[d] - pads[d] - pads[rank + d];
    out[d + 2] = (in[d + 2] - fixed_size(1)) * strides[d] + fixed_size(more);
    room[d + 2] = checked_add(checked_mul(room[d + 2] - 1, strides[d]), more);
    if (counts_.least(out[d + 2]) < 0 || room[d + 2] < 1) return n;
  }
  const ModelText name = n->outputs.at(0)->name;
  Value* places = renumbered(g, n, at, out, fixed_sizes(room), derived(name, "_place"));
  Value* last = g.add_constant(derived(name, "_last"), scalar_constant(DType::I64, double(num_elements(room) - 1)));
  // The last place of all is behind what is counted wherever something is.
  for (const BoundedSize& size : std::vector<BoundedSize>(sizes(x))) places = filled(g, n, places, size, "zero", last);
  g.set_input(n, 1, places);
  note_sized(g, n, x, out);
  return n;
}

}  // namespace tc
