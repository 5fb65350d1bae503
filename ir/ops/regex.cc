// A pattern is parsed into an automaton with choices (regex_pattern.h), whose edges are ranges of bytes. Subsets of its
// states become the states of the deterministic one, beside what the last byte was, which ^, $ and \b ask for; bytes that
// no edge tells apart share a class.
#include "ir/ops/regex.h"

#include <array>
#include <map>
#include <set>

#include "ir/ops/regex_pattern.h"

namespace tc {
namespace {

using namespace regex;

constexpr size_t kMaxStates = 2000, kMaxSteps = 20'000'000;

enum class Kind { Border, Word, Other };  // of a byte, or no byte: the string begins or ends there

Kind kind_of(int byte) {
  const bool word =
      (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || byte == '_' || (byte >= 'a' && byte <= 'z');
  return word ? Kind::Word : Kind::Other;
}

bool holds(int condition, Kind before, Kind behind) {
  switch (condition) {
    case kBegin: return before == Kind::Border;
    case kEnd: return behind == Kind::Border;
    case kWordBorder: return (before == Kind::Word) != (behind == Kind::Word);
    case kNoWordBorder: return (before == Kind::Word) == (behind == Kind::Word);
    default: return condition == kAlways;
  }
}

class Determiner {
 public:
  Determiner(const Choices& b, const Piece& all) : b_(b), all_(all) {}

  /// A state is a set of positions behind a byte of some kind, before it is known what follows.
  Automaton run() {
    using State = std::pair<std::vector<int>, Kind>;
    classes();
    std::map<State, int> known;
    std::vector<State> states = {{{all_.begin}, Kind::Border}};
    known[states[0]] = 0;
    for (size_t s = 0; s < states.size(); s++) {
      const State here = states[s];
      const std::set<int> before_word = closure(here.first, here.second, Kind::Word),
                          before_other = closure(here.first, here.second, Kind::Other);
      for (int c = 0; c < a_.classes; c++) {
        const int byte = sample_[size_t(c)];
        const Kind kind = kind_of(byte);
        const std::set<int> to = step(kind == Kind::Word ? before_word : before_other, byte);
        // Without positions nothing matters any more.
        const State next = {{to.begin(), to.end()}, to.empty() || !asks_for_words_ ? Kind::Other : kind};
        const auto [it, fresh] = known.try_emplace(next, int(states.size()));
        if (fresh) states.push_back(next);
        if (states.size() > kMaxStates) missing("the pattern needs more than 2000 states");
        a_.next.push_back(it->second);
      }
      a_.accepts.push_back(closure(here.first, here.second, Kind::Border).count(all_.end) != 0);
    }
    return std::move(a_);
  }

 private:
  void classes() {
    std::array<bool, 257> cut{};
    for (const auto& list : b_.edges)
      for (const Edge& e : list) {
        if (e.first >= 0) cut[size_t(e.first)] = cut[size_t(e.last) + 1] = true;
        asks_for_words_ = asks_for_words_ || e.first == kWordBorder || e.first == kNoWordBorder;
      }
    for (int byte = 1; asks_for_words_ && byte < 256; byte++)
      if (kind_of(byte) != kind_of(byte - 1)) cut[size_t(byte)] = true;
    a_.classes = 0;
    for (size_t byte = 0; byte < 256; byte++) {
      if (byte == 0 || cut[byte]) {
        a_.classes++;
        sample_.push_back(int(byte));
      }
      a_.class_of[byte] = uint8_t(a_.classes - 1);
    }
  }
  void work() {
    if (++steps_ > kMaxSteps) missing("the pattern needs too much work");
  }
  std::set<int> closure(std::vector<int> open, Kind before, Kind behind) {
    std::set<int> seen(open.begin(), open.end());
    while (!open.empty()) {
      const int q = open.back();
      open.pop_back();
      for (const Edge& e : b_.edges[size_t(q)]) {
        work();
        if (e.first < 0 && holds(e.first, before, behind) && seen.insert(e.to).second) open.push_back(e.to);
      }
    }
    return seen;
  }
  std::set<int> step(const std::set<int>& from, int byte) {
    std::set<int> to;
    for (const int q : from)
      for (const Edge& e : b_.edges[size_t(q)]) {
        work();
        if (e.first >= 0 && e.first <= byte && byte <= e.last) to.insert(e.to);
      }
    return to;
  }

  const Choices& b_;
  Piece all_;
  Automaton a_;
  bool asks_for_words_ = false;
  std::vector<int> sample_;  // a byte of each class
  size_t steps_ = 0;
};

}  // namespace

RegexResult full_match_automaton(const std::string& pattern) {
  try {
    Choices b;
    const Piece all = parse(pattern, b);
    return {Determiner(b, all).run(), "", false};
  } catch (const Problem& p) {
    return {{}, p.what, p.unsupported};
  }
}

}  // namespace tc
