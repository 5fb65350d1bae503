// Types of values: tensors with static, bounded or symbolic sizes, sequences, optionals.
#pragma once
#include <compare>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/dtype.h"
#include "support/error.h"

namespace tc {

/// A symbol in a sum: `factor` times a run-time size from `least` to `most`.
struct DimTerm {
  std::string symbol;
  int64_t factor = 1, least = 0, most = 0;
  bool operator==(const DimTerm&) const = default;
};

/// One size. Constant when `symbol` is empty; else a run-time size of that name, from `least` to `value` (-1: no bound
/// known). With terms it follows from other symbols: their sum and an addend.
struct Dim {
  int64_t value = -1;
  std::string symbol;
  int64_t least = 0;
  std::vector<DimTerm> terms = {};
  int64_t addend = 0;

  Dim() = default;
  Dim(int64_t v) : value(v) {}  // NOLINT: sizes are written as numbers
  static Dim symbolic(std::string name, int64_t bound = -1) {
    Dim d(bound);
    d.symbol = std::move(name);
    return d;
  }
  bool is_const() const { return symbol.empty() && value >= 0; }
  bool follows() const { return !terms.empty(); }
  /// Chosen when the model runs, within known bounds?
  bool is_bounded() const { return !symbol.empty() && value >= 0; }
  bool operator==(const Dim&) const = default;
};
/// A size that follows from others, its bounds by theirs; named like its text. Throws Error where they exceed 64 bits.
Dim sum_of(std::vector<DimTerm> terms, int64_t addend);
using Shape = std::vector<Dim>;
using Dims = std::vector<int64_t>;  // all constant

/// A size that follows from inputs of a graph that are sizes: each times a factor, and an addend.
struct SizeSum {
  struct Term {
    size_t input = 0;
    int64_t factor = 1;
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;
  int64_t addend = 0;
  static SizeSum of(size_t input) { return {{{input, 1}}, 0}; }
  /// One of them as it is?
  bool is_one() const { return terms.size() == 1 && terms[0].factor == 1 && addend == 0; }
  bool operator==(const SizeSum&) const = default;
  /// `size` gives the number that input k is.
  template <class F>
  int64_t value(const F& size) const {
    int64_t n = addend;
    for (const Term& t : terms) n += t.factor * size(t.input);
    return n;
  }
};

bool is_static(const Shape& s);
/// The sizes as numbers; throws InternalError if one is not constant (ask is_static first).
Dims static_dims(const Shape& s);
Shape to_shape(const Dims& d);
/// Product, 64-bit checked. 1 for rank 0.
int64_t num_elements(const Dims& d);
/// Also where no number of 64 bits says how many there are.
bool has_no_elements(const Dims& d);
bool has_one_element(const Dims& d);
/// The numbers of elements of two tensors in proportion: axes that both have do not count, so that there are such numbers of what
/// nobody can store, too (ir/open_size.h). Throws Error TC0501 where the rest does not fit 64 bits.
std::pair<int64_t, int64_t> elements_in_proportion(Dims a, Dims b);
/// Which of two tensors has more elements. Throws Error TC0501 where the rest of neither fits.
std::strong_ordering compare_elements(Dims a, Dims b);
std::string to_text(const Shape& s);  // "1x3x224x224", "scalar" for rank 0

struct ValueType {
  enum class Kind { None, Tensor, Sequence, Optional } kind = Kind::None;
  DType dtype = DType::Undefined;            // Tensor
  Shape shape;                               // Tensor
  bool has_rank = true;                      // Tensor: false when nothing is known of the shape
  std::shared_ptr<const ValueType> element;  // Sequence, Optional

  static ValueType tensor(DType t, Shape s) { return {Kind::Tensor, t, std::move(s), true, nullptr}; }
  bool is_tensor() const { return kind == Kind::Tensor; }
  bool is_static_tensor() const { return is_tensor() && has_rank && is_static(shape); }
  bool operator==(const ValueType& o) const;
};
std::string to_text(const ValueType& t);  // "f32[1,3,224,224]"

/// A constant tensor: immutable, shared. Layout: row-major, one element per info(dtype).bytes bytes (sub-byte types are
/// unpacked to one byte each, little endian). Strings live in `strings`, one an element, and have no bytes.
struct TensorData {
  DType dtype = DType::Undefined;
  Dims dims;
  std::shared_ptr<const uint8_t> bytes;  // may point into a mapped file; alive as long as this pointer
  size_t num_bytes = 0;
  std::vector<std::string> strings;

  int64_t size() const { return num_elements(dims); }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.get());
  }
  /// Element i as double / int64 whatever the type (narrow floats widened).
  double as_double(int64_t i) const;
  int64_t as_int(int64_t i) const;
  std::vector<int64_t> as_ints() const;
};
using Constant = std::shared_ptr<const TensorData>;

/// Owns a fresh zeroed buffer; `fill` the bytes through the returned pointer before sharing it.
struct MutableTensor {
  TensorData data;
  uint8_t* bytes = nullptr;
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes);
  }
};
MutableTensor new_tensor(DType t, Dims dims);
Constant make_constant(DType t, Dims dims, const void* bytes);
Constant int64_constant(const std::vector<int64_t>& v);  // rank 1
Constant scalar_constant(DType t, double v);             // rank 0; a number
Constant string_constant(Dims dims, std::vector<std::string> v);

}  // namespace tc
