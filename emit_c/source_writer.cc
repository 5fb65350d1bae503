#include "emit_c/source_writer.h"

#include <vector>

namespace tc {
namespace {

constexpr size_t kLimit = 118;

// The last position at or before `limit` where a line may be broken: after ", ", or before a binary operator. Strings and
// comments are never broken.
size_t break_at(std::string_view s, size_t from, size_t limit) {
  size_t best = std::string_view::npos;
  bool quoted = false;
  for (size_t i = from; i < s.size() && i < limit; i++) {
    if (s[i] == '"' && (i == 0 || s[i - 1] != '\\')) quoted = !quoted;
    if (!quoted && s.substr(i).starts_with("/*")) break;
    if (quoted || s[i] != ' ' || i == from) continue;
    const char before = s[i - 1], after = i + 1 < s.size() ? s[i + 1] : ' ';
    const bool operator_follows = std::string_view("+-*/?:&|<>=").find(after) != std::string_view::npos && i + 2 < s.size() &&
                                  (s[i + 2] == ' ' || s[i + 2] == after);
    if ((before == ',' || before == ';' || operator_follows) && after != '=') best = i;
  }
  return best;
}

}  // namespace

void SourceWriter::line(std::string_view s) {
  const size_t margin = size_t(depth_) * 2;
  const bool in_comment = s.starts_with(" * ");
  size_t from = 0;
  bool first = true;
  while (true) {
    if (!first && in_comment) text_ += " * ";
    const size_t indent = first ? margin : in_comment ? 2 : margin + 4;
    const bool fits = indent + (s.size() - from) <= kLimit;
    const size_t cut = fits ? std::string_view::npos : break_at(s, from, from + kLimit - indent);
    text_.append(indent, ' ');
    if (cut == std::string_view::npos || cut <= from) {
      text_.append(s.substr(from));
      text_ += '\n';
      return;
    }
    text_.append(s.substr(from, cut - from));
    text_ += '\n';
    from = cut + 1;
    first = false;
  }
}

void SourceWriter::blank() { text_ += '\n'; }

void SourceWriter::raw(std::string_view s) {
  text_.append(s);
  text_ += '\n';
}

}  // namespace tc
