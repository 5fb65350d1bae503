// Whether two accesses may alias: the patterns that templates write are decided, and random ones are compared with all
// pairs of instances, tried one by one.
#include "passes/analysis/alias_query.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc::alias_query_test {
namespace {

const Var kThread = make_var("t"), kIteration = make_var("turn"), kStep = make_var("step");
const Expr t(kThread), iteration(kIteration), step(kStep);

Buffer shared_array(const Dims& dims) { return make_buffer("x", DType::F32, to_shape(dims), Scope::Shared); }

struct Pair {
  Access a, b;
  std::set<const VarDef*> varies;
  std::set<const BufferDef*> written;

  AliasQuery query() const { return AliasQuery(a, b, varies, written); }
};

// Two accesses of one buffer by threads 0 .. 255, in iterations 0 .. 3 and steps 0 .. 9 that are the same for all of
// them.
Pair threads(const Dims& dims, const Exprs& a, const Exprs& b) {
  const Buffer x = shared_array(dims);
  const Ranges ranges = {{kThread.get(), {0, 255}}, {kIteration.get(), {0, 3}}, {kStep.get(), {0, 9}}};
  return {{x, a, true, {}, ranges}, {x, b, true, {}, ranges}, {kThread.get()}, {}};
}

TEST(AliasQuery, an_element_of_ones_own_is_touched_by_nobody_else) {
  EXPECT_TRUE(threads({256}, {t}, {t}).query().implies_equal(kThread));
  EXPECT_TRUE(threads({1024}, {iteration * Expr(256) + t}, {iteration * Expr(256) + t}).query().implies_equal(kThread));
  EXPECT_FALSE(threads({256}, {t}, {Expr(255) - t}).query().implies_equal(kThread));
  EXPECT_FALSE(threads({64}, {floor_div(t, 4)}, {floor_div(t, 4)}).query().implies_equal(kThread));
}

TEST(AliasQuery, the_parts_of_a_divided_number_make_it_up) {
  const Exprs tile = {floor_div(t, 8), floor_mod(t, 8)}, rows_only = {floor_div(t, 8), 0};
  EXPECT_TRUE(threads({32, 8}, tile, tile).query().implies_equal(kThread));
  EXPECT_FALSE(threads({32, 8}, rows_only, rows_only).query().implies_equal(kThread));
  const Exprs other = {floor_div(t, 8), floor_mod(t, 4)};  // of different numbers
  EXPECT_FALSE(threads({32, 8}, other, other).query().implies_equal(kThread));
}

TEST(AliasQuery, stages_of_a_pipeline_are_apart) {
  const Expr now = floor_mod(step, 2);
  EXPECT_TRUE(threads({2, 256}, {now, t}, {Expr(1) - now, floor_mod(t + Expr(7), 256)}).query().no_alias());
  EXPECT_FALSE(threads({2, 256}, {now, t}, {now, floor_mod(t + Expr(7), 256)}).query().no_alias());
}

TEST(AliasQuery, elements_out_of_reach_are_apart) {
  EXPECT_TRUE(threads({600}, {t}, {t + Expr(256)}).query().no_alias());
  EXPECT_FALSE(threads({600}, {t}, {t + Expr(255)}).query().no_alias());
  EXPECT_TRUE(threads({600}, {t * Expr(2)}, {t * Expr(2) + Expr(1)}).query().no_alias());  // even and odd
}

TEST(AliasQuery, what_is_said_to_agree_is_used) {
  const Exprs tile = {0, floor_mod(t, 32)};
  const Pair p = threads({1, 32}, tile, tile);
  EXPECT_FALSE(p.query().implies_equal(kThread));
  AliasQuery of_one_warp = p.query();
  of_one_warp.assume_equal(floor_div(t, 32));
  EXPECT_TRUE(of_one_warp.implies_equal(kThread));
}

TEST(AliasQuery, an_index_that_is_read_is_known_only_where_nobody_writes_it) {
  const Buffer table = make_buffer("table", DType::I64, {Dim(16)});
  const Exprs at = {load(table, {step}) + t};
  Pair p = threads({4096}, at, at);
  EXPECT_TRUE(p.query().implies_equal(kThread));
  p.written = {table.get()};
  EXPECT_FALSE(p.query().implies_equal(kThread));
  EXPECT_FALSE(threads({4096}, {load(table, {t})}, {load(table, {t})}).query().implies_equal(kThread));
}

TEST(AliasQuery, an_access_without_an_index_is_to_any_element) {
  const Pair p = threads({256}, {}, {t});
  AliasQuery any = p.query();
  EXPECT_FALSE(any.no_alias());
  EXPECT_FALSE(any.implies_equal(kThread));
}

TEST(AliasQuery, a_variable_of_one_value_is_forced) {
  Pair p = threads({256}, {0}, {0});
  EXPECT_FALSE(p.query().implies_equal(kThread));
  p.a.ranges[kThread.get()] = p.b.ranges[kThread.get()] = {3, 3};
  EXPECT_TRUE(p.query().implies_equal(kThread));
}

// --- random indices over u and v, which vary, and w, which does not
class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed * 2654435761u + 99) {}
  int64_t below(int64_t n) { return int64_t((state_ = state_ * 1664525u + 1013904223u) >> 8) % n; }

  Expr index() {
    static constexpr int64_t kSteps[] = {0, 1, 1, 2, 3, 4, 6, 12};
    Expr e = below(6);
    for (const Var& x : vars) e = e + Expr(x) * Expr(kSteps[below(8)]);
    if (below(4) == 0) e = floor_div(e, Expr(1 + below(4)));
    if (below(4) == 0) e = floor_mod(e, Expr(2 + below(6)));
    return e;
  }

  const std::vector<Var> vars = {make_var("u"), make_var("v"), make_var("w")};

 private:
  uint32_t state_;
};

