// The table of instructions: every row can be built, verified, read as assignments and printed where it says so.
#include "ir/loop/instruction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "emit_cuda/device_stmt.h"
#include "ir/loop/build.h"
#include "ir/loop/expand_intrin.h"
#include "ir/loop/max_lanes.h"
#include "ir/verify.h"
#include "support/error.h"

namespace tc::instruction_test {
namespace {

IntrinOperand example_of(const InstructionOperand& o, bool of_tiles) {
  const DType type = o.types.empty() ? DType::F32 : o.types.back();
  auto in = [&](const Shape& shape, Scope scope, const Exprs& index) {
    return IntrinOperand{make_buffer(std::string(o.name), type, shape, scope), index};
  };
  switch (o.form) {
    case OperandForm::Memory:
      return of_tiles ? in({Dim(64), Dim(64)}, Scope::Shared, {0, 0}) : in({Dim(1024)}, Scope::Global, {0});
    case OperandForm::Registers: return in({Dim(16)}, Scope::Register, {});
    case OperandForm::Scalar: return in({}, Scope::Register, {});
    case OperandForm::Vector: return in({Dim(kMaxLanes)}, Scope::Register, {});
    case OperandForm::Rows: return in({Dim(kMaxLanes), Dim(kMaxLanes)}, Scope::Register, {0});
    case OperandForm::Tile: break;
  }
  return in({Dim(kTileRows), Dim(kTileColumns)}, Scope::Fragment, {});
}

// A call whose sizes are `n`.
Stmt example_of(const Instruction& row, int64_t n) {
  std::vector<IntrinOperand> operands;
  for (const InstructionOperand& o : row.operands)
    operands.push_back(example_of(o, std::holds_alternative<TileOperation>(row.meaning)));
  Exprs scalars;
  for (size_t i = 0; i < row.scalars.size(); i++) {
    const bool shifts = std::any_of(row.operands.begin(), row.operands.end(),
                                    [&](const InstructionOperand& o) { return o.offset == int(i); });
    if (row.scalars[i].is_data)
      scalars.push_back(row.async == AsyncCopy::Copy ? make_const(DType::Bool, 1) : make_float(DType::F32, 1));
    else
      scalars.push_back(shifts ? 0 : Expr(n));
  }
  return intrin(row.name, operands, scalars);
}

std::vector<Buffer> buffers_of(const Stmt& s) { return as<Intrin>(s)->buffers; }

TEST(Instructions, EveryRowIsSound) {
  std::set<std::string> names;
  for (const Instruction& row : instructions()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const Stmt s = example_of(row, 4);
    EXPECT_NO_THROW(verify(s, buffers_of(s))) << row.name;
    const bool on_tiles = std::holds_alternative<TileOperation>(row.meaning);
    EXPECT_EQ(int(on_tiles) + int(!row.c.empty()) + int(!row.cuda.empty()), 1) << row.name;
    if (on_tiles || std::holds_alternative<Assignments>(row.meaning)) {
      EXPECT_NO_THROW(expand_intrin(*as<Intrin>(s))) << row.name;
    } else {
      EXPECT_NE(row.collective, Collective::No) << row.name;
    }
  }
}

TEST(Instructions, EveryTextNamesAllOfTheCall) {
  const DeviceFunction f;
  for (const Instruction& row : instructions())
    for (const int64_t n : {2, 4, 8, 32}) {
      SourceWriter c, cuda;
      Needs needs;
      const Stmt s = example_of(row, n);
      if (!row.c.empty()) {
        StmtPrinter(c, needs, {}).print(s);
      } else {
        EXPECT_THROW(StmtPrinter(c, needs, {}).print(s), InternalError) << row.name;
      }
      if (!row.cuda.empty()) DeviceStmtPrinter(cuda, needs, {}, f).print(s);
      const std::string text = c.text() + cuda.text();
      EXPECT_EQ(text.find('{'), std::string::npos) << text;
      if (std::holds_alternative<TileOperation>(row.meaning)) continue;
      EXPECT_NE(text.find("tc_"), std::string::npos) << row.name;
      for (const InstructionOperand& o : row.operands) EXPECT_NE(text.find(o.name), std::string::npos) << text;
    }
}

// Lanes of vectors are counted from the first scalar on; rows of tiles are those of products of warp groups.
TEST(Instructions, WhereOperandsBegin) {
  for (const Instruction& row : instructions())
    for (const InstructionOperand& o : row.operands) {
      const bool has_first = !row.scalars.empty() && row.scalars[0].name == "first" && row.name != "load_strided";
      if (o.form == OperandForm::Vector) {
        EXPECT_EQ(o.offset, has_first ? 0 : -1) << row.name;
      }
      const bool in_rows = std::holds_alternative<GroupMatrixInstruction>(row.meaning) && o.form == OperandForm::Memory;
      EXPECT_EQ(o.rows > 1, in_rows) << row.name;
    }
}

TEST(Instructions, WhatNoRowSaysIsRefused) {
  const Buffer x = make_buffer("x", DType::F32, {Dim(64)}), r = make_buffer("r", DType::F32, {Dim(4)}, Scope::Register);
  EXPECT_THROW(intrin("load3", {{r, {}}, {x, {0}}}), InternalError);
  const Stmt load4 = intrin("load4", {{r, {}}, {x, {0}}});
  EXPECT_NO_THROW(verify(load4, {x, r}));
  EXPECT_TRUE(writes_operand(*as<Intrin>(load4), 0) && !reads_operand(*as<Intrin>(load4), 0));
  EXPECT_THROW(verify(intrin("load4", {{r, {}}}), {r}), InternalError);
  EXPECT_THROW(verify(intrin("load4", {{r, {}}, {x, {0}}}, {1}), {x, r}), InternalError);
  EXPECT_THROW(verify(intrin("round_tf32_x4", {{r, {}}}), {r}), InternalError);  // on words
  EXPECT_FALSE(find_instruction("") || matrix_instruction(DType::F16, DType::F32));
}

}  // namespace
}  // namespace tc::instruction_test
