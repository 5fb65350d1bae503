// What sums of products of bytes in blocks look like; block_products.cc has their loops.
#pragma once
#include "templates/cpu/template.h"

namespace tc {

struct BlockProduct {
  static constexpr int64_t kSteps = 32;  // of k that dot_words takes at a time

  Canonical c;
  std::vector<Axis> rows;   // one axis at most, and none with experts
  std::vector<Axis> outer;  // the axes of rows, with experts: each row has weights of its own
  Axis n, block, k;
  Buffer q, s;        // i8, f32
  Expr q_at, s_at;    // of their elements, affine
  Expr number, zero;  // i32, from 0 on; zero: null for 0
  Expr scale;         // f32 over n and block
  int64_t bits = 4;   // of a number
  Axis expert;        // number, zero and scale are over it as well; its var is null: one matrix for all rows
  Expr chosen;        // the expert of a row
};

/// Null: it is something else.
std::optional<BlockProduct> match_block_product(const TemplateArgs& a);

}  // namespace tc
