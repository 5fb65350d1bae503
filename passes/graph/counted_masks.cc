// How many places a mask selects is one number, whichever way the model counts them, as exporters do for y[mask] = v.
//   p = NonZero(m)   k = ReduceSum(Cast(Reshape(m, [-1])))   ->   k = Reshape(p_count, [1])
//   p = NonZero(Expand(Unsqueeze(r), [4, 6]))   r: [4]       ->   p counted by 6 c, where c counts NonZero(r)
//   y = ScatterND(x, Transpose(NonZero(m)), Expand(v, k))    ->   y = Where(m, v, x)
//
// Preconditions: the sum is of all elements of the mask, in i64, and a NonZero selects by the same mask.
#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

/// What has the elements of `v` in their order.
Value* behind_views(Value* v) {
  while (v && v->producer && has_trait(*v->producer, OpTrait::KeepsElements)) v = v->producer->inputs.at(0);
  return v;
}

/// Zeros behind what is counted are no places.
bool puts_zeros(const Node& n) { return fills_behind(n, "zero"); }

/// The mask whose true elements a ReduceSum counts; null if it is another sum.
Value* counted_mask(const Node& n) {
  Value* x = n.is("ReduceSum") ? operand(n, 0) : nullptr;
  const auto axes = x && x->type.is_static_tensor() ? ints_or(n, 1, {}) : std::nullopt;
  if (!axes || (axes->empty() && n.attr_int("noop_with_empty_axes", 0) != 0)) return nullptr;
  for (int64_t d = 0; d < rank_of(x) && !axes->empty(); d++)
    if (std::none_of(axes->begin(), axes->end(), [&](int64_t a) { return axis_from_front(a, x) == d; })) return nullptr;
  const Node* cast = made_by(behind_views(x), "Cast");
  if (!cast || cast->outputs[0]->type.dtype != DType::I64 || cast->inputs[0]->type.dtype != DType::Bool) return nullptr;
  return behind_views(cast->inputs[0]);
}

/// The count among the results of a NonZero; null where nothing counts them.
Value* count_output(const Node* n) { return n->outputs.size() > 1 ? n->outputs[1] : nullptr; }

/// What counts the true elements of `mask`, or of a view of it; null if nothing does.
Value* places_in(const Value* mask, int depth = 8) {
  for (const Node* u : mask->users) {
    if (u->is("NonZero") && count_output(u)) return count_output(u);
    if (depth == 0 || u->inputs[0] != mask || !(puts_zeros(*u) || has_trait(*u, OpTrait::KeepsElements))) continue;
    if (Value* count = places_in(u->outputs[0], depth - 1)) return count;
  }
  return nullptr;
}

/// Does the model turn `mask`, or a view of it, into numbers? Then it may sum them.
bool is_summed(const Value* mask, int depth = 8) {
  return std::any_of(mask->users.begin(), mask->users.end(), [&](const Node* u) {
    return u->is("Cast") || (depth > 0 && u->inputs[0] == mask && has_trait(*u, OpTrait::KeepsElements) &&
                             is_summed(u->outputs[0], depth - 1));
  });
}

/// Does a NonZero find the places of `mask`, or of what repeats it?
bool is_searched(const Value* mask, int depth = 8) {
  return std::any_of(mask->users.begin(), mask->users.end(), [&](const Node* u) {
    const bool repeats = u->is("Expand") || has_trait(*u, OpTrait::KeepsElements);
    return u->is("NonZero") || (depth > 0 && u->inputs[0] == mask && repeats && is_searched(u->outputs[0], depth - 1));
  });
}

/// The only element of what a value is expanded from; null if that has several.
Value* repeated_number(Value* v) {
  while (v->producer && (v->producer->is("Expand") || has_trait(*v->producer, OpTrait::KeepsElements)))
    v = v->producer->inputs[0];
  return v->type.is_static_tensor() && has_one_element(dims_of(v)) ? v : nullptr;
}

