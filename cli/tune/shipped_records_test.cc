// tune/records/: what --records default has can be read, and the templates take it as it stands there.
#include "cli/tune/shipped_records.h"

#include <gtest/gtest.h>

#include "cli/tune/replay.h"
#include "cli/tune/space.h"
#include "ir/language/function_text.h"
#include "templates/cpu/backend.h"

namespace tc::shipped_records_test {
namespace {

std::vector<bool> flags_of(const std::string& known) {
  std::vector<bool> flags;
  for (const char k : known) flags.push_back(k == 'k');
  return flags;
}

// The function that a definition is the text of.
TensorFn function_of(const FunctionDefinition& d) {
  language::Problems problems;
  std::optional<TensorFn> fn = language::parse_function(d.text, problems);
  EXPECT_TRUE(fn) << d.text;
  if (!fn) return {};
  EXPECT_EQ(definition_of(*fn, flags_of(d.known)).hash(), d.hash()) << "the text says all of it";
  return std::move(*fn);
}

class ShippedRecords : public ::testing::TestWithParam<SupportFile> {};

TEST_P(ShippedRecords, SayWhatTheyAreOf) {
  RecordFile file;
  read_records(GetParam().text, std::string(GetParam().name), file);
  for (const LineLeftOut& l : file.left_out) ADD_FAILURE() << l.file << ":" << l.line << ": " << l.reason;
  EXPECT_FALSE(file.records.empty());
  for (const TuneRecord& r : file.records) {
    EXPECT_EQ(file.definitions.count(r.function), 1u) << r.signature;
    EXPECT_TRUE(r.state == "ok" && r.confirmed) << r.signature << ": tc-emit records --prune leaves these out";
    EXPECT_EQ(r.setting.cpu + ".jsonl", GetParam().name);
  }
}

// A plan that the templates take no more is left to the model, with a warning; it does not belong here.
TEST_P(ShippedRecords, AreTakenByTheTemplates) {
  RecordFile file;
  read_records(GetParam().text, std::string(GetParam().name), file);
  ASSERT_FALSE(file.records.empty());
  const TuneSetting& setting = file.records[0].setting;
  ASSERT_EQ(setting.target, "c");
  const CpuBackend backend(*find_cpu(setting.cpu));
  for (const FunctionPlan& p : best_plans(file.records, setting.cpu, setting.fp, 0)) {
    const FunctionDefinition& d = file.definitions.at(p.function);
    const PlanSpace space(function_of(d), flags_of(d.known), backend, {.strict_fp = setting.fp == "strict"}, 1);
    EXPECT_TRUE(space.point(p.lines)) << p.function << ": " << plan_text(p.lines) << "\n" << d.text;
  }
}

std::string name_of(const ::testing::TestParamInfo<SupportFile>& file) {
  return std::string(file.param.name.substr(0, file.param.name.find('.')));
}

INSTANTIATE_TEST_SUITE_P(Files, ShippedRecords, ::testing::ValuesIn(shipped_records()), name_of);

}  // namespace
}  // namespace tc::shipped_records_test
