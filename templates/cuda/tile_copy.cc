// Tiles of the factors on their way from global to shared memory.
//
//   packed weights             whole tiles, 16 bytes a copy, no test
//   plain reads                copies that no thread waits for: 16 bytes each where neighbours are aligned, else a word;
//                              what lies outside (the last tile, the border of a convolution) is filled with zeros
//   computed, or converted     read into registers while the step before is multiplied, stored behind that
#include "ir/loop/conditions.h"
#include "ir/loop/instruction.h"
#include "ir/loop/intrin.h"
#include "ir/loop/raises.h"
#include "ir/loop/simplify.h"
#include "support/text.h"
#include "templates/cuda/contraction.h"
#include "templates/packed.h"

namespace tc {
namespace {

int64_t stride_along(const Expr& value, const Var& v) {
  const Read r = read_of(value);
  const auto at = r.load ? affine_in(r.load->index[0], {v}) : std::nullopt;
  return at ? at->coefficients[0] : 0;
}

// Neighbouring threads copy neighbours of the sum, or neighbouring rows or columns?
bool goes_along_k(const TileCopy& t) {
  if (copy_width(t) > 1) return t.k_inner;
  if (t.k.empty() || t.d.empty()) return t.d.empty();
  const int64_t k = stride_along(t.value, t.k.back().var), d = stride_along(t.value, t.d.back().var);
  if (k == 1 && t.k.back().extent.value >= 8) return d != 1;
  return d == 0 || (k != 0 && k < d && d > 2);
}

int64_t pieces_of(const TileCopy& t) { return t.k_tile * t.d_tile / copy_width(t); }

Stmt by_threads(const TileCopy& t, int64_t count,
                const std::function<Stmt(const Expr& iteration, const Expr& piece)>& body) {
  return pieces_by_thread(count, t.thread, t.threads, ForKind::Unroll, body);
}

Stmt copy_packed(const TileCopy& t, const Expr& stage, const Expr& step) {
  const int64_t vector = 16 / info(t.type).bytes, row = (t.k_inner ? t.k_tile : t.d_tile) / vector;
  return by_threads(t, t.k_tile * t.d_tile / vector, [&](const Expr&, const Expr& e) {
    const Expr from = (t.packed_tile * Expr(t.k_steps) + step) * Expr(t.k_tile * t.d_tile) + e * Expr(vector);
    const Expr outer = floor_div(e, row), inner = floor_mod(e, row) * Expr(vector);
    return intrin("cp_async16", {{t.shared, {stage, outer, t.swizzled ? swizzled(outer, inner, t.type) : inner}},
                                 {t.packed, {from}}});
  });
}

// Where piece e lies in the tile.
struct PieceIndex {
  Var k = make_var("k"), d;
  Expr k_value, d_value;
  Stmt wrap(const Stmt& s) const { return let(k, k_value, let(d, d_value, s)); }
};
PieceIndex piece_index(const TileCopy& t, const Expr& e) {
  PieceIndex p;
  p.d = make_var(t.d_name.substr(0, 1));
  const bool along_k = goes_along_k(t);
  const int64_t wide = copy_width(t), row = (along_k ? t.k_tile : t.d_tile) / wide;
  const Expr outer = floor_div(e, row), inner = floor_mod(e, row) * Expr(wide);
  p.k_value = along_k ? inner : outer;
  p.d_value = along_k ? outer : inner;
  return p;
}
Exprs shared_index(const TileCopy& t, const Expr& stage, const PieceIndex& p) {
  if (t.swizzled) return {stage, Expr(p.d), swizzled(Expr(p.d), Expr(p.k), t.type, copy_width(t))};
  return t.k_inner ? Exprs{stage, Expr(p.d), Expr(p.k)} : Exprs{stage, Expr(p.k), Expr(p.d)};
}

// One element, or neighbours along the inner axis: to shared memory, or to t.registers[iteration].
Stmt copy_piece(const TileCopy& t, const Expr& stage, const Expr& step, const Expr& iteration, const Expr& e) {
  const PieceIndex p = piece_index(t, e);
  const int64_t wide = copy_width(t), depth = points(t.k), size = points(t.d);
  const FlatPoint d(t.d, t.d_begin + Expr(p.d), t.d_name), k(t.k, step * Expr(t.k_tile) + Expr(p.k), "depth");
  const VarMap at = joined({&t.batch, &d.at, &k.at});
  Expr valid;
  if (size % t.d_tile != 0) valid = d.flat < Expr(size);
  if (depth < t.k_steps * t.k_tile) valid = both(valid, k.flat < Expr(depth));
  const Read r = read_of(t.value);
  if (r.load != nullptr && bool(r.inside)) valid = both(valid, substitute(r.inside, at));
  const Expr from = r.load ? substitute(r.load->index[0], at) : Expr();
  const Expr otherwise = r.otherwise ? substitute(r.otherwise, at) : Expr();
  Stmt s;
  if (!t.registers) {
    const Exprs scalars = valid ? Exprs{valid} : Exprs{};
    s = intrin("cp_async" + to_text(wide * info(t.type).bytes),
               {{t.shared, shared_index(t, stage, p)}, {r.load->buffer, {from}}}, scalars);
  } else if (wide > 1) {
    const Var j = make_var("j");
    s = intrin("load" + to_text(wide), {{t.registers, {iteration}}, {r.load->buffer, {from}}});
    if (valid)
      s = if_then(valid, s,
                  loop(j, wide, store(t.registers, {iteration, j}, otherwise ? otherwise : zero(t.registers->dtype)),
                       ForKind::Unroll));
  } else {
    const Expr value = r.load ? load(r.load->buffer, {from}) : substitute(t.value, at);
    s = store(t.registers, {iteration},
              valid ? select(valid, value, otherwise ? otherwise : zero(value->dtype)) : value);
  }
  return p.wrap(d.wrap(k.wrap(s)));
}

std::vector<Var> vars_in(const Expr& e) {
  std::vector<Var> list;
  walk(e, [&](const Expr& x) {
    if (const VarRef* v = as<VarRef>(x)) list.push_back(v->var);
    return true;
  });
  return list;
}

}  // namespace

Read read_of(const Expr& e) {
  if (const Load* l = as<Load>(e)) return {l, {}, {}};
  const Cast* c = as<Cast>(e);
  const bool small =
      c && (is_narrow_float(c->value->dtype) || (is_int(c->value->dtype) && info(c->value->dtype).bytes < 4));
  const bool widens = small && (e->dtype == DType::F32 || (e->dtype == DType::I32 && is_int(c->value->dtype)));
  if (widens) {
    const Read r = read_of(c->value);
    return r.otherwise ? Read{} : r;
  }
  const Select* s = as<Select>(e);
  if (!s || (!is_zero(s->no) && !is_int(e->dtype))) return {};
  const Read r = read_of(s->yes);
  if (!r.load || bool(r.inside)) return {};
  const bool converted = r.load->buffer->dtype != e->dtype;
  if (is_zero(s->no)) return {r.load, s->condition, {}};
  return converted ? Read{} : Read{r.load, s->condition, s->no};
}

int64_t copy_width(const TileCopy& t) {
  if (t.is_packed) return 16 / info(t.type).bytes;
  const Read r = read_of(t.value);
  const std::vector<Axis>& axes = t.k_inner ? t.k : t.d;
  if (!r.load || axes.empty()) return 1;
  const Var inner = axes.back().var;
  if (bool(r.inside) && uses_var(r.inside, inner)) return 1;
  // Every other coefficient keeps the alignment.
  const std::vector<Var> vars = vars_in(r.load->index[0]);
  const auto at = offset_of(r.load->index[0], vars);
  if (!at || at->of(inner) != 1) return 1;
  auto aligned = [&](int64_t n) {
    return axes.back().extent.value % n == 0 && (t.k_inner ? t.k_tile : t.d_tile) % n == 0 && begins_on(*at, inner, n);
  };
  const DType source = r.load->buffer->dtype;
  const int64_t bytes = info(source).bytes;
  if (bytes > 4) return 1;
  if (aligned(16 / bytes)) return 16 / bytes;
  if (bytes == 4 || source != t.type)
    return 1;  // what passes through registers is read 16 bytes at a time, or one by one
  if (aligned(8 / bytes)) return 8 / bytes;
  return aligned(4 / bytes) ? 4 / bytes : 1;
}

bool lies_along_k(TileCopy t) {
  t.k_inner = true;
  if (info(t.type).bytes != 2 || t.is_packed || copy_width(t) > 1) return true;
  t.k_inner = false;
  return copy_width(t) == 1;
}

bool through_registers(const TileCopy& t) {
  if (t.is_packed) return false;
  const Read r = read_of(t.value);
  // An asynchronous copy that is left out has its address computed.
  return !r.load || depends_on_data(r.load->index[0]) || bool(r.otherwise) || r.load->buffer->dtype != t.type ||
         copy_width(t) * info(t.type).bytes < 4;
}

Buffer registers_of(const TileCopy& t, const std::string& name) {
  const Read r = read_of(t.value);
  Shape shape = {Dim(ceil_div(pieces_of(t), t.threads))};
  if (copy_width(t) > 1) shape.push_back(Dim(copy_width(t)));
  return make_buffer(name, r.load ? r.load->buffer->dtype : t.value->dtype, shape, Scope::Register);
}

Stmt copy_tile(const TileCopy& t, const Expr& stage, const Expr& step) {
  if (t.is_packed) return copy_packed(t, stage, step);
  return by_threads(t, pieces_of(t),
                    [&](const Expr& iteration, const Expr& e) { return copy_piece(t, stage, step, iteration, e); });
}

Stmt put_tile(const TileCopy& t, const Expr& stage) {
  if (!t.registers) return {};
  const int64_t wide = copy_width(t);
  return by_threads(t, pieces_of(t), [&](const Expr& iteration, const Expr& e) {
    const PieceIndex p = piece_index(t, e);
    const Exprs to = shared_index(t, stage, p);
    if (wide == 1) return p.wrap(store(t.shared, to, cast(t.type, load(t.registers, {iteration}))));
    const Var j = make_var("j");
    Exprs next = to;
    next.back() = next.back() + Expr(j);
    return p.wrap(
        loop(j, wide, store(t.shared, next, cast(t.type, load(t.registers, {iteration, j}))), ForKind::Unroll));
  });
}

Buffer pack_factor(const Canonical& c, const Factor& f, const TileCopy& t, Scheduled& s) {
  const int64_t size = points(f.d), depth = points(f.k);
  const Var tile = make_var("tile"), step = make_var("step"), k = make_var("k"), along_d = make_var("place");
  const bool whole = depth == t.k_steps * t.k_tile && !t.k_inner;
  std::vector<Axis> axes = f.batch;
  axes.push_back({tile, Dim(ceil_div(size, t.d_tile))});
  if (whole) {
    axes.insert(axes.end(), f.k.begin(), f.k.end());
    axes.push_back({along_d, Dim(t.d_tile)});
  } else {
    axes.push_back({step, Dim(t.k_steps)});
    axes.push_back(t.k_inner ? Axis{along_d, Dim(t.d_tile)} : Axis{k, Dim(t.k_tile)});
    axes.push_back(t.k_inner ? Axis{k, Dim(t.k_tile)} : Axis{along_d, Dim(t.d_tile)});
  }
  const Expr d = Expr(tile) * Expr(t.d_tile) + Expr(along_d), flat_k = Expr(step) * Expr(t.k_tile) + Expr(k);
  VarMap at = point_at(f.d, d);
  if (!whole) at.merge(point_at(f.k, flat_k));
  Expr inside;
  if (size % t.d_tile != 0) inside = d < Expr(size);
  if (depth != t.k_steps * t.k_tile) inside = both(inside, flat_k < Expr(depth));
  Expr value = substitute(f.shaped, at);
  if (inside) value = select(inside, value, zero(value->dtype));
  std::string layout = "packed: ", summed, kept;
  for (const Axis& a : f.batch) layout += a.var->name + ", ";
  for (const Axis& a : f.k) summed += (summed.empty() ? "" : ", ") + a.var->name;
  for (const Axis& a : f.d) kept += (kept.empty() ? "" : ", ") + a.var->name;
  layout += whole ? "tile, " + summed + ", " + kept + " in tile"
                  : "tile, step, " + (t.k_inner ? kept + " in tile, " + summed + " in step"
                                                : summed + " in step, " + kept + " in tile");
  return add_packed(s, c, std::move(axes), cast(t.type, value), layout + (inside ? "; zeros behind the ends" : ""));
}

}  // namespace tc
