// n-grams of a vocabulary (TfIdfVectorizer). Internal to ir/ops/text.cc and tokens.cc.
#pragma once
#include <vector>

#include "ir/ops/expansion.h"

namespace tc {

struct Gram {
  std::vector<int64_t> tokens;
  int64_t index;  // index in the output
  float weight;
};

/// y [N, size], at [row, index of a gram]: how often it stands in a row of `ids` [N, C] or [C], times its weight; or its weight, unless `adds`. Null where
/// the vocabulary holds a gram twice.
Value* count_grams(const Expansion& e, Value* ids, std::vector<Gram> grams, int64_t size, int64_t max_skip, bool adds);

}  // namespace tc
