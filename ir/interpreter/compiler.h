// From Loop IR to a Program. See machine.h for what runs.
#pragma once
#include <bit>
#include <map>
#include <optional>
#include <unordered_map>

#include "ir/interpreter/machine.h"

namespace tc::interp {

/// The serial loop on the way into `f` whose iterations become lanes, if `f` itself is the best choice below it.
bool runs_in_lanes(const For& f);
/// Numbers of threads along x, y, z of the thread loops in `s`; {1, 1, 1} if there is none.
struct Threads {
  int64_t x = 1, y = 1, z = 1;
  int64_t total() const { return x * y * z; }
};
Threads threads_of(const Stmt& s);
/// Lanes that the registers of `s` need room for: the threads of its blocks, the iterations of its longest loop up to
/// kBatch. Registers are made anew for each run, so small functions, of which folding runs many, are kept small.
int lanes_needed(const Stmt& s);

/// Where a number is.
struct Operand {
  int32_t reg = 0;
  DType dtype = DType::I64;
  bool varying = false, vector = false;
};

class Compiler {
 public:
  Compiler(Program& p, const RunOptions& o) : program_(p), options_(o) {}
  void bind(const Binding& b);
  void stmt(const Stmt& s);

 private:
  // --- expressions (compile_expr.cc)
  Operand expr(const Expr& e);
  Operand compute(const Expr& e);
  Operand constant(DType t, double number, int64_t integer);
  Operand variable(const VarRef& v);
  Operand application(const Expr& e, const Apply& a);
  Operand lazy(const Expr& e, const Expr& condition, const Expr& yes, const Expr& no);
  Operand branches(const Expr& e, const Operand& c, const Expr& yes, const Expr& no);
  Operand guarded(const Operand& c, const Expr& yes, const Expr& no);
  Operand blend(const Operand& c, Operand yes, Operand no, int32_t into = -1);
  Operand mixed_pow(const Operand& x, const Operand& y, DType result);
  Operand cast(const Expr& e, const Cast& c);
  Operand load(const Expr& e, const Load& l, const Expr& count);
  Operand unary_instr(Fn fn, const Operand& a, DType result, int32_t aux = 0, int32_t b = 0, int32_t c = 0);
  Operand binary_instr(Fn fn, Operand a, Operand b, DType result, int32_t aux = 0);
  /// The operand in the given shape: spread over vector lanes and, for vectors, over lanes.
  Operand shaped(const Operand& o, bool varying, bool vector);
  void wrap(const Operand& o);

  // --- accesses (compile_access.cc)
  int access(const Buffer& b, const Exprs& index, const Expr& count, bool is_store, bool& varying, bool& vector);
  AccessDim dimension(const Expr& index, bool& varying, bool& vector);
  /// e as a line over uniform registers plus `step` per lane; false if it is not one.
  bool line(const Expr& e, Line& out, int64_t& step);

  // --- statements (compile_stmt.cc)
  void store(const Store& s);
  void allreduce(const Intrin& k, Op op);
  void warp_exchange(const Intrin& k, ShuffleForm form);
  /// False if it is none of those on the registers of a warp's lanes (warp.cc).
  bool warp_instruction(const Intrin& k);
  void for_loop(const For& f);
  void serial_loop(const For& f);
  void lane_loop(const For& f);
  void masked_loop(const For& f, const Operand& begin, const Operand& extent);
  void thread_loop(const For& f);
  void fragment_loop(const For& f);
  void block_loop(const For& f);
  void while_loop(const While& w);
  void branch(const If& s);
  void let(const Let& l);
  void alloc(const Alloc& a);
  void alias(const Alias& a);
  void enter_threads(const For& f);
  Operand settle(const Operand& v, int32_t mark);
  void with_variable(const Var& v, const Operand& o, const Stmt& body);

  // --- program text
  int32_t new_reg(bool varying, bool vector, int bytes);
  Operand new_operand(DType t, bool varying, bool vector);
  Instr& emit(Fn fn, const Operand& dst);
  size_t emit_jump(Fn fn, int32_t a = 0, bool a_step = true, int32_t b = 0);
  void land(size_t jump_at) { program_.code[jump_at].aux = int32_t(program_.code.size()); }
  int add_line(Line l);
  bool in_lanes() const { return lane_context_; }
  int width(bool vector) const { return vector ? program_.vl : 1; }

  // Results of nodes within one statement, forgotten where a branch ends.
  struct Memo {
    std::unordered_map<const ExprNode*, std::pair<Expr, Operand>> map;
    std::vector<const ExprNode*> order;
  };
  void forget(size_t mark);

  Program& program_;
  const RunOptions& options_;
  std::map<const VarDef*, Operand> vars_;
  std::map<const BufferDef*, int> buffers_;
  Memo memo_;
  int32_t top_ = kConstantBytes;  // next free byte of the arena; constants lie below
  int32_t constant_top_ = 0;
  bool lane_context_ = false;
  const VarDef* lane_var_ = nullptr;  // the loop whose iterations are the lanes, null for threads
  Operand lane_base_;
  bool in_threads_ = false, in_blocks_ = false;
  int fragment_loops_ = 0;  // around what is compiled
  Threads threads_;
  Operand thread_index_[3], zero_;
  std::map<std::pair<int, int64_t>, int32_t> constants_;  // (bytes, bits) -> register
};

}  // namespace tc::interp
