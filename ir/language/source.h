// Texts of the language and what is wrong with them. A problem is told as FILE:line:column: message, the line, a caret.
#pragma once
#include <string>
#include <vector>

namespace tc::language {

/// Where something stands in a text; both count from 1, columns count bytes.
struct Place {
  int line = 1, column = 1;
  /// Where a thing was written is no part of what it says.
  bool operator==(const Place&) const { return true; }
};

struct Problem {
  Place at;
  std::string message;
  int input = -1;  // the operand of a node that is wrong; -1: none
};
using Problems = std::vector<Problem>;

/// A file of definitions: any bytes.
struct SourceText {
  std::string file, text;
};

/// "ops.tc:2:9: message", the line and a caret below the place, each on a line of its own.
std::string render(const SourceText& source, const Problem& p);
/// "ops.tc:2:9"
std::string place_text(const SourceText& source, const Place& at);

}  // namespace tc::language
