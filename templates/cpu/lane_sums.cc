#include "templates/cpu/lane_sums.h"

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "templates/cpu/lanes.h"

namespace tc {

Stmt lane_sums(const LaneSums& s, const LaneTile& t) {
  using Point = std::vector<std::pair<Var, Expr>>;
  const Buffer acc = make_buffer("acc", DType::F32, {Dim(t.rows), Dim(t.columns * kMaxLanes)}, Scope::Register);
  const auto each = [&](const std::function<Stmt(const Point& at, const Exprs& sum)>& f) {
    const Var i = make_var("i"), n = make_var("n");
    Point at = t.at;
    if (t.row) at.push_back({t.row, t.first_row + Expr(i)});
    if (t.column) at.push_back({t.column, t.first_column + Expr(n)});
    const Stmt one = loop(n, t.columns, f(at, {i, ramp(Expr(n) * lanes())}), ForKind::Unroll);
    return loop(i, t.rows, one, ForKind::Unroll);
  };
  const Stmt start = each([&](const Point&, const Exprs& sum) { return store(acc, sum, broadcast(zero(DType::F32))); });
  Stmt add = over_lanes("v", s.lane.extent.value, [&](const Expr& base, const Expr& some) {
    return each([&](const Point& at, const Exprs& sum) {
      return store(acc, sum, vector_form(s.term, {at, s.lane.var, base, some, {}}), Op::Add, some);
    });
  });
  for (size_t i = s.pieces.size(); i-- > 0;) add = loop(s.pieces[i].var, s.pieces[i].extent, add);
  const Stmt finish = each([&](const Point& at, const Exprs& sum) {
    Expr joined = apply(Op::ReduceAdd, {load(acc, sum)});
    if (as_const_number(s.c.init) != 0.0) joined = scalar_form(s.c.init, at) + joined;
    return store(s.c.out, {index_at(s.c.out_index, at)}, scalar_form(s.c.epilogue, at, joined));
  });
  return alloc(acc, seq({start, add, finish}));
}

}  // namespace tc
