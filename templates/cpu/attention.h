// Attention in strips of rows, as attention_match.cc finds it and attention.cc computes it.
#pragma once
#include "ir/loop/build.h"
#include "templates/cpu/contraction.h"
#include "templates/match/counted.h"
#include "templates/result_tile.h"

namespace tc {

/// One of the two products, over the rows of a strip.
struct AttentionProduct {
  ResultTile tile;
  Contraction m;
  ContractionPlan plan;
};

/// Keys that each row sees, where the mask says it by positions: those from `begin` to `end`, both within the columns.
struct SeenKeys {
  std::vector<Axis> outside;  // of the scores in front of the row's
  Var i;                      // the row
  Expr begin, end;            // over these; the end grows with i. begin: null: 0
  bool by_run = false;        // some of it is read from operands
};

struct Attention {
  TensorFn fn;  // the function, with axes that its indices divide taken apart
  AttentionProduct scores, result;
  Scheduled softmax;                      // of all columns; unused where some do not count
  std::optional<CountedSoftmax> counted;  // of the first columns, as many as an operand says
  std::optional<SeenKeys> seen;           // of those that a row sees
  bool or_zero = false;                   // rows that see nothing are zero; else NaN
  Buffer scores_buffer, weights;          // results of stages: before and after the softmax
  std::vector<AxisRange> tile_ranges, out_ranges;
  std::vector<Axis> outer;  // batches and heads
  int64_t rows = 1, columns = 1, tile_rows = 1;
  int64_t groups = 1;           // chunks of a head's strips
  int64_t heads_per_chunk = 1;  // one after the other, in the same memory
  Var row = make_var("row");
};

/// Null for other functions, and under strict_fp.
std::optional<Attention> match_attention(const TemplateArgs& a);

}  // namespace tc
