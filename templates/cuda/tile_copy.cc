// Tiles of the factors on their way from global to shared memory, by copies that the threads do not wait for.
//
//   packed weights      whole tiles, 16 bytes a copy, no test
//   rows or columns     16 bytes a copy where four neighbours are aligned, else a word a copy; what lies outside (the
//                       last tile, the border of a convolution) is filled with zeros by the copy
//   anything computed   a store of the value
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/simplify.h"
#include "templates/cuda/contraction.h"
#include "templates/packed.h"

namespace tc {
namespace {

constexpr int64_t kVector = 4;  // floats of 16 bytes

// A read that may be left out: where `inside` does not hold, the value is 0.
struct Read {
  const Load* load = nullptr;  // null: the value is no plain read
  Expr inside;                 // null: always
};
Read read_of(const Expr& e) {
  if (const Load* l = as<Load>(e)) return {l, {}};
  const Select* s = as<Select>(e);
  if (s && is_zero(s->no))
    if (const Load* l = as<Load>(s->yes)) return {l, s->condition};
  return {};
}

// Joined from the left, as one writes it.
Expr both(const Expr& a, const Expr& b) {
  if (!a || !b) return a ? a : b;
  const Apply* k = as<Apply>(b);
  return k && k->op == Op::And ? both(both(a, k->args[0]), k->args[1]) : a && b;
}

int64_t stride_along(const Expr& value, const Var& v) {
  const Read r = read_of(value);
  const auto at = r.load ? affine_in(r.load->index[0], {v}) : std::nullopt;
  return at ? at->coefficients[0] : 0;
}

// Neighbouring threads copy neighbours of the sum, or neighbouring rows or columns?
bool goes_along_k(const TileCopy& t) {
  if (t.k.empty() || t.d.empty()) return t.d.empty();
  const int64_t k = stride_along(t.value, t.k.back().var), d = stride_along(t.value, t.d.back().var);
  if (k == 1 && t.k.back().extent.value >= 8) return d != 1;
  return d == 0 || (k != 0 && k < d && d > 2);
}

// The copies of `count` pieces, shared by the threads.
Stmt by_threads(const TileCopy& t, int64_t count, const std::function<Stmt(const Expr& piece)>& copy) {
  const int64_t turns = (count + t.threads - 1) / t.threads;
  if (turns == 1) {
    const Stmt one = copy(Expr(t.thread));
    return count < t.threads ? if_then(Expr(t.thread) < Expr(count), one) : one;
  }
  const Var i = make_var("i"), e = make_var("e");
  Stmt one = copy(Expr(e));
  if (count % t.threads != 0) one = if_then(Expr(e) < Expr(count), one);
  return loop(i, turns, let(e, Expr(i) * Expr(t.threads) + Expr(t.thread), one), ForKind::Unroll);
}

Stmt copy_packed(const TileCopy& t, const Expr& stage, const Expr& step) {
  const int64_t row = t.d_tile / kVector;
  return by_threads(t, t.k_tile * row, [&](const Expr& e) {
    const Expr from = (t.packed_tile * Expr(t.k_steps) + step) * Expr(t.k_tile * t.d_tile) + e * Expr(kVector);
    return intrin("cp_async16",
                  {{t.shared, {stage, floor_div(e, row), floor_mod(e, row) * Expr(kVector)}}, {t.packed, {from}}});
  });
}

// One element, or four along d.
Stmt copy_piece(const TileCopy& t, const Expr& stage, const Expr& step, const Expr& k_place, const Expr& d_place,
                bool vector) {
  const Var k_var = make_var("k"), d_var = make_var(t.d_name.substr(0, 1));
  const Expr k_in(k_var), d_in(d_var);
  const int64_t depth = points(t.k), size = points(t.d);
  const FlatPoint d(t.d, t.d_begin + d_in, t.d_name), k(t.k, step * Expr(t.k_tile) + k_in, "depth");
  VarMap at = t.batch;
  at.insert(d.at.begin(), d.at.end());
  at.insert(k.at.begin(), k.at.end());
  Expr valid;
  if (size % t.d_tile != 0) valid = d.flat < Expr(size);
  if (depth < t.k_steps * t.k_tile) valid = both(valid, k.flat < Expr(depth));
  const Read r = read_of(t.value);
  const Exprs to = {stage, k_in, d_in};
  Stmt s;
  if (r.load) {
    if (r.inside) valid = both(valid, substitute(r.inside, at));
    const Exprs scalars = valid ? Exprs{valid} : Exprs{};
    s = intrin(vector ? "cp_async16" : "cp_async4",
               {{t.shared, to}, {r.load->buffer, {substitute(r.load->index[0], at)}}}, scalars);
  } else {
    const Expr value = substitute(t.value, at);
    s = store(t.shared, to, valid ? select(valid, value, zero(value->dtype)) : value);
  }
  return let(k_var, k_place, let(d_var, d_place, d.wrap(k.wrap(s))));
}

// The axes' values at place `flat` of their row-major order.
void bind_flat(const std::vector<Axis>& axes, const Expr& flat, VarMap& at) {
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const Expr quotient = floor_div(flat, stride);
    at[axes[i].var.get()] = i == 0 ? quotient : floor_mod(quotient, axes[i].extent.value);
    stride *= axes[i].extent.value;
  }
}

}  // namespace

