#include "emit_c/fill.h"

#include "support/error.h"

namespace tc {

std::string fill(std::string_view text, const std::vector<Hole>& holes) {
  std::string s;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find("{{", at);
    if (open == std::string_view::npos) return s.append(text.substr(at));
    const Hole* found = nullptr;
    size_t where = open;
    for (; !found && where < open + 2 && text.substr(where).starts_with("{{"); where++)
      for (const Hole& h : holes)
        if (text.substr(where + 2).starts_with(h.first + "}}")) found = &h;
    check(found != nullptr, "a template has a hole that nothing fills");
    s.append(text.substr(at, where - 1 - at)).append(found->second);
    at = where - 1 + 2 + found->first.size() + 2;
  }
  return s;
}

}  // namespace tc
