// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// The scheduler: blocks, fibers, barriers and operations of warps. See cuda_on_cpu.h.
#include "cuda_on_cpu_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace tc_cpu {

Now now;
Clock ticks;
Running running;
const Checker *checker;

namespace {

constexpr size_t kMaxDynamic = 256 << 10;

struct Operation {  // of some lanes of a warp; nobody waits if arrived is 0
  unsigned mask, arrived;
  const char *what, *file;
  int line;
  void *arg[32];
};

struct Machine {
  char *free_stacks[kMaxThreads + 1];
  int free_count;
  char *stack_of[kMaxThreads];
  void *suspended[kMaxThreads];  // stack pointers
  void *launcher;
  void (*threads)(const void *);
  int queue[kMaxThreads];  // a ring of the threads that can go on
  unsigned head, tail;
  bool at_barrier[kMaxThreads];
  int stopped;                 // threads that have begun and are not at their end
  int waiting, votes, result;  // at the barrier
  const char *barrier_file;
  int barrier_line;
  Operation operations[kMaxWarps][32];
  int operations_used[kMaxWarps];
  char *dynamic;  // shared memory, before a page that cannot be touched
  Random random;
  bool begun;
  bool failed;
  char why[1024];
};

Machine m;  // zeros when the program begins

void set_thread(int t)
{
  now.linear = t;
  now.thread = now.index[t];
}
void go_on(int t)
{
  m.queue[m.tail++ % kMaxThreads] = t;
  now.ready = true;
}
int next_ready()
{
  const int t = m.queue[m.head++ % kMaxThreads];
  now.ready = m.head != m.tail;
  return t;
}

void note_failure(const std::string &why)
{
  if (!m.failed) snprintf(m.why, sizeof m.why, "%s", why.c_str());
  m.failed = true;
}

void shuffle_order()
{
  for (int i = now.count - 1; i > 0; i--) std::swap(now.order[i], now.order[m.random.next() % unsigned(i + 1)]);
}

void fiber_main();

void *new_fiber()
{
  running.stack = m.free_count > 0 ? m.free_stacks[--m.free_count] : new_stack();
  return first_frame(running.stack, fiber_main);
}

std::string deadlock()
{
  std::string s = "deadlock";
  if (m.waiting != 0)
    s += ": " + std::to_string(m.waiting) + " of " + std::to_string(m.stopped) + " threads wait in __syncthreads() at " + m.barrier_file + ":" +
         std::to_string(m.barrier_line);
  for (int w = 0; w < kMaxWarps; w++)
    for (int i = 0; i < m.operations_used[w]; i++) {
      const Operation &o = m.operations[w][i];
      char text[320];
      if (o.arrived == 0) continue;
      snprintf(text, sizeof text, "; warp %d: %s at %s:%d wants lanes %08x, has %08x", w, o.what, o.file, o.line, o.mask, o.arrived);
      s += text;
    }
  return s;
}

void release_barrier()
{
  if (m.stopped != now.count)
    note_failure("__syncthreads() at " + std::string(m.barrier_file) + ":" + std::to_string(m.barrier_line) + " was reached by " +
                 std::to_string(m.stopped) + " of " + std::to_string(now.count) + " threads, the others have returned");
  m.waiting = 0;
  m.result = m.votes;
  m.votes = 0;
  ticks.barrier++;
  if (options().order == Options::kRandom) shuffle_order();
  for (int i = 0; i < now.count; i++) {
    const int t = now.order[i];
    if (m.at_barrier[t]) go_on(t);
    m.at_barrier[t] = false;
  }
}

// Leaves the running fiber, with its stack pointer in *save, for whatever can run next.
__attribute__((noinline)) void run_next(void **save)
{
  const bool all_began = now.started == now.count;
  if (!now.ready && all_began && m.waiting != 0 && m.waiting == m.stopped) release_barrier();
  if (!now.ready && all_began && m.stopped != 0) note_failure(deadlock());
  if (m.failed || (!now.ready && all_began)) {
    tc_cpu_switch(save, m.launcher);
  } else if (!now.ready) {
    tc_cpu_switch(save, new_fiber());  // its first thread is one that has not begun
  } else {
    const int t = next_ready();
    running.stack = m.stack_of[t];
    set_thread(t);
    if (save != &m.suspended[t]) tc_cpu_switch(save, m.suspended[t]);
  }
}

void wait_here()
{
  const int t = now.linear;
  m.stack_of[t] = running.stack;
  m.stopped++;
  run_next(&m.suspended[t]);
  m.stopped--;
}

void fiber_main()
{
  for (;;) {
    m.threads(running.args);
    if (!now.ready && now.started < now.count) continue;
    m.free_stacks[m.free_count++] = running.stack;
    void *never;
    run_next(&never);
  }
}

void run_block()
{
  now.started = 0;
  m.stopped = 0;
  now.ready = false;
  m.head = m.tail = 0;
  m.waiting = m.votes = 0;
  memset(m.at_barrier, 0, sizeof m.at_barrier);
  memset(m.operations_used, 0, sizeof m.operations_used);
  ticks.block = ++ticks.barrier;
  if (options().order == Options::kRandom) shuffle_order();
  if (checker) checker->block_begins();
  run_next(&m.launcher);
  running.stack = nullptr;
  if (!m.failed) return;
  m.free_count = 0;
  for (char *s : all_stacks()) m.free_stacks[m.free_count++] = s;
}

void poison_shared(bool first)
{
  const size_t fixed = (size_t)(running.shared_end - running.shared_begin);
  if (!options().poison) return;
  // The variables of all kernels of a package lie side by side; where they are many, once a launch has to do.
  if (fixed != 0 && (first || fixed <= 65536)) memset(running.shared_begin, 0xff, fixed);
  if (running.dynamic_bytes != 0) memset(now.dynamic_shared, 0xff, running.dynamic_bytes);
}

void begin_launch(const Launch &l)
{
  now.grid = l.grid;
  now.block_size = l.block;
  now.count = (int)(l.block.x * l.block.y * l.block.z);
  for (int t = 0; t < now.count; t++) {
    const unsigned u = (unsigned)t;
    now.index[t] = {u % l.block.x, u / l.block.x % l.block.y, u / (l.block.x * l.block.y)};
    now.order[t] = options().order == Options::kReverse ? now.count - 1 - t : t;
  }
  if (m.dynamic == nullptr) {
    m.dynamic = (char *)mmap(nullptr, kMaxDynamic + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.dynamic == MAP_FAILED) out_of_memory("shared memory");
    mprotect(m.dynamic + kMaxDynamic, 65536, PROT_NONE);
  }
  now.dynamic_shared = (unsigned char *)m.dynamic + kMaxDynamic - (l.shared_bytes + 1023) / 1024 * 1024;
  if (!m.begun) m.random.state = options().order_seed;
  m.begun = true;
  m.failed = false;
  ticks.launch = ++ticks.barrier;
}

}  // namespace

