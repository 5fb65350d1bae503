#include "support/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace tc {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

void append_hex_byte(std::string& s, unsigned char c) {
  s += "\\x";
  s += kHexDigits[c >> 4];
  s += kHexDigits[c & 15];
}

bool is_alnum(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// Keywords of C, C++ and CUDA, and the macros with small letters of C's, POSIX's and Windows' headers.
// clang-format off
constexpr std::string_view kReserved[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "assert", "auto", "bitand", "bitor", "blockDim", "blockIdx", "bool",
    "break", "case", "catch", "cdecl", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield",
    "compl", "complex", "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "d_fileno",
    "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "errno", "explicit", "export", "extern",
    "false", "far", "float", "for", "friend", "goto", "gridDim", "h_addr", "h_errno", "hyper", "if", "imaginary", "inline", "int",
    "interface", "linux", "long", "main", "math_errhandling", "mutable", "namespace", "near", "new", "noexcept", "noreturn",
    "not", "not_eq", "nullptr", "operator", "or", "or_eq", "pascal", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "restrict", "return", "sched_priority", "short", "signed", "sizeof", "small", "static", "static_assert",
    "static_cast", "stderr", "stdin", "stdout", "struct", "switch", "template", "this", "thread_local", "threadIdx", "throw",
    "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unix", "unsigned", "using", "virtual", "void",
    "volatile", "warpSize", "wchar_t", "while", "xor", "xor_eq",
    "L_ctermid", "L_cuserid", "L_tmpnam", "P_tmpdir"};
// How POSIX begins the macros that stand for members of unions.
constexpr std::string_view kMemberPrefixes[] = {"s6_", "sa_", "si_", "sigev_", "sin_", "st_"};
// clang-format on

bool is_large(char c) { return c >= 'A' && c <= 'Z'; }

// Headers of C, POSIX and of whatever a program includes beside the package define macros in capitals, of which nobody has
// a list: HUGE_VAL, BUFSIZ, CLOCK_MONOTONIC. Some have small letters behind capitals (PRId64, M_PIf). A single capital is
// the name of a tensor; only I is a macro, of complex.h.
bool may_be_macro(std::string_view s) {
  if (s.size() == 1) return s == "I";
  if (!is_large(s[0])) return false;
  const bool all_large = std::none_of(s.begin(), s.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const bool family = s.starts_with("PRI") || s.starts_with("SCN") || s.starts_with("M_") || s.ends_with("_DECnet");
  return all_large || family;
}

bool is_reserved(std::string_view s) {
  if (s.starts_with("TC_")) return true;  // the macros of the package's own text
  for (const std::string_view prefix : kMemberPrefixes)
    if (s.starts_with(prefix)) return true;
  return may_be_macro(s) || std::find(std::begin(kReserved), std::end(kReserved), s) != std::end(kReserved);
}

// Length of the valid UTF-8 sequence at s[i], 0 if it is none.
size_t utf8_length(std::string_view s, size_t i) {
  const auto c = static_cast<unsigned char>(s[i]);
  if (c < 0x80) return 1;
  const size_t n = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
  if (n == 0 || c >= 0xf5 || i + n > s.size()) return 0;
  for (size_t k = 1; k < n; k++)
    if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return 0;
  const auto d = static_cast<unsigned char>(s[i + 1]);
  if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) || (c == 0xf4 && d > 0x8f))
    return 0;
  return n;
}

template <class T>
std::string shortest(T v) {
  std::array<char, 64> buffer;
  const auto r = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v);
  return std::string(buffer.data(), r.ptr);
}

template <class T>
std::string c_float_literal(T v, std::string_view suffix) {
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
  std::string s = shortest(v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + std::string(suffix);
}

}  // namespace

std::string printable(std::string_view raw, size_t limit) {
  std::string s;
  for (const char ch : raw) {
    if (s.size() >= limit) return s + "...";
    const auto c = static_cast<unsigned char>(ch);
    if (c >= 0x20 && c < 0x7f && c != '\\')
      s += ch;
    else
      append_hex_byte(s, c);
  }
  return s;
}

std::string comment_text(const ModelText& t, size_t limit) {
  std::string s;
  char last = 0;
  for (const char ch : t.raw()) {
    if (s.size() >= limit) return s + "...";
    const auto c = static_cast<unsigned char>(ch);
    const bool plain = c >= 0x20 && c < 0x7f && c != '\\' && c != '@' && c != '"' && c != '?';
    const bool opens = (ch == '/' && (last == '*' || last == '/')) || (ch == '*' && last == '/');
    if (plain && !opens) {
      s += ch;
      last = ch;
    } else {
      append_hex_byte(s, c);
      last = 0;
    }
  }
  return s;
}

