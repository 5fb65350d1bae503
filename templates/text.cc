#include "templates/text.h"

#include <algorithm>

#include "support/error.h"

namespace tc {
namespace {

constexpr std::string_view kInclude = "#include \"";

// The names of support files in a text's #include lines.
std::vector<std::string_view> included(std::string_view text) {
  std::vector<std::string_view> names;
  for (size_t at = text.find(kInclude); at != std::string_view::npos; at = text.find(kInclude, at)) {
    at += kInclude.size();
    const std::string_view name = text.substr(at, text.find('"', at) - at);
    if (name.starts_with("tc_")) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string_view support_text(std::string_view name) {
  for (const SupportFile& f : support_files())
    if (f.name == name) return f.text;
  throw InternalError("no support text " + std::string(name));
}

std::vector<std::string_view> support_folder(std::string_view folder) {
  std::vector<std::string_view> names;
  for (const SupportFile& f : support_files())
    if (f.name.starts_with(folder)) names.push_back(f.name);
  check(!names.empty(), "no support text below the folder");
  return names;
}

std::vector<std::string_view> with_included(const std::vector<std::string_view>& names) {
  std::vector<std::string_view> all, open = names;
  while (!open.empty()) {
    const std::string_view name = open.back();
    open.pop_back();
    if (std::find(all.begin(), all.end(), name) != all.end()) continue;
    all.push_back(name);
    for (const std::string_view next : included(support_text(name))) open.push_back(next);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tc
