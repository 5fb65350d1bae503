// Numbers of elements that depend on data or that the caller chooses, as polynomials of counts: what Reshape multiplies, Concat
// adds, a window divides and shape arithmetic computes.
#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "passes/graph/rewrite.h"

namespace tc {

/// A number of elements: products of atoms, each times a factor, and an addend. An atom is a count, an i64 scalar of the graph, or
/// the quotient of a form and a number, which Counts knows by a negative id. Atoms are never negative.
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
  /// The largest whole number that is not above a / n; n > 0.
  SizeForm quotient(const SizeForm& a, int64_t n);
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
  struct Quotient {
    SizeForm form;
    int64_t divisor = 1;
    Value* value = nullptr;  // made when it is asked for
    auto operator<=>(const Quotient&) const = default;
  };
  int64_t end_of_atom(int id, bool upper) const;
  int64_t end_of(const SizeForm& f, bool upper) const;
  Value* value_of_atom(Graph& g, Node* before, int id, const ModelText& name);

  std::map<int, Count> counts_;      // by id: what is no form of others
  std::vector<Quotient> quotients_;  // the one with id -1, that with id -2 ...
  std::map<int, SizeForm> forms_;    // by id of the value that has been made of one
  std::map<SizeForm, Value*> values_;
  std::map<SizeForm, int64_t> limits_;
  std::vector<Value*> new_;
};

}  // namespace tc
