// Puts the channels last in convolutional parts of the model, where neighbouring channels fill the lanes of vectors and
// the rows of matrix products. Each convolution works on channels-last tensors; operators after it follow as long as
// they can, so that transpositions stay at the borders only.
//   x [1,3,8,8]  c = Conv(x, w)  r = Relu(c)  y = MaxPool(r)   ->   t = Transpose(x)
//                                                                   c = Conv(t, w) {data_layout = "NHWC"}
//                                                                   r = Relu(c)  p = MaxPool(r) {NHWC}  y =
//                                                                   Transpose(p)
// What the model itself has put channels last and transposes back (linear layers between depthwise convolutions) is
// followed in the same way, if an operator reads nothing else.
// A flattening before a constant matrix moves the rows of the matrix instead; one of [N, C, 1, 1] moves nothing.
// Weights keep their order [oc, ic, k...]: the schedule packs them.
//
// Preconditions of following (layout_rules.cc): sizes are known, no bodies; an operand has a channels-last version; the
// result has three axes at least, but of Reduce and Reshape. And of
//   pointwise work       one result; element i comes from element i, or from one that broadcasts, and no value depends on
//                        the index; the operator names no axis (but a Quantize with one scale), moves none of size 1
//                        and is not random; operands have the result's shape or one element, or the operator broadcasts
//   pools                nobody wants the positions of maxima
//   Softmax, Concat      none: their axis is moved; that of tc.fill_behind, too
//   Slice, Pad           the number of bounds is known, and so are the axes
//   Resize, Upsample     no region of interest; known scales (Upsample)
//   GroupNormalization, InstanceNormalization
//                        floats of 32 or 64 bits, known scale and bias or not; both become sums over the places of each
//                        channel, which vectors of channels add up (not under strict_fp: sums in another order)
//   DepthToSpace, SpaceToDepth
//                        none
//   Reshape, Transpose, Reshape
//                        that exchange the halves of [N, a * b, ...], as shuffles of channels do: the last one follows
//   Reduce               the axes are known and some; without keepdims, what is left is in the old order
//   Reshape              it merges the spatial axes of [N, C, ...]; or channels or space have one element; or it flattens
//                        all but N, and only a product with a constant matrix on the right reads it
//
// Needs: types, canonicalize_ops (Reshape is the only reshaping operator), folded constants. Leaves: every convolution
// with data_layout = "NHWC", but those of narrow groups.
#include "passes/graph/layout.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

bool typed(const Node& n) {
  for (const auto* list : {&n.inputs, &n.outputs})
    for (const Value* v : *list)
      if (v && !v->type.is_static_tensor()) return false;
  return n.regions.empty() && (n.domain.empty() || (n.domain == "tc" && n.op == "fill_behind"));
}

/// Groups of so few results and channels that these fill no vectors where channels lie side by side; a picture's columns do. Depthwise
/// convolutions of one result a group are vectors of groups.
bool has_narrow_groups(const Node& n) {
  constexpr int64_t kFewest = 4, kDeep = 8;
  const int64_t groups = n.attr_int("group", 1);
  const Value* w = n.inputs.at(1);
  if (!n.is("Conv") || groups < 2 || !w || rank_of(w) < 3) return false;
  const int64_t results = dims_of(w)[0] / groups, depth = dims_of(w)[1];
  return results < kFewest && depth < kDeep && !(results == 1 && depth == 1 && groups >= kFewest);
}

bool is_convolution(const Node& n) {
  if (n.attr_string("data_layout", "NCHW") != "NCHW") return false;
  if (n.is("ConvInteger") || n.is("QLinearConv")) return is_int(n.outputs[0]->type.dtype);
  return (n.is("Conv") || n.is("ConvTranspose")) && is_float(n.outputs[0]->type.dtype) && !has_narrow_groups(n);
}

void convolution(Layouts& l, Node* n) {
  Attrs attrs = n->attrs;
  attrs["data_layout"] = std::string("NHWC");
  std::vector<Value*> in = n->inputs;
  in[0] = l.last(in[0], n);
  l.replace(n, add_op(l.graph(), n, n->op, std::move(in), Layouts::name_for(n), std::move(attrs)), true);
}

/// Transposes back that nobody needed.
void drop_unused(Graph& g) {
  for (auto it = g.nodes().end(); it != g.nodes().begin();) {
    Node* n = std::prev(it)->get();
    if (n->is("Transpose") && !n->outputs[0]->is_used())
      g.erase(n);
    else
      --it;
  }
  g.drop_unused_constants();
}

}  // namespace

void convert_layout(Graph& g, PassContext& cx) {
  Layouts l(g, cx.options.strict_fp);
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) convert_layout(*r, cx);
    if (!typed(*n)) continue;
    if (is_convolution(*n))
      convolution(l, n);
    else if (!l.adopt(n) && (l.may_follow(n) || n->is("Reshape")))
      (void)follow_layout(l, n);
  }
  drop_unused(g);
}

}  // namespace tc
