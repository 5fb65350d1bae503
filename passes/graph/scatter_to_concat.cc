// Puts together what scatters with constant positions write, where these are a box: exporters spell x[:, :4] = u so.
//   y = ScatterND(x, [[0, 0], [0, 1]], u)   (x of [1, 8, 6, 6])  ->  y = Concat(Reshape(u, [1, 2, 6, 6]), Slice(x, 2..8))
//   y = ScatterElements(x, [[3, 3, 3]], u) {axis = 0}            ->  y = Concat(Slice(x, 0..3), u, Slice(x, 4..))
//   every second row, x[1::2] = u                                ->  the same with rows in pairs, between two Reshapes
// A Concat is a move: its neighbours are computed where they belong, layouts go through it, and of several writes in a row nothing is
// computed that a later one covers: parts of a Concat are taken from its operands.
//
// Preconditions: no reduction; positions are constants, in the order of their box, inside of the tensor; every second (third, ...) row only
// where their number divides the axis; at least an eighth of the tensor is written (less is better written in place), or what is
// written to is a constant or a Concat.
//
// Needs: folded constants, sizes. Leaves: other scatters.
#include <algorithm>

#include "ir/open_size.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

/// begin, begin + step, ... along an axis.
struct Steps {
  int64_t begin = 0, step = 1, count = 0;
  bool operator==(const Steps&) const = default;
};
using Box = std::vector<Steps>;  // one per axis

/// What at(0), at(1), ... at(count - 1) are if they run through a box: they begin again from the first where another axis goes on.
template <typename At>
Steps steps_of(int64_t count, At at) {
  Steps s{at(0), 1, 1};
  int64_t i = 1;
  while (i < count && at(i) == s.begin) ++i;
  if (i < count) s.step = at(i) - s.begin;
  s.count = i < count ? (at(count - 1) - s.begin) / s.step + 1 : 1;
  return s;
}

int64_t counted(const Box& box) {
  int64_t n = 1;
  for (const Steps& s : box) n *= s.count;
  return n;
}

bool inside(const Box& box, const Dims& dims) {
  for (size_t a = 0; a < box.size(); ++a) {
    const Steps& s = box[a];
    if (s.begin < 0 || s.step < 1 || s.count < 1 || s.begin + (s.count - 1) * s.step >= dims[a]) return false;
  }
  return true;
}

int64_t from_front(int64_t at, int64_t size) { return at < 0 ? at + size : at; }

std::optional<Box> box_of_nd(const Node& n) {
  const TensorData& t = *n.inputs[1]->constant;
  const Dims data = dims_of(n.inputs[0]), index = dims_of(n.inputs[1]);
  const auto q = size_t(index.back());
  const int64_t rows = num_elements(index) / std::max<int64_t>(1, index.back());
  const auto at = [&](int64_t row, size_t a) { return from_front(t.as_int(row * int64_t(q) + int64_t(a)), data[a]); };
  Box box;
  for (size_t a = 0; a < data.size(); ++a)
    box.push_back(a < q ? steps_of(rows, [&](int64_t row) { return at(row, a); }) : Steps{0, 1, data[a]});
  if (q == 0 || !inside(box, data) || counted(Box(box.begin(), box.begin() + int64_t(q))) != rows) return {};
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row;
    for (size_t a = q; a-- > 0; rest /= box[a].count)
      if (at(row, a) != box[a].begin + rest % box[a].count * box[a].step) return {};
  }
  return box;
}

std::optional<Box> box_of_elements(const Node& n) {
  const TensorData& t = *n.inputs[1]->constant;
  const Dims data = dims_of(n.inputs[0]), index = dims_of(n.inputs[1]);
  const auto axis = size_t(from_front(n.attr_int("axis", 0), int64_t(data.size())));
  int64_t behind = 1;
  for (size_t a = axis + 1; a < index.size(); ++a) behind *= index[a];
  const auto at = [&](int64_t i) { return from_front(t.as_int(i), data[axis]); };
  Box box;
  for (size_t a = 0; a < data.size(); ++a)
    box.push_back(a == axis ? steps_of(index[a], [&](int64_t k) { return at(k * behind); }) : Steps{0, 1, index[a]});
  if (!inside(box, data) || box[axis].count != index[axis]) return {};
  for (int64_t i = 0; i < num_elements(index); ++i)
    if (at(i) != box[axis].begin + i / behind % index[axis] * box[axis].step) return {};
  return box;
}

class Write {
 public:
  Write(Graph& g, Node* n, Box box) : g_(g), n_(n), box_(std::move(box)) {}

  Value* result() {
    Dims counts;
    for (const Steps& s : box_) counts.push_back(s.count);
    return written(n_->inputs[0], reshaped(n_->inputs[2], counts), 0);
  }

