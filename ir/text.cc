#include "ir/text.h"

#include "templates/text/tc_case.h"

namespace tc {

std::string in_case(std::string_view text, bool upper) {
  std::string buffer(2 * text.size() + 1, '\0');  // two bytes become three at most
  tc_made made = {buffer.data(), buffer.data() + buffer.size(), 0};
  const tc_string s = {text.data(), text.size()};
  const tc_string r = upper ? tc_string_upper(s, &made) : tc_string_lower(s, &made);
  return std::string(r.data, r.size);
}

}  // namespace tc
