#include "support/diff.h"

#include <algorithm>
#include <vector>

#include "support/text.h"

namespace tc {
namespace {

using Lines = std::vector<std::string_view>;

constexpr int kContext = 3;
/// Texts that differ in more lines are not aligned line by line, which would take too long.
constexpr int kMostEdits = 2000;

/// Each line with its end; the last one may have none.
Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t' && c != '\r' && c != '\f') || c == 127;
  });
}

struct Edit {
  char kind;  // ' ', '-' or '+'
  std::string_view line;
};

/// A shortest list of edits by the greedy method of Myers: reach[k] is how far in `a` one gets on diagonal k = i - j
/// with so many edits; the tables of all numbers of edits lead back.
bool shortest_edits(const Lines& a, const Lines& b, std::vector<Edit>& edits) {
  const int n = int(a.size()), m = int(b.size()), most = std::min(n + m, kMostEdits);
  std::vector<std::vector<int>> tables;
  std::vector<int> reach(size_t(2 * most + 3), 0);
  const auto at = [most](int k) { return size_t(k + most + 1); };
  // Whether diagonal k is reached from the one above, by a line of `b`.
  const auto down = [&](int k, int d, const std::vector<int>& t) {
    return k == -d || (k != d && t[at(k - 1)] < t[at(k + 1)]);
  };
  int edit_count = -1;
  for (int d = 0; d <= most && edit_count < 0; d++) {
    tables.push_back(reach);
    for (int k = -d; k <= d && edit_count < 0; k += 2) {
      int i = down(k, d, reach) ? reach[at(k + 1)] : reach[at(k - 1)] + 1;
      while (i < n && i - k < m && i - k >= 0 && a[size_t(i)] == b[size_t(i - k)]) i++;
      reach[at(k)] = i;
      if (i >= n && i - k >= m) edit_count = d;
    }
  }
  if (edit_count < 0) return false;
  int i = n, j = m;
  for (int d = edit_count; d >= 0; d--) {
    const std::vector<int>& t = tables[size_t(d)];
    const int k = i - j, from = d == 0 ? 0 : down(k, d, t) ? k + 1 : k - 1;
    const int start = d == 0 ? 0 : t[at(from)];
    const int after_edit = d == 0 ? 0 : from == k + 1 ? start : start + 1;
    for (; i > after_edit; i--, j--) edits.push_back({' ', a[size_t(i - 1)]});
    if (d == 0) break;
    if (from == k + 1)
      edits.push_back({'+', b[size_t(--j)]});
    else
      edits.push_back({'-', a[size_t(--i)]});
  }
  std::reverse(edits.begin(), edits.end());
  return true;
}

std::vector<Edit> edits_between(const Lines& a, const Lines& b) {
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) head++;
  while (tail < std::min(a.size(), b.size()) - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) tail++;
  const Lines x(a.begin() + long(head), a.end() - long(tail)), y(b.begin() + long(head), b.end() - long(tail));
  std::vector<Edit> edits, middle;
  for (size_t k = 0; k < head; k++) edits.push_back({' ', a[k]});
  if (!shortest_edits(x, y, middle)) {
    middle.clear();
    for (const std::string_view line : x) middle.push_back({'-', line});
    for (const std::string_view line : y) middle.push_back({'+', line});
  }
  edits.insert(edits.end(), middle.begin(), middle.end());
  for (size_t k = a.size() - tail; k < a.size(); k++) edits.push_back({' ', a[k]});
  return edits;
}

/// "12,3": where a hunk starts, counted from 1, and how many lines it has. One without lines stands behind the line
/// before it.
std::string range(size_t start, size_t count) {
  return to_text(int64_t(count == 0 ? start : start + 1)) + (count == 1 ? "" : "," + to_text(int64_t(count)));
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, const std::string& label_before,
                         const std::string& label_after) {
  if (before == after) return "";
  if (!is_text(before) || !is_text(after)) return "Binary files " + label_before + " and " + label_after + " differ\n";
  const std::vector<Edit> edits = edits_between(lines_of(before), lines_of(after));
  std::string s = "--- " + label_before + "\n+++ " + label_after + "\n";
  size_t a = 0, b = 0;  // lines of each text before `at`
  for (size_t at = 0; at < edits.size();) {
    if (edits[at].kind == ' ') {
      a++, b++, at++;
      continue;
    }
    const size_t first = at - std::min<size_t>({at, kContext, a});
    size_t end = at, quiet = 0;
    for (size_t k = at; k < edits.size() && quiet <= 2 * kContext; k++) {
      quiet = edits[k].kind == ' ' ? quiet + 1 : 0;
      if (quiet == 0) end = k + 1;
    }
    end = std::min(edits.size(), end + kContext);
    const size_t start_a = a - (at - first), start_b = b - (at - first);
    std::string body;
    for (size_t k = first; k < end; k++) {
      const Edit& e = edits[k];
      body += e.kind + std::string(e.line);
      if (!e.line.ends_with('\n')) body += "\n\\ No newline at end of file\n";
      if (k < at) continue;
      a += e.kind != '+';
      b += e.kind != '-';
    }
    s += "@@ -" + range(start_a, a - start_a) + " +" + range(start_b, b - start_b) + " @@\n" + body;
    at = end;
  }
  return s;
}

}  // namespace tc
