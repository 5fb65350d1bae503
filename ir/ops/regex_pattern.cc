// RE2's syntax: a range of code points becomes the few sequences of byte ranges that encode it.
#include "ir/ops/regex_pattern.h"

#include <algorithm>
#include <map>

#include "support/error.h"
#include "support/text.h"

namespace tc::regex {
namespace {

constexpr uint32_t kLast = 0x10FFFF;
constexpr int kMaxDepth = 100, kMaxRepeat = 1000;
constexpr size_t kMaxEdges = 200'000;

Runes sorted(Runes r) {
  std::sort(r.begin(), r.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  Runes merged;
  for (const Range& x : r) {
    if (!merged.empty() && x.first <= merged.back().last + 1)
      merged.back().last = std::max(merged.back().last, x.last);
    else
      merged.push_back(x);
  }
  return merged;
}

Runes complement(const Runes& r) {
  Runes out;
  uint32_t from = 0;
  for (const Range& x : sorted(r)) {
    if (x.first > from) out.push_back({from, x.first - 1});
    from = x.last + 1;
  }
  if (from <= kLast) out.push_back({from, kLast});
  return out;
}

std::string encoded(uint32_t c) {
  if (c < 0x80) return {char(c)};
  if (c < 0x800) return {char(0xC0 | c >> 6), char(0x80 | (c & 63))};
  if (c < 0x10000) return {char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  return {char(0xF0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
}

const std::map<std::string, Runes>& posix_classes() {
  static const std::map<std::string, Runes> table = {{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
                                                     {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
                                                     {"ascii", {{0, 0x7F}}},
                                                     {"blank", {{'\t', '\t'}, {' ', ' '}}},
                                                     {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
                                                     {"digit", {{'0', '9'}}},
                                                     {"graph", {{'!', '~'}}},
                                                     {"lower", {{'a', 'z'}}},
                                                     {"print", {{' ', '~'}}},
                                                     {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
                                                     {"space", {{'\t', '\r'}, {' ', ' '}}},
                                                     {"upper", {{'A', 'Z'}}},
                                                     {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
                                                     {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  return table;
}

class Parser {
 public:
  Parser(const std::string& p, Choices& b) : p_(p), b_(b) {}

  Piece whole() {
    const Piece x = choice(0);
    if (at_ < p_.size()) wrong("a ) without a (");
    return x;
  }

 private:
  bool more() const { return at_ < p_.size(); }
  bool next_is(char c) const { return more() && p_[at_] == c; }
  bool take(std::string_view s) {
    if (p_.compare(at_, s.size(), s) != 0) return false;
    at_ += s.size();
    return true;
  }

  Piece choice(int depth) {
    if (depth > kMaxDepth) missing("groups are nested too deeply");
    const Piece all{b_.state(), b_.state()};
    do {
      const Piece one = sequence(depth);
      b_.edge(all.begin, one.begin);
      b_.edge(one.end, all.end);
    } while (take("|"));
    return all;
  }

  Piece sequence(int depth) {
    Piece all = b_.nothing();
    while (more() && !next_is('|') && !next_is(')')) all = b_.then(all, repeated(depth));
    return all;
  }

  Piece repeated(int depth) {
    const size_t begin = at_;
    Piece x = atom(depth);
    const size_t end = at_;
    while (more()) {
      int least = 0, most = -1;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!counted(least, most)) {
        break;
      }
      take("?");  // which match is preferred does not matter
      if (next_is('*') || next_is('+') || next_is('?')) wrong("a repetition of a repetition");
      x = times(x, least, most, begin, end, depth);
      if (next_is('{')) missing("a repetition of a repetition");
    }
    return x;
  }

  /// "{3}", "{3,}", "{3,5}"; otherwise the brace is a character of its own.
  bool counted(int& least, int& most) {
    const size_t start = at_;
    const auto number = [&](int& n) {
      const size_t from = at_;
      n = 0;
      while (more() && p_[at_] >= '0' && p_[at_] <= '9') {
        n = n * 10 + (p_[at_++] - '0');
        if (n > kMaxRepeat) wrong("a repetition of more than 1000");
      }
      return at_ > from;
    };
    bool ok = take("{") && number(least);
    most = least;
    if (ok && take(",") && !number(most)) most = -1;
    ok = ok && take("}");
    if (ok && most >= 0 && most < least) wrong("a repetition whose limits are the wrong way round");
    if (!ok) at_ = start;
    return ok;
  }

  /// The atom between begin and end, of which `first` is built already; each copy is parsed again.
  Piece times(Piece first, int least, int most, size_t begin, size_t end, int depth) {
    const auto copy = [&] {
      const size_t here = at_;
      at_ = begin;
      const Piece x = atom(depth);
      check(at_ == end, "an atom is what it was");
      at_ = here;
      return x;
    };
    Piece all = b_.nothing();
    bool used = false;
    const auto one = [&] {
      if (used) return copy();
      used = true;
      return first;
    };
    for (int k = 0; k < least; k++) all = b_.then(all, one());
    if (most < 0) {
      const Piece x = one(), loop = b_.nothing();
      b_.edge(loop.begin, x.begin);
      b_.edge(x.end, loop.begin);
      return b_.then(all, loop);
    }
    const int stop = b_.state();
    for (int k = least; k < most; k++) {
      b_.edge(all.end, stop);
      all = b_.then(all, one());
    }
    b_.edge(all.end, stop);
    return {all.begin, stop};
  }

  Piece atom(int depth) {
    if (take("(")) {
      if (take("?")) {
        if (take("P<") || take("<")) {
          const size_t close = p_.find('>', at_);
          if (close == std::string::npos) wrong("a name of a group without an end");
          at_ = close + 1;
        } else if (!take(":")) {
          missing("flags");
        }
      }
      const Piece x = choice(depth + 1);
      if (!take(")")) wrong("a ( without a )");
      return x;
    }
    if (take("[")) return b_.runes(bracket());
    if (take(".")) return b_.runes(complement({{'\n', '\n'}}));
    if (next_is('*') || next_is('+') || next_is('?')) wrong("a repetition of nothing");
    if (take("^") || take("\\A")) return b_.where(kBegin);
    if (take("$") || take("\\z")) return b_.where(kEnd);
    if (take("\\b")) return b_.where(kWordBorder);
    if (take("\\B")) return b_.where(kNoWordBorder);
    if (take("\\")) return b_.runes(escape(false));
    const uint32_t c = code_point();
    return b_.runes({{c, c}});
  }

  Runes bracket() {
    const bool negated = take("^");
    Runes set;
    for (bool first = true; first || !next_is(']'); first = false) {
      if (!more()) wrong("a [ without a ]");
      if (take("[:")) {
        const bool not_in = take("^");
        const size_t close = p_.find(":]", at_);
        const auto it =
            close == std::string::npos ? posix_classes().end() : posix_classes().find(p_.substr(at_, close - at_));
        if (it == posix_classes().end()) wrong("an unknown class [:...:]");
        const Runes some = not_in ? complement(it->second) : it->second;
        set.insert(set.end(), some.begin(), some.end());
        at_ = close + 2;
        continue;
      }
      const Runes from = member();
      if (next_is('-') && at_ + 1 < p_.size() && p_[at_ + 1] != ']') {
        at_++;
        const Runes to = member();
        if (from.size() != 1 || from[0].first != from[0].last || to.size() != 1 || to[0].first != to[0].last ||
            to[0].first < from[0].first)
          wrong("a range whose ends are the wrong way round or classes");
        set.push_back({from[0].first, to[0].first});
      } else {
        set.insert(set.end(), from.begin(), from.end());
      }
    }
    at_++;
    return negated ? complement(set) : set;
  }
  Runes member() {
    if (take("\\")) return escape(true);
    const uint32_t c = code_point();
    return {{c, c}};
  }

  Runes escape(bool in_class) {
    if (!more()) wrong("a \\ at the end");
    const char c = p_[at_++];
    const auto known = [](const char* name) { return posix_classes().at(name); };
    const Runes space = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};  // without the vertical tab, as in Perl
    switch (c) {
      case 'd': return known("digit");
      case 'D': return complement(known("digit"));
      case 'w': return known("word");
      case 'W': return complement(known("word"));
      case 's': return space;
      case 'S': return complement(space);
      case 'n': return {{'\n', '\n'}};
      case 't': return {{'\t', '\t'}};
      case 'r': return {{'\r', '\r'}};
      case 'f': return {{'\f', '\f'}};
      case 'v': return {{'\v', '\v'}};
      case 'a': return {{'\a', '\a'}};
      case 'x': return hexadecimal();
      default: break;
    }
    const bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || uint8_t(c) >= 0x80;
    if (word) missing(std::string("\\") + printable(std::string(1, c)) + (in_class ? " in a class" : ""));
    return {{uint32_t(c), uint32_t(c)}};
  }

  Runes hexadecimal() {
    const bool braces = take("{");
    uint32_t v = 0;
    int digits = 0;
    for (; more() && digits < (braces ? 6 : 2); digits++, at_++) {
      const char c = p_[at_];
      const int d = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
      if (d < 0) break;
      v = v * 16 + uint32_t(d);
    }
    if (digits == 0 || (!braces && digits != 2) || (braces && !take("}")) || v > kLast)
      wrong("a \\x without its number");
    return {{v, v}};
  }

  uint32_t code_point() {
    const auto byte = [&](size_t k) { return at_ + k < p_.size() ? uint32_t(uint8_t(p_[at_ + k])) : 0u; };
    const uint32_t b = byte(0);
    const int length = b < 0x80                ? 1
                       : b >= 0xC2 && b < 0xE0 ? 2
                       : b >= 0xE0 && b < 0xF0 ? 3
                       : b >= 0xF0 && b < 0xF5 ? 4
                                               : 0;
    if (length == 0) wrong("bytes that are no UTF-8");
    uint32_t c = length == 1 ? b : b & (0xFFu >> (length + 1));
    for (int k = 1; k < length; k++) {
      if ((byte(size_t(k)) & 0xC0) != 0x80) wrong("bytes that are no UTF-8");
      c = c << 6 | (byte(size_t(k)) & 63);
    }
    at_ += size_t(length);
    return c;
  }

  const std::string& p_;
  Choices& b_;
  size_t at_ = 0;
};

}  // namespace

void Choices::edge(int from, int to, int first, int last) {
  if (++count_ > kMaxEdges) missing("the pattern is too large");
  edges[size_t(from)].push_back({to, first, last});
}

Piece Choices::runes(const Runes& set) {
  const Piece p{state(), state()};
  for (const Range& r : sorted(set)) code_points(p, r.first, r.last);
  return p;
}

// All sequences of bytes for first..last: cut where the length of the encoding changes, and where bytes behind differ.
void Choices::code_points(const Piece& p, uint32_t first, uint32_t last) {
  if (first > last) return;
  for (const uint32_t cut : {0x7Fu, 0x7FFu, 0xFFFFu, 0xD7FFu, 0xDFFFu})
    if (first <= cut && cut < last) return code_points(p, first, cut), code_points(p, cut + 1, last);
  if (first >= 0xD800 && last <= 0xDFFF) return;  // surrogates have no encoding
  for (uint32_t bits = 6; first >= 0x80 && bits <= 18; bits += 6) {
    const uint32_t low = (1u << bits) - 1;
    if ((first & ~low) == (last & ~low)) continue;
    if ((first & low) != 0) return code_points(p, first, first | low), code_points(p, (first | low) + 1, last);
    if ((last & low) != low) return code_points(p, first, (last & ~low) - 1), code_points(p, last & ~low, last);
  }
  const std::string a = encoded(first), b = encoded(last);
  int from = p.begin;
  for (size_t k = 0; k < a.size(); k++) {
    const int to = k + 1 == a.size() ? p.end : state();
    edge(from, to, uint8_t(a[k]), uint8_t(b[k]));
    from = to;
  }
}

Piece parse(const std::string& pattern, Choices& choices) { return Parser(pattern, choices).whole(); }

}  // namespace tc::regex
