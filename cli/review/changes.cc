#include "cli/review/changes.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "support/text.h"

namespace tc {

bool Comparison::equal() const {
  const auto is_note = [](const Change& c) { return c.kind == Change::Kind::Note; };
  return files.empty() && std::all_of(sections.begin(), sections.end(), [&](const Section& s) {
           return std::all_of(s.changes.begin(), s.changes.end(), is_note);
         });
}

std::string short_number(double v) {
  char text[32];
  const auto r = std::to_chars(text, text + sizeof text, v, std::chars_format::general, 3);
  return std::string(text, r.ptr);
}

std::string from_to(int64_t before, int64_t after) {
  std::string s = to_text(before) + " -> " + to_text(after);
  if (before <= 0) return s;
  const double percent = (double(after) - double(before)) / double(before) * 100;
  const auto tenths = int64_t(std::llround(std::fabs(percent) * 10));
  return s + " (" + (percent < 0 ? "-" : "+") + to_text(tenths / 10) + "." + to_text(tenths % 10) + " %)";
}

}  // namespace tc
