// Instructions as the assignments that they stand for.
#pragma once
#include "ir/loop/instruction.h"

namespace tc {

/// What an instruction does, in statements; those on tiles as loops of kind Fragment, whose iterations the lanes share. Null:
/// nothing. Throws InternalError for those that lanes of a warp make on their registers together.
Stmt expand_intrin(const Intrin& k);

// --- meanings of rows of the table (Assignments::made), which says what they do
Stmt sums_of_quads(const IntrinCall& c, int64_t);
Stmt sums_of_words(const IntrinCall& c, int64_t);
Stmt products_of_bytes(const IntrinCall& c, int64_t);
Stmt products_of_tiles(const IntrinCall& c, int64_t);
Stmt unpacked_bits(const IntrinCall& c, int64_t);
Stmt looked_up_bits(const IntrinCall& c, int64_t);
Stmt every_nth(const IntrinCall& c, int64_t);
Stmt columns_as_rows(const IntrinCall& c, int64_t);
Stmt deinterleaved_rows(const IntrinCall& c, int64_t);
Stmt interleaved_store(const IntrinCall& c, int64_t);
Stmt sums_of_lanes(const IntrinCall& c, int64_t);
Stmt transposed_tile(const IntrinCall& c, int64_t);
Stmt copied_elements(const IntrinCall& c, int64_t count);
Stmt copied_bytes(const IntrinCall& c, int64_t bytes);
Stmt no_assignments(const IntrinCall& c, int64_t);
/// Of a lane's registers.
Stmt round_words(const IntrinCall& c, int64_t count);
Stmt split_words(const IntrinCall& c, int64_t count);

}  // namespace tc
