// What exceptions of ONNX's library, protobuf and the standard library say, in words for the reader of a message: no
// path of the machine that built them, no text of an assertion, no symbol of C++.
#include <array>

#include "importer/context.h"

namespace tc::importer {

namespace {

constexpr std::string_view kNoReason = "it does not say why";

/// "...: Assertion `x` failed: why" is "why".
std::string_view without_assertion(std::string_view text) {
  const size_t at = text.find("Assertion `");
  if (at == text.npos) return text;
  constexpr std::string_view kFailed = "` failed";
  const size_t failed = text.find(kFailed, at);
  if (failed == text.npos) return "";
  text.remove_prefix(failed + kFailed.size());
  return text.starts_with(":") ? text.substr(1) : "";
}

void erase_all(std::string& text, std::string_view word) {
  for (size_t at; (at = text.find(word)) != text.npos;) text.erase(at, word.size());
}

/// "(op_type:Add, node name: n): why" is "node "n" (Add): why".
std::string with_node(const std::string& text) {
  constexpr std::string_view kType = "(op_type:", kName = ", node name: ", kEnd = "): ";
  const size_t type = text.find(kType), name = text.find(kName, type), end = text.find(kEnd, name);
  if (type == text.npos || name == text.npos || end == text.npos) return text;
  const std::string op = text.substr(type + kType.size(), name - type - kType.size());
  const std::string node = text.substr(name + kName.size(), end - name - kName.size());
  return text.substr(0, type) + (node.empty() ? "a node of type " + op : "node \"" + node + "\" (" + op + ")") + ": " +
         text.substr(end + kEnd.size());
}

/// Words with a path or a location in a source file.
std::string without_source_locations(const std::string& text) {
  constexpr std::array<std::string_view, 4> kSources{".h:", ".cc:", ".cpp:", ".hpp:"};
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    bool location = false;
    for (const std::string_view s : kSources) location = location || word.find(s) != word.npos;
    if (!location) kept += (kept.empty() ? "" : " ") + std::string(word);
    at = end + 1;
  }
  return kept;
}

bool speaks_cpp(std::string_view text) {
  constexpr std::array<std::string_view, 14> kWords{"std::",        "onnx::",  "google::",        "_M_",        "__n",
                                                    "basic_string", "map::at", "vector::",        "bad_",       "stoi",
                                                    "stol",         "stof",    "optional_access", "libprotobuf"};
  for (const std::string_view w : kWords)
    if (text.find(w) != text.npos) return true;
  return false;
}

}  // namespace

std::string reason_of(std::string_view what) {
  std::string text(without_assertion(what));
  for (const std::string_view label : {"[ShapeInferenceError] ", "[TypeInferenceError] ", "[ShapeInferenceError]",
                                       "[TypeInferenceError]", "[VersionConversion]"})
    erase_all(text, label);
  text = without_source_locations(with_node(first_line(text)));
  return text.empty() || speaks_cpp(text) ? std::string(kNoReason) : text;
}

std::string reason_of(const std::exception& e) { return reason_of(std::string_view(e.what())); }

}  // namespace tc::importer
