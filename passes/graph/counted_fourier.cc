// DFT along an axis whose size is known at run time, or of a length that is: a product with a table of cosines and sines.
//   y = DFT(x)   x: [4, 9, 1] counted along 1 by n   ->   p = Mod(j k, n)   t = 2 pi Range(n) / n
//                                                         y = x Gather(Cos(t), p), - x Gather(Sin(t), p)
// The angles are computed in double precision. A known length takes zeros behind what there is, and stays a DFT.
//
// Preconditions: the axis is known, and the last one has the real and the imaginary parts, or the real ones alone.
#include <functional>
#include <numbers>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {

/// What a DFT computes. y[k] = sum over j of x[j] exp(-+2 pi i j k / length), by `length` where it is inverse.
struct FourierTransform {
  bool inverse = false, onesided = false;
  int axis = 0;
  SizeForm length, have;  // of the transform, of the operand
  /// From the first half of a spectrum to a real signal.
  bool gives_real() const { return inverse && onesided; }
};

std::optional<FourierTransform> BoundedSizes::fourier_transform(const Node& n) {
  const Value *x = operand(n, 0), *length = operand(n, 1), *axis = operand(n, 2);
  if (!n.is("DFT") || !n.domain.empty() || !x || !x->type.is_static_tensor() || rank_of(x) < 2) return std::nullopt;
  const auto along = axis ? ints_of(axis) : std::vector<int64_t>{-2};
  if (!along || along->size() != 1) return std::nullopt;
  const int64_t at = axis_from_front(along->front(), x);
  const int last = rank_of(x) - 1;
  if (at < 0 || at >= last || find(x, last) || dims_of(x).back() < 1 || dims_of(x).back() > 2) return std::nullopt;
  FourierTransform t{
      n.attr_int("inverse", 0) != 0, n.attr_int("onesided", 0) != 0, int(at), {}, form_along(x, int(at))};
  const auto given = length           ? element(length, 0)
                     : t.gives_real() ? (t.have - fixed_size(1)) * 2
                                      : std::optional(t.have);
  if (!given) return std::nullopt;
  t.length = *given;
  return t;
}

namespace {

/// Nodes before a DFT, whose names end in the number of the step.
class FourierNodes {
 public:
  using Makes = std::function<Value*(const char* op, const std::vector<Value*>& inputs, const ModelText& name,
                                     const Attrs& attrs)>;
  FourierNodes(Graph& g, ModelText base, Makes make) : g_(g), base_(std::move(base)), make_(std::move(make)) {}

  Value* op(const char* kind, const std::vector<Value*>& inputs, const Attrs& attrs = {}) {
    return make_(kind, inputs, name(), attrs);
  }
  Value* integer(int64_t v) { return g_.add_constant(name(), scalar_constant(DType::I64, double(v))); }
  Value* list(const std::vector<int64_t>& v) { return g_.add_constant(name(), int64_constant(v)); }
  Value* real(DType type, double v) { return g_.add_constant(name(), scalar_constant(type, v)); }
  Value* to(Value* v, DType type) { return v->type.dtype == type ? v : op("Cast", {v}, {{"to", int64_t(type)}}); }
  Value* up_to(Value* end) { return op("Range", {integer(0), end, integer(1)}); }
  /// Of real parts, 0, or imaginary ones, 1.
  Value* row(Value* v, int64_t which) { return op("Gather", {v, list({which})}, {{"axis", int64_t(-2)}}); }
  ModelText name() { return derived(base_, "_step" + to_text(int64_t(step_++))); }

