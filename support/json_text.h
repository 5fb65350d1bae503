// JSON as it leaves the tool. nlohmann::json escapes; names of a model may hold any bytes, and JSON text may not.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tc {

/// ASCII in one line, or with `indent` spaces a level; bytes of strings that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& j, int indent = -1);

}  // namespace tc
