// The kept corpus of the fuzz targets, without a fuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "generated_tests/fuzz/targets.h"

namespace tc::fuzz::replay_test {
namespace {

void replay(const char* name, void (*target)(const uint8_t*, size_t)) {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TC_SOURCE_DIR) + "/generated_tests/fuzz/corpus/" + name)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    SCOPED_TRACE(entry.path().filename().string());
    target(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    files++;
  }
  EXPECT_GT(files, 5u);
}

TEST(FuzzCorpus, ImportBytes) { replay("import_bytes", import_bytes); }
TEST(FuzzCorpus, EmitNames) { replay("emit_names", emit_names); }

TEST(FuzzCorpus, ReadLanguage) { replay("read_language", read_language); }
TEST(FuzzCorpus, ReadGraph) { replay("read_graph", read_graph); }

TEST(FuzzCorpus, ChangedFieldsKeepTheEncoding) {
  const std::string message = "\x0a\x04\x08\x01\x10\x02\x12\x02hi";
  size_t other = 0;
  for (uint32_t seed = 0; seed < 200; seed++) {
    std::string buffer = message + std::string(100, '\0');
    const size_t size = change_field(reinterpret_cast<uint8_t*>(buffer.data()), message.size(), buffer.size(), seed);
    ASSERT_LE(size, buffer.size());
    other += buffer.substr(0, size) != message;
  }
  EXPECT_GT(other, 100u);
}

}  // namespace
}  // namespace tc::fuzz::replay_test