 private:
  Graph& g_;
  ModelText base_;
  Makes make_;
  int step_ = 0;
};

/// What there is of the operand as the sum has it: behind the length nothing is asked for, and the other half of a spectrum is the
/// same again, but for the two ends.
Value* share_of(const FourierTransform& t, Value* j, Value* length, DType type, FourierNodes& nodes) {
  if (!t.gives_real()) return nodes.to(nodes.op("Less", {j, length}), type);
  Value* twice = nodes.op("Mul", {j, nodes.integer(2)});
  Value* end = nodes.op("Or", {nodes.op("Equal", {j, nodes.integer(0)}), nodes.op("Equal", {twice, length})});
  Value* times = nodes.op("Where", {end, nodes.real(type, 1), nodes.real(type, 2)});
  return nodes.op("Mul", {nodes.to(nodes.op("LessOrEqual", {twice, length}), type), times});
}

/// From the sums with cosines and with sines, [..., parts, bins]: exp(-ia) = cos a - i sin a, and exp(ia) where it is inverse.
Value* spectrum(const FourierTransform& t, Value* c, Value* s, FourierNodes& nodes) {
  const bool is_complex = dims_of(c).at(size_t(rank_of(c) - 2)) == 2;
  Value* y = c;
  if (is_complex) y = nodes.op(t.inverse ? "Sub" : "Add", {nodes.row(c, 0), nodes.row(s, 1)});
  if (t.gives_real()) return y;
  Value* imaginary = nullptr;
  if (is_complex)
    imaginary = nodes.op(t.inverse ? "Add" : "Sub", {nodes.row(c, 1), nodes.row(s, 0)});
  else
    imaginary = t.inverse ? s : nodes.op("Neg", {s});
  return nodes.op("Concat", {y, imaginary}, {{"axis", int64_t(-2)}});
}

}  // namespace

Node* BoundedSizes::transform(Graph& g, Node* n) {
  const auto t = fourier_transform(*n);
  if (!t || (t->length.fixed() && t->have.fixed())) return n;
  Value* x = n->inputs[0];
  if (t->length.fixed()) {
    g.set_input(n, 0, filled(g, n, x, *find(x, t->axis), "zero"));
    return n;
  }
  if (counts_.least(t->length) < (t->gives_real() ? 1 : 0)) return n;
  const DType wide = x->type.dtype == DType::F64 ? DType::F64 : DType::F32;
  FourierNodes nodes(g, n->outputs.at(0)->name,
                     [&](const char* op, const std::vector<Value*>& inputs, const ModelText& name, const Attrs& attrs) {
                       return made(g, n, op, inputs, name, attrs);
                     });
  const auto number = [&](const SizeForm& f) { return number_of(g, n, f, nodes.name()); };
  Value* length = number(counts_.larger(t->length, fixed_size(1)));  // divided by where there is nothing, too
  const bool half = t->onesided && !t->inverse;
  Value *j = nodes.up_to(number(t->have)),
        *k = nodes.up_to(number(half ? counts_.quotient(t->length, 2) + fixed_size(1) : t->length));
  Value* products =
      nodes.op("Mul", {nodes.op("Unsqueeze", {j, nodes.list({1})}), nodes.op("Unsqueeze", {k, nodes.list({0})})});
  Value* places = nodes.op("Mod", {products, length});
  Value* turns =
      nodes.op("Mul", {nodes.to(nodes.up_to(length), DType::F64), nodes.real(DType::F64, 2 * std::numbers::pi)});
  Value* angles = nodes.op("Div", {turns, nodes.to(length, DType::F64)});
  const auto table = [&](const char* function) {
    return nodes.op("Gather", {nodes.to(nodes.op(function, {angles}), wide), places});
  };

  std::vector<int64_t> perm, back(static_cast<size_t>(rank_of(x)));  // to [..., parts, have]
  for (int d = 0; d + 1 < rank_of(x); d++)
    if (d != t->axis) perm.push_back(d);
  perm.insert(perm.end(), {rank_of(x) - 1, t->axis});
  for (size_t d = 0; d < perm.size(); d++) back[size_t(perm[d])] = int64_t(d);
  Value* rows = nodes.to(nodes.op("Transpose", {x}, {{"perm", perm}}), wide);
  if (t->gives_real() || t->length != t->have) rows = nodes.op("Mul", {rows, share_of(*t, j, length, wide, nodes)});
  Value* y = spectrum(*t, nodes.op("MatMul", {rows, table("Cos")}), nodes.op("MatMul", {rows, table("Sin")}), nodes);
  if (t->inverse) y = nodes.op("Div", {y, nodes.to(length, wide)});
  return replaced(g, n, nodes.op("Transpose", {nodes.to(y, x->type.dtype)}, {{"perm", back}}));
}

}  // namespace tc
