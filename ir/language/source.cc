#include "ir/language/source.h"

#include <algorithm>

#include "support/text.h"

namespace tc::language {
namespace {

std::string_view line_of(std::string_view text, int number) {
  for (int k = 1; k < number; k++) {
    const size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// One byte one column, whatever it is.
std::string visible(std::string_view line) {
  std::string s(line);
  for (char& c : s)
    if (c < ' ' || c > '~') c = c == '\t' || c == '\r' ? ' ' : '?';
  return s;
}

}  // namespace

std::string place_text(const SourceText& source, const Place& at) {
  return printable(source.file) + ":" + to_text(int64_t(at.line)) + ":" + to_text(int64_t(at.column));
}

std::string render(const SourceText& source, const Problem& p) {
  constexpr size_t kWidth = 120;  // of a long line, what stands around the place is shown
  const std::string line = visible(line_of(source.text, p.at.line));
  const size_t column = std::min(size_t(p.at.column - 1), line.size());
  const size_t most = line.size() - std::min(line.size(), kWidth), half = kWidth / 2;
  const size_t from = std::min(column - std::min(column, half), most);
  return place_text(source, p.at) + ": " + p.message + "\n  " + line.substr(from, kWidth) + "\n  " +
         std::string(column - from, ' ') + "^\n";
}

}  // namespace tc::language
