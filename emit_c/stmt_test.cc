#include "emit_c/stmt.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::stmt_test {
namespace {

std::string printed(const Stmt& s) {
  SourceWriter out;
  Needs needs;
  StmtPrinter printer(out, needs, {});
  printer.print(s);
  return out.text();
}

// A loop around chunks tells them which iteration it is, and is no single statement then.
TEST(StmtPrinter, LoopsAroundChunksTellTheirNumber) {
  const Buffer y = make_buffer("y", DType::F32, {Dim(8)});
  const Var image = make_var("image"), i = make_var("i");
  Kernel k;
  k.body = loop(image, 2, loop(i, 4, store(y, {Expr(image) * 4 + i}, make_float(DType::F32, 1)), ForKind::Parallel));
  k.parts = {{i, {}, {image}}};
  SourceWriter out;
  Needs needs;
  StmtPrinter printer(out, needs, k);
  printer.part_call = "run({part}, {chunks});";
  printer.print(k.body);
  EXPECT_EQ(out.text(), "for (int image = 0; image < 2; image++) {\n  arguments.image = image;\n  run(part, 4);\n}\n");
}

// A byte gets 0 or 1 from an expression that strict compilers see to be one: isnan() is any int to them.
TEST(StmtPrinter, BytesOfConditionsAreZeroOrOne) {
  const Buffer y = make_buffer("y", DType::Bool, {Dim(4)}), x = make_buffer("x", DType::F32, {Dim(4)}),
               b = make_buffer("b", DType::Bool, {Dim(4)});
  const Expr nan = apply(Op::IsNan, {load(x, {0})}), inf = apply(Op::IsInf, {load(x, {1})});
  EXPECT_EQ(printed(store(y, {0}, nan)), "y[0] = (uint8_t)(isnan(x[0]) != 0);\n");
  EXPECT_EQ(printed(store(y, {0}, select(load(b, {0}), nan, inf))),
            "y[0] = (uint8_t)((b[0] ? isnan(x[0]) : isinf(x[1])) != 0);\n");
  EXPECT_EQ(printed(store(y, {0}, nan && inf)), "y[0] = isnan(x[0]) && isinf(x[1]);\n");
  EXPECT_EQ(printed(store(y, {0}, load(b, {1}))), "y[0] = b[1];\n");
}

// Vectors of halves are f32 in registers: a half that is copied, and one that all lanes share, is widened.
TEST(StmtPrinter, VectorsOfHalvesAreRoundedByTheirStore) {
  for (const DType t : {DType::F16, DType::BF16}) {
    const std::string name(info(t).name);
    const Buffer y = make_buffer("y", t, {Dim(64)}), x = make_buffer("x", t, {Dim(64)});
    const Buffer f = make_buffer("f", DType::F32, {Dim(64)});
    const auto lanes = [](const Buffer& b) { return load(b, {ramp(0)}); };
    const auto stored = [&](const Expr& value) { return printed(store(y, {ramp(0)}, value)); };
    EXPECT_EQ(stored(cast(t, lanes(f))), "tc_store_" + name + "(y, tc_load(f));\n");
    EXPECT_EQ(stored(lanes(x)), "tc_store_" + name + "(y, tc_load_" + name + "(x));\n");
    EXPECT_EQ(stored(broadcast(load(x, {3}))), "tc_store_" + name + "(y, tc_set(tc_f32_from_" + name + "(x[3])));\n");
  }
}

// What checks a position is evaluated though nobody reads it; a name for it would be one that compilers warn of.
TEST(StmtPrinter, ChecksThatNobodyReadsAreStatements) {
  const Buffer y = make_buffer("y", DType::F32, {Dim(4)}), n = make_buffer("n", DType::I64, {Dim(4)});
  const Expr checked = apply(Op::Index, {load(n, {0}), Expr(4)});
  const auto unread = [&](const Expr& value) {
    return printed(let(make_var("picked"), value, store(y, {0}, make_float(DType::F32, 1))));
  };
  EXPECT_EQ(unread(checked), "(void)tc_index(n[0], 4, status);\ny[0] = 1.0f;\n");
  EXPECT_EQ(unread(select(load(n, {1}) > Expr(0), checked, Expr(0))),
            "(void)(n[1] > 0 ? tc_index(n[0], 4, status) : 0);\ny[0] = 1.0f;\n");
}

// A chain of comparisons is not what it looks like in C: compilers warn of one without parentheses.
TEST(StmtPrinter, ComparisonsOfComparisonsStandInParentheses) {
  const Buffer y = make_buffer("y", DType::Bool, {Dim(4)}), b = make_buffer("b", DType::Bool, {Dim(4)});
  const auto ne = [](const Expr& l, const Expr& r) { return apply(Op::Ne, {l, r}); };
  EXPECT_EQ(printed(store(y, {0}, ne(ne(load(b, {0}), load(b, {1})), load(b, {2})))),
            "y[0] = (b[0] != b[1]) != b[2];\n");
  EXPECT_EQ(printed(store(y, {0}, ne(load(b, {0}), ne(load(b, {1}), load(b, {2}))))),
            "y[0] = b[0] != (b[1] != b[2]);\n");
  EXPECT_EQ(printed(store(y, {0}, ne(apply(Op::Not, {load(b, {0})}), load(b, {1})))), "y[0] = (!b[0]) != b[1];\n");
  EXPECT_EQ(printed(store(y, {0}, ne(load(b, {0}), apply(Op::Not, {load(b, {1})})))), "y[0] = b[0] != !b[1];\n");
  EXPECT_EQ(printed(store(y, {0}, (load(b, {0}) && load(b, {1})) && load(b, {2}))), "y[0] = b[0] && b[1] && b[2];\n");
}

// Vectors of doubles are structures: calls where floats have operators, and one for a product that is added.
TEST(StmtPrinter, VectorsOfDoublesAreCalls) {
  const Buffer y = make_buffer("y", DType::F64, {Dim(64)}), x = make_buffer("x", DType::F64, {Dim(64)});
  const Expr v = load(x, {ramp(0)}), two = broadcast(make_float(DType::F64, 2));
  EXPECT_EQ(printed(store(y, {ramp(0)}, v + two)), "tc_store_f64(y, tc_dadd(tc_load_f64(x), tc_dset(2.0)));\n");
  EXPECT_EQ(printed(store(y, {ramp(0)}, two - v * v)),
            "tc_store_f64(y, tc_dsub(tc_dset(2.0), tc_dmul(tc_load_f64(x), tc_load_f64(x))));\n");
  EXPECT_EQ(printed(store(y, {ramp(0)}, two + v * v)),
            "tc_store_f64(y, tc_dmuladd(tc_load_f64(x), tc_load_f64(x), tc_dset(2.0)));\n");
  EXPECT_EQ(printed(store(y, {ramp(0)}, max(v, two))), "tc_store_f64(y, tc_dmax(tc_load_f64(x), tc_dset(2.0)));\n");
  EXPECT_EQ(printed(store(y, {ramp(0)}, max(v, load(y, {ramp(16)})), {}, Expr(3))),
            "tc_store_f64_n(y, tc_dmax2(tc_load_f64(x), tc_load_f64(y + 16)), 3);\n");
  EXPECT_EQ(printed(store(y, {ramp(0)}, v, Op::Add)), "tc_store_f64(y, tc_dadd(tc_load_f64(y), tc_load_f64(x)));\n");
}

}  // namespace
}  // namespace tc::stmt_test
