#include <cstdlib>
#include <string>

#include "generated_tests/fuzz/targets.h"
#include "ir/language/function_text.h"
#include "ir/language/parser.h"
#include "ir/language/user_ops.h"

namespace tc::fuzz {

void read_language(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  language::Problems problems;
  const std::vector<language::Definition> definitions = language::parse(text, problems);
  for (const language::Problem& p : problems) (void)language::render({"fuzz.tc", text}, p);
  if (problems.empty())
    for (const language::Definition& d : definitions) {
      const std::vector<language::Definition> again = language::parse(language::to_text(d), problems);
      if (!problems.empty() || again.size() != 1 || !(again[0] == d)) std::abort();
    }
  std::vector<std::string> told;
  (void)user_ops({"fuzz.tc", text}, {}, told);
  problems.clear();
  try {
    (void)language::parse_function(text, problems);
  } catch (const Error&) {  // sizes beyond 64 bits
  }
}

}  // namespace tc::fuzz