/// The operator that joins an element with an update; "" where the update takes its place, nothing for an unknown one. `truth`: of
/// truth values.
std::optional<std::string> joined_by(const std::string& reduction, bool truth) {
  const std::string most = truth ? "Or" : "Max", least = truth ? "And" : "Min";
  const std::map<std::string, std::string> ops = {
      {"none", ""}, {"add", truth ? most : "Add"}, {"mul", truth ? least : "Mul"}, {"max", most}, {"min", least}};
  const auto it = ops.find(reduction);
  return it == ops.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace

Node* BoundedSizes::put_by_mask(Graph& g, Node* n) {
  Value *data = n->inputs[0], *at = n->inputs[1], *y = n->outputs.at(0);
  const Node* turned = made_by(at, "Transpose");
  const Node* found = turned && rank_of(at) == 2 ? made_by(turned->inputs[0], "NonZero") : nullptr;
  if (!found || !y || turned->attr_ints("perm", {1, 0}) != std::vector<int64_t>{1, 0}) return n;
  Value* mask = found->inputs[0];
  while (mask->producer && puts_zeros(*mask->producer)) mask = mask->producer->inputs[0];
  const auto op = joined_by(n->attr_string("reduction", "none"), data->type.dtype == DType::Bool);
  Value* v = op ? repeated_number(n->inputs[2]) : nullptr;
  if (!v) {  // of a tensor at the same places
    const Node* taken = made_by(behind_views(n->inputs[2]), "GatherND");
    const bool same = taken && taken->inputs[1] == at && taken->attr_int("batch_dims", 0) == 0;
    v = same && forms(taken->inputs[0]) == forms(data) ? taken->inputs[0] : nullptr;
  } else {
    v = constant_op(g, n, "Reshape", {v, g.add_constant(derived(y->name, "_scalar"), int64_constant({}))},
                    derived(y->name, "_value"));
  }
  if (!op || !v || mask->type.dtype != DType::Bool || forms(mask) != forms(data)) return n;
  if (!op->empty()) v = made(g, n, *op, {data, v}, derived(y->name, "_joined"));
  return replaced(g, n, made(g, n, "Where", {mask, v, data}, derived(y->name, "_put")));
}

Node* BoundedSizes::count_mask(Graph& g, Node* n) {
  Value *mask = counted_mask(*n), *y = n->outputs.at(0);
  Value* count = mask && y ? places_in(mask) : nullptr;
  if (mask && y && !count && is_searched(mask))  // it comes behind the sum
    count = count_output(made(g, n, "NonZero", {mask}, derived(y->name, "_where"))->producer);
  if (!count || !counts_.find(count)) return n;
  const Dims ones(n->attr_int("keepdims", 1) != 0 ? size_t(rank_of(n->inputs[0])) : 0, 1);
  Value* shape = g.add_constant(derived(y->name, "_shape"), int64_constant(ones));
  return replaced(g, n, made(g, n, "Reshape", {count, shape}, derived(y->name, "_places")));
}

std::optional<SizeForm> BoundedSizes::count_of_repeated(Graph& g, Node* n) {
  Value* x = n->inputs.at(0);
  while (x->producer && puts_zeros(*x->producer)) x = x->producer->inputs[0];
  Value* mask = behind_views(x);
  bool repeats = false;
  while (mask->producer && mask->producer->is("Expand")) {
    repeats = true;
    mask = behind_views(mask->producer->inputs[0]);
  }
  if (!repeats || !mask->type.is_static_tensor() || mask->constant) return std::nullopt;
  SizeForm all = fixed_size(1), own = fixed_size(1);
  for (const SizeForm& f : forms(x)) all = all * f;
  for (const SizeForm& f : forms(mask)) own = own * f;
  if (all == fixed_size(0) || own == fixed_size(0)) return std::nullopt;
  const auto times = exact_quotient(all, own);
  Value* places = times ? places_in(mask) : nullptr;
  if (times && !places && is_summed(mask))
    places = count_output(made(g, n, "NonZero", {mask}, derived(n->outputs.at(0)->name, "_once"))->producer);
  const auto count = places ? counts_.find(places) : std::nullopt;
  return count && !count->fixed() ? std::optional(*count * *times) : std::nullopt;
}

}  // namespace tc
