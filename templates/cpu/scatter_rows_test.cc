// Updates that are sorted by their rows give the bits of those that come in order: sums, extremes, positions of one and of two axes.
#include "ir/loop/visit.h"
#include "ir/ops/helpers.h"
#include "passes/analysis/nest.h"
#include "templates/cpu/test_schedule.h"

namespace tc::scatter_rows_test {
namespace {

// y = data, then for e: y[at[e], ..] = y[at[e], ..] op u[e, ..]; `places`: so many leading axes are positions.
testing::TestFunction scattered(const Dims& dims, int64_t count, size_t places, std::optional<Op> op,
                                DType type = DType::F32) {
  Dims row(dims.begin() + long(places), dims.end()), updates = row;
  updates.insert(updates.begin(), count);
  const Buffer data = make_buffer("data", type, to_shape(dims)),
               at = make_buffer("at", DType::I64, to_shape({count, int64_t(places)})),
               u = make_buffer("u", type, to_shape(updates)), y = make_buffer("y", type, to_shape(dims));
  testing::TestFunction f;
  f.fn.inputs = {data, at, u};
  f.fn.outputs = {y};
  Stage s;
  s.kind = Stage::Kind::Nest;
  s.outputs = {y};
  const Stmt copy = tc::for_each_index(dims, [&](const Exprs& i) { return store(y, i, load(data, i)); });
  s.nest = seq({copy, tc::for_each_index(updates, [&](const Exprs& i) {
                  Exprs to;
                  for (size_t d = 0; d < places; d++)
                    to.push_back(apply(Op::Index, {load(at, {i[0], Expr(int64_t(d))}), Expr(dims[d])}));
                  to.insert(to.end(), i.begin() + 1, i.end());
                  return store(y, to, load(u, i), op);
                })});
  f.fn.stages = {s};
  f.constant = {false, false, false};
  return f;
}

// Some rows have many updates, some none; every third position counts from the end.
Constant positions(const Dims& dims, int64_t count, size_t places) {
  MutableTensor t = new_tensor(DType::I64, {count, int64_t(places)});
  for (int64_t e = 0; e < count; e++)
    for (size_t d = 0; d < places; d++) {
      const int64_t n = dims[d], k = (e * e * 7 + e * int64_t(d + 3)) % n;
      t.as<int64_t>()[e * int64_t(places) + int64_t(d)] = e % 3 == 2 ? k - n : k;
    }
  return std::make_shared<const TensorData>(std::move(t.data));
}

void expect_sorted(const Dims& dims, int64_t count, size_t places, Op op, DType type = DType::F32) {
  const testing::TestFunction f = scattered(dims, count, places, op, type);
  const Constant data = testing::small_integers(dims, 3, type);
  const Constant updates = testing::small_integers(static_dims(f.fn.inputs[2]->shape), 5, type);
  for (const char* cpu : {"generic", "x86-64-v3", "x86-64-v4"})
    testing::expect_equal(f, "scatter_rows", cpu, {data, positions(dims, count, places), updates});
}

TEST(CpuScatterRows, SumsAndExtremes) {
  for (const Op op : {Op::Add, Op::Mul, Op::Max, Op::Min}) expect_sorted({150, 64}, 400, 1, op);
}

TEST(CpuScatterRows, RowsThatFillNoVectors) {
  expect_sorted({130, 71}, 257, 1, Op::Add);
  expect_sorted({90, 7, 5, 3}, 180, 1, Op::Add);
  expect_sorted({170, 50}, 170, 1, Op::Add);
}

TEST(CpuScatterRows, PositionsOfTwoAxes) {
  expect_sorted({13, 11, 64}, 500, 2, Op::Add);
  expect_sorted({3, 50, 6, 10}, 333, 2, Op::Max);
}

TEST(CpuScatterRows, IntegersToo) { expect_sorted({150, 64}, 400, 1, Op::Add, DType::I32); }

// 400 updates of rows of 256 elements; `value` is made of an update and of the row of `x` at the update's position, of which there are
// `count`. Inputs: data, rows of updates, updates, positions, x.
struct Messages {
  testing::TestFunction f = scattered({300, 256}, 400, 1, Op::Add);
  std::vector<Constant> in;