std::string c_string(std::string_view raw) {
  std::string s = "\"";
  for (const char ch : raw) {
    const auto c = static_cast<unsigned char>(ch);
    if (c == '"' || c == '\\')
      (s += '\\') += ch;
    else if (c >= 0x20 && c < 0x7f && c != '?')
      s += ch;
    else {  // three octal digits end by themselves, unlike \x
      s += '\\';
      s += char('0' + (c >> 6));
      s += char('0' + ((c >> 3) & 7));
      s += char('0' + (c & 7));
    }
  }
  return s + "\"";
}

std::string json_string(std::string_view raw) {
  std::string s = "\"";
  for (size_t i = 0; i < raw.size();) {
    const auto c = static_cast<unsigned char>(raw[i]);
    const size_t n = utf8_length(raw, i);
    if (n == 0) {
      s += "\\ufffd";
      i++;
    } else if (n > 1) {
      s.append(raw.substr(i, n));
      i += n;
    } else {
      if (c == '"' || c == '\\')
        (s += '\\') += raw[i];
      else if (c < 0x20 || c == 0x7f) {
        s += "\\u00";
        s += kHexDigits[c >> 4];
        s += kHexDigits[c & 15];
      } else
        s += raw[i];
      i++;
    }
  }
  return s + "\"";
}

std::string identifier_part(std::string_view raw, size_t limit) {
  std::string s;
  for (const char ch : raw) {
    if (s.size() >= limit) break;
    if (is_alnum(static_cast<unsigned char>(ch)))
      s += ch;
    else if (!s.empty() && s.back() != '_')
      s += '_';
  }
  while (!s.empty() && s.back() == '_') s.pop_back();
  if (s.empty()) s = "t";
  if (s[0] >= '0' && s[0] <= '9') s = "t" + s.substr(0, limit - 1);
  return s;
}

std::string make_identifier(std::string_view raw, size_t limit) {
  std::string s = identifier_part(raw, limit);
  if (is_reserved(s)) s = s.substr(0, limit - 1) + "_";
  return s;
}

std::string NameTable::name(const ModelText& raw, size_t limit) {
  if (const auto it = by_raw_.find(raw.raw()); it != by_raw_.end()) return it->second;
  const auto identifier = has_prefix_ ? identifier_part : make_identifier;
  std::string id = identifier(raw.raw(), limit);
  auto lower = [](std::string s) {
    for (char& c : s)
      if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return s;
  };
  for (uint64_t salt = 0; taken_.count(lower(id)) != 0; salt++) {
    const std::string suffix = "_" + hex(hash_text(raw.raw(), hash_text(to_text(int64_t(salt)))), 4);
    id = identifier(raw.raw(), limit - suffix.size()) + suffix;
  }
  taken_[lower(id)] = raw.raw();
  return by_raw_[raw.raw()] = id;
}

void NameTable::reserve(std::string_view identifier) {
  std::string s(identifier);
  for (char& c : s)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  taken_[s] = "";
}

uint64_t hash_text(std::string_view text, uint64_t seed) {
  uint64_t h = seed;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

std::string hex(uint64_t v, int digits) {
  std::string s(size_t(digits), '0');
  for (int i = digits - 1; i >= 0; i--, v >>= 4) s[size_t(i)] = kHexDigits[v & 15];
  return s;
}

std::string to_text(int64_t v) { return shortest(v); }
std::string to_text(double v) { return shortest(v); }
std::string to_text(float v) { return shortest(v); }

std::string c_literal(float v) { return std::isfinite(v) ? c_float_literal(v, "f") : c_float_literal(v, ""); }
std::string c_literal(double v) {
  return std::isfinite(v) ? c_float_literal(v, "") : "(double)" + c_float_literal(v, "");
}

std::string c_literal_int(int64_t v, int bits, bool is_signed) {
  if (is_signed) {
    if (bits <= 32) return v == INT32_MIN ? "(-2147483647 - 1)" : to_text(v);
    if (v == INT64_MIN) return "(-INT64_C(9223372036854775807) - 1)";
    return v > INT32_MAX || v < -INT32_MAX ? (v < 0 ? "-INT64_C(" + to_text(-v) + ")" : "INT64_C(" + to_text(v) + ")")
                                           : to_text(v);
  }
  const auto u = static_cast<uint64_t>(v);
  if (bits <= 32) return to_text(int64_t(u & 0xffffffffu)) + "u";
  return "UINT64_C(" + shortest(u) + ")";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string s;
  for (size_t i = 0; i < parts.size(); i++) {
    if (i > 0) s += separator;
    s += parts[i];
  }
  return s;
}

}  // namespace tc
