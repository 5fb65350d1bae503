// The automaton with choices that a pattern is parsed into (Thompson's construction). Internal to regex*.cc.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tc::regex {

struct Range {
  uint32_t first, last;
};
using Runes = std::vector<Range>;

/// Thrown by all of it: what is wrong with the pattern, or what is missing here.
struct Problem {
  std::string what;
  bool unsupported;
};
[[noreturn]] inline void wrong(const std::string& what) { throw Problem{what, false}; }
[[noreturn]] inline void missing(const std::string& what) { throw Problem{what, true}; }

// Edges that read nothing: always there, or where something is true of the position.
enum : int { kAlways = -1, kBegin = -2, kEnd = -3, kWordBorder = -4, kNoWordBorder = -5 };

struct Edge {
  int to;
  int first, last;  // bytes; first < 0: none is read, and it says when the edge is there
};

/// A part of the automaton: where it is entered, and where it is left.
struct Piece {
  int begin, end;
};

class Choices {
 public:
  std::vector<std::vector<Edge>> edges;

  int state() {
    edges.emplace_back();
    return int(edges.size()) - 1;
  }
  void edge(int from, int to, int first = kAlways, int last = -1);
  Piece nothing() {
    const int s = state();
    return {s, s};
  }
  /// One code point of a set.
  Piece runes(const Runes& set);
  Piece where(int condition) {
    const Piece p{state(), state()};
    edge(p.begin, p.end, condition);
    return p;
  }
  Piece then(const Piece& a, const Piece& b) {
    edge(a.end, b.begin);
    return {a.begin, b.end};
  }

 private:
  void code_points(const Piece& p, uint32_t first, uint32_t last);
  size_t count_ = 0;
};

/// Parses a whole pattern; throws Problem.
Piece parse(const std::string& pattern, Choices& choices);

}  // namespace tc::regex
