// Operators that need the number of elements of a counted axis, or keep the axis that they look along.
//   y = ReduceMean(x)   x counted by n   ->   s = ReduceSum(tc.fill_behind(x, n))   y = s / n, in f32 at least
//   y = Softmax(x)                       ->   y = tc.fill_behind(Softmax(tc.fill_behind(x, n) {"lowest"}), n)
//   y = CumSum(x)                        ->   y = tc.fill_behind(CumSum(x), n)
//
// Preconditions: axes are constants; Softmax runs along it, or not (then nothing is filled). A mean of none is NaN, as in ONNX.
#include <array>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

/// The axes of a reduction: those that its operand or attribute names, all if there are none.
std::optional<std::vector<int>> reduced_axes(const Node& n) {
  const Value* x = n.inputs[0];
  std::vector<int> axes;
  if (n.inputs.size() > 1 && n.inputs[1]) {
    const auto list = ints_of(n.inputs[1]);
    if (!list) return std::nullopt;
    for (int64_t a : *list) axes.push_back(int(axis_from_front(a, x)));
  }
  if (axes.empty() && n.attr_int("noop_with_empty_axes", 0) == 0)
    for (int d = 0; d < rank_of(x); d++) axes.push_back(d);
  return axes;
}

/// What changes no element of a result that keeps the axis that it looks along; null for other operators.
const char* fill_of_kept_axis(const Node& n) {
  struct Row {
    const char *op, *fill;
  };
  static constexpr std::array<Row, 6> kRows = {{{"Softmax", "lowest"},
                                                {"LogSoftmax", "lowest"},
                                                {"Hardmax", "lowest"},
                                                {"LpNormalization", "zero"},
                                                {"CumSum", "zero"},
                                                {"CumProd", "one"}}};
  for (const Row& r : kRows)
    if (n.is(r.op)) return r.fill;
  return nullptr;
}

}  // namespace

Node* BoundedSizes::take_mean(Graph& g, Node* n) {
  Value *x = n->inputs[0], *y = n->outputs.at(0);
  const auto axes = reduced_axes(*n);
  if (!axes || !is_float(x->type.dtype)) return n;
  SizeForm number = fixed_size(1);
  std::vector<BoundedSize> along;
  for (int a : *axes) {
    if (a < 0 || a >= rank_of(x)) return n;
    number = number * form_along(x, a);
    if (const auto size = find(x, a)) along.push_back(*size);
  }
  if (along.empty() || number.fixed()) return n;
  // The sum of many is more than a narrow type holds.
  const DType t = x->type.dtype, wide = t == DType::F64 ? t : DType::F32;
  std::vector<Value*> inputs = n->inputs;
  if (t != wide) inputs[0] = made(g, n, "Cast", {x}, derived(y->name, "_wide"), {{"to", int64_t(wide)}});
  for (const BoundedSize& size : along) inputs[0] = filled(g, n, inputs[0], size, "zero");
  Value* sum = add_op(g, n, "ReduceSum", inputs, derived(y->name, "_sum"), n->attrs);
  follow(g, sum->producer);
  Value* divisor = counts_.value_of(g, n, number, derived(y->name, "_number"));
  divisor = add_op(g, n, "Cast", {divisor}, derived(y->name, "_divisor"), {{"to", int64_t(wide)}});
  Node* mean = insert_for(g, *n, n, "Div", {sum, divisor}, {y->name});
  if (t != wide) {
    infer_types(g, *mean);
    follow(g, mean);
    mean->outputs[0]->name = derived(y->name, "_mean");
    mean = insert_for(g, *n, n, "Cast", {mean->outputs[0]}, {y->name}, {{"to", int64_t(t)}});
  }
  g.replace_uses(y, mean->outputs[0]);
  g.erase(n);
  return mean;
}

Node* BoundedSizes::keep_axis(Graph& g, Node* n, const BoundedSize& size) {
  Value *x = n->inputs[0], *y = n->outputs.at(0);
  const char* fill = fill_of_kept_axis(*n);
  if (!fill) return n;
  int64_t axis = n->attr_int("axis", -1);
  if (n->is("CumSum") || n->is("CumProd")) {
    const auto known = n->inputs.size() > 1 && n->inputs[1] ? ints_of(n->inputs[1]) : std::nullopt;
    if (!known || known->size() != 1) return n;
    axis = known->front();
  }
  if (axis_from_front(axis, x) != size.axis) return n;
  std::vector<Value*> inputs = n->inputs;
  // A sum from the front looks at what is before it only.
  const bool from_front = (n->is("CumSum") || n->is("CumProd")) && n->attr_int("reverse", 0) == 0;
  if (!from_front) inputs[0] = filled(g, n, x, size, fill);
  Value* whole = add_op(g, n, n->op, inputs, derived(y->name, "_whole"), n->attrs);
  if (from_front) {
    note(whole, size);
    note_others(whole, x, size.axis);
  }
  Attrs attrs = {{"axis", int64_t(size.axis)}, {"fill", std::string("zero")}};
  if (n->is("Softmax")) attrs["least"] = std::max<int64_t>(0, counts_.least(form_along(x, size.axis)));
  Node* kept = insert_for(g, *n, n, "fill_behind", {whole, size.count}, {y->name}, std::move(attrs), "tc");
  g.replace_uses(y, kept->outputs[0]);
  g.erase(n);
  infer_types(g, *kept);
  for (const BoundedSize& s : std::vector<BoundedSize>(sizes(x))) note(kept->outputs[0], s);
  return kept;
}

Node* BoundedSizes::count_elements(Graph& g, Node* n) {
  SizeForm number = fixed_size(1);
  for (const SizeForm& f : forms(n->inputs[0])) number = number * f;
  if (number.fixed()) return n;
  Value* y = n->outputs.at(0);
  Node* same =
      insert_for(g, *n, n, "Identity", {counts_.value_of(g, n, number, derived(y->name, "_number"))}, {y->name});
  g.replace_uses(y, same->outputs[0]);
  g.erase(n);
  return same;
}

Node* BoundedSizes::look_along(Graph& g, Node* n) {
  if (Node* spelled = spell_out(g, n); spelled != n) return spelled;
  contract(g, n);
  if (n->inputs.empty() || !n->inputs[0] || !n->domain.empty() || !n->outputs.at(0)) return n;
  const std::vector<BoundedSize> all = sizes(n->inputs[0]);
  if (n->is("Size")) return all.empty() ? n : count_elements(g, n);
  if (n->is("ReduceMean")) return all.empty() ? n : take_mean(g, n);
  for (const BoundedSize& size : all)
    if (Node* rewritten = keep_axis(g, n, size); rewritten != n) return rewritten;
  return n;
}

}  // namespace tc
