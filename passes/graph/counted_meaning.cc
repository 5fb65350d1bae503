// A node may read a tensor with a counted axis if, along it, each of its results depends on one element only, the one at the same
// index: then what lies behind the counted elements stays behind them. This is decided from the node's meaning, whatever the
// operator: every load has the result's index along the counted axis, and nothing else looks at that index. So elementwise
// functions, moves of other axes, Gather by counted positions, products with weights pass; sums over the axis, Concat along it,
// sorting do not.
// Where no element is read, as of an operand that has none, the sizes are all there is: those of the results follow if they grow
// with the operand's (counted_shape.h).
//   y = Slice(x, [0], [0], axis = 1)   x: [5, 8], counted along 0   ->   y: [5, 0], counted along 0
#include <algorithm>
#include <set>

#include "ir/ops/op.h"
#include "passes/graph/counted_follow.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/counted_shape.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

/// Does the node say how long a result is along this axis of an operand, whatever that has there?
bool states_length(const Node& n, int axis, int rank) {
  if (n.is("ConvTranspose")) return axis >= 2 && n.attrs.contains("output_shape");
  if (n.is("Expand")) {  // one element is stretched, several stay
    const Constant shape = n.inputs.at(1)->constant;
    const int64_t k = shape ? shape->size() - rank + axis : -1;
    return k >= 0 && shape->as_int(k) != 1;
  }
  if (!n.is("CenterCropPad")) return false;
  const std::vector<int64_t> axes = n.attr_ints("axes");
  return !n.attrs.contains("axes") ||
         std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == axis || a + rank == axis; });
}

/// Are the axes that go those that have one element?
bool drops_what_is_one(const Node& n) {
  return n.is("Squeeze") && !n.attrs.contains("axes") && (n.inputs.size() < 2 || !n.inputs[1]);
}

/// Is operand `i` a table that positions lead into along this axis? They lead to counted elements only.
bool is_table(const Node& n, size_t i, int axis) {
  if (i != 0) return false;
  if (n.is("GatherND") && n.inputs.size() > 1 && n.inputs[1] && rank_of(n.inputs[1]) > 0) {
    const int64_t first = n.attr_int("batch_dims", 0);
    return axis >= first && axis - first < dims_of(n.inputs[1]).back();
  }
  if (!n.is("Gather")) return false;
  const int64_t along = n.attr_int("axis", 0);
  return (along < 0 ? along + int64_t(n.inputs[0]->type.shape.size()) : along) == axis;
}

/// "--dim h=32*h32 --dim h32=2..8"
std::string option_of(const Multiples& m) {
  const std::string symbol = printable(m.count->name.raw()), factor = to_text(m.factor), part = symbol + factor;
  return "--dim " + symbol + "=" + factor + "*" + part + " --dim " + part + "=" + to_text(m.least) + ".." +
         to_text(m.most);
}

/// Does a Slice along `axis` end at a position that is counted from the front?
bool ends_from_front(const Node& n, int axis, int rank) {
  const auto ends = ints_of(n.inputs.at(2)), axes = n.inputs.size() > 3 ? ints_of(n.inputs[3]) : std::nullopt;
  if (!ends) return false;
  for (size_t k = 0; k < ends->size(); k++) {
    const int64_t a = axes ? axes->at(k) : int64_t(k);
    if ((a < 0 ? a + rank : a) == axis && (*ends)[k] < 0) return false;
  }
  return true;
}

}  // namespace

void refuse_counted(const Node& n, const Value* v, const std::string& why, const std::string& way_out) {
  Diagnostic d = problem_of(n, "TC0303", ExitCode::Unsupported, why,
                            {way_out.empty() ? "give --dim a number in place of a range; where data decides, declare "
                                               "fixed sizes for the results of the operator that counts them"
                                             : way_out});
  d.loc.value = v->name.raw();
  if (const auto at = std::find(n.inputs.begin(), n.inputs.end(), v); at != n.inputs.end())
    d.loc.input = int(at - n.inputs.begin());
  throw Error(std::move(d));
}

