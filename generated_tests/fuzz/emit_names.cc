#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cli/driver.h"
#include "emit_c/package.h"
#include "generated_tests/fuzz/targets.h"
#include "generated_tests/fuzz/wire.h"
#include "templates/cpu/cpu_model.h"

namespace tc::fuzz {
namespace {

constexpr size_t kNames = 9;

/// y = Relu(x + w), z = Tanh(y), each name one of `n`.
std::string model(const std::vector<std::string>& n) {
  const std::string weight =
      number(1, 2) + number(2, 1) + bytes(8, n[0]) + bytes(9, std::string(8, '\1')) + bytes(12, n[8]);
  const auto node = [&](const std::string& from, const std::string& to, const char* op, const std::string& more = {}) {
    return bytes(1, bytes(1, from) + more + bytes(2, to) + bytes(3, n[5]) + bytes(4, op) + bytes(6, n[8]));
  };
  const std::string graph = node(n[1], n[2], "Add", bytes(1, n[0])) + node(n[2], n[3], "Relu") +
                            node(n[3], n[4], "Tanh") + bytes(2, n[6]) + bytes(5, weight) + bytes(10, n[8]) +
                            bytes(11, port(n[1])) + bytes(12, port(n[3])) + bytes(12, port(n[4]));
  return number(1, 8) + bytes(2, n[7]) + bytes(6, n[8]) + bytes(7, graph) + bytes(8, number(2, 17));
}

/// Text without comments, blanks and the contents of strings; every identifier is I.
std::string skeleton(std::string_view text) {
  std::string out;
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t k = 0; k < text.size();) {
    const char c = text[k];
    if (static_cast<unsigned char>(c) > 126) std::abort();  // nothing but ASCII is ever emitted
    if (text.substr(k, 2) == "/*") {
      k = std::min(text.find("*/", k + 2), text.size() - 2) + 2;
    } else if (text.substr(k, 2) == "//" || (c == '#' && k > 0 && text[k - 1] == '\n' && text.substr(k, 2) == "# ")) {
      k = std::min(text.find('\n', k), text.size());
    } else if (c == '"' || c == '\'') {
      for (k++; k < text.size() && text[k] != c && text[k] != '\n'; k++) k += text[k] == '\\';
      out += c;
      k++;
    } else if (word(c)) {
      const bool letter = !std::isdigit(static_cast<unsigned char>(c));
      const size_t from = k;
      while (k < text.size() && word(text[k])) k++;
      out += letter ? "I " : std::string(text.substr(from, k - from)) + " ";
    } else {
      if (c != ' ' && c != '\n') out += c;
      k++;
    }
  }
  return out;
}

void expect_same(const std::string& path, const std::string& text, const std::string& plain) {
  if (text == plain) return;
  const size_t at = size_t(std::mismatch(text.begin(), text.end(), plain.begin(), plain.end()).first - text.begin());
  const size_t from = at < 200 ? 0 : at - 200;
  std::fprintf(stderr, "%s: of such names\n%s\nof plain ones\n%s\n", path.c_str(), text.substr(from, 400).c_str(),
               plain.substr(std::min(from, plain.size()), 400).c_str());
  std::abort();
}

std::vector<OutputFile> package(const std::string& path) {
  CompileRequest request;
  request.model = path;
  request.name = "m";
  request.target.cpu = *find_cpu("generic");
  Diagnostics problems;
  const Compilation c = compile(request, problems);
  for (const Diagnostic& d : problems.list()) (void)d.render();
  if (problems.has_errors()) return {};
  return c_package(c.program, {});
}

}  // namespace

void emit_names(const uint8_t* data, size_t size) {
  static const Folder folder;
  static const std::vector<OutputFile> twin =
      package(folder.write("m.onnx", model({"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"})));
  if (twin.empty()) std::abort();
  std::vector<std::string> names;
  std::string rest(reinterpret_cast<const char*>(data), size);
  while (names.size() + 1 < kNames) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    names.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  names.push_back(rest);             // the texts of documentation have lines
  if (names[0] == names[1]) return;  // the weight is the value of the input: another model
  const std::vector<OutputFile> files = package(folder.write("m.onnx", model(names)));
  if (files.empty()) return;  // refused: two names are one, or a name is none
  if (files.size() != twin.size()) std::abort();
  for (size_t k = 0; k < files.size(); k++) {
    if (files[k].path != twin[k].path) std::abort();
    if (files[k].path.ends_with(".c") || files[k].path.ends_with(".h") || files[k].path.ends_with(".S"))
      expect_same(files[k].path, skeleton(files[k].bytes), skeleton(twin[k].bytes));
  }
}

}  // namespace tc::fuzz
