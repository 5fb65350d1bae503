// A comparison for people and for programs. Text of models and packages passes an escaper of each form.
#pragma once
#include <string>

#include "cli/review/changes.h"

namespace tc {

/// `stat`: how many lines of which files, instead of the lines.
std::string as_words(const Comparison& c, bool stat);
std::string as_markdown(const Comparison& c, bool stat);
std::string as_json(const Comparison& c, bool stat);

/// Any text inside a paragraph of Markdown: nothing in it is markup, a link, a mention or a reference to an issue.
std::string markdown_text(std::string_view raw);

}  // namespace tc