/// What has one count.
struct BoundedSizes::CountGroup {
  BoundedSize size;
  const Value* operand = nullptr;
  CountedAxes axes;                // of what the function reads
  std::vector<OperandAxis> where;  // of all operands
};

std::vector<BoundedSizes::CountGroup> BoundedSizes::groups_of(Node* n, const TensorFn& fn) const {
  std::vector<CountGroup> groups;
  const bool is_noted = n->outputs[0] && is_counted(n->outputs[0]);
  for (size_t i = 0; i < n->inputs.size(); i++) {
    const Value* v = n->inputs[i];
    if (!v) continue;
    const auto read = std::find(fn.operands.begin(), fn.operands.end(), int(i));
    for (const BoundedSize& size : sizes(v)) {
      if (is_table(*n, i, size.axis)) continue;
      if (!is_noted && states_length(*n, size.axis, rank_of(v)))
        refuse_counted(
            *n, v,
            "the size of this tensor is known only at run time, and the operator says what its result has instead");
      if (drops_what_is_one(*n) && may_be_one(size.count))
        refuse_counted(
            *n, v, "the size of this tensor is known only at run time, and where it is 1 the operator drops the axis");
      auto group =
          std::find_if(groups.begin(), groups.end(), [&](const CountGroup& o) { return o.size.count == size.count; });
      if (group == groups.end()) group = groups.insert(groups.end(), CountGroup{size, v, {}, {}});
      group->where.push_back({i, size.axis});
      if (read != fn.operands.end()) group->axes.add(fn.inputs[size_t(read - fn.operands.begin())].get(), size.axis);
    }
  }
  return groups;
}

void BoundedSizes::refuse_meeting(const Node& n, const CountGroup& group, const std::vector<CountGroup>& all) const {
  if (all.size() == 1)
    refuse_counted(n, group.operand,
                   "the size of this tensor is known only at run time, and the operator looks across it");
  std::string ways, alike;
  int pairs = 0;  // that could be one size
  const auto share_operand = [](const CountGroup& a, const CountGroup& b) {
    return std::any_of(a.where.begin(), a.where.end(), [&](const auto& x) {
      return std::any_of(b.where.begin(), b.where.end(), [&](const auto& y) { return x.operand == y.operand; });
    });
  };
  std::set<const Value*> told;
  for (size_t i = 0; i < all.size(); i++)
    for (size_t k = i + 1; k < all.size(); k++) {
      const auto a = counts_.find(all[i].size.count), b = counts_.find(all[k].size.count);
      const auto same = a && b ? counts_.where_equal(*a, *b) : std::nullopt;
      if (same && !same->count->producer && told.insert(same->count).second)
        ways += (ways.empty() ? "" : " ") + option_of(*same);
      const auto one = a && b && !share_operand(all[i], all[k]) ? counts_.equal_if(*a, *b) : std::nullopt;
      if (!one || one->first->producer || one->second->producer) continue;
      pairs++;
      alike = "--dim " + printable(one->second->name.raw()) + "=" + printable(one->first->name.raw());
    }
  std::string hint;
  if (!ways.empty())
    hint = "sizes that are halved and doubled meet where they are multiples: " + ways;
  else if (pairs == 1)
    hint = "where they are the same size in your model, say so: " + alike;
  refuse_counted(n, group.operand,
                 "two sizes that are known only at run time meet here, or the operator looks across one", hint);
}

/// Of an operator of the user's, whose formula may say anything.
void BoundedSizes::forbid_size_in_formula(const Node& n, const TensorFn& fn, const CountGroup& group,
                                          const std::vector<std::set<int>>& followed) {
  const auto growing = growing_axes(n, fn, group.where, group.size.capacity);
  if (!growing)
    refuse_counted(n, group.operand,
                   "the size of this tensor is known only at run time, and the operator's formula has it as a number");
  for (size_t k = 0; k < followed.size(); k++)
    if (!std::includes(followed[k].begin(), followed[k].end(), (*growing)[k].begin(), (*growing)[k].end()))
      refuse_counted(n, group.operand,
                     "the size of this tensor is known only at run time, and an output has it as a shape alone");
}