using Values = std::vector<int64_t>;

VarMap values_of(const std::vector<Var>& vars, const Values& at) {
  VarMap map;
  for (size_t i = 0; i < vars.size(); i++) map[vars[i].get()] = Expr(at[i]);
  return map;
}

std::vector<Values> elements_of(const Exprs& index, const std::vector<Var>& vars, const std::vector<Values>& points) {
  std::vector<Values> list;
  for (const Values& p : points) {
    Values element;
    for (const Expr& e : index) element.push_back(*as_const_int(simplify(substitute(e, values_of(vars, p)))));
    list.push_back(element);
  }
  return list;
}

TEST(AliasQuery, random_indices_agree_with_all_pairs_of_instances) {
  int apart = 0, forced = 0;
  for (uint32_t seed = 0; seed < 300; seed++) {
    Random r(seed);
    const Values extents = {1 + r.below(5), 1 + r.below(5), 1 + r.below(3)};
    Ranges ranges;
    std::vector<Values> points;
    for (size_t i = 0; i < 3; i++) ranges[r.vars[i].get()] = {0, extents[i] - 1};
    for (int64_t u = 0; u < extents[0]; u++)
      for (int64_t v = 0; v < extents[1]; v++)
        for (int64_t w = 0; w < extents[2]; w++) points.push_back({u, v, w});
    const bool plane = r.below(2) == 0, same = r.below(2) == 0;
    const Exprs a = plane ? Exprs{r.index(), r.index()} : Exprs{r.index()};
    const Exprs b = same ? a : plane ? Exprs{r.index(), r.index()} : Exprs{r.index()};
    const Buffer x = plane ? shared_array({200, 200}) : shared_array({200});
    const Pair p{{x, a, true, {}, ranges}, {x, b, true, {}, ranges}, {r.vars[0].get(), r.vars[1].get()}, {}};
    bool aliases = false, differs[2] = {false, false};
    const std::vector<Values> here = elements_of(a, r.vars, points), there = elements_of(b, r.vars, points);
    for (size_t i = 0; i < points.size(); i++)
      for (size_t k = 0; k < points.size(); k++) {
        if (points[i][2] != points[k][2] || here[i] != there[k]) continue;
        aliases = true;
        for (size_t d = 0; d < 2; d++) differs[d] = differs[d] || points[i][d] != points[k][d];
      }
    AliasQuery m = p.query();
    EXPECT_FALSE(m.no_alias() && aliases) << "seed " << seed;
    apart += m.no_alias();
    for (size_t d = 0; d < 2; d++) {
      const bool claim = m.implies_equal(r.vars[d]);
      EXPECT_FALSE(claim && differs[d]) << "seed " << seed << ", " << r.vars[d]->name;
      forced += claim;
    }
  }
  EXPECT_GT(apart, 10);  // it does know something
  EXPECT_GT(forced, 50);
}

}  // namespace
}  // namespace tc::alias_query_test
