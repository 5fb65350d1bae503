#include "templates/cuda/spread_rows.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "templates/cuda/template.h"

namespace tc::spread_rows_test {
namespace {

// y[h, at + row, j] = x[h, row, j] for each of n rows, at most 8, with a thread for each of 4 heads.
struct Case {
  int64_t size;
  Buffer x, y, n = make_buffer("n", DType::I64, {}), at = make_buffer("at", DType::I64, {});
  Var h = make_var("h"), row = make_var("row"), j = make_var("j"), start = make_var("start");

  explicit Case(int64_t size)
      : size(size), x(make_buffer("x", DType::F32, {4, 8, size})), y(make_buffer("y", DType::F32, {4, 20, size})) {}

  Stmt rows(const Expr& to) const {
    const Expr count = min(load(n, {}), Expr(8));
    const Stmt element = store(y, {Expr(h), to, Expr(j)}, load(x, {Expr(h), Expr(row), Expr(j)}));
    return let(start, load(at, {}), loop(row, count, loop(j, size, element, ForKind::Vector)));
  }
  Scheduled with(const Stmt& body, const std::string& replaced = "past") const {
    Scheduled s;
    s.inputs = {x, n, at};
    s.input_index = {0, 1, 2};
    s.outputs = {y};
    s.body = body;
    s.replaced = replaced;
    return s;
  }
  std::string spread(const Stmt& body, const std::string& replaced = "past") const {
    return to_text(spread_rows(with(body, replaced)).body);
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(SpreadRows, ElementsOfRowsHaveThreads) {
  const Case c(16);
  const std::string s = c.spread(thread_per_point({{c.h, Dim(4)}}, c.rows(Expr(c.start) + Expr(c.row))));
  EXPECT_TRUE(has(s, "block.x block in 0 .. +2")) << s;  // 4 * 8 * 16 points
  EXPECT_TRUE(has(s, "if lane < min(n[], 8)")) << s;
  EXPECT_FALSE(has(s, "row")) << s;
}

TEST(SpreadRows, LongRowsTakeTurns) {
  const Case c(5000);
  const std::string s = c.spread(thread_per_point({{c.h, Dim(4)}}, c.rows(Expr(c.start) + Expr(c.row))));
  EXPECT_TRUE(has(s, "turn")) << s;
  EXPECT_TRUE(has(c.spread(c.rows(Expr(c.start) + Expr(c.row))), "lane")) << s;  // without heads
}

TEST(SpreadRows, OthersStayAsTheyAre) {
  const Case c(16);
  const auto unchanged = [&](const Stmt& body, const std::string& replaced) {
    return c.spread(body, replaced) == to_text(body);
  };
  const Stmt good = thread_per_point({{c.h, Dim(4)}}, c.rows(Expr(c.start) + Expr(c.row)));
  EXPECT_FALSE(unchanged(good, "past"));
  EXPECT_TRUE(unchanged(good, ""));  // nothing is replaced
  // The last row wins.
  EXPECT_TRUE(unchanged(thread_per_point({{c.h, Dim(4)}}, c.rows(c.start)), "past"));
  // As many rows as there is no bound for.
  const Stmt element = store(c.y, {0, Expr(c.row), 0}, load(c.x, {0, Expr(c.row), 0}));
  EXPECT_TRUE(unchanged(loop(c.row, load(c.n, {}), element), "past"));
}

}  // namespace
}  // namespace tc::spread_rows_test
