#include "support/json_text.h"

#include <nlohmann/json.hpp>

namespace tc {

std::string json_text(const nlohmann::ordered_json& j, int indent) {
  return j.dump(indent, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tc
