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

const SupportFile& file_named(std::string_view name) {
  for (const SupportFile& f : support_files())
    if (f.name == name) return f;
  throw InternalError("no support text " + std::string(name));
}

}  // namespace

std::string_view support_text(std::string_view name) { return file_named(name).text; }

std::string support_for(std::string_view name, bool strings) {
  enum { Outside, With, Without } part = Outside;
  const std::string_view text = support_text(name);
  std::string s;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    at = end;
    if (line == "#ifdef TC_STRINGS\n") {
      part = With;
    } else if (part == With && line == "#else\n") {
      part = Without;
    } else if (part != Outside && line == "#endif\n") {
      part = Outside;
    } else if (part == Outside || (part == With) == strings) {
      s += line;
    }
  }
  check(part == Outside, "a part for strings has an end");
  return s;
}

std::vector<std::string_view> support_folder(std::string_view folder) {
  std::vector<std::string_view> names;
  for (const SupportFile& f : support_files())
    if (f.name.starts_with(folder)) names.push_back(f.name);
  check(!names.empty(), "no support text below the folder");
  return names;
}

std::vector<std::string_view> with_included(const std::vector<std::string_view>& names, bool strings) {
  std::vector<std::string_view> all;
  std::vector<std::string> open(names.begin(), names.end());
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (std::find(all.begin(), all.end(), name) != all.end()) continue;
    all.push_back(file_named(name).name);
    const std::string text = support_for(name, strings);
    for (const std::string_view next : included(text)) open.emplace_back(next);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tc
