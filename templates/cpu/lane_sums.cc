#include "templates/cpu/lane_sums.h"

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/max_lanes.h"
#include "templates/cpu/lanes.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

class TileOfSums {
 public:
  TileOfSums(const LaneSums& s, const LaneTile& t)
      : s_(s),
        t_(t),
        acc_(make_buffer("acc", DType::F32, {Dim(t.rows * t.columns), Dim(kMaxLanes)}, Scope::Register)) {}

  Stmt build() const {
    const Stmt start =
        each([&](const Point&, const Expr& sum) { return store(acc_, lanes_of(sum), broadcast(zero(DType::F32))); });
    Stmt add = over_lanes("v", s_.lane.extent.value, [&](const Expr& base, const Expr& some) {
      return each([&](const Point& at, const Expr& sum) {
        return store(acc_, lanes_of(sum), vector_form(s_.term, {at, s_.lane.var, base, some, {}}), Op::Add, some);
      });
    });
    for (size_t i = s_.pieces.size(); i-- > 0;) add = loop(s_.pieces[i].var, s_.pieces[i].extent, add);
    return alloc(acc_, seq({start, add, t_.rows * t_.columns < kFewestJoined ? finish_each() : finish_joined()}));
  }

 private:
  // So many vectors have their lanes added at once: store_sums has no fewer.
  static constexpr int64_t kFewestJoined = 4;

  static Exprs lanes_of(const Expr& sum) { return {sum, ramp(0)}; }

  // For every row and column of the tile: where it is, and the number of its sum.
  Stmt each(const std::function<Stmt(const Point& at, const Expr& sum)>& f) const {
    const Var i = make_var("i"), n = make_var("n");
    const Stmt one = loop(n, t_.columns, f(point(i, n), Expr(i) * Expr(t_.columns) + Expr(n)), ForKind::Unroll);
    return loop(i, t_.rows, one, ForKind::Unroll);
  }

  Stmt store_result(const Point& at, Expr sum) const {
    if (as_const_number(s_.c.init) != 0.0) sum = scalar_form(s_.c.init, at) + sum;
    return store(s_.c.out, {index_at(s_.c.out_index, at)}, scalar_form(s_.c.epilogue, at, sum));
  }
  Expr joined(const Expr& sum) const { return apply(Op::ReduceAdd, {load(acc_, lanes_of(sum))}); }

  Stmt finish_each() const {
    return each([&](const Point& at, const Expr& sum) { return store_result(at, joined(sum)); });
  }

  // Sixteen, eight or four at once, as many as there are; what is left one by one.
  Stmt finish_joined() const {
    const int64_t count = t_.rows * t_.columns;
    const bool straight = results_are_sums();
    const Buffer sums = straight ? s_.c.out : make_buffer("sums", DType::F32, {Dim(count)}, Scope::Stack);
    const Expr first = straight ? index_at(s_.c.out_index, point(0, 0)) : Expr(0);
    Stmts list;
    int64_t k = 0;
    for (int64_t n = 16; n >= kFewestJoined; n /= 2)
      for (; count - k >= n; k += n)
        list.push_back(
            intrin("store_sums", {{sums, straight ? Exprs{first} : Exprs{}}, {acc_, {Expr(k)}}}, {Expr(k), Expr(n)}));
    for (; k < count; k++) list.push_back(store(sums, {first + Expr(k)}, joined(Expr(k))));
    if (straight) return seq(std::move(list));
    list.push_back(each([&](const Point& at, const Expr& sum) { return store_result(at, load(sums, {sum})); }));
    return alloc(sums, seq(std::move(list)));
  }

  Point point(const Expr& row, const Expr& column) const {
    Point at = t_.at;
    if (t_.row) at.push_back({t_.row, t_.first_row + row});
    if (t_.column) at.push_back({t_.column, t_.first_column + column});
    return at;
  }

  // Are the sums of the tile, in order, what lies in the result one behind the other?
  bool results_are_sums() const {
    const Load* const plain = as<Load>(s_.c.epilogue);
    if (!plain || plain->buffer != s_.c.reduced || as_const_number(s_.c.init) != 0.0) return false;
    std::vector<Var> vars;
    for (const Var& v : {t_.row, t_.column})
      if (v) vars.push_back(v);
    const auto to = offset_of(s_.c.out_index, vars);
    return to && (t_.columns == 1 || to->of(t_.column) == 1) && (t_.rows == 1 || to->of(t_.row) == t_.columns);
  }

  const LaneSums& s_;
  const LaneTile& t_;
  const Buffer acc_;  // a vector for each sum
};

}  // namespace

Stmt lane_sums(const LaneSums& s, const LaneTile& t) { return TileOfSums(s, t).build(); }

}  // namespace tc
