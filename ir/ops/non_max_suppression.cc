// NonMaxSuppression: per batch and class, the box of the highest score is taken and those that overlap it too much are
// dropped, until none is left or enough are taken. Batches and classes are independent; their lists are then joined.
#include <algorithm>

#include "ir/ops/counting.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

struct Boxes {
  Tensor boxes, scores;  // [batch, box, 4], [batch, class, box]
  bool centers = false;  // a box is x and y of its center, width, height; else two opposite corners y, x, y, x
  Expr overlap;          // F32: boxes whose intersection is a larger part of their union are dropped
  Expr least;            // F32: only higher scores count; null: all do
  Expr limit;            // I64: boxes per batch and class
  int64_t most = 0;      // an upper bound of limit
  int64_t batches() const { return scores.dim(0); }
  int64_t classes() const { return scores.dim(1); }
  int64_t count() const { return scores.dim(2); }
};

struct Interval {
  Expr low, high;
};

/// The extent of a box along y (axis 0) or x (axis 1).
Interval extent(const Boxes& b, const Expr& batch, const Expr& box, int axis) {
  auto at = [&](int k) { return b.boxes({batch, box, Expr(k)}); };
  if (!b.centers) return {min(at(axis), at(axis + 2)), max(at(axis), at(axis + 2))};
  const Expr middle = at(1 - axis), half = at(3 - axis) / make_float(DType::F32, 2);
  return {middle - half, middle + half};
}

/// What one batch and class (together: row `r`) selects: `chosen` and `taken`, how many.
struct Lists {
  Buffer chosen, taken;
};

/// The candidates of a row that are left, side by side: the box, its score, edges and area.
struct Candidates {
  Buffer box, score, top, left, bottom, right, area;
  std::vector<Buffer> all() const { return {box, score, top, left, bottom, right, area}; }
};

/// Makes box j number `at` of the list.
Stmt put(const Boxes& b, const Candidates& c, const Expr& at, const Expr& batch, const Expr& j, const Expr& score) {
  const Interval y = extent(b, batch, j, 0), x = extent(b, batch, j, 1);
  return seq({store(c.box, {at}, j), store(c.score, {at}, score), store(c.top, {at}, y.low),
              store(c.bottom, {at}, y.high), store(c.left, {at}, x.low), store(c.right, {at}, x.high),
              store(c.area, {at}, (x.high - x.low) * (y.high - y.low))});
}

Stmt move(const Candidates& c, const Expr& from, const Expr& to) {
  Stmts moves;
  for (const Buffer& column : c.all()) moves.push_back(store(column, {to}, load(column, {from})));
  return seq(std::move(moves));
}

/// One box, in names.
struct Box {
  Var top = make_var("top", DType::F32), left = make_var("left", DType::F32), bottom = make_var("bottom", DType::F32),
      right = make_var("right", DType::F32), area = make_var("area", DType::F32);
  Stmt with(const Candidates& c, const Expr& at, Stmt body) const {
    body = let(area, load(c.area, {at}), body);
    body = let(bottom, load(c.bottom, {at}), let(right, load(c.right, {at}), body));
    return let(top, load(c.top, {at}), let(left, load(c.left, {at}), body));
  }
};

/// Runs `then` unless a box and the one at q overlap by more than the threshold. Boxes without area never do.
Stmt unless_overlapping(const Boxes& b, const Candidates& c, const Box& box, const Expr& q, const Stmt& then) {
  const Expr none = make_float(DType::F32, 0), area = load(c.area, {q});
  const Var width = make_var("width", DType::F32), height = make_var("height", DType::F32);
  const Var common = make_var("common", DType::F32), whole = make_var("whole", DType::F32);
  const Expr overlap = Expr(width) > none && Expr(height) > none && Expr(box.area) > none && area > none &&
                       Expr(whole) > none && Expr(common) / Expr(whole) > b.overlap;
  Stmt body = if_then(logical_not(overlap), then);
  body = let(common, Expr(width) * Expr(height), let(whole, Expr(box.area) + area - Expr(common), body));
  body = let(height, min(Expr(box.bottom), load(c.bottom, {q})) - max(Expr(box.top), load(c.top, {q})), body);
  return let(width, min(Expr(box.right), load(c.right, {q})) - max(Expr(box.left), load(c.left, {q})), body);
}

Stmt select_boxes(const Boxes& b, const Lists& lists, const Candidates& c, const Var& r) {
  const Var j = make_var("j"), p = make_var("p"), q = make_var("q"), batch = make_var("batch"),
            group = make_var("group");
  const Var best = make_var("best");
  const Buffer candidates = counter("candidates"), kept = counter("kept"), first = counter("first");
  const Expr score = b.scores({batch, group, j}), taken = load(lists.taken, {r});
  const Stmt candidate = seq({put(b, c, value_of(candidates), batch, j, score), increment(candidates)});
  const Stmt collect = loop(j, b.count(), b.least ? if_then(score > b.least, candidate) : candidate);
  // Candidates stay in the order of their numbers: of equal scores the first one wins.
  const Stmt find =
      seq({set(first, 0), loop(p, value_of(candidates),
                               if_then(load(c.score, {p}) > load(c.score, {value_of(first)}), set(first, p)))});
  const Stmt keep = seq({move(c, q, value_of(kept)), increment(kept)});
  const Box box;
  const Stmt others = if_then(ne(q, best), unless_overlapping(b, c, box, q, keep));
  const Stmt drop =
      seq({set(kept, 0), box.with(c, best, loop(q, value_of(candidates), others)), set(candidates, value_of(kept))});
  const Stmt take =
      let(best, value_of(first),
          seq({store(lists.chosen, {r, taken}, load(c.box, {best})), store(lists.taken, {r}, taken + 1), drop}));
  const Stmt all = seq({store(lists.taken, {r}, Expr(0)), set(candidates, 0), collect,
                        while_loop(value_of(candidates) > 0 && taken < b.limit, seq({find, take}))});
  const Stmt body = let(batch, floor_div(r, Expr(b.classes())), let(group, floor_mod(r, Expr(b.classes())), all));
  return alloc(candidates, alloc(kept, alloc(first, body)));
}

