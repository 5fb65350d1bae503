// Makes one convolution of several that read the same tensor, where their channels leave vectors partly empty.
//   a = Relu(Conv(x, wa, ba))   b = Relu(Conv(x, wb, bb))     ->   y = Relu(Conv(x, [wa wb], [ba bb]))
//                                                                  a = Slice(y)   b = Slice(y)
// It pays where vectors are saved: convolutions of 24 and 40 channels take two and three vectors of 16 lanes, one of 64 takes
// four. A vector that is saved saves a multiplication for each weight of a channel. What it costs are copies: a convolution
// without padding reads its slice in place, but any other reader took the result from the kernel of the convolution, with its
// border or in its own place of a Concat, and gets it by a copy now, which is held to cost as much as 16 multiplications.
// Channels that fill their vectors, such as those of Inception, stay as they are.
//
// Preconditions: the convolutions are of f32, two-dimensional and of one group, have the same attributes and one operand; their
// weights are constants, equal in size but for the number of channels; all have a constant bias or none has; activations
// are the same operator with the same attributes and constants of one element, of convolutions that nobody else reads.
//
// Needs: folded constants and scales, channels first. Leaves: one such convolution for each operand, where it pays.
#include "ir/ops/numeric.h"
#include "ir/ops/op.h"
#include "passes/graph/match.h"
#include "passes/graph/parallel_branches.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

constexpr int64_t kCopy = 16;  // multiplications that a vector's copy costs

struct Branch {
  Node* conv;
  Node* activation;  // null: none
  Value* result() const { return (activation ? activation : conv)->outputs[0]; }
  Value* weight() const { return conv->inputs[1]; }
  Value* bias() const { return conv->inputs.size() > 2 ? conv->inputs[2] : nullptr; }
  int64_t channels() const { return dims_of(weight())[0]; }
};

bool is_activation(const Node& n) {
  return has_trait(n, OpTrait::Activation) && std::all_of(n.inputs.begin() + 1, n.inputs.end(), [](const Value* v) {
           return !v || (v->constant && has_one_element(dims_of(v)));
         });
}

std::optional<Branch> branch_of(Node* n) {
  if (!n->is("Conv") || n->attr_int("group", 1) != 1 || n->inputs[0]->constant) return std::nullopt;
  Branch b{n, nullptr};
  if (!n->outputs[0]->type.is_static_tensor() || n->outputs[0]->type.dtype != DType::F32) return std::nullopt;
  if (!b.weight()->constant || rank_of(b.weight()) != 4 || (b.bias() && !b.bias()->constant)) return std::nullopt;
  if (Node* f = only_user(n->outputs[0]); f && is_activation(*f) && f->inputs[0] == n->outputs[0]) b.activation = f;
  return b;
}

bool go_together(const Branch& a, const Branch& b) {
  const Dims x = dims_of(a.weight()), y = dims_of(b.weight());
  return std::equal(x.begin() + 1, x.end(), y.begin() + 1) && a.conv->attrs == b.conv->attrs &&
         !a.bias() == !b.bias() && same_activation(a.activation, b.activation);
}

bool reads_in_place(const Node* n, const Value* v) {
  if (!n->is("Conv") || n->inputs[0] != v || n->attr_string("auto_pad", "NOTSET") != "NOTSET") return false;
  const auto pads = n->attr_ints("pads");
  return std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
}

bool is_copied(const Branch& b) {
  const Value* v = b.result();
  return v->output_uses > 0 ||
         std::any_of(v->users.begin(), v->users.end(), [v](const Node* n) { return !reads_in_place(n, v); });
}

/// Are the multiplications that the vectors of one convolution save more than what copies cost?
bool pays(const std::vector<Branch>& list, int64_t lanes) {
  if (list.size() < 2 || lanes < 2) return false;
  int64_t channels = 0, vectors = 0, copied = 0;
  for (const Branch& b : list) {
    const int64_t own = ceil_quotient(b.channels(), lanes);
    channels += b.channels();
    vectors += own;
    if (is_copied(b)) copied += own;
  }
  const int64_t weights = num_elements(dims_of(list[0].weight())) / list[0].channels();
  return (vectors - ceil_quotient(channels, lanes)) * weights > kCopy * copied;
}

/// All of them, those whose results are read in place, or none.
std::vector<Branch> those_that_pay(std::vector<Branch> list, int64_t lanes) {
  if (pays(list, lanes)) return list;
  std::erase_if(list, is_copied);
  return pays(list, lanes) ? list : std::vector<Branch>{};
}

void combine(Graph& g, const std::vector<Branch>& list) {
  Node* at = list[0].conv;
  const std::string suffix = "_x" + to_text(int64_t(list.size()));
  const auto joined = [&](Value* (Branch::*member)() const) {
    std::vector<Value*> parts;
    parts.reserve(list.size());
    for (const Branch& b : list) parts.push_back((b.*member)());
    return constant_op(g, at, "Concat", parts, derived(parts[0]->name, suffix), {{"axis", int64_t(0)}});
  };
  const auto origins_of = [&](Node* joint, Node* Branch::*member) {
    joint->origins.clear();
    for (const Branch& b : list) add_origins(joint->origins, (b.*member)->origins);
  };
  std::vector<Value*> in{at->inputs[0], joined(&Branch::weight)};
  if (list[0].bias()) in.push_back(joined(&Branch::bias));
  Value* y = add_op(g, at, "Conv", in, derived(at->outputs[0]->name, suffix), at->attrs);
  origins_of(y->producer, &Branch::conv);
  if (const Node* f = list[0].activation) {
    in = f->inputs;
    in[0] = y;
    y = add_op(g, at, f->op, in, derived(list[0].result()->name, suffix), f->attrs);
    origins_of(y->producer, &Branch::activation);
  }
  std::vector<BranchPart> parts;
  parts.reserve(list.size());
  for (const Branch& b : list) parts.push_back({b.result(), b.channels()});
  read_parts(g, at, y, 1, parts);
}

}  // namespace

void combine_parallel_conv2d(Graph& g, PassContext& cx) {
  BranchGroups<Branch> groups;
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) combine_parallel_conv2d(*r, cx);
    if (const auto b = branch_of(n.get())) groups.add(b->conv->inputs[0]->id, *b, go_together);
  }
  for (const auto& [operand, lists] : groups.all())
    for (const auto& list : lists)
      if (const auto chosen = those_that_pay(list, cx.target.vector_lanes); !chosen.empty()) combine(g, chosen);
  g.drop_unused_constants();
}

}  // namespace tc
