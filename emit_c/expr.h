// Loop IR expressions as C.
#pragma once
#include <set>
#include <string>

#include "ir/loop/data.h"

namespace tc {

/// What the printed text needs to be included.
struct Needs {
  bool math = false;           // <math.h>
  bool vector_math = false;    // tc_math.h
  bool tails = false;          // tc_tail.h
  bool transposes = false;     // tc_transpose.h
  bool ints = false;           // tc_int.h: vectors of integers
  bool doubles = false;        // tc_double.h: vectors of doubles
  bool byte_products = false;  // of them those that some processors have instructions for
  bool few_bits = false;       // tc_bits.h: numbers of few bits
  bool byte_tiles = false;     // tc_tiles.h: products of tiles of bytes
  bool halves = false;         // tc_half.h: vectors of floats from and to halves
  bool scalar = false;         // tc_scalar.h: defined integer arithmetic, min/max, casts
  bool runtime = false;        // tc_rt.h: checked indexes
  bool types = false;          // tc_types.h: narrow floats
  bool parallel = false;       // tc_parallel.h
  bool strings = false;        // tc_string.h
  bool letters = false;        // tc_case.h: small and large letters

  /// Becomes what both need.
  void add(const Needs& n);
};

/// Does C see that a truth value is 0 or 1? isinf() is any number that is not 0, and names of type int may be anything to it.
bool is_seen_as_bit(const Expr& e);

class ExprPrinter {
 public:
  explicit ExprPrinter(Needs& needs) : needs_(needs) {}

  /// A value (not an index): integer arithmetic wraps as its dtype does.
  std::string value(const Expr& e) { return print(e, 0, Context::Value); }
  /// A vector; a scalar, or a Broadcast, as tc_set(...), tc_dset(...), tc_iset(...) or tc_mask(...).
  std::string vector_operand(const Expr& e);
  /// An index, extent or condition on them: plain int arithmetic.
  std::string index(const Expr& e, int parent = 0) { return print(e, parent, Context::Index); }
  /// The same where every name in it is an `int`: helpers compute in int, too.
  std::string int_index(const Expr& e, int parent = 0) { return print(e, parent, Context::Int); }
  /// The same as an `int`, for what takes one: lanes, the begin of a loop. It fits, as all that a kernel counts in int does.
  std::string count(const Expr& e);
  /// A test: plain int arithmetic where it is on loop variables and sizes alone.
  std::string condition(const Expr& e);
  /// "x[i * 4 + j]", for a vector "tc_load(x + i * 4)" or "tc_load_u8(x + i * 4)".
  std::string element(const Buffer& b, const Exprs& index);
  /// "x + i * 4"
  std::string pointer(const Buffer& b, const Expr& index);
  /// "acc[i][v]" of a Register buffer.
  std::string register_element(const Buffer& b, const Exprs& index);
  bool is_data(const Expr& e) const { return holds_data(e, data_vars); }
  /// Buffers whose last axis is a single vector: printed without a subscript for it.
  std::set<const BufferDef*> single_vectors;
  /// Parameters of one element that are numbers and no pointers: printed without a subscript.
  std::set<const BufferDef*> numbers;
  /// Does the kernel count in int64_t?
  bool wide = false;
  /// Names of type int64_t in a kernel that counts in int.
  std::set<const VarDef*> long_vars;
  DataVars data_vars;

 private:
  enum class Context { Value, Index, Int };
  std::string print(const Expr& e, int parent, Context c);
  std::string apply(const Expr& e, const Apply& k, int parent, Context c);
  std::string vector_apply(const Apply& k, int parent);
  std::string integer_apply(const Expr& e, const Apply& k, int parent, Context c);
  /// A truth value as the number 0 or 1; anything else as it is.
  std::string bit(const Expr& e, int parent, Context c);
  std::string call(std::string_view f, const Exprs& args, Context c);
  std::string infix(const Apply& k, int parent, Context c);
  std::string conversion(const Expr& e, const Cast& k);
  std::string text_operation(const Apply& k);
  std::string string_comparison(const Apply& k, int parent);
  std::string integer_vector_apply(const Apply& k);
  std::string double_vector_apply(const Apply& k);
  std::string vector_conversion(const Expr& e, const Cast& k);
  std::string vector_select(DType t, const std::string& mask, const std::string& yes, const std::string& no);
  std::string lane_count(const Expr& e, int parent, Context c);

  Needs& needs_;
};

/// tc_vf (halves, too), tc_vd, tc_vi (every type of integers) or tc_vm.
std::string vector_type(DType t);
/// The ending of functions that load and store vectors of a type: "" for f32, "_f64", "_f16", "_u8", "_i8", "_i32", "_bool".
std::string lanes_suffix(DType t, Needs& needs);

}  // namespace tc
