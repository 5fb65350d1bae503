// What a function has to be for windows along the vectors (window_rows.cc).
#pragma once
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {

struct WindowRows {
  Canonical c;
  std::vector<Axis> rows;    // all but the results of a row
  Axis n, k;                 // results of a row; taps along it, without a variable: one
  std::vector<Axis> across;  // the other taps
  int64_t stride = 1, dilation = 0;
  Var position;
  Expr value;                  // of a position: over rows, across and position
  Exprs conditions;            // on rows and taps across: where one does not hold, nothing joins
  int64_t begin = 0, end = 0;  // positions that exist
  int64_t length() const { return (n.extent.value - 1) * stride + (taps() - 1) * dilation + 1; }
  int64_t taps() const { return k.var ? k.extent.value : 1; }
  /// Of a row in memory: positions, and what whole vectors read behind them.
  int64_t row_size() const {
    return stride * round_up(n.extent.value, kMaxLanes) + round_up((taps() - 1) * dilation, kMaxLanes);
  }
};

/// Null: it is something else, or other loops take fewer steps.
std::optional<WindowRows> match_window_rows(const TemplateArgs& a);

}  // namespace tc
