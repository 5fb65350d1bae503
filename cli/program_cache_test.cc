#include "cli/program_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/process.h"
#include "support/error.h"

namespace tc::program_cache_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream f(path);
  return std::string(std::istreambuf_iterator<char>(f), {});
}

std::function<std::string(const std::string&)> writes(const std::string& text, int& times) {
  return [text, &times](const std::string& dir) {
    times++;
    std::ofstream(dir + "/program") << text;
    return dir + "/program";
  };
}

TEST(ProgramCache, BuildsOnce) {
  const TemporaryDir dir;
  const ProgramCache cache(dir.path() + "/a/b", 1000);
  int times = 0;
  EXPECT_EQ(text_of(cache.get("k", writes("one", times))), "one");
  EXPECT_EQ(text_of(cache.get("k", writes("two", times))), "one");
  EXPECT_EQ(text_of(cache.get("l", writes("three", times))), "three");
  EXPECT_EQ(times, 2);
}

TEST(ProgramCache, AFailedBuildLeavesNothing) {
  const TemporaryDir dir;
  const ProgramCache cache(dir.path(), 1000);
  EXPECT_THROW(cache.get("k", [](const std::string&) -> std::string { throw Error("TC0701", ExitCode::Tool, "no"); }),
               Error);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(ProgramCache, DropsWhatWasNotUsedForLongest) {
  const TemporaryDir dir;
  const ProgramCache cache(dir.path(), 8);
  int times = 0;
  const auto age = [&](const std::string& path, int minutes) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  };
  age(cache.get("old", writes("1234", times)), 30);
  age(cache.get("older", writes("1234", times)), 60);
  cache.get("old", writes("", times));  // used again
  age(dir.path() + "/old", 20);
  cache.get("new", writes("1234", times));
  EXPECT_TRUE(fs::exists(dir.path() + "/old"));
  EXPECT_FALSE(fs::exists(dir.path() + "/older"));
  EXPECT_TRUE(fs::exists(dir.path() + "/new"));
}

TEST(ProgramCache, WhatIsInUseStays) {
  const TemporaryDir dir;
  const ProgramCache cache(dir.path(), 4);
  int times = 0;
  const std::string a = cache.get("a", writes("1234", times)), b = cache.get("b", writes("1234", times));
  EXPECT_TRUE(fs::exists(a));
  EXPECT_TRUE(fs::exists(b));
}

TEST(ProgramCache, SeveralAtOnce) {
  const TemporaryDir dir;
  const ProgramCache cache(dir.path(), 1 << 20);
  std::vector<std::thread> threads;
  std::vector<std::string> texts(8);
  for (size_t i = 0; i < texts.size(); i++)
    threads.emplace_back([&, i] {
      int times = 0;
      texts[i] = text_of(cache.get("k", writes(std::string(100000, 'x'), times)));
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& t : texts) EXPECT_EQ(t.size(), 100000u);
}

TEST(ProgramCache, SaysThatItCannotBeWritten) {
  try {
    int times = 0;
    ProgramCache("/proc/none", 4).get("k", writes("", times));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().code, "TC0601");
  }
}

}  // namespace
}  // namespace tc::program_cache_test
