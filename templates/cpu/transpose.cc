// Transpositions: no reduction, and an operand that lies side by side along another axis than the result.
//
//   for the other axes, tiles of (read, written):
//     t[i] = x[.., written + lane, .., read + i]     a tile in registers, transposed by its loads (tc_load_transposed)
//     y[.., read + i, .., written + lane] = f(t[i])  whatever is computed on the way, in vectors
//
// The last tile of an axis ends where the axis ends, and so overlaps the one before: no tile is partial. Moves of other
// types than f32, and of short axes, are made in tiles of 16 bytes a row, by one function (tc_transpose_SIZE). Two or
// three channels that lie side by side are taken out of as many vectors (tc_load_unriffled_N). Where an axis is too short for a tile
// in registers and the work on the way costs, vectors along `read` go through a small array. Where the rows of a tile lie where no
// stride says (mirrored borders, positions), their values are computed before they are turned.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

struct Transposition {
  Canonical c;
  Axis read, written;  // side by side in the operands, and in the result
  std::vector<Axis> outer;
  std::vector<const Load*> crossed;  // operands that lie side by side along `read`
  bool deinterleaved = false;        // `read` is two or three elements that no others lie between
  bool by_position = false;          // the rows of one of them have no stride along `written`
  bool moves_bytes = false;          // the whole value is one of them, moved as it is
  bool through_array = false;        // computed along `read`, and stored along `written` from an array
  bool in_registers() const { return !moves_bytes && !through_array; }
  int64_t size() const { return moves_bytes ? 16 / info(c.out->dtype).bytes : kMaxLanes; }  // of a tile, at most
};

// The axis along which `l` lies side by side; null if there is none among those before the last.
const Axis* neighbours(const Load& l, const std::vector<Axis>& axes) {
  for (size_t i = 0; i + 1 < axes.size(); i++) {
    const auto f = affine_in(l.index[0], {axes[i].var});
    if (f && f->coefficients[0] == 1) return &axes[i];
  }
  return nullptr;
}

// Tiles are loaded whatever a condition around the load says: what is padded, or one operand of a Concat, may end before.
bool lies_inside(const Load& l, const std::vector<Axis>& axes) {
  const auto o = offset_of(l.index[0], vars_of(axes));
  if (!o) return false;
  int64_t least = o->constant, most = o->constant;
  for (const Axis& a : axes) (o->of(a.var) < 0 ? least : most) += o->of(a.var) * (a.extent.value - 1);
  return least >= 0 && most < l.buffer->shape[0].value;
}

// Equal reads are one, whether or not they are the same object.
bool same_element(const Load& a, const Load& b) {
  return a.buffer == b.buffer && structurally_equal(a.index[0], b.index[0]);
}

bool find_axes(Transposition& t) {
  t.written = t.c.axes.back();
  const auto out = affine_in(t.c.out_index, {t.written.var});
  if (!out || out->coefficients[0] != 1) return false;
  for (const Load* l : loads_of(t.c.epilogue)) {
    if (l->index.size() != 1) return false;
    const auto f = affine_in(l->index[0], {t.written.var});
    if (f && (f->coefficients[0] == 0 || f->coefficients[0] == 1)) continue;
    const Axis* read = neighbours(*l, t.c.axes);
    if (!read || (t.read.var && t.read.var != read->var) || (f && !lies_inside(*l, t.c.axes))) return false;
    t.read = *read;
    t.by_position = t.by_position || !f;
    const bool known =
        std::any_of(t.crossed.begin(), t.crossed.end(), [&](const Load* k) { return same_element(*k, *l); });
    if (!known) t.crossed.push_back(l);
  }
  for (const Axis& a : t.c.axes)
    if (a.var != t.read.var && a.var != t.written.var) t.outer.push_back(a);
  return bool(t.read.var);
}

// Whether what is read where a condition holds is read for all elements along `read` or for none.
bool conditions_are_of_rows(const Transposition& t) {
  bool all = true;
  walk(t.c.epilogue, [&](const Expr& e) {
    const Select* s = as<Select>(e);
    all = all && !(s && uses_var(s->condition, t.read.var));
    return all;
  });
  return all;
}

// The value where each crossed operand is `rows[its number]`, a vector along `written`.
Expr with_rows(const Transposition& t, const std::vector<Buffer>& rows) {
  return rewrite(t.c.epilogue, [&](const Expr& e) -> Expr {
    for (size_t i = 0; i < t.crossed.size(); i++)
      if (const Load* l = as<Load>(e); l && same_element(*l, *t.crossed[i]))
        return load(rows[i], {Expr(t.written.var)});
    return {};
  });
}

