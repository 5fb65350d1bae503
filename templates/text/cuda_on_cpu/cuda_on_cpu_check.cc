// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// Checks of every memory access of kernels: the .cu files are compiled with -fsanitize=thread,alignment,bounds, whose
// calls this file answers in place of libtsan and libubsan. Every word of shared and of device memory has a cell, and
// every byte if bytes are accessed, that holds who wrote and who read it last, and in which interval between barriers. Two
// accesses conflict if no barrier, end of a launch or (inside a warp) __syncwarp() of the whole warp lies between: so races
// are found in one run, whatever order the threads ran in. Found besides: reads of memory that nobody has written, accesses
// outside of allocations, of host memory and of the local memory of other threads, and misaligned ones.
//
// Not known here: order by fences and flags. A program that found something ends with exit code 66.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>

#include "cuda_on_cpu_places_check.h"

namespace tc_cpu {
namespace {

// `interval` is a number of Clock::barrier, 0 for never and 1 for the host; `warp` one of Clock::warp, cut off.
struct Access {
  uint32_t interval;
  uint16_t who, warp;
};
enum : uint16_t {  // of `who` beside 0 ... 1023, a thread
  kWarp = 0x1000,  // + number: several lanes of a warp
  kBlock = 0x2000,  // threads of several warps
  kBlocks = 0x2001,  // of several blocks
  kAtomic = 0x4000,  // with any of these: by atomics
};
struct Cell {
  Access write, read;
};
constexpr uint32_t kSplit = 0xffffffffu;  // write.interval of a word whose bytes have cells of their own
struct Region {
  const char *start = nullptr;
  size_t bytes = 0;
  bool shared = false;
  Cell *words = nullptr;  // of 4 bytes
  Cell *cells = nullptr;  // of bytes
};

struct State {
  std::map<const char *, Region> device;
  Region fixed, dynamic;  // shared memory
  Region *last = nullptr;  // of device memory
  std::map<std::string, int> seen;
};
State &state()
{
  static State *s = new State;  // accesses may come until the end
  return *s;
}

Cell *new_cells(size_t n)
{
  void *cells = mmap(nullptr, n * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells == MAP_FAILED) out_of_memory("the checks of memory accesses");
  return (Cell *)cells;
}
size_t words_of(size_t bytes) { return bytes / 4 + 2; }
Region make_region(const void *p, size_t bytes, bool shared)
{
  return {(const char *)p, bytes, shared, new_cells(words_of(bytes)), new_cells(4 * words_of(bytes))};
}
void drop_region(Region &r)
{
  if (r.words != nullptr) {
    munmap(r.words, words_of(r.bytes) * sizeof(Cell));
    munmap(r.cells, 4 * words_of(r.bytes) * sizeof(Cell));
  }
  r = Region();
}
bool holds(const Region &r, const char *p) { return p >= r.start && p < r.start + r.bytes; }

Region *find(const char *p)
{
  State &s = state();
  if (holds(s.fixed, p)) return &s.fixed;
  if (holds(s.dynamic, p)) return &s.dynamic;
  if (s.last != nullptr && holds(*s.last, p)) return s.last;
  auto at = s.device.upper_bound(p);
  if (at == s.device.begin()) return nullptr;
  --at;
  return holds(at->second, p) ? s.last = &at->second : nullptr;
}

// --- reports

struct Site {  // of an access: file and line where they are known, else the code
  const char *file;
  int line;
  const void *pc;
};

std::string describe_other(const Access &a)
{
  const unsigned who = a.who & 0x3fffu;
  const std::string how = (a.who & kAtomic) != 0 ? " (atomic)" : "";
  if (a.interval < ticks.block) return "another block" + how;
  if (who == kBlocks) return "several blocks" + how;
  if (who == kBlock) return "several warps" + how;
  if ((who & kWarp) != 0) return "several lanes of warp " + std::to_string(who & 31) + how;
  return "thread " + std::to_string(who) + how;
}

__attribute__((noinline)) void report(const char *problem, const Region *r, const char *p, size_t bytes, bool write, const Access *other, const Site &site)
{
  const std::string place = site.file != nullptr ? std::string(site.file).substr(std::string(site.file).rfind('/') + 1) + ":" + std::to_string(site.line)
                                                 : place_of(site.pc);
  const std::string key = std::string(running.kernel) + ": " + problem + " at " + place;
  if (state().seen[key]++ != 0) return;
  fprintf(stderr, "cuda_on_cpu_check: %s: block (%u,%u,%u) thread %d", key.c_str(), now.block.x, now.block.y, now.block.z, now.linear);
  if (bytes != 0) fprintf(stderr, " %s %zu bytes", write ? "writes" : "reads", bytes);
  const View *view = view_at(p);
  if (view != nullptr)
    fprintf(stderr, " at byte %zd of %s, of %zu bytes of shared memory", p - (const char *)view->p, view->name, view->bytes);
  else if (r != nullptr)
    fprintf(stderr, " at byte %zd of %s memory of %zu bytes", p - r->start, r->shared ? "shared" : "device", r->bytes);
  else
    fprintf(stderr, " at %p", (const void *)p);
  if (other != nullptr) fprintf(stderr, ", which %s touched", describe_other(*other).c_str());
  fprintf(stderr, "\n");
}

// The memory that p has just left, for the message.
const Region *nearest(const char *p)
{
  for (const Region *r : {&state().fixed, &state().dynamic})
    if (r->bytes != 0 && p < r->start + r->bytes + 4096 && p + 4096 > r->start) return r;
  auto at = state().device.upper_bound(p);
  if (at != state().device.begin()) {
    const Region &below = (--at)->second;
    if (p < below.start + below.bytes + 65536) return &below;
  }
  at = state().device.upper_bound(p);
  return at != state().device.end() && at->second.start - p < 65536 ? &at->second : nullptr;
}

// --- the rules

// Whether nothing orders an earlier access before one that the running thread makes now.
inline bool unordered(const Access &a, bool shared)
{
  if (a.interval < ticks.launch) return false;
  const unsigned who = a.who & 0x3fffu;
  if (who == kBlocks) return true;
  if (a.interval < ticks.block) return !shared;
  if (a.interval != ticks.barrier) return false;
  if (who == kBlock) return true;
  const bool lanes = (who & kWarp) != 0;
  const unsigned warp = lanes ? who & 31 : who / 32;
  if (!lanes && who == (unsigned)now.linear) return false;
  return warp != (unsigned)now.linear / 32 || a.warp == (uint16_t)ticks.warp[warp];
}

// `a` and an access of the running thread that may run beside it.
inline uint16_t together(const Access &a, uint16_t me)
{
  const unsigned who = a.who & 0x3fffu;
  if (a.interval < ticks.launch) return me;
  if (who == kBlocks || a.interval < ticks.block) return kBlocks;
  if (a.interval != ticks.barrier || who == me) return me;
  const unsigned warp = me / 32;
  const bool same_warp = who != kBlock && ((who & kWarp) != 0 ? (who & 31) : who / 32) == warp;
  if (!same_warp) return kBlock;
  return a.warp == (uint16_t)ticks.warp[warp] ? (uint16_t)(kWarp | warp) : me;
}

inline void access_cell(Cell &c, const Region &r, const char *p, size_t bytes, bool write, bool atomic, const Site &site)
{
  const uint16_t me = (uint16_t)now.linear, flag = atomic ? kAtomic : 0;
  const uint16_t warp = (uint16_t)ticks.warp[now.linear / 32];
  const bool shared = r.shared;
  // Read before by this thread, or by so many that one more makes no difference, and not written since: as checked then.
  if (!write && c.read.interval == ticks.barrier && (c.read.who == me || c.read.who == kBlock) && c.write.interval < ticks.barrier &&
      (c.read.who == kBlock || c.read.warp == warp))
    return;
  if ((!write || atomic) && c.write.interval < (shared ? ticks.block : 1)) report("read of memory that nobody has written", &r, p, bytes, false, nullptr, site);
  if (!(atomic && (c.write.who & kAtomic) != 0) && unordered(c.write, shared))
    report(write ? "race (write after write)" : "race (read after write)", &r, p, bytes, write, &c.write, site);
  if (!write) {
    c.read = {ticks.barrier, shared && c.read.interval < ticks.block ? me : together(c.read, me), warp};
    return;
  }
  if (unordered(c.read, shared)) report("race (write after read)", &r, p, bytes, true, &c.read, site);
  const uint16_t who = atomic && (c.write.who & kAtomic) != 0 && !(shared && c.write.interval < ticks.block) ? together(c.write, me) : me;
  c.write = {ticks.barrier, (uint16_t)(who | flag), warp};
}

// Code of a kernel runs on a fiber's stack; the same function on the host does not.
bool in_kernel(const void *frame) { return running.stack != nullptr && (const char *)frame >= running.stack && (const char *)frame < running.stack + kStackBytes; }

void access_outside(const char *p, size_t bytes, bool write, const Site &site)
{
  const char *state_begin = (const char *)&now, *args = (const char *)running.args;
  if (!write && p >= args && p + bytes <= args + running.args_bytes) return;
  if (p >= state_begin && p + bytes <= state_begin + sizeof now) return;
  if (!write && p >= (const char *)running.constant_begin && p + bytes <= (const char *)running.constant_end) return;
  if (!write && is_constant(p)) return;
  if (on_fiber_stack(p)) return report("access to the local memory of another thread", nullptr, p, bytes, write, nullptr, site);
  const Region *near = nearest(p);
  report(near != nullptr ? "access outside of memory" : "access to memory that is not the device's", near, p, bytes, write, nullptr, site);
}

void access(const char *p, size_t bytes, bool write, bool atomic, const Site &site)
{
  if (p >= running.stack && p < running.stack + kStackBytes) return;  // its own
  Region *r = find(p);
  if (r == nullptr) return access_outside(p, bytes, write, site);
  if (p + bytes > r->start + r->bytes) return report("access outside of memory", r, p, bytes, write, nullptr, site);
  const size_t from = (size_t)(p - r->start), to = from + bytes;
  for (size_t w = from / 4; w < (to + 3) / 4; w++) {
    Cell &word = r->words[w], *cells = r->cells + 4 * w;
    if (from <= 4 * w && 4 * w + 4 <= to && word.write.interval != kSplit) {
      access_cell(word, *r, p, bytes, write, atomic, site);
      continue;
    }
    if (word.write.interval != kSplit) {
      for (int i = 0; i < 4; i++) cells[i] = word;
      word.write.interval = kSplit;
    }
    for (size_t i = 0; i < 4; i++)
      if (4 * w + i >= from && 4 * w + i < to) access_cell(cells[i], *r, p, bytes, write, atomic, site);
    if (memcmp(cells, cells + 1, 3 * sizeof(Cell)) == 0) word = cells[0];
  }
}

inline void instrumented(const void *p, size_t bytes, bool write, const void *pc, const void *frame)
{
  if ((uintptr_t)p - (uintptr_t)running.stack < kStackBytes) return;  // its own local memory
  if (in_kernel(frame)) access((const char *)p, bytes, write, false, {nullptr, 0, pc});
}

// --- what the emulation tells

void block_begins()
{
  State &s = state();
  const size_t fixed = (size_t)(running.shared_end - running.shared_begin);
  if (s.fixed.start != (const char *)running.shared_begin || s.fixed.bytes != fixed) {
    drop_region(s.fixed);
    if (fixed != 0) s.fixed = make_region(running.shared_begin, fixed, true);
  }
  if (s.dynamic.start != (const char *)now.dynamic_shared || s.dynamic.bytes != running.dynamic_bytes) {
    drop_region(s.dynamic);
    if (running.dynamic_bytes != 0) s.dynamic = make_region(now.dynamic_shared, running.dynamic_bytes, true);
  }
}
void memory(void *p, size_t bytes, bool allocated)
{
  State &s = state();
  s.last = nullptr;
  if (allocated) {
    s.device[(const char *)p] = make_region(p, bytes, false);
  } else {
    drop_region(s.device[(const char *)p]);
    s.device.erase((const char *)p);
  }
}
void host_writes(void *p, size_t bytes)
{
  Region *r = find((const char *)p);
  if (r == nullptr) return;
  const size_t from = (size_t)((const char *)p - r->start), to = from + bytes;
  for (size_t w = from / 4; w < (to + 3) / 4; w++) {
    Cell &word = r->words[w], *cells = r->cells + 4 * w;
    if (from <= 4 * w && 4 * w + 4 <= to) {
      word.write = {1, 0, 0};
      continue;
    }
    if (word.write.interval != kSplit)
      for (int i = 0; i < 4; i++) cells[i] = word;
    word.write.interval = kSplit;
    for (size_t i = 0; i < 4; i++)
      if (4 * w + i >= from && 4 * w + i < to) cells[i].write = {1, 0, 0};
  }
}
// As if the running thread wrote all of it, and nobody anything.
void view_begins(void *p, size_t bytes, const char *file, int line)
{
  Region *r = find((const char *)p);
  if (r == nullptr) return;
  const size_t from = (size_t)((const char *)p - r->start), to = from + bytes;
  const Site site = {file, line, nullptr};
  for (size_t w = from / 4; w < (to + 3) / 4; w++) {
    Cell &word = r->words[w], *cells = r->cells + 4 * w;
    const bool split = word.write.interval == kSplit;
    for (int i = 0; i < (split ? 4 : 1); i++) {
      const Cell &c = split ? cells[i] : word;
      for (const Access *a : {&c.write, &c.read})
        if (unordered(*a, true)) report("race (an array begins where another is in use)", r, r->start + 4 * w, 4, true, a, site);
    }
    word = Cell();
    for (int i = 0; i < 4; i++) cells[i] = Cell();
  }
}
void told_access(const void *p, size_t bytes, bool write, bool atomic, const char *file, int line)
{
  access((const char *)p, bytes, write, atomic, {file, line, nullptr});
}

const Checker kChecker = {block_begins, memory, host_writes, view_begins, told_access};
struct Installed {
  Installed() { checker = &kChecker; }
  ~Installed()
  {
    fflush(nullptr);
    if (state().seen.empty()) {
      fprintf(stderr, "cuda_on_cpu_check: nothing found\n");
    } else {
      fprintf(stderr, "cuda_on_cpu_check: %zu problems found\n", state().seen.size());
      _exit(66);
    }
  }
} installed;

}  // namespace
}  // namespace tc_cpu

