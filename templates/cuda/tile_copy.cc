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

Expr both(const Expr& a, const Expr& b) { return !a ? b : !b ? a : a && b; }

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
Stmt copy_piece(const TileCopy& t, const Expr& stage, const Expr& step, const Expr& k_in, const Expr& d_in,
                bool vector) {
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
  return d.wrap(k.wrap(s));
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

Buffer pack_columns(const CudaContraction& m, const CudaTile& tile, int64_t steps, Scheduled& s) {
  const int64_t columns = m.columns(), depth = m.depth(), tiles = (columns + tile.columns - 1) / tile.columns;
  const Var panel = make_var("nb"), column = make_var("ni"), k = make_var("k");
  const bool whole = depth == steps * tile.depth;
  std::vector<Axis> axes = m.q_batch;
  axes.push_back({panel, Dim(tiles)});
  if (whole)
    axes.insert(axes.end(), m.q_k.begin(), m.q_k.end());
  else
    axes.push_back({k, Dim(steps * tile.depth)});
  axes.push_back({column, Dim(tile.columns)});
  auto bind = [](const std::vector<Axis>& list, const Expr& flat, VarMap& at) {
    int64_t stride = 1;
    for (size_t i = list.size(); i-- > 0;) {
      const Expr quotient = floor_div(flat, stride);
      at[list[i].var.get()] = i == 0 ? quotient : floor_mod(quotient, list[i].extent.value);
      stride *= list[i].extent.value;
    }
  };
  const Expr n = Expr(panel) * Expr(tile.columns) + Expr(column);
  VarMap at;
  bind(m.q_n, n, at);
  if (!whole) bind(m.q_k, Expr(k), at);
  Expr inside;
  if (columns % tile.columns != 0) inside = n < Expr(columns);
  if (!whole) inside = both(inside, Expr(k) < Expr(depth));
  Expr value = substitute(m.q_shaped, at);
  if (inside) value = select(inside, value, zero(value->dtype));
  std::string words = "packed: ";
  for (const Axis& a : m.q_batch) words += a.var->name + ", ";
  words += "tile of columns, ";
  for (const Axis& a : m.q_k) words += a.var->name + ", ";
  return add_packed(s, m.c, std::move(axes), value,
                    words + "column in tile" + (inside ? "; zeros behind the ends" : ""));
}

}  // namespace tc