std::vector<Buffer> rows_of(const Transposition& t) {
  std::vector<Buffer> rows;
  for (const Load* l : t.crossed)
    rows.push_back(make_buffer(l->buffer->name + "_row", l->buffer->dtype, {Dim(kMaxLanes)}));
  return rows;
}

std::optional<Transposition> match(const TemplateArgs& a) {
  if (!a.canonical || bool(a.canonical->value) || a.canonical->axes.size() < 2) return {};
  Transposition t;
  t.c = *a.canonical;
  merge_axes(t.c.axes, {&t.c.epilogue}, {&t.c.out_index});
  if (t.c.axes.size() < 2 || !find_axes(t)) return {};
  const int64_t shorter = std::min(t.read.extent.value, t.written.extent.value);
  const bool floats =
      std::all_of(t.crossed.begin(), t.crossed.end(), [](const Load* l) { return l->buffer->dtype == DType::F32; });
  const bool vectors =
      floats && !t.by_position && has_lanes(t.c.out->dtype) && has_vector_form(with_rows(t, rows_of(t)), t.written.var);
  const bool has_rows = floats && t.c.out->dtype == DType::F32 && has_vector_form(t.c.epilogue, t.read.var) &&
                        (!t.by_position || conditions_are_of_rows(t));
  if ((t.by_position ? has_rows : vectors) && shorter >= kMaxLanes) return t;
  const int64_t channels = t.read.extent.value;
  t.deinterleaved = vectors && (channels == 2 || channels == 3) && t.written.extent.value >= kMaxLanes &&
                    std::all_of(t.crossed.begin(), t.crossed.end(), [&](const Load* l) {
                      return affine_in(l->index[0], {t.written.var})->coefficients[0] == channels;
                    });
  t.through_array = !t.deinterleaved && has_rows && shorter > 1 && is_costly(t.c.epilogue);
  if (t.deinterleaved || t.through_array) return t;
  const Load* whole = as<Load>(t.c.epilogue);
  t.moves_bytes =
      whole && !t.by_position && whole->buffer->dtype == t.c.out->dtype && info(t.c.out->dtype).bits % 8 == 0;
  if (!t.moves_bytes || t.c.out->dtype == DType::String || 16 % info(t.c.out->dtype).bytes != 0 || shorter < t.size())
    return {};
  return t;
}

struct TransposePlan {
  bool read_outside = false;  // tiles along `read` go around those along `written`
  bool parallel = false;      // on threads: the outermost axis, or parts of the tiles' outer axis
  int64_t parts = 1;          // of whole tiles, two and more: only tiles of one part overlap; 1: the outermost axis
};

constexpr int64_t kMostParts = 16;

// As near to `most` as it divides n tiles evenly; `most` if nothing above the half does.
int64_t choose_parts(int64_t n, int64_t size) {
  const int64_t most = std::min<int64_t>(kMostParts, n / (2 * size));
  for (int64_t p = most; p * 2 > most; p--)
    if (n % (p * size) == 0) return p;
  return most;
}

TransposePlan decide(const Transposition& t, const PlanEntry& plan) {
  TransposePlan p;
  const int64_t read = t.read.extent.value, written = t.written.extent.value, size = t.size();
  const bool one_loop = t.deinterleaved || (t.through_array && std::min(read, written) <= size);
  const int64_t longer = !t.deinterleaved && read > written ? 1 : 0;
  p.read_outside = plan.number(
                       "read_outside", [&] { return longer; },
                       one_loop ? KnobValues::only(longer, "tiles go along one axis") : KnobValues::flag(true)) == 1;
  const int64_t most = (p.read_outside ? read : written) / (2 * size);
  const int64_t outer = t.outer.empty() ? 1 : t.outer[0].extent.value;
  p.parallel = plan.flag("parallel", points(t.c.axes) >= kParallelThreshold && (outer >= 4 || most >= 2),
                         outer > 1 || most >= 2, "there is nothing to share");
  if (!p.parallel)
    p.parts = plan.number(
        "parts", [] { return 1; }, KnobValues::only(1, "it is not on threads"));
  else
    p.parts = plan.in_range(
        "parts",
        [&] { return outer >= 4 ? 1 : std::max<int64_t>(1, choose_parts(p.read_outside ? read : written, size)); },
        outer > 1 ? 1 : 2, std::max<int64_t>(1, most));
  return p;
}

