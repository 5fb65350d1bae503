// What rows say of their operators (OpTrait, neutral) is so: by the formula of each row that says it.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ir/ops/test_ops.h"

namespace tc::traits_test {
namespace {

std::vector<const OpRow*> rows_with(OpTrait t) {
  std::vector<const OpRow*> rows;
  for (const OpRow* row : all_ops())
    if (std::find(row->traits.begin(), row->traits.end(), t) != row->traits.end()) rows.push_back(row);
  EXPECT_FALSE(rows.empty());
  return rows;
}

Constant list(const std::vector<double>& v) { return tensor_of(DType::I64, {int64_t(v.size())}, v); }

// The operator on `x`, with the parameters that it cannot do without.
OpRun on(const OpRow& row, const Constant& x, const std::vector<Constant>& others = {}) {
  OpRun r{std::string(row.name), {x}};
  r.domain = row.domain;
  r.inputs.insert(r.inputs.end(), others.begin(), others.end());
  if (r.op == "Where") r.inputs.insert(r.inputs.begin(), random_tensor(DType::Bool, x->dims, 3));
  if (r.op == "Cast" || r.op == "RandomNormalLike" || r.op == "RandomUniformLike")
    r.attrs[r.op == "Cast" ? "to" : "dtype"] = int64_t(DType::F32);
  if (r.op.starts_with("Random") || r.op == "Bernoulli") r.attrs["seed"] = 1.0f;
  if (r.op == "CastLike") r.inputs.push_back(random_tensor(DType::F32, {1}, 1));
  if (r.op == "BitShift") r.attrs["direction"] = std::string("LEFT");
  if (r.op == "Reshape") r.inputs.push_back(list({-1}));
  if (r.op == "Unsqueeze") r.inputs.push_back(list({1}));
  if (r.op == "Slice") r.inputs.insert(r.inputs.end(), {list({1}), list({double(x->dims[0])})});
  if (r.op == "MaxPool") r.attrs["kernel_shape"] = std::vector<int64_t>{2};
  return r;
}

// Of the first of these types that the operator takes.
std::vector<Constant> result_of(const OpRow& row, const std::function<OpRun(DType t)>& made) {
  std::string why;
  for (const DType t : {DType::F32, DType::I64, DType::U32, DType::Bool}) {
    const OpRun r = made(t);
    why = op_error(r);
    if (why.empty()) return run_op(r);
  }
  ADD_FAILURE() << row.name << ": " << why;
  return {};
}

bool same_bytes(const Constant& a, const Constant& b) {
  return a->dtype == b->dtype && a->num_bytes == b->num_bytes &&
         std::equal(a->bytes.get(), a->bytes.get() + a->num_bytes, b->bytes.get());
}

TEST(OpTraits, OperandsBroadcast) {
  for (const OpRow* row : rows_with(OpTrait::Broadcasts)) {
    const bool one_way = row->name == "PRelu";
    const auto y = result_of(*row, [&](DType t) {
      return on(*row, random_tensor(t, one_way ? Dims{2, 4, 3} : Dims{2, 1, 3}, 1), {random_tensor(t, {4, 1}, 2, 3)});
    });
    ASSERT_EQ(y.size(), 1u);
    EXPECT_EQ(y[0]->dims, (Dims{2, 4, 3})) << row->name;
  }
}

TEST(OpTraits, OperandsChangePlaces) {
  for (const OpRow* row : rows_with(OpTrait::Commutes)) {
    auto either = [&](int first) {
      return result_of(*row, [&](DType t) {
        return on(*row, random_tensor(t, {2, 5}, first), {random_tensor(t, {2, 5}, 3 - first)});
      });
    };
    EXPECT_TRUE(same_bytes(either(1).at(0), either(2).at(0))) << row->name;
  }
}

TEST(OpTraits, ResultsHaveTheSizesOfTheOperand) {
  for (const OpTrait t : {OpTrait::SameSizes, OpTrait::Activation})
    for (const OpRow* row : rows_with(t))
      EXPECT_EQ(result_of(*row,
                          [&](DType type) {
                            return on(*row, random_tensor(type, {2, 5}, 1, 1, false));
                          })
                    .at(0)
                    ->dims,
                (Dims{2, 5}))
          << row->name;
}

// Elements in another order give results in that order.
TEST(OpTraits, ActivationsAreOfSingleElements) {
  for (const OpRow* row : rows_with(OpTrait::Activation)) {
    std::vector<double> v = {-3, -0.5, 0, 0.25, 2, 7}, turned(v.rbegin(), v.rend());
    const Constant y = run_op(on(*row, tensor_of(DType::F32, {6}, v))).at(0);
    const Constant z = run_op(on(*row, tensor_of(DType::F32, {6}, turned))).at(0);
    for (int64_t i = 0; i < 6; i++) EXPECT_EQ(y->as_double(i), z->as_double(5 - i)) << row->name;
  }
}

TEST(OpTraits, ElementsKeepTheirOrder) {
  const Constant x = random_tensor(DType::F32, {3, 1, 4}, 1);
  for (const OpRow* row : rows_with(OpTrait::KeepsElements))
    EXPECT_TRUE(same_bytes(run_op(on(*row, x)).at(0), x)) << row->name;
}

TEST(OpTraits, ElementsAreChosen) {
  const Constant x = tensor_of(DType::F32, {3, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (const OpRow* row : rows_with(OpTrait::Chooses)) {
    const Constant y = run_op(on(*row, x)).at(0);
    EXPECT_GT(y->size(), 0);
    for (int64_t i = 0; i < y->size(); i++) {
      const double v = y->as_double(i);
      EXPECT_TRUE(v >= 1 && v <= 12 && v == double(int64_t(v))) << row->name << ": " << v;
    }
  }
}

TEST(OpTraits, WhatIsBehindChangesNothing) {
  for (const OpRow* row : rows_with(OpTrait::PlacesFromFront)) {
    auto first = [&](int64_t rows) {
      return run_op(on(*row, tensor_of(DType::F32, {rows, 4}, std::vector<double>(size_t(rows) * 4, 0.5)))).at(0);
    };
    const Constant few = first(3), many = first(6);
    ASSERT_LT(few->num_bytes, many->num_bytes);
    EXPECT_TRUE(std::equal(few->bytes.get(), few->bytes.get() + few->num_bytes, many->bytes.get())) << row->name;
  }
}

TEST(OpTraits, NeutralElementsChangeNoResult) {
  const std::map<std::string_view, double> value = {{"zero", 0},
                                                    {"one", 1},
                                                    {"lowest", -std::numeric_limits<double>::infinity()},
                                                    {"highest", std::numeric_limits<double>::infinity()}};
  int seen = 0;
  for (const OpRow* row : all_ops()) {
    if (row->neutral.empty()) continue;
    const Constant x = tensor_of(DType::F32, {3}, {2, 5, 3}),
                   more = tensor_of(DType::F32, {5}, {2, 5, 3, value.at(row->neutral), value.at(row->neutral)});
    EXPECT_TRUE(same_bytes(run_op(on(*row, x)).at(0), run_op(on(*row, more)).at(0))) << row->name;
    seen++;
  }
  EXPECT_GE(seen, 12);
}

}  // namespace
}  // namespace tc::traits_test
