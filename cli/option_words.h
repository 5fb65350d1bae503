// What completions and the manual page know of the words on a command line, beside the tables themselves.
#pragma once
#include <string>
#include <vector>

#include "cli/option_table.h"

namespace tc {

/// What may stand for the value of an option: all of its words, or a kind of file.
struct ValueWords {
  enum class Kind { Free, Words, File, Folder } kind = Kind::Free;
  std::vector<std::string> words = {};
};
ValueWords value_words(const Option& o);

/// The same of a command's operand: a model, a command, a shell.
ValueWords operand_words(const Command& c);

}  // namespace tc
