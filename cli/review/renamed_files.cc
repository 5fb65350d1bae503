#include "cli/review/renamed_files.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace tc {
namespace {

using Kind = Change::Kind;
using Lines = std::vector<std::string_view>;

constexpr double kAlike = 0.5;  // share of lines that both have, of the longer file's: what git takes for a rename

Lines sorted_lines(const std::string& text) {
  Lines lines;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

double share_of_common(const Lines& a, const Lines& b) {
  const size_t longer = std::max(a.size(), b.size());
  if (double(std::min(a.size(), b.size())) < kAlike * double(longer)) return 0;
  size_t common = 0;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const int order = x->compare(*y);
    common += order == 0;
    x += order <= 0;
    y += order >= 0;
  }
  return double(common) / double(longer);
}

/// Folder and ending, within which files are renamed; "" for what is no text.
std::string place_of(const FileChange& f) {
  const std::string& bytes = f.kind == Kind::Removed ? f.before : f.after;
  if (bytes.empty() || bytes.find('\0') != std::string::npos) return "";
  const size_t slash = f.path.rfind('/'), dot = f.path.rfind('.');
  return f.path.substr(0, slash == std::string::npos ? 0 : slash) + "/" +
         (dot == std::string::npos ? "" : f.path.substr(dot));
}

struct Pair {
  double share;
  size_t went, came;
};

std::vector<Pair> alike_pairs(const std::vector<FileChange>& files) {
  std::vector<Lines> lines(files.size());
  for (size_t i = 0; i < files.size(); i++)
    if (files[i].kind != Kind::Changed)
      lines[i] = sorted_lines(files[i].kind == Kind::Removed ? files[i].before : files[i].after);
  std::vector<Pair> pairs;
  for (size_t i = 0; i < files.size(); i++) {
    if (files[i].kind != Kind::Removed || place_of(files[i]).empty()) continue;
    for (size_t j = 0; j < files.size(); j++) {
      if (files[j].kind != Kind::Added || place_of(files[j]) != place_of(files[i])) continue;
      if (const double share = share_of_common(lines[i], lines[j]); share >= kAlike) pairs.push_back({share, i, j});
    }
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tie(b.share, a.went, a.came) < std::tie(a.share, b.went, b.came);
  });
  return pairs;
}

}  // namespace

std::vector<FileChange> join_renamed(std::vector<FileChange> files) {
  std::vector<bool> used(files.size());
  for (const Pair& p : alike_pairs(files)) {
    if (used[p.went] || used[p.came]) continue;
    used[p.went] = used[p.came] = true;
    FileChange &went = files[p.went], &came = files[p.came];
    came.kind = Kind::Changed;
    came.renamed_from = went.path;
    came.before = std::move(went.before);
  }
  // `went` is Removed still, `came` is not.
  std::vector<FileChange> list;
  for (size_t i = 0; i < files.size(); i++)
    if (!used[i] || files[i].kind != Kind::Removed) list.push_back(std::move(files[i]));
  return list;
}

}  // namespace tc
