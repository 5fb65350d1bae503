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

/// Do two boxes overlap by more than the threshold? Boxes without area never do.
Expr overlaps(const Boxes& b, const Expr& batch, const Expr& p, const Expr& q) {
  const Expr none = make_float(DType::F32, 0);
  Expr common = make_float(DType::F32, 1), first = common, second = common, meet = make_int(DType::Bool, 1);
  for (int axis : {1, 0}) {
    const Interval u = extent(b, batch, p, axis), v = extent(b, batch, q, axis);
    const Expr low = max(u.low, v.low), high = min(u.high, v.high);
    meet = meet && high > low;
    common = common * (high - low);
    first = first * (u.high - u.low);
    second = second * (v.high - v.low);
  }
  const Expr all = first + second - common;
  return meet && first > none && second > none && all > none && common / all > b.overlap;
}

/// What one batch and class (together: row `r`) selects: `chosen` and `taken`, how many. `left` holds the candidates.
struct Lists {
  Buffer chosen, left, taken;
};

Stmt select_boxes(const Boxes& b, const Lists& lists, const Var& r) {
  const Var j = make_var("j"), p = make_var("p"), q = make_var("q"), batch = make_var("batch"),
            group = make_var("group");
  const Var best = make_var("best");
  const Buffer candidates = counter("candidates"), kept = counter("kept"), first = counter("first");
  auto score = [&](const Expr& box) { return b.scores({batch, group, box}); };
  auto left = [&](const Expr& at) { return load(lists.left, {r, at}); };
  const Expr taken = load(lists.taken, {r}), counts = b.least ? score(j) > b.least : make_int(DType::Bool, 1);
  const Stmt collect = loop(
      j, b.count(), if_then(counts, seq({store(lists.left, {r, value_of(candidates)}, j), increment(candidates)})));
  // Candidates stay in the order of their numbers: of equal scores the first one wins.
  const Stmt find =
      seq({set(first, left(0)),
           loop(p, value_of(candidates), if_then(score(left(p)) > score(value_of(first)), set(first, left(p))))});
  const Expr stays = ne(left(q), best) && logical_not(overlaps(b, batch, best, left(q)));
  const Stmt drop = seq({set(kept, 0),
                         loop(q, value_of(candidates),
                              if_then(stays, seq({store(lists.left, {r, value_of(kept)}, left(q)), increment(kept)}))),
                         set(candidates, value_of(kept))});
  const Stmt take = let(best, value_of(first),
                        seq({store(lists.chosen, {r, taken}, best), store(lists.taken, {r}, taken + 1), drop}));
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
  auto list = [](Dims d) { return ValueType::tensor(DType::I64, to_shape(d)); };
  const int64_t room = std::max<int64_t>(1, o.most);
  const auto lists =
      b.nest("non_max_suppression", {list({rows, room}), list({rows, std::max<int64_t>(1, o.count())}), list({rows})},
             [&](const std::vector<Buffer>& out) {
               const Var r = make_var("r");
               return loop(r, rows, select_boxes(o, {out[0], out[1], out[2]}, r));
             });
  if (!b.wants(1)) {
    b.output(0, b.nest("selected", {list(dims)}, [&](const std::vector<Buffer>& out) {
      return join_lists(o, lists[0], lists[2], out[0], dims[0],
                        [&](const Buffer& lines) { return must_be(lines, dims[0]); });
    })[0]);
    return;
  }
  const auto selected = b.nest("selected", {list(dims), list({})}, [&](const std::vector<Buffer>& out) {
    return join_lists(o, lists[0], lists[2], out[0], dims[0],
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