bool run_grid(const Launch &l, void (*threads)(const void *), const void *args, size_t args_bytes)
{
  running = {l.name, args, args_bytes, l.constant_begin, l.constant_end, l.shared_begin, l.shared_end, l.shared_bytes, nullptr};
  m.threads = threads;
  begin_launch(l);
  catch_faults();
  // A walk that visits every block; the random one by steps that share no factor with their number.
  const uint64_t blocks = (uint64_t)l.grid.x * l.grid.y * l.grid.z;
  uint64_t first = 0, step = 1;
  if (options().order == Options::kRandom) {
    first = m.random.next() % blocks;
    for (step = 0x9E3779B1u % blocks | 1; std::gcd(step, blocks) != 1;) step += 2;
  }
  for (uint64_t i = 0; i < blocks && !m.failed; i++) {
    const uint64_t at = options().order == Options::kReverse ? blocks - 1 - i : (i * step + first) % blocks;
    now.block = {(unsigned)(at % l.grid.x), (unsigned)(at / l.grid.x % l.grid.y), (unsigned)(at / l.grid.x / l.grid.y)};
    poison_shared(i == 0);
    run_block();
  }
  if (!m.failed) return true;
  fprintf(stderr, "cuda_on_cpu: kernel %s block (%u,%u,%u): %s\n", l.name, now.block.x, now.block.y, now.block.z, m.why);
  return false;
}

void fail(const char *format, ...)
{
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  char thread[64];
  snprintf(thread, sizeof thread, "thread (%u,%u,%u): ", now.thread.x, now.thread.y, now.thread.z);
  note_failure(thread + std::string(text));
  void *never;
  tc_cpu_switch(&never, m.launcher);
  abort();
}

void misaligned(const void *p, size_t bytes, const char *file, int line)
{
  fail("misaligned access at %s:%d: address %p is no multiple of %zu", file, line, p, bytes);
}

int barrier_count(int predicate, const char *file, int line)
{
  if (m.waiting == 0) {
    m.barrier_file = file;
    m.barrier_line = line;
  } else if (m.barrier_line != line || (m.barrier_file != file && strcmp(m.barrier_file, file) != 0)) {
    fail("threads of one block wait in different __syncthreads(): at %s:%d and %s:%d", m.barrier_file, m.barrier_line, file, line);
  }
  m.at_barrier[now.linear] = true;
  m.waiting++;
  m.votes += predicate;
  wait_here();
  return m.result;
}
static std::vector<View> &views()
{
  static std::vector<View> *list = new std::vector<View>;
  return *list;
}

