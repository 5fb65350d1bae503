// Loop IR: immutable, shared trees of scalar (or vector) expressions and loop statements. The same expressions are the
// bodies of a TensorFn's stages. The whole IR is on this page; helpers are in build.h, visit.h, print.h, simplify.h.
//
// Vectors are scalable: a vector has "VL" lanes, a number that the emitted text fixes when it is compiled (TC_VL). The
// interpreter runs it with any VL. A loop of kind Vector is scalar inside: lower_lanes makes vectors of it in C,
// vectorize_loops accesses of up to 16 bytes in CUDA, where expressions stay scalar.
//
// Alias appears in flattened form only (all buffers but Register ones have rank 1): a hoisted base pointer, or scratch
// memory cut into buffers. `offset` counts elements of `base`.
//
// Integer expressions that index (loop variables, extents) are I64; the printer narrows them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/loop/op.h"
#include "ir/types.h"

namespace tc {

struct ExprNode;
struct StmtNode;
struct VarDef;
struct BufferDef;

/// A scalar name: a loop variable, a Let, a size parameter. Identity is the pointer.
using Var = std::shared_ptr<const VarDef>;
struct VarDef {
  std::string name;  // a hint; assign_names makes it unique
  DType dtype;
};

/// Where a buffer lives.
enum class Scope : uint8_t {
  Global,     // a parameter of the kernel: input, output, weight, temporary of the executor
  Workspace,  // scratch memory of one chunk, from the arena
  Stack,      // a local array in memory, at most 4 KiB
  Register,   // a local array that the compiler keeps in registers: all its indices become constants after unrolling
  Shared,     // CUDA: one per block
  Warp,       // CUDA: spread over the lanes of a warp
  Fragment,   // CUDA: tiles of a warp on tensor cores; the last two axes are a tile's rows and columns
};

/// A multi-dimensional array. Identity is the pointer. `shape` is logical; element (i0, i1, ...) sits at
/// offset + sum(i_d * strides[d]) elements. Empty strides: row-major.
using Buffer = std::shared_ptr<const BufferDef>;
struct BufferDef {
  std::string name;  // a hint: "x", "weight", "acc"
  DType dtype;
  Shape shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  Scope scope = Scope::Global;
};

class Expr {
 public:
  Expr() = default;  // null
  explicit Expr(std::shared_ptr<const ExprNode> p) : p_(std::move(p)) {}
  Expr(int64_t v);                   // NOLINT: I64 constant
  Expr(int v) : Expr(int64_t(v)) {}  // NOLINT
  Expr(bool) = delete;               // a C++ condition is no expression
  Expr(const Dim& d);                // NOLINT: its constant, or the variable of its symbol
  Expr(const Var& v);                // NOLINT
  explicit operator bool() const { return p_ != nullptr; }
  const ExprNode* operator->() const { return p_.get(); }
  const ExprNode& operator*() const { return *p_; }
  const ExprNode* get() const { return p_.get(); }
  bool same_as(const Expr& o) const { return p_ == o.p_; }

 private:
  std::shared_ptr<const ExprNode> p_;
};
using Exprs = std::vector<Expr>;

// --- expressions
// clang-format off
struct IntImm { int64_t value; };   // every integer type and bool
struct FloatImm { double value; };  // every float type
struct VarRef { Var var; };
struct Apply { Op op; Exprs args; };                       // unary, binary, functions: one row of the op table
struct Select { Expr condition, yes, no; };                // lazy: the other side is not evaluated
struct Cast { Expr value; bool saturate = true; };         // to the node's dtype, as ONNX's Cast; saturate: f8 types
struct Bitcast { Expr value; };                            // same width, other type
struct Load { Buffer buffer; Exprs index; };               // a vector if the last index is a Ramp
struct Ramp { Expr base; };                                // base, base + 1, ... base + VL - 1
struct Broadcast { Expr value; };                          // a scalar in every lane
struct Lanes {};                                           // VL itself, an I64
struct Partial { Expr value; Expr count; };                // a vector load of which only `count` lanes exist; others are 0
// clang-format on

struct ExprNode {
  DType dtype;
  bool vector;
  std::variant<IntImm, FloatImm, VarRef, Apply, Select, Cast, Bitcast, Load, Ramp, Broadcast, Lanes, Partial> kind;
};

class Stmt {
 public:
  Stmt() = default;  // null: nothing
  explicit Stmt(std::shared_ptr<const StmtNode> p) : p_(std::move(p)) {}
  explicit operator bool() const { return p_ != nullptr; }
  const StmtNode* operator->() const { return p_.get(); }
  const StmtNode& operator*() const { return *p_; }
  const StmtNode* get() const { return p_.get(); }
  bool same_as(const Stmt& o) const { return p_ == o.p_; }

 private:
  std::shared_ptr<const StmtNode> p_;
};
using Stmts = std::vector<Stmt>;

// Fragment: the lanes of a warp share the iterations, each made by one of them; which one is left to infer_fragment. A
// loop over rows of tiles has one over their columns, or groups of neighbouring columns, inside of it; what is between
// the two is done by the lanes of a row.
// clang-format off
enum class ForKind : uint8_t {
  Serial, Parallel, Unroll, Vector, Fragment, BlockX, BlockY, BlockZ, ThreadX, ThreadY, ThreadZ,
};
// clang-format on

// --- statements
struct Store {  // buffer[index] = value, or buffer[index] = buffer[index] op value
  Buffer buffer;
  Exprs index;
  Expr value;
  std::optional<Op> reduce;
  Expr count;  // vector stores: only the first `count` lanes are written; null: all
};
// clang-format off
struct For { Var var; Expr begin, extent; ForKind kind; Stmt body; };   // var = begin .. begin + extent - 1
struct While { Expr condition; Stmt body; };
struct If { Expr condition; Stmt then, otherwise; };                    // otherwise may be null
struct Let { Var var; Expr value; Stmt body; };
struct Alloc { Buffer buffer; Stmt body; };                             // not initialised
struct Alias { Buffer view, base; Expr offset; Stmt body; };            // view: base's memory from element `offset` on
struct Seq { Stmts list; };
struct Barrier { Scope scope; };                                        // all threads of a block
struct Prefetch { Buffer buffer; Exprs index; int64_t level; };              // into the cache of that level; 0: the first, to be written
struct Intrin { std::string name; Exprs args; std::vector<Buffer> buffers; };  // a row of the instruction table
struct Launch { std::string kernel; Exprs grid, block; std::vector<Buffer> buffers; Exprs args; };  // host side
struct Comment { std::string text; Stmt body; };                        // a line above the body; our own text only
// clang-format on

struct StmtNode {
  std::variant<Store, For, While, If, Let, Alloc, Alias, Seq, Barrier, Prefetch, Intrin, Launch, Comment> kind;
};

template <class... F>
struct Cases : F... {
  using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;

/// Exhaustive by the compiler: every kind needs a case.
template <class... F>
decltype(auto) visit(const Expr& e, F&&... f) {
  return std::visit(Cases{std::forward<F>(f)...}, e->kind);
}
template <class... F>
decltype(auto) visit(const Stmt& s, F&&... f) {
  return std::visit(Cases{std::forward<F>(f)...}, s->kind);
}

/// The payload if the node is of that kind, else null.
template <class T>
const T* as(const Expr& e) {
  return e ? std::get_if<T>(&e->kind) : nullptr;
}
template <class T>
const T* as(const Stmt& s) {
  return s ? std::get_if<T>(&s->kind) : nullptr;
}

}  // namespace tc