std::vector<std::set<int>> BoundedSizes::followed_axes(Node* n, const TensorFn& fn, CountGroup& group,
                                                       const std::vector<CountGroup>& all) const {
  if (!group.axes.follow(fn)) refuse_meeting(*n, group, all);
  std::vector<std::set<int>> axes;
  axes.reserve(fn.outputs.size());
  for (const Buffer& y : fn.outputs) axes.push_back(group.axes.of(y.get()));
  const auto unread = [&](const OperandAxis& o) {
    return std::find(fn.operands.begin(), fn.operands.end(), int(o.operand)) == fn.operands.end();
  };
  const auto by_shape = [&](size_t k, const Value* y) {
    return y->is_used() && !reads_operands(fn, fn.outputs[k].get());
  };
  bool asks = std::any_of(group.where.begin(), group.where.end(), unread);
  size_t next = 0;
  for (const Value* y : n->outputs)
    if (y) asks = by_shape(next++, y) || asks;
  if (n->row) forbid_size_in_formula(*n, fn, group, axes);
  if (!asks) return axes;
  // EyeLike goes along with its rows; the result of Size is another one.
  const auto shaped = axes_by_shape(*n, fn, group.where, group.size.capacity);
  if (!shaped)
    refuse_counted(*n, group.operand,
                   "the size of this tensor is known only at run time, and the operator asks for it");
  next = 0;
  for (const Value* y : n->outputs) {
    if (!y) continue;
    const std::set<int>&read = axes[next], &all = shaped->at(next);
    if (y->is_used() && !std::includes(all.begin(), all.end(), read.begin(), read.end()))
      refuse_counted(*n, group.operand,
                     "the size of this tensor is known only at run time, and an output has it as a shape alone");
    axes[next] = all;
    next++;
  }
  return axes;
}

void BoundedSizes::follow_operands(Graph& g, Node* n) {
  if (std::none_of(n->inputs.begin(), n->inputs.end(), [&](const Value* v) { return v && is_counted(v); })) return;
  const TensorFn& fn = tensor_fn(*n);
  std::vector<CountGroup> groups = groups_of(n, fn);
  std::vector<std::pair<size_t, BoundedSize>> found;  // of an output
  for (CountGroup& group : groups) {
    const auto axes = followed_axes(n, fn, group, groups);
    for (size_t k = 0, next = 0; k < n->outputs.size(); k++) {
      if (!n->outputs[k]) continue;
      for (const int axis : axes[next++])
        if (Value* count = count_of(g, n, k, axis, group.size.count, group.size.capacity))
          found.push_back({k, {axis, count, dims_of(n->outputs[k])[size_t(axis)]}});
    }
  }
  for (const auto& [k, size] : found) note(n->outputs[k], size);
}

bool BoundedSizes::may_be_one(Value* count) const {
  const auto form = counts_.find(count);
  return !form || counts_.least(*form) <= 1;
}

Value* BoundedSizes::count_of(Graph& g, Node* n, size_t k, int axis, Value* count, int64_t bound) {
  const Dims dims = dims_of(n->outputs[k]);
  const int64_t capacity = dims[size_t(axis)];
  if (capacity == bound) return count;
  if (!n->is("Slice") || !ends_from_front(*n, axis, int(dims.size())))
    refuse_counted(*n, n->inputs[0], "the size of this tensor is known only at run time, and the operator changes it");
  if (const auto form = counts_.find(count); form && counts_.least(*form) >= capacity) return nullptr;
  const ModelText& name = n->outputs[k]->name;
  const auto next = std::next(n->self);
  return add_op(g, next == g.nodes().end() ? nullptr : next->get(), "Min",
                {count, g.add_constant(derived(name, "_most"), scalar_constant(DType::I64, double(capacity)))},
                derived(name, "_count"));
}

}  // namespace tc
