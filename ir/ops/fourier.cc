// Fourier transforms of moderate length as products with a constant matrix of sines and cosines, which is computed in
// double precision and rounded once. A long transform of n = n1 * n2 points is two short ones with a rotation between
// them (Cooley and Tukey, Math. Comp. 19, 1965): with m = n2 * m1 + m2 and k = k1 + n1 * k2,
//   X[k1 + n1 k2] = sum over m2 of w(n2, m2 k2) * w(n, m2 k1) * (sum over m1 of w(n1, m1 k1) * x[n2 m1 + m2])
//   y = DFT(x) [b, n, 1]       ->   y = MatMul(x, [n, bins * 2]), or two of them
//   y = STFT(x, step, window)  ->   y = Conv(x, [bins * 2, 1, n]) {strides = [step]}, transposed; the window is in the weights
#include <cmath>

#include "ir/ops/expansion.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

constexpr double kTau = 6.283185307179586476925;
constexpr int64_t kLargestMatrix = 1 << 21;   // elements: 8 MiB of weights
constexpr int64_t kLongestProduct = 1 << 16;  // multiplications of a row: 256 points of a real signal

struct Transform {
  int64_t n = 1, used = 1;  // length; elements that enter it
  int64_t parts = 1;        // of an element: real, or real and imaginary
  int64_t bins = 1, out_parts = 2;
  bool inverse = false, onesided = false;
  int64_t columns() const { return bins * out_parts; }
};

bool is_moderate(const Transform& t) {
  return t.n <= kLargestMatrix && t.used * t.parts <= kLargestMatrix / std::max<int64_t>(1, t.columns());
}

/// What element m's part p adds to part q of bin k.
double weight(const Transform& t, int64_t m, int64_t p, int64_t k, int64_t q) {
  const double angle = kTau * double(m * k % t.n) / double(t.n);
  const double sine = t.inverse ? -std::sin(angle) : std::sin(angle);
  const double w = p == q ? std::cos(angle) : q == 0 ? sine : -sine;
  if (!t.inverse) return w;
  // One side of a real signal's spectrum: each bin but the first and the middle one stands for two.
  const bool twice = t.onesided && m != 0 && 2 * m != t.n;
  return (twice ? 2 * w : w) / double(t.n);
}

std::optional<int64_t> number(const Node& n, size_t k) {
  const Value* v = k < n.inputs.size() ? n.inputs[k] : nullptr;
  return v && v->constant && v->constant->size() == 1 ? std::optional(v->constant->as_int(0)) : std::nullopt;
}
bool has(const Node& n, size_t k) { return k < n.inputs.size() && n.inputs[k]; }

bool is_signal(const Node& n) {
  if (n.outputs.empty() || !n.outputs[0] || n.inputs.empty() || !n.inputs[0]) return false;
  const ValueType& type = n.inputs[0]->type;
  return type.is_static_tensor() && type.dtype == DType::F32 && n.outputs[0]->type.is_static_tensor();
}

/// [used * parts, bins * out_parts]
Value* matrix(const Expansion& e, const Transform& t) {
  std::vector<double> list;
  for (int64_t m = 0; m < t.used; m++)
    for (int64_t p = 0; p < t.parts; p++)
      for (int64_t k = 0; k < t.bins; k++)
        for (int64_t q = 0; q < t.out_parts; q++) list.push_back(weight(t, m, p, k, q));
  return e.floats(DType::F32, {t.used * t.parts, t.columns()}, list, "_matrix");
}

/// The largest factor of n that is not above its root.
int64_t lesser_factor(int64_t n) {
  int64_t best = 1;
  for (int64_t f = 2; f * f <= n; f++)
    if (n % f == 0) best = f;
  return best;
}

/// Are two short transforms cheaper? Each passes over its points a few times, which short products do not repay.
bool is_split(const Transform& t) {
  return t.n <= kLargestMatrix && t.used * t.parts * t.columns() > kLongestProduct && lesser_factor(t.n) >= 4;
}

bool is_expandable(const Transform& t) {
  if (!is_split(t)) return is_moderate(t);
  const int64_t f = lesser_factor(t.n);
  return is_expandable({.n = f, .used = f, .parts = 2, .bins = f}) &&
         is_expandable({.n = t.n / f, .used = t.n / f, .parts = 2, .bins = t.n / f});
}