class Builder {
 public:
  Builder(const Transposition& t, const TransposePlan& plan) : t_(t), plan_(plan) {
    for (const Axis& a : t.outer) at_.push_back({a.var, Expr(a.var)});
  }

  // Tiles along the longer of the two axes go around those along the other one.
  Stmt build() {
    const bool by_read = plan_.read_outside;
    const Axis &far = by_read ? t_.read : t_.written, &near = by_read ? t_.written : t_.read;
    const Tiles row = [&](const Expr& outer) {
      if (t_.deinterleaved) return tile(0, outer);
      return over_tiles(near, 0, tiles(near.extent.value),
                        [&](const Expr& inner) { return by_read ? tile(outer, inner) : tile(inner, outer); });
    };
    if (plan_.parts > 1) return in_parts(far, row);
    return over_outer(over_tiles(far, 0, tiles(far.extent.value), row), plan_.parallel);
  }

 private:
  using Tiles = std::function<Stmt(const Expr& first)>;

  Stmt over_outer(Stmt body, bool parallel) const {
    for (size_t i = t_.outer.size(); i-- > 0;)
      body = loop(t_.outer[i].var, t_.outer[i].extent, body, parallel && i == 0 ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

  Stmt in_parts(const Axis& a, const Tiles& body) const {
    const int64_t n = a.extent.value, size = t_.size(), parts = plan_.parts;
    const Var part = make_var("part");
    auto first = [&](const Expr& p) {
      return n % (parts * size) == 0 ? p * tiles(n / parts) : p * tiles(n) / Expr(parts);
    };
    const Expr count = n % (parts * size) == 0 ? tiles(n / parts) : first(Expr(part) + Expr(1)) - first(part);
    return loop(part, parts, over_outer(over_tiles(a, first(part), count, body), false), ForKind::Parallel);
  }

  Expr tiles(int64_t n) const { return t_.in_registers() ? vectors(n) : Expr(ceil_div(n, t_.size())); }

  Stmt over_tiles(const Axis& a, const Expr& begin, const Expr& count, const Tiles& body) const {
    if (t_.through_array && a.extent.value <= t_.size()) return body(0);
    const Expr size = t_.in_registers() ? lanes() : Expr(t_.size());
    const Var o = make_var(a.var->name + "_o");
    if (a.extent.value % t_.size() == 0) return loop(o, count, body(Expr(o) * size), ForKind::Serial, begin);
    const Var first = make_var(a.var->name);
    const Expr last = min(Expr(o) * size, Expr(a.extent) - size);
    return loop(o, count, let(first, last, body(first)), ForKind::Serial, begin);
  }

  Expr index(const Expr& e, const Expr& read, const Expr& written) const {
    Point p = at_;
    p.push_back({t_.read.var, read});
    p.push_back({t_.written.var, written});
    return index_at(e, p);
  }
  int64_t stride(const Expr& e, const Axis& a) const { return offset_of(e, vars_of(t_.c.axes))->of(a.var); }

  // Both extents are those of the axes where these are shorter than a tile.
  Stmt through_array(const Expr& read, const Expr& written) const {
    const int64_t size = t_.size(), columns = std::min(t_.read.extent.value, size),
                  rows = std::min(t_.written.extent.value, size);
    const Buffer tile = make_buffer("tile", DType::F32, {Dim(rows * size)}, Scope::Stack);
    const Var row = make_var("row"), i = make_var("i"), j = make_var("j");
    const Stmt fill = loop(row, rows, over_lanes("v", columns, [&](const Expr& offset, const Expr& count) {
                             Point p = at_;
                             p.push_back({t_.written.var, written + Expr(row)});
                             const Expr value = vector_form(t_.c.epilogue, {p, t_.read.var, read + offset, count, {}});
                             return store(tile, {ramp(Expr(row) * size + offset)}, broadcast(value), {}, count);
                           }));
    const Stmt move = store(t_.c.out, {index(t_.c.out_index, read + Expr(i), written + Expr(j))},
                            load(tile, {Expr(j) * size + Expr(i)}));
    return alloc(tile, seq({fill, loop(i, columns, loop(j, rows, move))}));
  }

  // The value of whole rows, each along `read`, before they are turned.
  Stmt of_rows(const Expr& read, const Expr& written) const {
    const Buffer rows = make_buffer("rows", DType::F32, {Dim(kMaxLanes * kMaxLanes)}, Scope::Stack),
                 turned = make_buffer("turned", DType::F32, {Dim(kMaxLanes), Dim(kMaxLanes)}, Scope::Register);
    const Var row = make_var("row"), i = make_var("i");
    Point p = at_;
    p.push_back({t_.written.var, written + Expr(row)});
    const Expr value = vector_form(t_.c.epilogue, {p, t_.read.var, read, {}, {}});
    return alloc(rows,
                 seq({loop(row, lanes(), store(rows, {ramp(Expr(row) * Expr(kMaxLanes))}, broadcast(value))),
                      alloc(turned, seq({intrin("load_transposed", {{turned, {0}}, {rows, {}}}, {kMaxLanes}),
                                         loop(i, lanes(),
                                              store(t_.c.out, {ramp(index(t_.c.out_index, read + Expr(i), written))},
                                                    load(turned, {Expr(i), ramp(0)})),
                                              ForKind::Unroll)}))}));
  }

  Stmt tile(const Expr& read, const Expr& written) const {
    if (t_.through_array) return through_array(read, written);
    if (t_.by_position) return of_rows(read, written);
    if (t_.moves_bytes) {
      const Load& from = *t_.crossed[0];
      return intrin(
          "transpose_tile",
          {{t_.c.out, {index(t_.c.out_index, read, written)}}, {from.buffer, {index(from.index[0], read, written)}}},
          {Expr(stride(t_.c.out_index, t_.read)), Expr(stride(from.index[0], t_.written))});
    }
    const std::vector<Buffer> rows = rows_of(t_);
    const Expr value = with_rows(t_, rows);
    std::vector<Buffer> tiles;
    Stmts list;
    for (const Load* l : t_.crossed) {
      tiles.push_back(make_buffer(l->buffer->name + "_tile", DType::F32,
                                  {t_.deinterleaved ? t_.read.extent : Dim(kMaxLanes), Dim(kMaxLanes)},
                                  Scope::Register));
      list.push_back(intrin(t_.deinterleaved ? "load_unriffled" : "load_transposed",
                            {{tiles.back(), {0}}, {l->buffer, {index(l->index[0], read, written)}}},
                            {Expr(stride(l->index[0], t_.written))}));
    }
    const Var i = make_var("i");
    Point p = at_;
    p.push_back({t_.read.var, read + Expr(i)});
    const LanePoint point{p, t_.written.var, written, {}, {}};
    const Stmt row = seq({store_lanes(t_.c.out, t_.c.out_index, value, point), fetch_ahead(p, written)});
    list.push_back(
        loop(i, t_.deinterleaved ? t_.read.extent : lanes(), in_tiles(row, rows, tiles, i), ForKind::Unroll));
    Stmt body = seq(list);
    for (const Buffer& b : tiles) body = alloc(b, body);
    return body;
  }

  // Rows of the result that advance together, more of them than processors look ahead for: each asks for its next lines.
  Stmt fetch_ahead(const Point& row, const Expr& written) const {
    constexpr int64_t kMostStreams = 64, kAhead = 32;
    if (plan_.read_outside || t_.read.extent.value <= kMostStreams) return {};
    Point at = row;
    at.push_back({t_.written.var, written + Expr(kAhead)});
    return prefetch(t_.c.out, {index_at(t_.c.out_index, at)}, 0);
  }

  // Rows of tiles for what stood for them.
  static Stmt in_tiles(const Stmt& s, const std::vector<Buffer>& rows, const std::vector<Buffer>& tiles, const Var& i) {
    return rewrite(s, [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      const auto row = l ? std::find(rows.begin(), rows.end(), l->buffer) : rows.end();
      return row == rows.end() ? Expr() : load(tiles[size_t(row - rows.begin())], {Expr(i), ramp(0)});
    });
  }

  const Transposition& t_;
  const TransposePlan plan_;
  Point at_;
};

}  // namespace

std::optional<Scheduled> schedule_transpose(const TemplateArgs& a) {
  const auto t = match(a);
  if (!t) return {};
  Scheduled s;
  s.body = seq({fill_border(t->c), Builder(*t, decide(*t, a.plan)).build()});
  bind_operands(s, t->c);
  s.family = "transpose";
  if (t->deinterleaved) {
    s.description =
        "vectors along " + t->written.var->name + ", taken out of " + to_text(t->read.extent.value) + " in turn";
    return s;
  }
  const std::string size = t->in_registers() ? "VL" : to_text(t->size());
  s.description =
      "tiles of " + size + " by " + size + " elements, turned in " + (t->through_array ? "an array" : "registers");
  return s;
}

}  // namespace tc
