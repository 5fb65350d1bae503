#include "passes/graph/layout.h"

#include <algorithm>

namespace tc {

std::vector<int64_t> to_channels_last(int rank) {
  std::vector<int64_t> perm = {0};
  for (int d = 2; d < rank; ++d) perm.push_back(d);
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> to_channels_first(int rank) {
  std::vector<int64_t> perm = {0, rank - 1};
  for (int d = 1; d + 1 < rank; ++d) perm.push_back(d);
  return perm;
}

int64_t axis_in_last(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

Value* Layouts::native(const Value* v) const {
  return v && size_t(v->id) < native_.size() ? native_[size_t(v->id)] : nullptr;
}

void Layouts::set_native(const Value* v, Value* last, bool adopted) {
  native_.resize(size_t(g_.value_ids()));
  adopted_.resize(native_.size());
  native_[size_t(v->id)] = last;
  adopted_[size_t(v->id)] = adopted;
}

// The axes of a tensor of rank 3 are exchanged both ways alike: behind a convolution that is the way to channels last.
bool Layouts::adopt(const Node* n) {
  if (!n->is("Transpose") || native(n->inputs[0]) || n->inputs[0]->constant) return false;
  const int rank = rank_of(n->inputs[0]);
  if (rank < 3 || n->attr_ints("perm") != to_channels_first(rank)) return false;
  set_native(n->outputs[0], n->inputs[0], true);
  return true;
}

bool Layouts::may_follow(const Node* n) const {
  bool all = true, any = false;
  for (const Value* v : n->inputs) {
    if (!v || v->constant) continue;
    if (native(v) && !adopted(v)) return true;
    any = any || native(v);
    all = all && (native(v) || has_one_element(dims_of(v)));
  }
  return any && all;
}

Value* Layouts::transpose(Value* v, const std::vector<int64_t>& perm, ModelText name, Node* at) {
  return constant_op(g_, at, "Transpose", {v}, std::move(name), {{"perm", perm}});
}

Value* Layouts::last(Value* v, Node* at) {
  if (Value* n = native(v)) return n;
  if (size_t(v->id) < last_.size() && last_[size_t(v->id)]) return last_[size_t(v->id)];
  Value* t = transpose(v, to_channels_last(rank_of(v)), derived(v->name, "_nhwc"), at);
  last_.resize(std::max(last_.size(), size_t(v->id) + 1));
  last_[size_t(v->id)] = t;
  return t;
}

Value* Layouts::broadcast_last(Value* v, int rank, Node* at) {
  const Dims d = dims_of(v);
  if (has_one_element(d) && int(d.size()) <= rank) return v;
  if (int(d.size()) == rank) return last(v, at);
  Dims full(size_t(rank) - d.size(), 1);
  full.insert(full.end(), d.begin(), d.end());
  Value* shape = g_.add_constant(derived(v->name, "_full_shape"), int64_constant(full));
  Value* wide = constant_op(g_, at, "Reshape", {v, shape}, derived(v->name, "_full"));
  return transpose(wide, to_channels_last(rank), derived(v->name, "_nhwc"), at);
}

ModelText Layouts::name_for(const Node* n) {
  const Value* v = n->outputs[0];
  return v->output_uses > 0 ? derived(v->name, "_nhwc") : v->name;
}

void Layouts::replace(Node* n, Value* y, bool is_convolution) {
  Value* v = n->outputs[0];
  y->producer->name = n->name;
  y->producer->origins = n->origins;
  const bool is_output = v->output_uses > 0;
  const bool by_convolution =
      std::any_of(n->inputs.begin(), n->inputs.end(), [&](const Value* x) { return x && native(x) && !adopted(x); });
  Value* t = transpose(y, to_channels_first(rank_of(y)), is_output ? v->name : derived(v->name, "_nchw"), n);
  set_native(t, y, !is_convolution && !by_convolution);
  g_.replace_uses(v, t);
  g_.erase(n);
}

}  // namespace tc
