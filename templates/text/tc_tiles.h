/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Products of tiles of bytes: what the matrix extensions of x86-64 (AMX) have registers and instructions for, and the same in
 * vectors where the compiler's flags lack them. Sums are exact in either case.
 *
 *   tc_tiles_begin(upper, lower, step)   from here on a thread multiplies tiles of so many rows, 16 at most, of which the lower
 *                                        may be none, and of steps of so many bytes, a multiple of 4, 64 at most
 *   tc_multiply_tiles_u8, _i8            sums[i][j], i < upper + lower, j < columns, 16 or 32: row i of the left factor times
 *                                        column j of the right one, added up over r < runs and k < depth, a multiple of step
 *   tc_tiles_end()                       behind the last of them: the system no longer has to save the registers
 *
 * An element of row i is left[i * row_stride + r * run_stride + k], and those of the lower rows, counted from 0 again, are `below`
 * behind that; right is packed as [r][k / 4][j][k % 4].
 *
 * A process has to ask the system for the registers once (tc_cpu.h). */
#ifndef TC_TILES_H
#define TC_TILES_H
#include "tc_int.h"
#if defined(__AMX_TILE__) && defined(__AMX_INT8__)
#  define TC_TILES_AMX
#  include <immintrin.h>
#endif

#ifdef TC_TILES_AMX

/* The operand of ldtilecfg (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 18.3.2). */
typedef struct {
  uint8_t  palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t  rows[16];
} tc_tile_shapes;

/* Tiles 0 to 3: sums, upper and lower rows, left and right columns; 4 and 5: the left factor; 6 and 7: the right one. A tile
 * without rows has none. */
TC_INLINE void tc_tiles_begin(int upper, int lower, int step)
{
  const tc_tile_shapes shapes = {1, 0, {0},
                                 {64, 64, (uint16_t)(lower ? 64 : 0), (uint16_t)(lower ? 64 : 0), (uint16_t)step, (uint16_t)(lower ? step : 0), 64, 64},
                                 {(uint8_t)upper, (uint8_t)upper, (uint8_t)lower, (uint8_t)lower, (uint8_t)upper, (uint8_t)lower, (uint8_t)(step / 4), (uint8_t)(step / 4)}};
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
}

TC_INLINE void tc_tiles_end(void) { _tile_release(); }

#  define TC_MULTIPLY_TILES(suffix, type, dot)                                                                                    \
  TC_INLINE void tc_multiply_tiles_##suffix(int32_t *sums, int columns, int upper, int lower, const type *left, ptrdiff_t row_stride, \
                                            ptrdiff_t below, const int8_t *right, int runs, ptrdiff_t run_stride, int depth, int step)           \
  {                                                                                                                             \
    const ptrdiff_t width = columns * 4; /* bytes of a row of sums, and of a quad of the right factor */                        \
    __asm__ volatile("" : : : "memory"); /* the compiler does not know what tiles are loaded from */                            \
    _tile_zero(0);                                                                                                              \
    if (columns > 16) _tile_zero(1);                                                                                            \
    if (lower > 0) _tile_zero(2);                                                                                               \
    if (lower > 0 && columns > 16) _tile_zero(3);                                                                               \
    for (int r = 0; r < runs; r++)                                                                                              \
      for (int k = 0; k < depth; k += step) {                                                                                   \
        _tile_loadd(4, left + r * run_stride + k, row_stride);                                                                  \
        _tile_loadd(6, right, width);                                                                                           \
        dot(0, 4, 6);                                                                                                           \
        if (columns > 16) _tile_loadd(7, right + 64, width);                                                                    \
        if (columns > 16) dot(1, 4, 7);                                                                                         \
        if (lower > 0) _tile_loadd(5, left + below + r * run_stride + k, row_stride);                                                  \
        if (lower > 0) dot(2, 5, 6);                                                                                            \
        if (lower > 0 && columns > 16) dot(3, 5, 7);                                                                            \
        right += step * columns;                                                                                                \
      }                                                                                                                         \
    _tile_stored(0, sums, width);                                                                                               \
    if (columns > 16) _tile_stored(1, sums + 16, width);                                                                        \
    if (lower > 0) _tile_stored(2, sums + upper * columns, width);                                                     \
    if (lower > 0 && columns > 16) _tile_stored(3, sums + upper * columns + 16, width);                                \
    __asm__ volatile("" : : : "memory");                                                                                        \
  }
TC_MULTIPLY_TILES(u8, uint8_t, _tile_dpbusd)
TC_MULTIPLY_TILES(i8, int8_t, _tile_dpbssd)
#  undef TC_MULTIPLY_TILES

#else

TC_INLINE void tc_tiles_begin(int upper, int lower, int step) { (void)upper; (void)lower; (void)step; }
TC_INLINE void tc_tiles_end(void) { }

/* tc_dot4_i8 multiplies a + 128. */
TC_INLINE tc_vi tc_tiles_dot_u8(tc_vi sum, const uint8_t *a, const int8_t *b) { return tc_dot4_u8(sum, a, b); }
TC_INLINE tc_vi tc_tiles_dot_i8(tc_vi sum, const int8_t *a, const int8_t *b)
{
  const uint8_t middle[4] = {128, 128, 128, 128};
  return tc_isub(tc_dot4_i8(sum, a, b), tc_dot4_u8(tc_iset(0), middle, b));
}

#  define TC_MULTIPLY_TILES(suffix, type)                                                                                         \
  TC_INLINE void tc_multiply_tiles_##suffix(int32_t *sums, int columns, int upper, int lower, const type *left, ptrdiff_t row_stride, \
                                            ptrdiff_t below, const int8_t *right, int runs, ptrdiff_t run_stride, int depth, int step)           \
  {                                                                                                                             \
    (void)step;                                                                                                                 \
    for (int i = 0; i < upper + lower; i++) {                                                                                   \
      const type *row = i < upper ? left + i * row_stride : left + below + (i - upper) * row_stride;                              \
      for (int j = 0; j < columns; j += TC_VL) {                                                                                \
        tc_vi sum = tc_iset(0);                                                                                                 \
        for (int r = 0; r < runs; r++)                                                                                          \
          for (int k = 0; k < depth; k += 4)                                                                                    \
            sum = tc_tiles_dot_##suffix(sum, row + r * run_stride + k,                                                      \
                                        right + ((ptrdiff_t)r * depth + k) * columns + 4 * j);                                  \
        tc_store_i32(sums + i * columns + j, sum);                                                                              \
      }                                                                                                                         \
    }                                                                                                                           \
  }
TC_MULTIPLY_TILES(u8, uint8_t)
TC_MULTIPLY_TILES(i8, int8_t)
#  undef TC_MULTIPLY_TILES

#endif

#endif