/// All n points of what enters, [rows, n, parts]: the rest is 0, and the other side of a real signal's spectrum is the
/// mirrored conjugate of the one that is given.
Value* all_points(const Expansion& e, Value* x, const Transform& t) {
  const bool mirror = t.inverse && t.onesided;
  const int64_t missing = (mirror ? t.n / 2 + 1 : t.n) - t.used;
  if (missing > 0) x = e.op("Pad", {x, e.ints(DType::I64, {6}, {0, 0, 0, 0, missing, 0}, "_missing")}, "_filled");
  if (mirror) {
    std::vector<int64_t> mirrored;
    for (int64_t k = t.n / 2 + 1; k < t.n; k++) mirrored.push_back(t.n - k);
    Value* other = e.op("Gather", {x, e.ints(DType::I64, {int64_t(mirrored.size())}, mirrored, "_mirrored")}, "_side",
                        {{"axis", int64_t(1)}});
    if (t.parts == 2) other = e.op("Mul", {other, e.floats(DType::F32, {2}, {1, -1}, "_signs")}, "_conjugate");
    x = e.op("Concat", {x, other}, "_sides", {{"axis", int64_t(1)}});
  }
  return x;
}

/// x[rows, m2, k1, 2] times w(n, m2 k1).
Value* rotated(const Expansion& e, Value* x, const Transform& t, int64_t n1, int64_t n2) {
  std::vector<double> cosines, sines;
  for (int64_t m = 0; m < n2; m++)
    for (int64_t k = 0; k < n1; k++) {
      const double angle = kTau * double(m * k) / double(t.n), sine = t.inverse ? -std::sin(angle) : std::sin(angle);
      cosines.push_back(std::cos(angle));
      sines.insert(sines.end(), {sine, -sine});
    }
  Value* other = e.op("Gather", {x, e.ints(DType::I64, {2}, {1, 0}, "_swapped")}, "_other", {{"axis", int64_t(3)}});
  return e.op("Add",
              {e.op("Mul", {x, e.floats(DType::F32, {n2, n1, 1}, cosines, "_cosines")}, "_along"),
               e.op("Mul", {other, e.floats(DType::F32, {n2, n1, 2}, sines, "_sines")}, "_across")},
              "_rotated");
}

/// [rows, used, parts] -> [rows, bins, out_parts]. Parts have at most a quarter of the points, so that few levels recur.
Value* transformed(const Expansion& e, Value* x, int64_t rows, const Transform& t) {
  if (!is_split(t)) {
    x = e.op("MatMul", {e.reshape(x, {rows, t.used * t.parts}, "_flat"), matrix(e, t)}, "_bins");
    return e.reshape(x, {rows, t.bins, t.out_parts}, "_parts");
  }
  const int64_t n1 = lesser_factor(t.n), n2 = t.n / n1, bins = std::min(n2, (t.bins + n1 - 1) / n1);
  x = e.reshape(all_points(e, x, t), {rows, n1, n2, t.parts}, "_grid");
  x = e.reshape(e.transpose(x, {0, 2, 1, 3}, "_columns"), {rows * n2, n1, t.parts}, "_short");
  x = transformed(e, x, rows * n2, {.n = n1, .used = n1, .parts = t.parts, .bins = n1, .inverse = t.inverse});
  x = rotated(e, e.reshape(x, {rows, n2, n1, 2}, "_first"), t, n1, n2);
  x = e.reshape(e.transpose(x, {0, 2, 1, 3}, "_turned"), {rows * n1, n2, 2}, "_second");
  x = transformed(e, x, rows * n1,
                  {.n = n2, .used = n2, .parts = 2, .bins = bins, .out_parts = t.out_parts, .inverse = t.inverse});
  x = e.transpose(e.reshape(x, {rows, n1, bins, t.out_parts}, "_last"), {0, 2, 1, 3}, "_order");
  x = e.reshape(x, {rows, bins * n1, t.out_parts}, "_all");
  return t.bins < bins * n1 ? e.slice(x, 1, 0, t.bins, "_half") : x;
}

}  // namespace

