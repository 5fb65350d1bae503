#include "support/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tc::json_text_test {
namespace {

TEST(JsonText, EscapesWhatAModelMaySay) {
  EXPECT_EQ(json_text("a\"\\\n\x01\x7f</script>"), "\"a\\\"\\\\\\n\\u0001\\u007f</script>\"");
  EXPECT_EQ(json_text("\xc3\xa4 \xf0\x9f\x98\x80"), "\"\\u00e4 \\ud83d\\ude00\"");
  EXPECT_EQ(json_text("\xff\xfe|\xc3|\xed\xa0\x80"), "\"\\ufffd\\ufffd|\\ufffd|\\ufffd\\ufffd\\ufffd\"");
}

TEST(JsonText, ReplacesBytesInKeysToo) {
  nlohmann::ordered_json j;
  j["\xff"] = 1;
  EXPECT_EQ(json_text(j), "{\"\\ufffd\":1}");
}

}  // namespace
}  // namespace tc::json_text_test
