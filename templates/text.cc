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

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || text[begin - 1] == '\n') && end < text.size() && text[end] == '\n';
}

}  // namespace

std::string_view support_text(std::string_view name) {
  for (const SupportFile& f : support_files())
    if (f.name == name) return f.text;
  throw InternalError("no support text " + std::string(name));
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

std::string fill_template(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& holes) {
  std::string out;
  std::vector<bool> used(holes.size());
  size_t at = 0;
  for (size_t open = text.find("{{"); open != std::string_view::npos; open = text.find("{{", at)) {
    // "${{{name}}_flags}" of CMake: the hole is the innermost pair
    while (text.substr(open + 1, 2) == "{{") open++;
    const size_t close = text.find("}}", open);
    check(close != std::string_view::npos, "a hole of a template is not closed");
    const std::string_view name = text.substr(open + 2, close - open - 2);
    const auto hole = std::find_if(holes.begin(), holes.end(), [&](const auto& h) { return h.first == name; });
    check(hole != holes.end(), "no value for the hole " + std::string(name));
    used[size_t(hole - holes.begin())] = true;
    out += text.substr(at, open - at);
    out += hole->second;
    at = close + 2;
    if (hole->second.empty() && stands_alone(text, open, at)) at++;
  }
  for (size_t i = 0; i < holes.size(); i++) check(used[i], "no hole for the value " + std::string(holes[i].first));
  out += text.substr(at);
  return out;
}

}  // namespace tc
