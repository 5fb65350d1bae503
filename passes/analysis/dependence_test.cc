// The proof of independence: random nests with random affine indices, run with a loop the other way round. Where no
// conflict is reported, nothing may change; where one is, reorder must keep the order of what it swaps.
#include "passes/analysis/dependence.h"

#include "ir/loop/visit.h"
#include "ir/test_random.h"
#include "passes/analysis/nest.h"
#include "passes/schedule/test_schedules.h"

namespace tc::dependence_test {
namespace {

using namespace tc::testing;

class Nests {
 public:
  explicit Nests(uint64_t seed) : dice_(seed, 99) {}

  // Two or three loops around one or two stores to a and b, which have one or two dimensions.
  Stmt make() {
    const size_t depth = 2 + size_t(dice_.below(2));
    for (size_t i = 0; i < depth; i++) vars.push_back(make_var(std::string(1, char('i' + i))));
    const bool flat = dice_.below(2) == 0;
    a = make_buffer("a", DType::F32, flat ? Shape{kElements} : Shape{12, kElements / 12});
    b = make_buffer("b", DType::F32, {kElements});
    Stmts list;
    for (int64_t k = 1 + dice_.below(2); k > 0; k--) list.push_back(random_store());
    Stmt s = seq(list);
    if (dice_.below(3) == 0) s = if_then(Expr(vars[0]) + Expr(vars.back()) < Expr(2 + dice_.below(5)), s);
    if (dice_.below(4) == 0) {
      const Var v = make_var("n");
      s = let(v, Expr(vars[0]) * Expr(dice_.below(4)) + Expr(vars[1]), rewrite(s, {}, [&](const Stmt& x) -> Stmt {
                const Store* k = as<Store>(x);
                return k && k->buffer == b ? store(b, {wrap(Expr(v) * Expr(1 + dice_.below(3)))}, k->value, k->reduce)
                                           : Stmt();
              }));
    }
    for (size_t i = depth; i-- > 0;)
      s = loop(vars[i], 1 + dice_.below(5), s, ForKind::Serial, dice_.below(3) == 0 ? dice_.below(3) : 0);
    return s;
  }

  static constexpr int64_t kElements = 1200;
  std::vector<Var> vars;
  Buffer a, b;

 private:
  // Indices stay inside: at most 3 loops, coefficients up to 24, variables up to 6.
  Expr affine(int64_t limit) {
    Expr e = dice_.below(4);
    for (const Var& v : vars) {
      static constexpr int64_t kSteps[] = {0, 1, 1, 2, 3, 5, 24};
      int64_t c = kSteps[dice_.below(7)];
      if (limit < 200) c = std::min<int64_t>(c, 2);
      e = e + Expr(v) * Expr(c);
    }
    if (dice_.below(5) == 0) e = floor_div(e, Expr(1 + dice_.below(4)));
    if (dice_.below(5) == 0) e = floor_mod(e, Expr(1 + dice_.below(7)));
    return e;
  }
  Expr wrap(const Expr& e) { return e + Expr(0); }

  Exprs index(const Buffer& t) {
    if (t->shape.size() == 1) return {affine(kElements)};
    return {min(affine(12), Expr(11)), min(affine(100), Expr(99))};
  }

  Stmt random_store() {
    const Buffer& to = dice_.below(2) ? a : b;
    const Buffer& from = dice_.below(2) ? a : b;
    const Expr value = load(from, index(from)) + make_float(DType::F32, double(dice_.below(3)));
    if (dice_.below(3) == 0) return store(to, index(to), value, dice_.below(2) ? Op::Add : Op::Max);
    return store(to, index(to), value);
  }

  Dice dice_;
};

std::vector<float> run_nest(const Nests& n, const Stmt& s) {
  std::vector<float> memory(2 * Nests::kElements);
  for (size_t k = 0; k < memory.size(); k++) memory[k] = float(int(k * 13 % 17) - 8);
  run(s, {{n.a, reinterpret_cast<uint8_t*>(memory.data())},
          {n.b, reinterpret_cast<uint8_t*>(memory.data() + Nests::kElements)}});
  return memory;
}

Stmt backwards(const Stmt& s, const Var& v) {
  const auto site = find_loop(s, v);
  const For& f = *site->loop;
  const Expr reversed = f.begin + f.begin + f.extent - Expr(1) - Expr(v);
  return replace_stmt(s, site->stmt.get(),
                      loop(v, f.extent, substitute(f.body, {{v.get(), reversed}}), f.kind, f.begin));
}

TEST(Dependence, IndependentLoopsRunBackwards) {
  int proved = 0, refuted = 0, missed = 0;
  for (uint64_t seed = 0; seed < 800; seed++) {
    Nests n(seed);
    const Stmt s = n.make();
    for (const Var& v : n.vars) {
      const auto site = find_loop(s, v);
      const bool same = run_nest(n, s) == run_nest(n, backwards(s, v));
      if (conflicts(site->stmt, v, site->ranges).empty()) {
        proved++;
        ASSERT_TRUE(same) << "seed " << seed << ", loop " << v->name << "\n" << to_text(s);
      } else {
        same ? missed++ : refuted++;
      }
    }
  }
  EXPECT_GT(proved, 200);
  EXPECT_LT(missed, proved);  // sound is not enough: what is independent has to be seen, too
  EXPECT_GT(refuted, 200);
}

TEST(Dependence, ReorderKeepsResults) {
  int taken = 0, refused = 0;
  for (uint64_t seed = 0; seed < 800; seed++) {
    Nests n(seed);
    const Stmt s = n.make();
    for (size_t i = 0; i < n.vars.size(); i++) {
      Schedule t(s, {.strict_fp = true});
      std::vector<Var> order = n.vars;
      std::swap(order[i], order[(i + 1) % order.size()]);
      if (!t.attempt([&](Schedule& x) { x.reorder(order); })) {
        refused++;
        continue;
      }
      taken++;
      ASSERT_EQ(run_nest(n, s), run_nest(n, t.body())) << "seed " << seed << "\n" << to_text(s) << to_text(t.body());
    }
  }
  EXPECT_GT(taken, 200);
  EXPECT_GT(refused, 200);
}

TEST(Dependence, PartsOfADividedIndex) {
  const Buffer y = make_buffer("y", DType::F32, {4, 5, 6});
  const Var f = make_var("f");
  const Expr i = floor_div(Expr(f), Expr(30)), j = floor_mod(floor_div(Expr(f), Expr(6)), Expr(5)),
             k = floor_mod(Expr(f), Expr(6));
  const Stmt whole = loop(f, 120, store(y, {i, j, k}, make_float(DType::F32, 1)));
  EXPECT_TRUE(conflicts(whole, f, {}).empty());
  const Stmt without_k = loop(f, 120, store(y, {i, j, 0}, make_float(DType::F32, 1)));
  EXPECT_FALSE(conflicts(without_k, f, {}).empty());
}

}  // namespace
}  // namespace tc::dependence_test
