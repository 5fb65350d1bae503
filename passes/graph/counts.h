// Numbers of elements that depend on data or that the caller chooses, as polynomials of counts: what Reshape multiplies, Concat
// adds, a window divides and shape arithmetic computes.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "passes/graph/rewrite.h"

namespace tc {

/// A number of elements: products of atoms, each times a factor, and an addend. An atom is a count, an i64 scalar of the graph, or
/// made of forms, which Counts knows by a negative id: the quotient of a form and a number, the lesser or larger of two forms. Atoms
/// are never negative.
struct SizeForm {
  std::map<std::vector<int>, int64_t> terms;  // factors by the ids that are multiplied, in order; none is 0
  int64_t addend = 0;
  bool fixed() const { return terms.empty(); }
  auto operator<=>(const SizeForm&) const = default;
};

/// The number itself.
inline SizeForm fixed_size(int64_t n) { return {{}, n}; }
SizeForm operator+(const SizeForm& a, const SizeForm& b);
SizeForm operator-(const SizeForm& a, const SizeForm& b);
SizeForm operator*(const SizeForm& a, int64_t factor);
SizeForm operator*(const SizeForm& a, const SizeForm& b);
/// a / b, if that is a form without quotients more.
std::optional<SizeForm> exact_quotient(const SizeForm& a, const SizeForm& b);

/// Multiples of a number, which one count shall be: from `least` to `most` times `factor`.
struct Multiples {
  const Value* count = nullptr;
  int64_t factor = 1, least = 0, most = 0;
};

/// The counts of a graph and their bounds. Equal forms are one value, so that tensors which are counted by equal forms can
/// meet.
class Counts {
 public:
  /// `v` counts at most `most` elements, and not fewer than `least`. Of two bounds the first one holds.
  void add(Value* v, int64_t most, int64_t least = 0);
  /// What `v` is, if it is a count.
  std::optional<SizeForm> find(const Value* v) const;
  /// Is it made of others?
  bool is_computed(const Value* v) const { return forms_.count(v->id) != 0; }
  /// The run is refused where `f` is more than `bound`.
  void limit(const SizeForm& f, int64_t bound);
  /// The largest number that it can be.
  int64_t bound(const SizeForm& f) const;
  /// The least number that it can be.
  int64_t least(const SizeForm& f) const;
  /// The number itself where it can be no other.
  SizeForm simplest(const SizeForm& f) const;
  /// The largest whole number that is not above a / n; n > 0.
  SizeForm quotient(const SizeForm& a, int64_t n);
  /// The number that `f` is the lesser of, it and `other`.
  std::optional<int64_t> end_within(const SizeForm& f, const SizeForm& other) const;
  /// The count that `f` is, and nothing else.
  const Value* only_count(const SizeForm& f) const;
  /// The multiples of the smallest number that make both the same, where both are of one count: a U-Net of height h halves and doubles,
  /// floor(floor(h / 2) / 2) * 2 and floor(h / 2). Nothing where there is no such number below 1024, or no upper bound.
  std::optional<Multiples> where_equal(const SizeForm& a, const SizeForm& b) const;
  /// The two counts that have to be one for `a` and `b` to be equal: n + 1 and m + 1.
  std::optional<std::pair<const Value*, const Value*>> equal_if(const SizeForm& a, const SizeForm& b) const;
  /// The lesser of two, neither of which is ever negative.
  SizeForm lesser(const SizeForm& a, const SizeForm& b);
  /// The larger of two, one of which is never negative.
  SizeForm larger(const SizeForm& a, const SizeForm& b);
  /// The value of a form that is not fixed, made before `before` where it is new.
  Value* value_of(Graph& g, Node* before, const SizeForm& f, const ModelText& name);
  /// `v` may be asked for again.
  void remember(Value* v) { new_.push_back(v); }
  /// Values that are known here since this was asked last.
  std::vector<Value*> take_new() { return std::exchange(new_, {}); }

 private:
  struct Count {
    Value* value = nullptr;
    int64_t least = 0, most = 0;
  };
  struct Derived {
    enum class Kind { Quotient, Lesser, Larger } kind = Kind::Quotient;
    SizeForm form;
    int64_t divisor = 1;     // of a quotient
    SizeForm other;          // of the others
    Value* value = nullptr;  // made when it is asked for
  };
  SizeForm derived_atom(const Derived& d);
  int64_t end_of_atom(int id, bool upper) const;
  struct Parts {
    std::set<int> counts;
    bool falls = false, derived = false;  // has it negative factors, atoms that are made of forms?
  };
  void collect(const SizeForm& f, Parts& parts) const;
  /// What it is where the counts are known.
  int64_t at(const SizeForm& f, const std::map<int, int64_t>& counts) const;
  int64_t at_atom(int id, const std::map<int, int64_t>& counts) const;
  /// Its end over all choices of its counts, where it falls with some and these are few.
  std::optional<int64_t> end_by_trying(const SizeForm& f, bool upper) const;
  int64_t end_of(const SizeForm& f, bool upper) const;
  Value* value_of_atom(Graph& g, Node* before, int id, const ModelText& name);

  std::map<int, Count> counts_;    // by id: what is no form of others
  std::vector<Derived> derived_;   // the one with id -1, that with id -2 ...
  std::map<int, SizeForm> forms_;  // by id of the value that has been made of one
  mutable std::map<std::pair<SizeForm, bool>, int64_t> tried_;
  std::map<SizeForm, Value*> values_;
  std::map<SizeForm, int64_t> limits_;
  std::vector<Value*> new_;
};

}  // namespace tc