 private:
  ModelText name() { return derived(n_->outputs[0]->name, "_part" + (parts_++ > 0 ? to_text(parts_) : "")); }
  Value* list(const ModelText& of, const char* suffix, const Dims& numbers) {
    return g_.add_constant(derived(of, suffix), int64_constant(numbers));
  }
  Value* reshaped(Value* v, const Dims& dims) {
    if (dims_of(v) == dims) return v;
    if (const Node* before = made_by(v, "Reshape"); before && dims_of(before->inputs[0]) == dims)
      return before->inputs[0];
    const ModelText own = name();
    return add_op(g_, n_, "Reshape", {v, list(own, "_shape", dims)}, own);
  }
  Value* sliced(Value* v, size_t axis, Steps s) {
    if (s == Steps{0, 1, dims_of(v)[axis]}) return v;
    const ModelText own = name();
    return constant_op(g_, n_, "Slice",
                       {v, list(own, "_from", {s.begin}), list(own, "_to", {s.begin + (s.count - 1) * s.step + 1}),
                        list(own, "_axis", {int64_t(axis)}), list(own, "_step", {s.step})},
                       own);
  }

  /// Elements `begin` to `end` along the axis, of the operands where `v` is a Concat along it.
  void take(Value* v, size_t axis, int64_t begin, int64_t end, std::vector<Value*>& parts) {
    if (begin == end) return;
    const Node* whole = made_by(v, "Concat");
    if (!whole || size_t(from_front(whole->attr_int("axis", 0), rank_of(v))) != axis) {
      parts.push_back(sliced(v, axis, {begin, 1, end - begin}));
      return;
    }
    int64_t at = 0;
    for (Value* x : whole->inputs) {
      const int64_t size = dims_of(x)[axis], from = std::max(begin, at), to = std::min(end, at + size);
      if (from < to) parts.push_back(sliced(x, axis, {from - at, 1, to - from}));
      at += size;
    }
  }

  Value* joined(const std::vector<Value*>& parts, size_t axis) {
    if (parts.size() == 1) return parts[0];
    return add_op(g_, n_, "Concat", parts, name(), {{"axis", int64_t(axis)}});
  }

  /// `data` with `update` in the box, of which the axes in front of `axis` are whole.
  Value* written(Value* data, Value* update, size_t axis) {
    if (axis == box_.size()) return update;
    const Steps& s = box_[axis];
    const Dims dims = dims_of(data);
    if (s.count == dims[axis]) return written(data, update, axis + 1);
    const bool last = std::all_of(box_.begin() + int64_t(axis) + 1, box_.end(),
                                  [&](const Steps& o) { return o.count == dims[size_t(&o - box_.data())]; });
    Value* inner = last ? update : written(sliced(data, axis, s), update, axis + 1);
    std::vector<Value*> parts;
    if (s.count == 1 || s.step == 1) {
      take(data, axis, 0, s.begin, parts);
      parts.push_back(inner);
      take(data, axis, s.begin + s.count, dims[axis], parts);
      return joined(parts, axis);
    }
    // rows in groups of `step`, of which one row is written
    Dims groups = dims, one = dims;
    groups[axis] = one[axis] = s.count;
    groups.insert(groups.begin() + int64_t(axis) + 1, s.step);
    one.insert(one.begin() + int64_t(axis) + 1, 1);
    Value* grouped = reshaped(data, groups);
    take(grouped, axis + 1, 0, s.begin, parts);
    parts.push_back(reshaped(inner, one));
    take(grouped, axis + 1, s.begin + 1, s.step, parts);
    return reshaped(joined(parts, axis + 1), dims);
  }

  Graph& g_;
  Node* n_;
  const Box box_;
  int64_t parts_ = 0;
};

bool has_sizes(const Node& n) {
  return std::all_of(n.inputs.begin(), n.inputs.end(), [](const Value* v) {
    if (!v || !v->type.is_static_tensor()) return false;
    const Dims dims = dims_of(v);
    return num_elements(dims) > 0 && std::none_of(dims.begin(), dims.end(), is_open);
  });
}

/// Where a scatter writes, if it may become a Concat.
std::optional<Box> box_of(const Node& n) {
  const bool nd = n.is("ScatterND");
  if (!nd && !n.is("ScatterElements") && !n.is("Scatter")) return {};
  if (n.attr_string("reduction", "none") != "none" || n.inputs.size() != 3 || !has_sizes(n)) return {};
  if (!n.inputs[1]->constant || n.inputs[0]->type.dtype == DType::String || rank_of(n.inputs[0]) < 1) return {};
  const auto box = nd ? box_of_nd(n) : box_of_elements(n);
  if (!box) return {};
  const Dims dims = dims_of(n.inputs[0]);
  for (size_t a = 0; a < dims.size(); ++a)
    if (const Steps& s = (*box)[a]; s.count > 1 && s.step > 1 && (s.count * s.step != dims[a] || s.begin >= s.step))
      return {};
  const bool worth = n.inputs[0]->constant || made_by(n.inputs[0], "Concat") || counted(*box) >= num_elements(dims) / 8;
  return worth ? box : std::nullopt;
}

}  // namespace

void scatter_to_concat(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) scatter_to_concat(*r, cx);
    if (!n->domain.empty() || !n->regions.empty()) continue;
    if (auto box = box_of(*n)) replace_node(g, n, Write(g, n, std::move(*box)).result());
  }
}

}  // namespace tc