// The first thread that comes by, in an interval between barriers, declares for all.
void begin_view(unsigned char *p, size_t bytes, const char *name, const char *file, int line)
{
  for (const View &v : views())
    if (v.p == p && v.bytes == bytes && v.interval == ticks.barrier && strcmp(v.name, name) == 0) return;
  auto &list = views();
  list.erase(std::remove_if(list.begin(), list.end(), [&](const View &v) { return v.p < p + bytes && p < v.p + v.bytes; }), list.end());
  if (checker != nullptr) checker->view_begins(p, bytes, file, line);
  list.push_back({p, bytes, name, ticks.barrier});
  if (options().poison) memset(p, 0xff, bytes);
}
const View *view_at(const void *p)
{
  for (const View &v : views())
    if (v.interval >= ticks.block && p >= v.p && p < v.p + v.bytes) return &v;
  return nullptr;
}

void barrier(const char *file, int line) { barrier_count(0, file, line); }

void warp_operation(const char *what, unsigned mask, void *arg, const char *file, int line, void (*op)(void **, unsigned))
{
  const int warp = now.linear / 32, lane = now.linear % 32;
  mask &= whole_warp();
  if ((mask >> lane & 1) == 0) fail("%s at %s:%d: the calling lane %d is not in mask %08x", what, file, line, lane, mask);
  Operation *o = nullptr;
  for (int i = 0; i < m.operations_used[warp]; i++) {
    Operation &candidate = m.operations[warp][i];
    if (candidate.arrived != 0 && candidate.mask == mask) o = &candidate;
    if (candidate.arrived == 0 && o == nullptr) o = &candidate;
  }
  if (o == nullptr) {
    o = &m.operations[warp][m.operations_used[warp]++];
    o->arrived = 0;
  }
  if (o->arrived == 0) {
    o->mask = mask;
    o->what = what;
    o->file = file;
    o->line = line;
  } else if (o->line != line || o->what != what) {
    fail("lanes of one warp wait in different operations: %s at %s:%d and %s at %s:%d", o->what, o->file, o->line, what, file, line);
  }
  o->arg[lane] = arg;
  o->arrived |= 1u << lane;
  if (o->arrived != mask) {
    wait_here();
    return;
  }
  op(o->arg, mask);
  o->arrived = 0;
  for (int i = 0; i < 32; i++)
    if ((mask >> i & 1) != 0 && i != lane) go_on(warp * 32 + i);
}

void warp_barrier(unsigned mask, const char *file, int line)
{
  warp_operation("__syncwarp()", mask, nullptr, file, line, [](void **, unsigned) { ticks.warp[now.linear / 32]++; });
}

namespace {
struct Shuffle {
  uint64_t in, out;
  int from;
};
struct Vote {
  bool yes;
  unsigned all;
};
}  // namespace

uint64_t shuffle(unsigned mask, uint64_t value, int from_lane, const char *file, int line)
{
  if ((mask & whole_warp()) >> from_lane == 0 || (mask >> from_lane & 1) == 0)
    fail("shuffle at %s:%d reads lane %d, which is not in mask %08x", file, line, from_lane, mask & whole_warp());
  Shuffle s = {value, value, from_lane};
  warp_operation("shuffle", mask, &s, file, line, [](void **args, unsigned lanes) {
    for (int i = 0; i < 32; i++)
      if ((lanes >> i & 1) != 0) ((Shuffle *)args[i])->out = ((Shuffle *)args[((Shuffle *)args[i])->from])->in;
  });
  return s.out;
}

unsigned ballot(unsigned mask, bool vote, const char *file, int line)
{
  Vote v = {vote, 0};
  warp_operation("vote", mask, &v, file, line, [](void **args, unsigned lanes) {
    unsigned all = 0;
    for (int i = 0; i < 32; i++)
      if ((lanes >> i & 1) != 0 && ((Vote *)args[i])->yes) all |= 1u << i;
    for (int i = 0; i < 32; i++)
      if ((lanes >> i & 1) != 0) ((Vote *)args[i])->all = all;
  });
  return v.all;
}

void copy16(void *to, const void *from) { memcpy(to, from, 16); }
void checked_access(const void *p, size_t bytes, bool write, const char *file, int line)
{
  if (checker && running.stack != nullptr) checker->access(p, bytes, write, false, file, line);
}

void atomic_hook(const void *p, void *old, size_t bytes, const char *file, int line)
{
  if (checker && running.stack != nullptr) checker->access(p, bytes, true, true, file, line);
  memcpy(old, p, bytes);
}
void store_hidden(void *p, const void *from, size_t bytes) { memcpy(p, from, bytes); }

}  // namespace tc_cpu
