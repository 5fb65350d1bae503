/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* For what is compiled with TC_PROFILE. TC_TRACE(text, step) is the step between two hooks: TC_TRACE_BEGIN is called before it
 * and TC_TRACE_END behind it, with the text, which has the same address in every run.
 *
 * They are the functions tc_trace_begin and tc_trace_end, which the program of main.c has. A program of your own defines
 * them, or other macros before compiling. */
#ifndef TC_TRACE_H
#define TC_TRACE_H

#ifndef TC_TRACE_BEGIN
#define TC_TRACE_BEGIN(step) tc_trace_begin(step)
#define TC_TRACE_END(step) tc_trace_end(step)
#endif
#ifndef TC_TRACE_WAIT
#define TC_TRACE_WAIT /* until what was begun is done, where that is not so already */
#endif
#define TC_TRACE(text, ...)              \
  do {                                   \
    static const char tc_step_[] = text; \
    TC_TRACE_WAIT;                       \
    TC_TRACE_BEGIN(tc_step_);            \
    __VA_ARGS__;                         \
    TC_TRACE_WAIT;                       \
    TC_TRACE_END(tc_step_);              \
  } while (0)
#ifdef __cplusplus
extern "C" {
#endif
void tc_trace_begin(const char* step);
void tc_trace_end(const char* step);
#ifdef __cplusplus
}
#endif

#endif
