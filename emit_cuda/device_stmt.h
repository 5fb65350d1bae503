// Statements of a function of the device: Loop IR as CUDA C++.
#pragma once
#include "emit_c/stmt.h"

namespace tc {

class DeviceStmtPrinter : public StmtPrinter {
 public:
  using StmtPrinter::StmtPrinter;

 protected:
  void print_for(const For& k) override;
  void print_alloc(const Alloc& k) override;
  void print_barrier(const Barrier& k) override;
  void print_intrin(const Intrin& k) override;
  void print_prefetch(const Prefetch& k) override;

 private:
  void print_warp_reduction(const Intrin& k);
};

/// Does a pipeline of copies run in it (cp_async_wait)?
bool waits_for_copies(const Stmt& s);

}  // namespace tc
