#include "importer/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>

namespace tc::importer {

namespace {

bool parse_int(const std::string& text, int64_t& v) {
  const char* end = text.data() + text.size();
  const auto r = std::from_chars(text.data(), end, v);
  return r.ec == std::errc() && r.ptr == end && v >= 0;
}

/// Splits "a/b/c"; false for what no data file may be called.
bool split_location(const std::string& location, std::vector<std::string>& parts, std::string& why) {
  if (location.empty()) return why = "the location is empty", false;
  if (location.size() > 4096) return why = "the location is longer than 4096 characters", false;
  if (location.find('\0') != std::string::npos) return why = "the location contains a zero byte", false;
  if (location[0] == '/') return why = "the location is an absolute path", false;
  for (size_t at = 0; at <= location.size();) {
    const size_t slash = std::min(location.find('/', at), location.size());
    const std::string part = location.substr(at, slash - at);
    at = slash + 1;
    if (part == "..") return why = "the location leaves the model's folder", false;
    if (part.empty() || part == ".") continue;
    parts.push_back(part);
  }
  if (parts.empty() || location.back() == '/') return why = "the location names a folder", false;
  return true;
}

}  // namespace

std::string ExternalData::open_below_folder(const std::string& location, File& file) {
  std::vector<std::string> parts;
  std::string why;
  if (!split_location(location, parts, why)) return why;
  const size_t slash = context_.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : context_.path.substr(0, slash);
  File at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // One component at a time, each without following links: nothing that changes meanwhile leads out of the folder.
  for (size_t i = 0; at.ok() && i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
    const int next = openat(at.fd(), parts[i].c_str(), flags);
    if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
      return "a part of the location is a symbolic link or no folder";
    at = File(next);
  }
  if (!at.ok()) return "the file cannot be opened";
  struct stat st = {};
  if (fstat(at.fd(), &st) != 0 || !S_ISREG(st.st_mode)) return "it is not a regular file";
  if (st.st_nlink != 1) return "the file has more than one hard link";
  file = std::move(at);
  return "";
}

ExternalData::DataFile& ExternalData::open_file(const std::string& location) {
  auto [it, added] = files_.try_emplace(location);
  DataFile& f = it->second;
  if (!added) return f;
  f.problem = open_below_folder(location, f.file);
  struct stat st = {};
  if (f.problem.empty() && fstat(f.file.fd(), &st) == 0) f.size = st.st_size;
  if (f.problem.empty() && context_.options.data_file_read) context_.options.data_file_read(location);
  return f;
}

bool ExternalData::checksum_ok(const onnx::TensorProto& t, DataFile& f, const std::string& want) {
  if (f.sha1.empty()) f.sha1 = sha1_of_file(f.file.fd(), f.size);
  std::string lower;
  for (const char ch : want) lower.push_back(ch >= 'A' && ch <= 'F' ? char(ch - 'A' + 'a') : ch);
  if (lower == f.sha1) return true;
  context_.reject(
      "TC0133", nullptr,
      "tensor " + quoted(t.name()) + ": its data file does not have the SHA-1 checksum that the model states",
      {"the data file was changed or exchanged after the model was saved; save the model again"});
  return false;
}

bool ExternalData::locate(const onnx::TensorProto& t, int64_t expected, Range& range) {
  const std::string who = "tensor " + quoted(t.name()) + ": ";
  std::map<std::string, std::string> entries;
  for (const auto& e : t.external_data()) {
    static constexpr std::string_view kKnown[] = {"location", "offset", "length", "checksum"};
    const bool known = std::find(std::begin(kKnown), std::end(kKnown), e.key()) != std::end(kKnown);
    if (!known) {
      context_.warn("TC0134", nullptr, who + "unknown key " + quoted(e.key()) + " of its external data is ignored");
    } else if (!entries.emplace(e.key(), e.value()).second) {
      context_.reject("TC0130", nullptr, who + "key " + quoted(e.key()) + " of its external data is given twice");
      return false;
    }
  }
  range.location = entries["location"];
  DataFile& f = open_file(range.location);
  if (!f.problem.empty()) {
    context_.reject("TC0131", nullptr, who + "external data " + quoted(range.location) + ": " + f.problem,
                    {"data files must lie in the model's folder or below it, as plain files"});
    return false;
  }
  int64_t offset = 0, length = expected;
  if ((entries.count("offset") && !parse_int(entries["offset"], offset)) ||
      (entries.count("length") && !parse_int(entries["length"], length))) {
    context_.reject("TC0130", nullptr, who + "offset and length of external data must be non-negative integers");
    return false;
  }
  if (length != expected) {
    context_.reject("TC0120", nullptr,
                    who + "its external data has " + to_text(length) + " bytes, its dims ask for " + to_text(expected));
    return false;
  }
  if (offset > f.size || length > f.size - offset) {
    context_.reject("TC0132", nullptr,
                    who + to_text(length) + " bytes at offset " + to_text(offset) +
                        " lie outside of its data file, which has " + to_text(f.size));
    return false;
  }
  if (entries.count("checksum") && !checksum_ok(t, f, entries["checksum"])) return false;
  range.fd = f.file.fd();
  range.offset = offset;
  range.length = length;
  return true;
}

}  // namespace tc::importer
