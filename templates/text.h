// The support text that is copied into emitted packages, and the whole-file templates (*.in). templates/text/README.md
// lists the files, what each one needs and the holes of the templates.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tc {

struct SupportFile {
  std::string_view name;  // "tc_simd.h", "main.c.in"
  std::string_view text;
};

/// Every file of templates/text/ that packages are made from, by name.
const std::vector<SupportFile>& support_files();

/// The text of one of them; an InternalError if there is none of that name.
std::string_view support_text(std::string_view name);

/// `names` and the support files that these include, by name, each once.
std::vector<std::string_view> with_included(const std::vector<std::string_view>& names);

/// A template with each {{hole}} replaced by its value. A hole that stands alone on its line and whose value is empty
/// takes the line with it. An InternalError if a hole has no value or a value no hole. Values are inserted as they are:
/// text of a model comes through an escaper.
std::string fill_template(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& holes);

}  // namespace tc