/// The lists of all rows, one after the other, as [batch, class, box]; at most `bound` lines, zeros behind the last
/// one. `finish` takes the counter of lines.
Stmt join_lists(const Boxes& b, const Tensor& chosen, const Tensor& taken, const Buffer& out, int64_t bound,
                const std::function<Stmt(const Buffer&)>& finish) {
  const Buffer lines = counter("lines");
  const Var r = make_var("r"), p = make_var("p"), i = make_var("i"), k = make_var("k");
  const Expr at = value_of(lines);
  const Stmt line =
      seq({store(out, {at, Expr(0)}, floor_div(r, Expr(b.classes()))),
           store(out, {at, Expr(1)}, floor_mod(r, Expr(b.classes()))), store(out, {at, Expr(2)}, chosen({r, p}))});
  const Stmt join =
      loop(r, b.batches() * b.classes(), loop(p, taken({r}), seq({if_then(at < Expr(bound), line), increment(lines)})));
  const Stmt clear = loop(i, bound, loop(k, 3, store(out, {i, k}, Expr(0))));
  return alloc(lines, seq({set(lines, 0), clear, join, finish(lines)}));
}

Boxes read_operands(OpBuilder& b) {
  Boxes o;
  o.boxes = b.in(0);
  o.scores = b.in(1);
  if (o.boxes.dtype() != DType::F32 || o.boxes.rank() != 3 || o.boxes.dim(2) != 4)
    b.reject("boxes must be f32[batch, box, 4]", 0);
  if (o.scores.dtype() != DType::F32 || o.scores.rank() != 3 || o.scores.dim(0) != o.boxes.dim(0) ||
      o.scores.dim(2) != o.boxes.dim(1))
    b.reject("scores must be f32[batch, class, box], of as many batches and boxes as the boxes", 1);
  const int64_t form = b.attr_int("center_point_box");
  if (form != 0 && form != 1) b.reject("attribute center_point_box must be 0 or 1");
  o.centers = form == 1;
  for (int k = 2; k <= 4; k++)
    if (b.has(k) && num_elements(b.in(k).dims()) != 1) b.reject("one number is needed here", k);
  const Expr limit = b.has(2) ? element(b, 2) : Expr(0);
  const std::optional<int64_t> known = as_const_int(limit);
  o.most = known ? std::clamp<int64_t>(*known, 0, o.count()) : o.count();
  o.limit = known ? Expr(o.most) : min(limit, Expr(o.count()));
  auto threshold = [&](int k) { return cast(DType::F32, only_element(b.in(k))); };
  o.overlap = b.has(3) ? threshold(3) : make_float(DType::F32, 0);
  if (b.has(4)) o.least = threshold(4);
  return o;
}

void define_non_max_suppression(OpBuilder& b) {
  const Boxes o = read_operands(b);
  const int64_t rows = checked_mul(o.batches(), o.classes()), bound = checked_mul(rows, o.most);
  Dims dims = {bound, 3};
  if (b.wants(1)) {
    dims[0] = std::max<int64_t>(2, bound);  // an axis of one element would be one that broadcasts
  } else if (bound > 0) {
    dims = b.declared_dims(0, 0);
    if (dims.size() != 2 || dims[1] != 3) b.reject("the result has the shape [selected, 3]");
  }
  auto list = [](Dims d, DType t = DType::I64) { return ValueType::tensor(t, to_shape(d)); };
  const int64_t capacity = std::max<int64_t>(1, o.most);
  std::vector<ValueType> types = {list({rows, capacity}), list({rows})};
  const Dims candidates = {std::max<int64_t>(1, o.count())};
  types.push_back(list(candidates));                                          // which box a candidate is
  for (int k = 0; k < 6; k++) types.push_back(list(candidates, DType::F32));  // its score, edges and area
  const auto lists = b.nest("chosen", std::move(types), [&](const std::vector<Buffer>& out) {
    const Var r = make_var("r");
    const Candidates c = {out[2], out[3], out[4], out[5], out[6], out[7], out[8]};
    return loop(r, rows, select_boxes(o, {out[0], out[1]}, c, r));
  });
  if (!b.wants(1)) {
    b.output(0, b.nest("selected", {list(dims)}, [&](const std::vector<Buffer>& out) {
      return join_lists(o, lists[0], lists[1], out[0], dims[0],
                        [&](const Buffer& lines) { return must_be(lines, dims[0]); });
    })[0]);
    return;
  }
  const auto selected = b.nest("selected", {list(dims), list({})}, [&](const std::vector<Buffer>& out) {
    return join_lists(o, lists[0], lists[1], out[0], dims[0],
                      [&](const Buffer& lines) { return store(out[1], {}, value_of(lines)); });
  });
  b.output(0, selected[0]);
  b.output(1, selected[1]);
}

}  // namespace

OpFamily non_max_suppression_ops() {
  return {{"NonMaxSuppression",
           11,
           {{"center_point_box", int64_t(0)}},
           define_non_max_suppression,
           "boxes scores limit overlap least"}};
}

}  // namespace tc
