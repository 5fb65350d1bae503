#include "cli/review/render.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/diff.h"
#include "support/json_text.h"
#include "support/text.h"

namespace tc {
namespace {

using Kind = Change::Kind;

constexpr size_t kMostLines = 20;    // of a section, for people
constexpr size_t kMostDiff = 40000;  // characters of a comment; GitHub takes 65536

bool is_manifest(const FileChange& f) { return f.path == "manifest.json"; }

std::string diff_of(const FileChange& f) {
  const std::string& before = f.renamed_from.empty() ? f.path : f.renamed_from;
  return unified_diff(f.before, f.after, f.kind == Kind::Added ? "/dev/null" : "a/" + printable(before),
                      f.kind == Kind::Removed ? "/dev/null" : "b/" + printable(f.path));
}

struct Lines {
  int64_t added = 0, removed = 0;
  bool binary = false;
};

Lines lines_of(const std::string& diff) {
  Lines n;
  n.binary = diff.starts_with("Binary files");
  for (size_t at = 0, line = 0; at < diff.size() && !n.binary; line++) {
    if (line >= 2 && diff[at] == '+') n.added++;
    if (line >= 2 && diff[at] == '-') n.removed++;
    at = std::min(diff.find('\n', at), diff.size() - 1) + 1;
  }
  return n;
}

std::string kind_name(Kind k) {
  switch (k) {
    case Kind::Added: return "added";
    case Kind::Removed: return "removed";
    case Kind::Changed: return "changed";
    case Kind::Note: return "note";
  }
  return "";
}

/// How many lines of a file changed, and what it was called.
std::string stat_text(const FileChange& f) {
  const std::string diff = diff_of(f);
  const Lines n = lines_of(diff);
  if (n.binary)
    return "binary, " + to_text(int64_t(f.before.size())) + " -> " + to_text(int64_t(f.after.size())) + " bytes";
  const std::string how = !f.renamed_from.empty()   ? "was " + printable(f.renamed_from) + ", "
                          : f.kind == Kind::Changed ? ""
                                                    : kind_name(f.kind) + ", ";
  return how + "+" + to_text(n.added) + " -" + to_text(n.removed);
}

/// What stands behind the sign: `node "x": detail [tool]`.
template <class Escape>
std::string change_text(const Change& c, Escape escape) {
  std::string s = escape(c.what);
  if (!c.subject.empty()) s += " \"" + escape(c.subject) + "\"";
  if (!c.detail.empty()) s += ": " + escape(c.detail);
  if (!c.cause.empty()) s += " (by the " + c.cause + ")";
  return s;
}

}  // namespace

std::string as_words(const Comparison& c, bool stat) {
  const auto escape = [](const std::string& s) { return printable(s, 500); };
  std::string s = "a  " + escape(c.a) + "\nb  " + escape(c.b) + "\n\n" + c.verdict + "\n";
  for (const Section& x : c.sections) {
    s += "\n" + x.title + "\n";
    for (size_t i = 0; i < std::min(x.changes.size(), kMostLines); i++) {
      const Kind k = x.changes[i].kind;
      const char* sign = k == Kind::Added ? "  + " : k == Kind::Removed ? "  - " : k == Kind::Changed ? "  ~ " : "    ";
      s += sign + change_text(x.changes[i], escape) + "\n";
    }
    if (x.changes.size() > kMostLines)
      s += "    and " + to_text(int64_t(x.changes.size() - kMostLines)) + " more, which --json lists\n";
  }
  if (c.files.empty()) return s;
  s += "\nfiles\n";
  for (const FileChange& f : c.files) s += "  " + escape(f.path) + "  " + stat_text(f) + "\n";
  if (stat) return s;
  s += "\n";
  for (const FileChange& f : c.files)
    if (!is_manifest(f)) s += diff_of(f);
  return s;
}

std::string markdown_text(std::string_view raw) {
  std::string s;
  const std::string text = printable(raw, 500);
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (size_t i = 0; i < text.size(); i++) {
    const char ch = text[i];
    const bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || digit(i) ||
                       std::string_view(" ,;/+-=()%").find(ch) != std::string_view::npos ||
                       (ch == '.' && i > 0 && digit(i - 1) && digit(i + 1));
    s += plain ? std::string(1, ch) : "&#" + to_text(int64_t(ch)) + ";";
  }
  return s;
}

namespace {

/// A block whose fence is longer than any that it holds.
std::string fenced(const std::string& text) {
  size_t longest = 2, run = 0;
  for (const char ch : text) {
    run = ch == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fence + "diff\n" + text + (text.ends_with('\n') ? "" : "\n") + fence + "\n";
}

std::string all_diffs(const Comparison& c) {
  std::string diffs;
  for (const FileChange& f : c.files) {
    if (is_manifest(f)) continue;
    const std::string one = diff_of(f);
    if (diffs.size() + one.size() <= kMostDiff) {
      diffs += one;
      continue;
    }
    const size_t room = kMostDiff - diffs.size(), end = one.rfind('\n', room);
    if (end != std::string::npos) diffs += one.substr(0, end + 1);
    return diffs + "... (cut here: a comment has room for so much)\n";
  }
  return diffs;
}

}  // namespace

std::string as_markdown(const Comparison& c, bool stat) {
  const auto escape = [](const std::string& s) { return markdown_text(s); };
  std::string s = "### tc-emit diff: " + escape(c.a) + " → " + escape(c.b) + "\n\n" + escape(c.verdict) + "\n";
  for (const Section& x : c.sections) {
    s += "\n**" + x.title + "**\n\n";
    for (size_t i = 0; i < std::min(x.changes.size(), kMostLines); i++)
      s += "- " + (x.changes[i].kind == Kind::Note ? "" : kind_name(x.changes[i].kind) + " ") +
           change_text(x.changes[i], escape) + "\n";
    if (x.changes.size() > kMostLines) s += "- and " + to_text(int64_t(x.changes.size() - kMostLines)) + " more\n";
  }
  if (c.files.empty()) return s;
  s += "\n<details><summary>" + to_text(int64_t(c.files.size())) + (c.files.size() == 1 ? " file" : " files") +
       "</summary>\n\n| file | lines |\n|---|---|\n";
  for (size_t i = 0; i < std::min<size_t>(c.files.size(), 100); i++)
    s += "| " + escape(c.files[i].path) + " | " + escape(stat_text(c.files[i])) + " |\n";
  const std::string diffs = stat ? "" : all_diffs(c);
  return s + (diffs.empty() ? "" : "\n" + fenced(diffs)) + "\n</details>\n";
}

std::string as_json(const Comparison& c, bool stat) {
  using Json = nlohmann::ordered_json;
  Json j = {{"equal", c.equal()}, {"a", c.a}, {"b", c.b}, {"verdict", c.verdict}, {"sections", Json::array()}};
  for (const Section& x : c.sections) {
    Json changes = Json::array();
    for (const Change& k : x.changes) {
      changes.push_back({{"change", kind_name(k.kind)}, {"what", k.what}, {"name", k.subject}, {"detail", k.detail}});
      if (!k.cause.empty()) changes.back()["cause"] = k.cause;
    }
    j["sections"].push_back({{"title", x.title}, {"changes", std::move(changes)}});
  }
  j["files"] = Json::array();
  for (const FileChange& f : c.files) {
    const std::string diff = diff_of(f);
    const Lines n = lines_of(diff);
    Json file = {{"path", f.path},
                 {"change", kind_name(f.kind)},
                 {"binary", n.binary},
                 {"added", n.added},
                 {"removed", n.removed}};
    if (!f.renamed_from.empty()) file["from"] = f.renamed_from;
    if (!stat) file["diff"] = diff;
    j["files"].push_back(std::move(file));
  }
  return json_text(j, 1) + "\n";
}

}  // namespace tc
