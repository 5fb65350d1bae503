// Records as lines of JSON, torn files, and which of many is replayed.
#include "cli/tune/record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/process.h"
#include "cli/tune/replay.h"
#include "support/read_file.h"

namespace tc {
namespace {

const TuneSetting kHere{"x86-64-v3", "fast", "a \"processor\"", "cc 12", 1};

TuneRecord trial(const std::string& function, int64_t rows, double of_model, bool confirmed = true) {
  TuneRecord r;
  r.function = function;
  r.signature = "matmul";
  r.setting = kHere;
  r.plan = {{"contraction", {}}, {"tile", {{"rows", rows}, {"columns", 16}}}};
  r.baseline = "contraction(); tile(rows = 4, columns = 16)";
  r.state = "ok";
  r.ns = 1000 * of_model;
  r.of_model = of_model;
  r.confirmed = confirmed;
  return r;
}

TuneRecord failure(const std::string& function, int64_t rows, const std::string& state) {
  TuneRecord r = trial(function, rows, 0, false);
  r.state = state;
  r.reason = "max abs 3\n\"FAIL\" \xff";
  return r;
}

TEST(TuneRecords, AreReadAsTheyWereWritten) {
  const std::string text = record_line(trial("f", 4, 0.5)) + record_line(failure("f", 5, "wrong"));
  const RecordFile file = read_records(text);
  ASSERT_EQ(file.records.size(), 2u);
  EXPECT_EQ(file.left_out, 0u);
  EXPECT_EQ(record_line(file.records[0]), record_line(trial("f", 4, 0.5)));
  EXPECT_EQ(file.records[0].setting, kHere);
  EXPECT_EQ(plan_text(file.records[0].plan), "contraction(); tile(rows = 4, columns = 16)");
  EXPECT_EQ(file.records[1].state, "wrong");
  EXPECT_EQ(file.records[1].ns, 0);
}

TEST(TuneRecords, ASketchStandsBesideItsSteps) {
  TuneRecord r = trial("f", 4, 0.5);
  r.plan = {{"naive", {}}, {"split", {}, {}, {{"n"}, {int64_t(8)}}, {"n_o", "n_i"}}};
  r.sketch = {{"sketch", {{"n", 8}}}};
  const std::string text = record_line(r);
  const RecordFile file = read_records(text);
  ASSERT_EQ(file.records.size(), 1u);
  EXPECT_EQ(record_line(file.records[0]), text);
  EXPECT_EQ(plan_text(file.records[0].plan), "naive(); split(n, 8) as n_o, n_i");
  EXPECT_EQ(plan_text(file.records[0].sketch), "sketch(n = 8)");
}

TEST(TuneRecords, TornLinesAndOthersAreLeftOut) {
  const std::string good = record_line(trial("f", 4, 1));
  for (size_t length = 1; length + 1 < good.size(); length++) {
    const RecordFile file = read_records(good + good.substr(0, length));
    EXPECT_EQ(file.records.size(), 1u) << length;
    EXPECT_EQ(file.left_out, 1u) << length;
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    return read_records(line.replace(line.find(from), from.size(), to)).records.size();
  };
  EXPECT_EQ(with("\"ok\"", "\"fine\""), 0u);
  EXPECT_EQ(with("\"tc-emit\":1", "\"tc-emit\":2"), 0u);
  EXPECT_EQ(with("\"language\":", "\"language\":9"), 0u);
  EXPECT_EQ(with("\"of_model\":1.0", "\"of_model\":0"), 0u);
  EXPECT_EQ(with("\"of_model\":1.0", "\"of_model\":\"1\""), 0u);
  EXPECT_EQ(with("\"threads\":1", "\"threads\":0"), 0u);
  EXPECT_EQ(with("\"contraction()\"", "\"contraction(\""), 0u);
  EXPECT_EQ(with("\"contraction()\"", "\"x() schedule \\\"*\\\" y()\""), 0u);
  EXPECT_EQ(with("\"target\":\"c\"", "\"target\":\"opencl\""), 0u);
}

TEST(TuneRecords, AFileGoesOnBehindATornLine) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/r.jsonl";
  std::ofstream(path) << record_line(trial("f", 4, 1)) << "{\"tc-em";
  RecordWriter(path).add(trial("f", 5, 0.9));
  RecordWriter(path).add(trial("f", 6, 0.8));
  const RecordFile file = read_records(read_file(path));
  EXPECT_EQ(file.records.size(), 3u);
  EXPECT_EQ(file.left_out, 1u);
  EXPECT_THROW(RecordWriter(dir.path() + "/no/r.jsonl"), Error);
}

std::string best(const std::vector<TuneRecord>& records, int threads = 0) {
  std::string s;
  for (const FunctionPlan& p : best_plans(records, "x86-64-v3", "fast", threads)) {
    EXPECT_TRUE(p.recorded);
    s += p.function + to_text(p.lines.at(1).numbers.at(0).value) + " ";
  }
  return s;
}

TEST(TuneRecords, TheBestIsReplayed) {
  EXPECT_EQ(best({trial("f", 4, 1), trial("f", 5, 0.7), trial("f", 6, 0.8), trial("g", 4, 1)}), "f5 g4 ");
  EXPECT_EQ(best({trial("f", 4, 1), trial("f", 5, 0.7, false)}), "f4 ") << "what is not confirmed may have been luck";
  EXPECT_EQ(best({trial("f", 4, 1), failure("f", 5, "wrong"), failure("f", 6, "timeout")}), "f4 ");
  EXPECT_EQ(best({failure("f", 4, "crash")}), "");
}

TEST(TuneRecords, SettingsAreNotCompared) {
  TuneRecord other = trial("f", 9, 0.1), threads = trial("f", 8, 0.2), row = trial("f", 7, 0.3),
             newer = trial("f", 3, 0.9);
  other.setting.compiler = "cc 13";
  threads.setting.threads = 4;
  row.setting.cpu = "x86-64-v4";
  newer.baseline = "another plan of the model";
  const TuneRecord own = trial("f", 5, 0.6);
  EXPECT_EQ(best({own, other, threads, row}), "f5 ") << "the first setting decides";
  EXPECT_EQ(best({other, own}), "f9 ");
  EXPECT_EQ(best({own, threads}, 4), "f8 ");
  EXPECT_EQ(best({own, newer}), "f3 ") << "shares of another plan's time say nothing of this one";
}

}  // namespace
}  // namespace tc
