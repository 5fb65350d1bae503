// NonMaxSuppression: per batch and class, the box of the highest score is taken and those that overlap it too much are
// dropped, until none is left or enough are taken. Batches and classes are independent; their lists are then joined.
#include <algorithm>
#include <limits>

#include "ir/ops/heap.h"
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

/// Edges and areas of the boxes that a row has taken so far, in the order of its list.
struct Edges {
  Buffer top, left, bottom, right, area;
};

/// One box, in names.
struct Box {
  Var top = make_var("box_top", DType::F32), left = make_var("box_left", DType::F32),
      bottom = make_var("box_bottom", DType::F32), right = make_var("box_right", DType::F32),
      area = make_var("box_area", DType::F32);
  Stmt with(const Boxes& b, const Expr& batch, const Expr& j, Stmt body) const {
    const Interval y = extent(b, batch, j, 0), x = extent(b, batch, j, 1);
    body = let(area, (Expr(right) - Expr(left)) * (Expr(bottom) - Expr(top)), body);
    body = let(left, x.low, let(right, x.high, body));
    return let(top, y.low, let(bottom, y.high, body));
  }
  Stmt put(const Edges& e, const Expr& at) const {
    return seq({store(e.top, {at}, top), store(e.left, {at}, left), store(e.bottom, {at}, bottom),
                store(e.right, {at}, right), store(e.area, {at}, area)});
  }
};

/// Runs `then` if number q of those taken and a box overlap by more than the threshold. Boxes without area never do.
Stmt if_overlapping(const Boxes& b, const Edges& e, const Box& box, const Expr& q, const Stmt& then) {
  // An edge that is not a number makes an area that is none either.
  auto lower = [](const Expr& v, const Expr& w) { return select(v < w, v, w); };
  auto higher = [](const Expr& v, const Expr& w) { return select(v > w, v, w); };
  const Expr none = make_float(DType::F32, 0), area = load(e.area, {q});
  const Var width = make_var("width", DType::F32), height = make_var("height", DType::F32);
  const Var common = make_var("common", DType::F32), whole = make_var("whole", DType::F32);
  const Expr overlap =
      area > none && Expr(box.area) > none && Expr(whole) > none && Expr(common) / Expr(whole) > b.overlap;
  Stmt body = let(whole, area + Expr(box.area) - Expr(common), if_then(overlap, then));
  body = if_then(Expr(height) > none, let(common, Expr(width) * Expr(height), body));
  body = let(height, lower(load(e.bottom, {q}), box.bottom) - higher(load(e.top, {q}), box.top), body);
  return let(width, lower(load(e.right, {q}), box.right) - higher(load(e.left, {q}), box.left),
             if_then(Expr(width) > none, body));
}

constexpr int64_t kTwoTo32 = int64_t(1) << 32;

/// An integer that is larger for a higher score and, of equal scores, for the smaller number of a box.
Expr rank(const Expr& score, const Expr& box) {
  // Bits of floats are in the order of their values, those below zero in the opposite one; -0 becomes 0.
  const Expr bits = bitcast(DType::I32, score + make_float(DType::F32, 0));
  const Expr all = make_int(DType::I32, std::numeric_limits<int32_t>::max());
  const Expr ordered = select(bits < make_int(DType::I32, 0), apply(Op::BitXor, {bits, all}), bits);
  return cast(DType::I64, ordered) * Expr(kTwoTo32) + (Expr(kTwoTo32 - 1) - box);
}
Expr box_of_rank(const Expr& rank) { return Expr(kTwoTo32 - 1) - apply(Op::BitAnd, {rank, Expr(kTwoTo32 - 1)}); }

/// The candidates of a row lie in a heap. The best is taken out of it, and into the list unless one that is there
/// overlaps it: a box is compared with those taken alone, and only what is asked for is put in order.
Stmt select_boxes(const Boxes& b, const Lists& lists, const Heap& heap, const Edges& edges, const Var& r) {
  const Var j = make_var("j"), best = make_var("best"), batch = make_var("batch"), group = make_var("group");
  const Buffer q = counter("q"), overlaps = counter("overlaps");
  const Expr score = b.scores({batch, group, j}), taken = load(lists.taken, {r});
  const Stmt candidate = append(heap, rank(score, j));
  const Stmt collect = loop(j, b.count(), b.least ? if_then(score > b.least, candidate) : candidate);
  const Box box;
  const Stmt compare =
      seq({set(overlaps, 0), set(q, 0),
           while_loop(value_of(q) < taken && eq(value_of(overlaps), 0),
                      seq({if_overlapping(b, edges, box, value_of(q), set(overlaps, 1)), increment(q)}))});
  const Stmt take =
      seq({store(lists.chosen, {r, taken}, best), box.put(edges, taken), store(lists.taken, {r}, taken + 1)});
  const Stmt judge = box.with(b, batch, best, seq({compare, if_then(eq(value_of(overlaps), 0), take)}));
  const Stmt next = let(best, box_of_rank(load(heap.element, {Expr(0)})), seq({drop_largest(heap), judge}));
  const Stmt all = seq({store(lists.taken, {r}, Expr(0)), set(heap.count, 0), collect, order(heap),
                        while_loop(value_of(heap.count) > 0 && taken < b.limit, next)});
  const Stmt body = let(batch, floor_div(r, Expr(b.classes())), let(group, floor_mod(r, Expr(b.classes())), all));
  return alloc(heap.count, alloc(q, alloc(overlaps, body)));
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
  if (o.count() >= kTwoTo32) b.reject("there are more than 2^32 boxes", 1);
  const int64_t form = b.attr_int("center_point_box");
  if (form != 0 && form != 1) b.reject("attribute center_point_box must be 0 or 1");
  o.centers = form == 1;
  for (int k = 2; k <= 4; k++)
    if (b.has(k) && !has_one_element(b.in(k).dims())) b.reject("one number is needed here", k);
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
  auto list = [](const Dims& d, DType t = DType::I64) { return ValueType::tensor(t, to_shape(d)); };
  const int64_t capacity = std::max<int64_t>(1, o.most);
  std::vector<ValueType> types = {list({rows, capacity}), list({rows})};
  types.push_back(list({o.count() + 1}));
  for (int k = 0; k < 5; k++) types.push_back(list({capacity}, DType::F32));
  const auto lists = b.nest("chosen taken candidate top left bottom right area", std::move(types),
                            [&](const std::vector<Buffer>& out) {
                              const Var r = make_var("r");
                              const Heap heap = {out[2], counter("candidates")};
                              const Edges edges = {out[3], out[4], out[5], out[6], out[7]};
                              return loop(r, rows, select_boxes(o, {out[0], out[1]}, heap, edges, r));
                            });
  if (!b.wants(1)) {
    b.output(0, b.nest("selected", {list(dims)}, [&](const std::vector<Buffer>& out) {
      return join_lists(o, lists[0], lists[1], out[0], dims[0],
                        [&](const Buffer& lines) { return must_be(lines, dims[0]); });
    })[0]);
    return;
  }
  const auto selected = b.nest("selected lines", {list(dims), list({})}, [&](const std::vector<Buffer>& out) {
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
