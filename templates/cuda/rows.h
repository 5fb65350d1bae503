// Rows on a GPU: who computes them.
#pragma once
#include "templates/cuda/template.h"
#include "templates/rows.h"

namespace tc {

struct RowPlan {
  int64_t lanes = 1;       // threads of a row
  int64_t rows = 1;        // of a block
  int64_t vector = 1;      // neighbours that a thread has together
  int64_t iterations = 1;  // of the lanes through the row
  bool across = false;     // neighbouring threads have neighbouring rows, else neighbouring columns of one
  bool in_registers = true;
  int64_t threads() const { return lanes * rows; }
};

/// Null if neither columns nor rows are neighbours in memory, or if rows overlap. `r`'s columns may not be merged yet.
std::optional<RowPlan> plan_rows(const Rows& r, const CudaModel& gpu, const PlanEntry& plan);

/// Elements of 16 bytes; 1 if there is no instruction for the type.
int64_t vector_elements(DType t);

/// The launch; r.columns is one axis.
Stmt row_loops(Rows r, const RowPlan& plan);

}  // namespace tc
