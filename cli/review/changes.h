// What differs between two models or packages, as data that the words, the JSON and the Markdown are made of.
#pragma once
#include <string>
#include <vector>

#include "support/output_dir.h"

namespace tc {

struct Change {
  enum class Kind { Added, Removed, Changed, Note } kind = Kind::Changed;
  std::string what;         // "node", "input", "kernel", "workspace"; our own text
  std::string subject;      // its name, raw: text of the model
  std::string detail = {};  // how it differs, raw; may hold names of the model
  std::string cause = {};   // "tool", "model" or "options" where that is known
};

struct Section {
  std::string title;  // "tool", "options", "model", "weights", "interface", "memory", "kernels"
  std::vector<Change> changes;
};

struct FileChange {
  Change::Kind kind = Change::Kind::Changed;
  std::string path;
  std::string before, after;      // bytes
  std::string renamed_from = {};  // the path of `before`, if it is another
};

struct Comparison {
  std::string a, b;     // paths, as they were given
  std::string verdict;  // one sentence: the tool's doing, the model's, both
  std::vector<Section> sections;
  std::vector<FileChange> files;
  /// No section with anything but notes, and no file.
  bool equal() const;
};

/// "0.123", three digits.
std::string short_number(double v);
/// "5184 -> 8192 (+58.0 %)".
std::string from_to(int64_t before, int64_t after);

}  // namespace tc
