// Loop IR statements as C.
#pragma once
#include <set>
#include <vector>

#include "emit_c/expr.h"
#include "emit_c/source_writer.h"
#include "ir/loop/instruction.h"
#include "ir/program.h"

namespace tc {

/// Is memory of `b` written in `s`, through views or by instructions too?
bool is_written(const Stmt& s, const Buffer& b);

/// What outline_chunks() has found out of a parallel loop.
const ParallelPart& part_of(const std::vector<ParallelPart>& parts, const For& chunks);

class StmtPrinter {
 public:
  /// What last_loop_passes() found out of the kernel is taken over. Parallel loops are appended to `parts`; the line of C
  /// that runs one is printed in its place.
  StmtPrinter(SourceWriter& out, Needs& needs, const Kernel& k);
  virtual ~StmtPrinter() = default;
  StmtPrinter(const StmtPrinter&) = delete;
  StmtPrinter& operator=(const StmtPrinter&) = delete;

  void print(const Stmt& s);
  std::vector<For> parts;  // each becomes a function of its own
  std::string part_call;   // "tc_parallel_for({part}, &args, {chunks});" with the two holes

  virtual void declare(const Alias& k);
  void declare(const Let& k);

 protected:
  // What another language spells otherwise.
  virtual void print_for(const For& k);
  virtual void print_alloc(const Alloc& k);
  virtual void print_barrier(const Barrier& k);
  virtual void print_prefetch(const Prefetch& k);
  virtual const std::vector<Spelling>& spellings(const Instruction& row) const { return row.c; }
  virtual std::string memory_operand(const Buffer& b, const Exprs& index);

  std::string intrin_text(const Intrin& k);
  void print_block(const std::string& head, const Stmt& body);
  /// "const int i = 0; i < 8; i++" without the keyword.
  std::string loop_head(const For& k);
  bool wide() const { return wide_; }
  SourceWriter& out_;
  ExprPrinter expr_;
  Needs& needs_;

 private:
  std::string operand_text(const InstructionOperand& row, const IntrinCall& c, const IntrinOperand& o);
  void operator_store(const Store& k, const std::string& target);
  void store(const Store& k);
  void partial_store(const Store& k, const std::string& target);
  void vector_store(const Store& k);
  std::string value_of(const Store& k);

  bool is_index(const Expr& e) const;

  const std::vector<ParallelPart> outlined_;
  bool wide_;
  std::set<const BufferDef*> vector_buffers_, part_views_;  // looked up only
  std::set<const VarDef*> part_names_;                      // looked up only
};

}  // namespace tc