bool expand_dft(Graph& g, Node* n) {
  if (!is_signal(*n) || (has(*n, 1) && !number(*n, 1)) || (has(*n, 2) && !number(*n, 2))) return false;
  const Expansion e(g, n);
  Value* x = e.in(0);
  const Dims dims = dims_of_type(x);
  const int64_t rank = int64_t(dims.size()), given = number(*n, 2).value_or(-2),
                axis = given < 0 ? given + rank : given;
  if (rank < 2 || axis < 0 || axis >= rank - 1 || has_no_elements(dims)) return false;
  Transform t;
  t.inverse = e.attr_int("inverse") != 0;
  t.onesided = e.attr_int("onesided") != 0;
  const bool real = t.inverse && t.onesided;
  const int64_t have = dims[size_t(axis)];
  t.parts = dims.back();
  t.n = number(*n, 1).value_or(real ? 2 * (have - 1) : have);
  if (t.n < 1 || t.parts < 1 || t.parts > 2) return false;
  t.used = std::min(have, real ? t.n / 2 + 1 : t.n);
  t.bins = t.onesided && !t.inverse ? t.n / 2 + 1 : t.n;
  t.out_parts = real ? 1 : 2;
  if (!is_expandable(t)) return false;
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; d++)
    if (d != axis && d != rank - 1) perm.push_back(d);
  perm.push_back(axis);
  perm.push_back(rank - 1);
  Dims out;
  int64_t rows = 1;
  for (size_t d = 0; d < perm.size(); d++) {
    back[size_t(perm[d])] = int64_t(d);
    if (d + 2 < perm.size()) {
      out.push_back(dims[size_t(perm[d])]);
      rows *= out.back();
    }
  }
  out.push_back(t.bins);
  out.push_back(t.out_parts);
  const bool moved = axis != rank - 2;
  if (moved) x = e.transpose(x, perm, "_rows");
  if (t.used < have) x = e.slice(x, rank - 2, 0, t.used, "_used");
  x = transformed(e, e.reshape(x, {rows, t.used, t.parts}, "_signal"), rows, t);
  x = e.reshape(x, out, moved ? "_moved" : "");
  e.finish(0, moved ? e.transpose(x, back, "") : x);
  return true;
}

bool expand_stft(Graph& g, Node* n) {
  if (!is_signal(*n) || !number(*n, 1) || (has(*n, 3) && !number(*n, 3))) return false;
  if (has(*n, 2) && (!n->inputs[2]->constant || n->inputs[2]->constant->dims.size() != 1)) return false;
  const Expansion e(g, n);
  Value* x = e.in(0);
  Dims dims = dims_of_type(x);
  const bool real = dims.size() == 2;  // torch's exporter leaves out the axis of one part
  if (real) dims.push_back(1);
  const Constant window = has(*n, 2) ? n->inputs[2]->constant : nullptr;
  if (dims.size() != 3 || dims[2] < 1 || dims[2] > 2) return false;
  Transform t;
  t.onesided = e.attr_int("onesided") != 0;
  t.parts = dims[2];
  t.n = t.used = number(*n, 3).value_or(window ? window->dims[0] : dims[1]);
  const int64_t step = *number(*n, 1);
  if (step < 1 || t.n < 1 || t.n > dims[1] || (window && window->dims[0] != t.n)) return false;
  t.bins = t.onesided ? t.n / 2 + 1 : t.n;
  if (!is_moderate(t) || dims[0] < 1) return false;
  std::vector<double> list;
  for (int64_t k = 0; k < t.bins; k++)
    for (int64_t q = 0; q < 2; q++)
      for (int64_t p = 0; p < t.parts; p++)
        for (int64_t m = 0; m < t.n; m++) list.push_back((window ? window->as_double(m) : 1) * weight(t, m, p, k, q));
  Value* weights = e.floats(DType::F32, {t.columns(), t.parts, t.n}, list, "_matrix");
  if (real) x = e.reshape(x, dims, "_parts");
  x = e.transpose(x, {0, 2, 1}, "_signal");
  x = e.op("Conv", {x, weights}, "_bins", {{"strides", std::vector<int64_t>{step}}});
  x = e.transpose(x, {0, 2, 1}, "_frames");
  e.finish(0, e.reshape(x, {dims[0], (dims[1] - t.n) / step + 1, t.bins, 2}, ""));
  return true;
}

}  // namespace tc
