#include "emit_c/source_writer.h"

#include "ir/open_size.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr size_t kLimit = 118;

// Where a line may be broken before `limit`: after ", " or before a binary operator, the last such break, but a break
// inside of a subscript only if there is no other in the second half; else after " = ". Strings and comments are never
// broken.
size_t break_at(std::string_view s, size_t from, size_t limit) {
  constexpr size_t kNone = std::string_view::npos;
  size_t outside = kNone, inside = kNone, value = kNone;
  int subscripts = 0;
  bool quoted = false;
  for (size_t i = from; i < s.size() && i < limit; i++) {
    if (s[i] == '"' && (i == 0 || s[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if (s.substr(i).starts_with("/*")) break;
    subscripts += s[i] == '[' ? 1 : s[i] == ']' ? -1 : 0;
    if (s[i] != ' ' || i == from) continue;
    const char before = s[i - 1], after = i + 1 < s.size() ? s[i + 1] : ' ';
    const bool operator_follows = std::string_view("+-*/?:&|<>=").find(after) != kNone && i + 2 < s.size() &&
                                  (s[i + 2] == ' ' || s[i + 2] == after);
    if ((before == ',' || before == ';' || operator_follows) && after != '=') (subscripts > 0 ? inside : outside) = i;
    if (s.substr(0, i).ends_with(" =")) value = i;
  }
  const bool late = outside != kNone && outside >= from + (limit - from) / 2;
  return late || (inside == kNone && outside != kNone) ? outside : inside != kNone ? inside : value;
}

}  // namespace

std::string extents(const std::vector<int64_t>& dims) {
  std::string s;
  for (const int64_t d : dims) s += "[" + open_text(d, "n") + "]";
  return s;
}
std::string shape_text(const std::vector<int64_t>& dims) { return dims.empty() ? "scalar" : extents(dims); }

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
