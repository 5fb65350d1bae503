#include "cli/diagnostics_json.h"

#include <nlohmann/json.hpp>

#include "support/json_text.h"

namespace tc {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& raw) { return raw.empty() ? Json() : Json(raw); }

}  // namespace

std::string diagnostic_json(const Diagnostic& d) {
  Json j;
  j["code"] = text_or_null(d.code);
  j["severity"] = d.warning ? "warning" : "error";
  j["exit_code"] = int(d.exit);
  j["file"] = text_or_null(d.loc.file);
  j["node"] = text_or_null(d.loc.node);
  j["op"] = text_or_null(d.loc.op);
  j["output"] = text_or_null(d.loc.output);
  j["value"] = text_or_null(d.loc.value);
  j["input"] = d.loc.input < 0 ? Json() : Json(d.loc.input);
  j["message"] = d.message;
  j["notes"] = d.notes;
  return json_text(j) + "\n";
}

bool wants_json_diagnostics(const std::vector<std::string>& args) {
  for (size_t i = 0; i < args.size() && args[i] != "--"; i++)
    if (args[i] == "--diagnostics=json" || (args[i] == "--diagnostics" && i + 1 < args.size() && args[i + 1] == "json"))
      return true;
  return false;
}

}  // namespace tc
