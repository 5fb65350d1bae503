/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Numbers of few bits, several in a word of 32 bits. Every function gives the same bits for every TC_VL and every
 * processor.
 *
 *   tc_unpack_2, tc_unpack_4, tc_unpack_8     number j of each word, the lowest bits being number 0, with its sign, as float */
#ifndef TC_BITS_H
#define TC_BITS_H
#include "tc_int.h"

/* To the upper end of the word, and back with the sign. */
TC_INLINE tc_vf tc_unpack_2(tc_vi words, int j) { return tc_float((tc_vi)((tc_vu)words << (30 - 2 * j)) >> 30); }
TC_INLINE tc_vf tc_unpack_4(tc_vi words, int j) { return tc_float((tc_vi)((tc_vu)words << (28 - 4 * j)) >> 28); }
TC_INLINE tc_vf tc_unpack_8(tc_vi words, int j) { return tc_float((tc_vi)((tc_vu)words << (24 - 8 * j)) >> 24); }

#endif
