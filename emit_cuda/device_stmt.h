// Statements of a function of the device: Loop IR as CUDA C++.
#pragma once
#include "emit_c/stmt.h"
#include "ir/program.h"

namespace tc {

class DeviceStmtPrinter : public StmtPrinter {
 public:
  DeviceStmtPrinter(SourceWriter& out, Needs& needs, const Kernel& k, const DeviceFunction& f)
      : StmtPrinter(out, needs, k), f_(f) {}

 protected:
  void print_for(const For& k) override;
  void print_alloc(const Alloc& k) override;
  void print_barrier(const Barrier& k) override;
  void print_prefetch(const Prefetch& k) override;
  void declare(const Alias& k) override;
  const std::vector<Spelling>& spellings(const Instruction& row) const override { return row.cuda; }
  std::string memory_operand(const Buffer& b, const Exprs& index) override;

 private:
  void print_initialised(const Alloc& k);

  const DeviceFunction& f_;
};

}  // namespace tc