extern "C" {
#define TC_ACCESS(NAME, BYTES, WRITE) \
  void NAME(void *p) { tc_cpu::instrumented(p, BYTES, WRITE, __builtin_return_address(0), __builtin_frame_address(0)); }
#define TC_ACCESSES(N)                        \
  TC_ACCESS(__tsan_read##N, N, false)           \
  TC_ACCESS(__tsan_write##N, N, true)           \
  TC_ACCESS(__tsan_unaligned_read##N, N, false) \
  TC_ACCESS(__tsan_unaligned_write##N, N, true)
TC_ACCESSES(1)
TC_ACCESSES(2)
TC_ACCESSES(4)
TC_ACCESSES(8)
TC_ACCESSES(16)
void __tsan_read_range(void *p, size_t n) { tc_cpu::instrumented(p, n, false, __builtin_return_address(0), __builtin_frame_address(0)); }
void __tsan_write_range(void *p, size_t n) { tc_cpu::instrumented(p, n, true, __builtin_return_address(0), __builtin_frame_address(0)); }
void *__tsan_memcpy(void *to, const void *from, size_t n)
{
  __tsan_read_range((void *)from, n);
  __tsan_write_range(to, n);
  return memcpy(to, from, n);
}
void *__tsan_memmove(void *to, const void *from, size_t n)
{
  __tsan_read_range((void *)from, n);
  __tsan_write_range(to, n);
  return memmove(to, from, n);
}
void *__tsan_memset(void *p, int value, size_t n)
{
  __tsan_write_range(p, n);
  return memset(p, value, n);
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

// What -fsanitize=alignment,bounds hands over begins with a place.
struct tc_cuda_place {
  const char *file;
  uint32_t line, column;
};
void __ubsan_handle_type_mismatch_v1(void *data, uintptr_t p)
{
  const tc_cuda_place *place = (const tc_cuda_place *)data;
  if (tc_cpu::in_kernel(__builtin_frame_address(0)))
    tc_cpu::report("misaligned access", nullptr, (const char *)p, 0, false, nullptr, {place->file, (int)place->line, nullptr});
}
void __ubsan_handle_out_of_bounds(void *data, uintptr_t index)
{
  const tc_cuda_place *place = (const tc_cuda_place *)data;
  if (tc_cpu::in_kernel(__builtin_frame_address(0)))
    tc_cpu::report("index outside of an array", nullptr, (const char *)index, 0, false, nullptr, {place->file, (int)place->line, nullptr});
}
}