FlatPoint::FlatPoint(const std::vector<Axis>& axes, const Expr& number, const std::string& name) : flat(number) {
  if (axes.empty()) return;
  const Var v = make_var(axes.size() == 1 ? axes[0].var->name : name);
  lets_.push_back({v, number});
  flat = Expr(v);
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t n = axes[i].extent.value;
    const Expr quotient = floor_div(flat, stride);
    if (axes.size() == 1) {
      at[axes[i].var.get()] = flat;
      return;
    }
    const Var x = make_var(axes[i].var->name);
    lets_.push_back({x, i == 0 ? quotient : floor_mod(quotient, n)});
    at[axes[i].var.get()] = Expr(x);
    stride *= n;
  }
}

Stmt FlatPoint::wrap(Stmt body) const {
  for (size_t i = lets_.size(); i-- > 0;)
    if (uses_var(body, lets_[i].first)) body = let(lets_[i].first, lets_[i].second, body);
  return body;
}

bool copies_vectors(const TileCopy& t) {
  if (t.packed) return true;
  const Read r = read_of(t.value);
  if (!r.load || t.d.empty() || t.d.back().extent.value % kVector != 0) return false;
  const Var inner = t.d.back().var;
  if (bool(r.inside) && uses_var(r.inside, inner)) return false;
  std::vector<Var> vars = vars_of(t.d), ks = vars_of(t.k);
  vars.insert(vars.end(), ks.begin(), ks.end());
  const auto at = affine_in(r.load->index[0], vars);
  if (!at) return false;
  for (size_t i = 0; i < vars.size(); i++)
    if (vars[i] == inner ? at->coefficients[i] != 1 : at->coefficients[i] % kVector != 0) return false;
  // What is left is the batch's.
  Expr rest = at->rest;
  std::vector<Var> batch;
  walk(rest, [&](const Expr& e) {
    if (const VarRef* v = as<VarRef>(e)) batch.push_back(v->var);
    return true;
  });
  const auto offset = offset_of(rest, batch);
  if (!offset || offset->constant % kVector != 0) return false;
  for (const Var& v : batch)
    if (offset->of(v) % kVector != 0) return false;
  return true;
}

Stmt copy_tile(const TileCopy& t, const Expr& stage, const Expr& step) {
  if (t.packed) return copy_packed(t, stage, step);
  if (copies_vectors(t)) {
    const int64_t row = t.d_tile / kVector;
    return by_threads(t, t.k_tile * row, [&](const Expr& e) {
      return copy_piece(t, stage, step, floor_div(e, row), floor_mod(e, row) * Expr(kVector), true);
    });
  }
  const bool along_k = goes_along_k(t);
  return by_threads(t, t.k_tile * t.d_tile, [&](const Expr& e) {
    const Expr outer = floor_div(e, along_k ? t.k_tile : t.d_tile), inner = floor_mod(e, along_k ? t.k_tile : t.d_tile);
    return copy_piece(t, stage, step, along_k ? inner : outer, along_k ? outer : inner, false);
  });
}

Buffer pack_factor(const Canonical& c, const Factor& f, int64_t d_tile, int64_t k_tile, int64_t steps, Scheduled& s) {
  const int64_t size = points(f.d), depth = points(f.k);
  const Var tile = make_var("tile"), place = make_var("place"), k = make_var("k");
  const bool whole = depth == steps * k_tile;
  std::vector<Axis> axes = f.batch;
  axes.push_back({tile, Dim((size + d_tile - 1) / d_tile)});
  if (whole)
    axes.insert(axes.end(), f.k.begin(), f.k.end());
  else
    axes.push_back({k, Dim(steps * k_tile)});
  axes.push_back({place, Dim(d_tile)});
  const Expr d = Expr(tile) * Expr(d_tile) + Expr(place);
  VarMap at;
  bind_flat(f.d, d, at);
  if (!whole) bind_flat(f.k, Expr(k), at);
  Expr inside;
  if (size % d_tile != 0) inside = d < Expr(size);
  if (!whole) inside = both(inside, Expr(k) < Expr(depth));
  Expr value = substitute(f.shaped, at);
  if (inside) value = select(inside, value, zero(value->dtype));
  std::string words = "packed: ";
  for (const Axis& a : f.batch) words += a.var->name + ", ";
  words += "tile, ";
  for (const Axis& a : f.k) words += a.var->name + ", ";
  for (const Axis& a : f.d) words += a.var->name + (&a == &f.d.back() ? "" : ", ");
  return add_packed(s, c, std::move(axes), value, words + " in tile" + (inside ? "; zeros behind the ends" : ""));
}

}  // namespace tc
