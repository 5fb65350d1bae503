#include "cli/diagnostics_text.h"

namespace tc {
namespace {

constexpr std::string_view kHeading = "### ";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string explanation_of(std::string_view code) {
  std::string text;
  bool inside = false;
  for (const std::string_view line : lines_of(diagnostics_page())) {
    if (line.starts_with("#")) inside = line.starts_with(kHeading) && line.substr(kHeading.size()).starts_with(code);
    if (inside) text += std::string(line.starts_with(kHeading) ? line.substr(kHeading.size()) : line) + "\n";
  }
  while (text.ends_with("\n\n")) text.pop_back();
  return code.size() == 6 ? text : "";
}

std::vector<std::string> explained_codes() {
  std::vector<std::string> codes;
  for (const std::string_view line : lines_of(diagnostics_page()))
    if (line.starts_with(kHeading)) codes.emplace_back(line.substr(kHeading.size(), 6));
  return codes;
}

}  // namespace tc
