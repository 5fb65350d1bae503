// Attention over as many keys as there are, as streaming_attention_match.cc finds it and streaming_attention.cc computes it.
#pragma once
#include "ir/loop/build.h"
#include "templates/cpu/template.h"

namespace tc {

struct StreamedAttention {
  Axis b, h, i, j, d;  // of the scores and their products
  Axis value_d;        // of the values
  Expr q, k;           // factors of a score, over these
  Expr v;              // over b, h, j and value_d
  Var dot = make_var("dot", DType::F32);
  Expr score;              // of `dot` and b, h, i, j, where begins and ends allow j
  std::vector<Expr> ends;  // keys from here on are masked, over b, h, i
  std::vector<Expr> begins;
  Exprs out_index;             // over b, h, i, value_d
  std::vector<DType> rounded;  // what a result is converted to, in order
  Expr after;                  // what becomes of it, an element of `own`, over b, h, i, value_d; null: nothing
  Buffer own;
  int64_t group = 1;  // heads that read the same keys and values
  int64_t block = 0;  // keys at a time
  // A row that sees no key is zero; or NaN, as Softmax has it; a row of which a score is NaN or inf is NaN, or zero
  enum class None { Zero, NaN, ZeroIfNaN } none = None::Zero;
  Expr sink;  // the score of one more key, whose value is zero, over b, h, i; null: there is none
};

/// What exponentials subtract.
inline Expr shift_of(const Expr& top) { return select(eq(top, lowest(DType::F32)), zero(DType::F32), top); }

/// Null for other functions, and under strict_fp.
std::optional<StreamedAttention> match_streaming_attention(const TemplateArgs& a);

}  // namespace tc
