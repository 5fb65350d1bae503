#include "emit_c/strings.h"

#include <algorithm>

#include "emit_c/source_writer.h"
#include "templates/text.h"

namespace tc {
namespace {

constexpr size_t kLiteral = 4000;  // C99 promises literals of 4095 characters

// "{97, 98, ...}" in lines.
std::string byte_list(std::string_view s) {
  std::string text = "{", line = "\n  ";
  for (const char c : s) {
    line += to_text(int64_t(static_cast<unsigned char>(c))) + ",";
    if (line.size() < 110) continue;
    text += line;
    line = "\n  ";
  }
  return text + line + "\n}";
}

std::string table(const TensorData& t, const std::string& name) {
  std::string before, rows;
  for (size_t k = 0; k < t.strings.size(); k++) {
    const std::string& s = t.strings[k];
    const std::string size = ", " + to_text(int64_t(s.size())) + "},\n";
    if (s.size() <= kLiteral) {
      rows += "  {" + c_string(s) + size;
      continue;
    }
    const std::string bytes = name + "_" + to_text(int64_t(k));
    before += "static const unsigned char " + bytes + "[] = " + byte_list(s) + ";\n";
    rows += "  {(const char *)" + bytes + size;
  }
  if (t.strings.empty()) rows = "  {NULL, 0},\n";  // C has no empty arrays
  return before + "static const tc_string " + name + "[] = {\n" + rows + "};\n";
}

}  // namespace

bool has_strings(const Program& p) {
  const auto text = [](const auto& t) { return t.dtype == DType::String; };
  return std::any_of(p.inputs.begin(), p.inputs.end(), text) || std::any_of(p.outputs.begin(), p.outputs.end(), text) ||
         std::any_of(p.slots.begin(), p.slots.end(), text) ||
         std::any_of(p.weights.begin(), p.weights.end(), [&](const Weight& w) { return text(*w.data); });
}

std::string string_type() {
  constexpr std::string_view kBegin = "#ifndef TC_STRING_TYPE\n", kEnd = "#endif\n";
  const std::string_view text = support_text("tc_string.h");
  const size_t begin = text.find(kBegin), end = text.find(kEnd, begin);
  check(begin != std::string_view::npos && end != std::string_view::npos, "tc_string.h declares tc_string");
  return std::string(text.substr(begin, end + kEnd.size() - begin));
}

std::string table_name(const ProgramNames& n, size_t i) { return n.lower + "_text_" + n.weights[i]; }

std::string string_tables(const Program& p, const ProgramNames& n) {
  std::string s;
  for (size_t i = 0; i < p.weights.size(); i++)
    if (p.weights[i].data->dtype == DType::String)
      s += "\n/* \"" + comment_text(p.weights[i].name) + "\"  " + shape_text(p.weights[i].data->dims) + " */\n" +
           table(*p.weights[i].data, table_name(n, i));
  if (s.empty()) return s;
  const std::string guard = n.upper + "_STRINGS_H";
  return std::string(kLicenseLine) + "\n/* Constants of strings: views of bytes. */\n#ifndef " + guard + "\n#define " +
         guard + "\n#include \"tc_string.h\"\n" + s + "\n#endif\n";
}

}  // namespace tc
