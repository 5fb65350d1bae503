// Weights that are stored in few bits: (number - zero) * scale, or table[number] * scale, one zero and one scale for each block
// along the sum.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "ir/loop/simplify.h"
#include "ir/tensor_fn.h"

namespace tc {

/// A factor of a sum over k. All parts are expressions of what the factor reads, over its axes.
struct FewBits {
  /// An integer of `bits` bits with a sign: -2^(bits - 1) <= number < 2^(bits - 1); a scalar i32. Of a table: from 0 on.
  Expr number;
  int64_t bits = 8;   // 2, 4 or 8
  Buffer table;       // 16 numbers of type f32; null: numbers stand for themselves
  Expr zero;          // i32 in the range of i8, or f32; null: 0
  Expr scale;         // f32; null: 1
  int64_t block = 1;  // zero and scale depend on k through floor_div(k, block) alone
  int64_t per_word() const { return 32 / bits; }
};

/// `e`, of type f32, as such a weight; null if it has another form, if a number may take more than 256 values, or if a
/// block is no multiple of 32 bits (and shorter than the sum). Nothing is rounded otherwise than `e` says, but for a zero
/// of type f32, from which an integer may have been taken away, and products of several scales.
std::optional<FewBits> few_bits_form(const Expr& e, const Axis& k);

/// The values that an integer may take, as its type and masks tell; null: more than 256, or nobody knows.
std::optional<Range> few_values(const Expr& e);

/// The factors of a product of products, in order.
Exprs factors_of(const Expr& e);

/// What depends on k through floor_div(k, block) alone, where that quotient is `index`; null: it depends otherwise.
Expr at_block(const Expr& e, const Var& k, int64_t block, const Expr& index);

/// Numbers j = 0, 1, ... of a word, each at bit j * bits.
Expr word_of(const FewBits& w, const std::function<Expr(int64_t j)>& number);

}  // namespace tc
