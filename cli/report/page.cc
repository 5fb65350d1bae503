#include "cli/report/page.h"

#include "emit_c/fill.h"
#include "support/error.h"
#include "support/text.h"
#include "templates/text.h"

namespace tc {

/// Written into the build folder by CMake: the files of cli/report/page/.
const std::vector<SupportFile>& report_files();

namespace {

std::string html_text(const std::string& raw) {
  std::string s;
  for (const char ch : printable(raw)) {
    const bool plain = ch != '<' && ch != '>' && ch != '&' && ch != '"' && ch != '\'';
    s += plain ? std::string(1, ch) : "&#" + to_text(int64_t(ch)) + ";";
  }
  return s;
}

std::string file(std::string_view name) {
  for (const SupportFile& f : report_files())
    if (f.name == name) return std::string(f.text);
  throw InternalError("no such file of the report");
}

}  // namespace

std::string report_page(const std::string& title, const std::string& data) {
  std::string script;
  for (const char* name : {"layout.js", "dom.js", "graph.js", "memory.js", "tables.js", "main.js"})
    script += file(name);
  return fill(file("page.html"),
              {{"title", html_text(title)}, {"style", file("page.css")}, {"data", data}, {"script", script}});
}

}  // namespace tc
