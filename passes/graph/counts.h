// Numbers of elements that depend on data, as sums: what Reshape multiplies, Concat adds and shape arithmetic computes.
#pragma once
#include <map>
#include <optional>

#include "passes/graph/rewrite.h"

namespace tc {

/// A number of elements: counts, each times a factor, and an addend.
struct SizeForm {
  std::map<int, int64_t> factors;  // by id of the count, an i64 scalar of the graph; none is 0
  int64_t addend = 0;
  bool fixed() const { return factors.empty(); }
  bool operator==(const SizeForm&) const = default;
};

/// The number itself.
inline SizeForm fixed_size(int64_t n) { return {{}, n}; }
SizeForm operator+(const SizeForm& a, const SizeForm& b);
SizeForm operator*(const SizeForm& a, int64_t factor);
/// Whatever the counts are?
bool never_negative(const SizeForm& a);
/// The product, if one of them is fixed.
std::optional<SizeForm> product(const SizeForm& a, const SizeForm& b);
/// a / n, if that is a sum of counts again.
std::optional<SizeForm> quotient(const SizeForm& a, int64_t n);

/// The counts of a graph and their upper bounds. Equal sums are one value, so that tensors which are counted by equal
/// sums can meet.
class Counts {
 public:
  /// `v` counts at most `bound` elements. Of two bounds the first one holds.
  void add(Value* v, int64_t bound);
  /// What `v` is, if it is a count.
  std::optional<SizeForm> find(const Value* v) const;
  /// The run is refused where `f` is more than `bound`.
  void limit(const SizeForm& f, int64_t bound);
  /// The largest number that it can be.
  int64_t bound(const SizeForm& f) const;
  /// The value of a form that is not fixed, made before `before` where it is new.
  Value* value_of(Graph& g, Node* before, const SizeForm& f, const ModelText& name);

 private:
  struct Count {
    Value* value = nullptr;
    int64_t bound = 0;
  };
  std::map<int, Count> counts_;                                          // by id: what is no sum of others
  std::map<int, SizeForm> forms_;                                        // by id of the sum
  std::map<std::pair<std::map<int, int64_t>, int64_t>, Value*> values_;  // sums by what they add
  std::map<std::pair<std::map<int, int64_t>, int64_t>, int64_t> limits_;
};

}  // namespace tc
