// Text that leaves the tool. Names that come from a model are ModelText and reach an output only through one of the
// escapers below; numbers are printed shortest-round-trip and independent of the locale.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tc {

/// Text from a model: any bytes. It has no conversion to std::string on purpose.
class ModelText {
 public:
  ModelText() = default;
  explicit ModelText(std::string raw) : raw_(std::move(raw)) {}
  const std::string& raw() const { return raw_; }  // for look-ups and comparison, never for output
  bool empty() const { return raw_.empty(); }
  auto operator<=>(const ModelText&) const = default;

 private:
  std::string raw_;
};

/// Printable ASCII for messages on a terminal: other bytes as \xNN, at most `limit` bytes (then "...").
std::string printable(std::string_view raw, size_t limit = 200);
/// For the inside of a C comment, also between double quotes: "*/", "//", "??/", a backslash at the end cannot occur.
std::string comment_text(const ModelText& t, size_t limit = 120);
/// A C string literal with its quotes.
std::string c_string(std::string_view raw);
/// A JSON string literal with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view raw);
/// A C identifier made from any text: [A-Za-z0-9_], no leading digit or underscore, never a keyword of C, C++ or CUDA
/// and nothing that a header may define as a macro, at most `limit` characters; empty text becomes "t". Not injective: see
/// NameTable.
std::string make_identifier(std::string_view raw, size_t limit = 63);
/// The same for what stands behind a prefix of ours, where no word can be a macro.
std::string identifier_part(std::string_view raw, size_t limit = 63);

/// Gives every raw name of one scope its own C identifier. A clash takes 4 hex digits of the raw name's hash, so the
/// result does not depend on the order of the calls' unrelated names.
class NameTable {
 public:
  /// `has_prefix`: the names stand behind a prefix of ours.
  explicit NameTable(bool has_prefix = false) : has_prefix_(has_prefix) {}
  /// The identifier of `raw`; the same for the same text. `limit` counts characters.
  std::string name(const ModelText& raw, size_t limit = 40);
  /// Reserves an identifier of our own.
  void reserve(std::string_view identifier);

 private:
  bool has_prefix_;
  std::map<std::string, std::string> by_raw_;
  std::map<std::string, std::string> taken_;  // lower-cased identifier -> raw
};

/// FNV-1a, 64 bits: stable everywhere, used for keys and suffixes.
uint64_t hash_text(std::string_view text, uint64_t seed = 0xcbf29ce484222325u);
std::string hex(uint64_t v, int digits);

std::string to_text(int64_t v);
std::string to_text(double v);  // shortest that reads back as the same double
std::string to_text(float v);   // shortest that reads back as the same float

/// C literals whose bits survive: "1.0f", "-0.0f", "INFINITY", "NAN", "(-INT64_C(9223372036854775807) - 1)".
std::string c_literal(float v);
std::string c_literal(double v);
std::string c_literal_int(int64_t v, int bits, bool is_signed);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace tc