  Messages(int64_t count, const std::function<Expr(const Expr& e, const Expr& update, const Expr& other)>& value)
      : in{testing::small_integers({300, 256}, 3), positions({300}, 400, 1), testing::small_integers({400, 256}, 5),
           positions({60}, count, 1), testing::small_integers({60, 256}, 7)} {
    const Buffer from = make_buffer("from", DType::I64, to_shape({count, 1})),
                 x = make_buffer("x", DType::F32, to_shape({60, 256}));
    f.fn.stages[0].nest = rewrite(f.fn.stages[0].nest, [&](const Expr& u) -> Expr {
      const Load* l = as<Load>(u);
      if (!l || l->buffer->name != "u") return {};
      const Expr at = apply(Op::Index, {load(from, {l->index[0], Expr(0)}), Expr(60)});
      return value(l->index[0], u, load(x, {at, l->index[1]}));
    });
    f.fn.inputs.insert(f.fn.inputs.end(), {from, x});
    f.constant.insert(f.constant.end(), {false, false});
  }
};

// Messages from other rows, with a weight or as they are: where they come from is checked before threads share the rows.
TEST(CpuScatterRows, UpdatesFromPositions) {
  for (const bool weighted : {true, false}) {
    const Messages m(400, [&](const Expr&, const Expr& u, const Expr& other) { return weighted ? other * u : other; });
    for (const char* cpu : {"generic", "x86-64-v4"}) testing::expect_equal(m.f, "scatter_rows", cpu, m.in);
    const std::string text = to_text(schedule_cpu(m.f.fn, m.f.constant, *find_cpu("x86-64-v4")).body);
    EXPECT_NE(text.find("parallel"), std::string::npos) << text;
    EXPECT_EQ(text.find("order") != std::string::npos, weighted) << text;
  }
}

// Positions that only some updates have are looked at for no other one.
TEST(CpuScatterRows, PositionsBehindConditionsStayThere) {
  const Messages m(150, [](const Expr& e, const Expr& u, const Expr& other) { return select(e < 150, other, u); });
  testing::expect_equal(m.f, "scatter_rows", "x86-64-v4", m.in);
}

TEST(CpuScatterRows, ThreadsShareRows) {
  const testing::TestFunction f = scattered({300, 256}, 900, 1, Op::Add);
  const Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4"));
  EXPECT_EQ(s.family, "scatter_rows");
  EXPECT_NE(to_text(s.body).find("parallel"), std::string::npos) << to_text(s.body);
}

// The sums of a tile are whole vectors of the innermost axis; where rows have no such tile, results are read and written for each update.
TEST(CpuScatterRows, TilesStayInRegisters) {
  const auto tile = [](const Dims& dims) {
    const testing::TestFunction f = scattered(dims, 900, 1, Op::Add);
    const Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4"));
    EXPECT_EQ(s.family, "scatter_rows");
    Dims found;
    walk(s.body, [&](const Stmt& x) {
      const Alloc* k = as<Alloc>(x);
      if (k && k->buffer->scope == Scope::Register) found = static_dims(k->buffer->shape);
      return true;
    });
    return found;
  };
  EXPECT_EQ(tile({300, 64}), (Dims{1, 64}));
  EXPECT_EQ(tile({300, 96}), (Dims{1, 48}));
  EXPECT_EQ(tile({300, 100}), (Dims{1, 50})) << "four vectors, as for 64";
  EXPECT_EQ(tile({300, 1024}), (Dims{1, 64}));
  EXPECT_EQ(tile({300, 16, 16}), (Dims{1, 4, 16}));
  EXPECT_EQ(tile({300, 6, 24}), (Dims{1, 2, 24}));
  EXPECT_EQ(tile({300, 67}), Dims());
  EXPECT_EQ(tile({300, 40, 3}), Dims()) << "rows of three are no vectors";
  for (const Dims& dims :
       {Dims{150, 96}, Dims{150, 100}, Dims{80, 200}, Dims{90, 16, 16}, Dims{150, 6, 24}, Dims{60, 3, 8, 8}})
    expect_sorted(dims, 400, 1, Op::Add);
}

TEST(CpuScatterRows, LeavesOthersAlone) {
  const auto family = [](const testing::TestFunction& f) {
    return schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4")).family;
  };
  EXPECT_EQ(family(scattered({300, 256}, 900, 1, {})), "naive") << "the last one stays";
  EXPECT_EQ(family(scattered({300, 256}, 200, 1, Op::Add)), "naive") << "rows without updates";
  EXPECT_EQ(family(scattered({300, 40}, 900, 1, Op::Add)), "naive") << "short rows";
  EXPECT_EQ(family(scattered({30, 64}, 900, 1, Op::Add)), "naive") << "the first cache holds them";
}

// How many updates there are is an operand: 250 of 400, the others have positions that are out of range.
TEST(CpuScatterRows, AsManyUpdatesAsThereAre) {
  for (const bool inside : {false, true}) {
    testing::TestFunction f = scattered({150, 96}, 400, 1, Op::Add);
    const Buffer count = make_buffer("count", DType::I64, {});
    f.fn.stages[0].nest = rewrite(f.fn.stages[0].nest, {}, [&](const Stmt& s) -> Stmt {
      const For* loop = as<For>(s);
      if (!loop || !is_const(loop->extent, inside ? 96 : 400)) return {};
      const Store* update = as<Store>(loop->body);
      if (inside && !(update && update->reduce)) return {};
      const Expr e = inside ? as<Load>(as<Apply>(update->index[0])->args[0])->index[0] : Expr(loop->var);
      return with_body(*loop, if_then(e < load(count, {}), loop->body));
    });
    f.fn.inputs.push_back(count);
    f.constant.push_back(false);
    MutableTensor at = new_tensor(DType::I64, {400, 1}), many = new_tensor(DType::I64, {});
    for (int64_t e = 0; e < 400; e++) at.as<int64_t>()[e] = e < 250 ? e * 13 % 150 : 1000;
    many.as<int64_t>()[0] = 250;
    const auto taken = [](MutableTensor& t) { return std::make_shared<const TensorData>(std::move(t.data)); };
    testing::expect_equal(
        f, "scatter_rows", "x86-64-v4",
        {testing::small_integers({150, 96}, 3), taken(at), testing::small_integers({400, 96}, 5), taken(many)});
    ScheduleOptions open;  // a run may need the first rows only
    open.open_axes = {0};
    EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4"), open).family, "scatter_rows");
  }
}

}  // namespace
}  // namespace tc::scatter_rows_test
