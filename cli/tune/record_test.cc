// Records as lines of JSON, torn files, and which of many is replayed.
#include "cli/tune/record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/process.h"
#include "cli/tune/replay.h"
#include "support/read_file.h"

namespace tc::record_test {
namespace {

const TuneSetting kHere{"x86-64-v3", "fast", "a \"processor\"", "cc 12", 1};

TuneRecord trial(const std::string& function, int64_t rows, double of_model, bool confirmed = true) {
  TuneRecord r;
  r.function = std::string(16, function[0]);
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
  EXPECT_TRUE(file.left_out.empty());
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
    ASSERT_EQ(file.left_out.size(), 1u) << length;
    EXPECT_EQ(file.left_out[0].line, 2u);
  }
}

TEST(TuneRecords, WhatIsNoneSaysWhy) {
  const std::string good = record_line(trial("f", 4, 1));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    RecordFile file;
    read_records("\n" + line.replace(line.find(from), from.size(), to), "r.jsonl", file);
    EXPECT_TRUE(file.records.empty());
    if (file.left_out.size() != 1) return std::string("read");
    EXPECT_EQ(file.left_out[0].line, 2u);
    EXPECT_EQ(file.left_out[0].file, "r.jsonl");
    return file.left_out[0].reason;
  };
  EXPECT_EQ(with("{", "["), "it is no object of JSON: torn, or of something else");
  EXPECT_EQ(with("\"ok\"", "\"fine\""), "its state is none that a trial ends in");
  EXPECT_EQ(with("\"tc-emit\":1", "\"tc-emit\":2"), "it is of version 2 of the format, not of 1");
  EXPECT_EQ(with("\"language\":", "\"language\":9").substr(0, 17), "it is of version ");
  EXPECT_EQ(with("\"of_model\":1.0", "\"of_model\":0"), "its times are none");
  EXPECT_EQ(with("\"of_model\":1.0", "\"of_model\":\"1\""), "a field is missing, or of another type");
  EXPECT_EQ(with("\"signature\"", "\"name\""), "a field is missing, or of another type");
  EXPECT_EQ(with("\"threads\":1", "\"threads\":0"), "it has no threads");
  EXPECT_EQ(with("\"target\":\"c\"", "\"target\":\"opencl\""), "its target is neither c nor cuda");
  EXPECT_EQ(with("ffffffffffffffff", "fff"), "its function is no hash of 16 digits");
  EXPECT_EQ(with("\"contraction()\"", "\"contraction(\"").substr(0, 23), "its plan is no schedule");
  EXPECT_EQ(with("\"contraction()\"", "\"x() schedule \\\"*\\\" y()\"").substr(0, 23), "its plan is no schedule");
  EXPECT_EQ(with("\"contraction()\"", "\"contraction() */ system(0); /*\"").substr(0, 23), "its plan is no schedule");
}

TEST(TuneRecords, DefinitionsHaveTheirHashes) {
  const FunctionDefinition d{"fn f(x: f32[4]) { y = x }\n", "k-"};
  std::string line = definition_line(d);
  RecordFile file = read_records(line + line);
  ASSERT_EQ(file.definitions.size(), 1u);
  EXPECT_EQ(file.definitions.at(d.hash()).text, d.text);
  EXPECT_TRUE(file.records.empty() && file.left_out.empty());
  line.replace(line.find("f32[4]"), 6, "f32[5]");
  file = read_records(line);
  EXPECT_TRUE(file.definitions.empty());
  ASSERT_EQ(file.left_out.size(), 1u);
  EXPECT_EQ(file.left_out[0].reason.substr(0, 34), "its function is not what it define");
}

TEST(TuneRecords, FoldersAreTheirFilesByName) {
  const TemporaryDir dir;
  std::ofstream(dir.path() + "/b.jsonl") << record_line(trial("b", 4, 1)) << "torn";
  std::ofstream(dir.path() + "/a.jsonl") << record_line(trial("a", 4, 1));
  std::ofstream(dir.path() + "/notes.txt") << "no records";
  const RecordFile file = read_record_files({dir.path()});
  ASSERT_EQ(file.records.size(), 2u);
  EXPECT_EQ(file.records[0].function[0], 'a');
  ASSERT_EQ(file.left_out.size(), 1u);
  EXPECT_EQ(file.left_out[0].file, dir.path() + "/b.jsonl");
  EXPECT_EQ(record_paths({dir.path(), "c"}).size(), 3u);
  EXPECT_THROW(read_record_files({dir.path() + "/none.jsonl"}), Error);
}

TEST(TuneRecords, AFileGoesOnBehindATornLine) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/r.jsonl";
  std::ofstream(path) << record_line(trial("f", 4, 1)) << "{\"tc-em";
  RecordWriter(path).add(trial("f", 5, 0.9));
  RecordWriter(path).add(trial("f", 6, 0.8));
  const RecordFile file = read_records(read_file(path));
  EXPECT_EQ(file.records.size(), 3u);
  EXPECT_EQ(file.left_out.size(), 1u);
  EXPECT_THROW(RecordWriter(dir.path() + "/no/r.jsonl"), Error);
}

std::string best(const std::vector<TuneRecord>& records, int threads = 0) {
  std::string s;
  for (const FunctionPlan& p : best_plans(records, "x86-64-v3", "fast", threads)) {
    EXPECT_TRUE(p.recorded);
    s += p.function.substr(0, 1) + to_text(p.lines.at(1).numbers.at(0).value) + " ";
  }
  return s;
}

TEST(TuneRecords, TheBestIsReplayed) {
  EXPECT_EQ(best({trial("f", 4, 1), trial("f", 5, 0.7), trial("f", 6, 0.8), trial("e", 4, 1)}), "f5 e4 ");
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
}  // namespace tc::record_test
