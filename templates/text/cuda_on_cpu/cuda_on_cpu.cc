// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// The scheduler: blocks, fibers, barriers and operations of warps. See cuda_on_cpu.h.
#include "cuda_on_cpu_parts.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

// --- fibers: tc_cpu_switch(&old, new) saves what a call preserves on the stack, its pointer in old, and goes on at new
extern "C" void tc_cpu_switch(void **save, void *load);
#if defined(__x86_64__)
asm(R"(
.text
.weak tc_cpu_switch
.type tc_cpu_switch,@function
tc_cpu_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size tc_cpu_switch,.-tc_cpu_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.weak tc_cpu_switch
.type tc_cpu_switch,%function
tc_cpu_switch:
  sub sp,sp,#176
  stp x19,x20,[sp]
  stp x21,x22,[sp,#16]
  stp x23,x24,[sp,#32]
  stp x25,x26,[sp,#48]
  stp x27,x28,[sp,#64]
  stp x29,x30,[sp,#80]
  stp d8,d9,[sp,#96]
  stp d10,d11,[sp,#112]
  stp d12,d13,[sp,#128]
  stp d14,d15,[sp,#144]
  mov x9,sp
  str x9,[x0]
  mov sp,x1
  ldp x19,x20,[sp]
  ldp x21,x22,[sp,#16]
  ldp x23,x24,[sp,#32]
  ldp x25,x26,[sp,#48]
  ldp x27,x28,[sp,#64]
  ldp x29,x30,[sp,#80]
  ldp d8,d9,[sp,#96]
  ldp d10,d11,[sp,#112]
  ldp d12,d13,[sp,#128]
  ldp d14,d15,[sp,#144]
  add sp,sp,#176
  ret
.size tc_cpu_switch,.-tc_cpu_switch
)");
#else
#  define TC_CPU_UCONTEXT 1
#  include <ucontext.h>
extern "C" void tc_cpu_switch(void **save, void *load)
{
  ucontext_t here;  // lives on the stack that it suspends
  *save = &here;
  swapcontext(&here, (ucontext_t *)load);
}
#endif

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
  std::vector<char *> stacks, free_stacks;
  char *stack_of[kMaxThreads];
  void *suspended[kMaxThreads];  // stack pointers
  void *launcher;
  void (*threads)(const void *);
  int queue[kMaxThreads];  // a ring of the threads that can go on
  unsigned head, tail;
  bool at_barrier[kMaxThreads];
  int waiting, votes, result;  // at the barrier
  const char *barrier_file;
  int barrier_line;
  Operation operations[kMaxWarps][32];
  int operations_used[kMaxWarps];
  char *dynamic = nullptr;  // shared memory, before a page that cannot be touched
  Random random{1};
  bool failed;
  std::string why;
};

Machine &machine()
{
  static Machine m;
  return m;
}

void set_thread(int t)
{
  now.linear = t;
  now.thread = now.index[t];
}
void go_on(int t)
{
  Machine &m = machine();
  m.queue[m.tail++ % kMaxThreads] = t;
  now.ready = true;
}
int next_ready()
{
  Machine &m = machine();
  const int t = m.queue[m.head++ % kMaxThreads];
  now.ready = m.head != m.tail;
  return t;
}

void note_failure(std::string why)
{
  Machine &m = machine();
  if (!m.failed) m.why = std::move(why);
  m.failed = true;
}

void shuffle_order()
{
  for (int i = now.count - 1; i > 0; i--) std::swap(now.order[i], now.order[machine().random.next() % unsigned(i + 1)]);
}

void out_of_memory(const char *what)
{
  fprintf(stderr, "cuda_on_cpu: no memory for %s\n", what);
  abort();
}

void fiber_main();

// A stack whose first frame is fiber_main; stacks begin at different places, so that they do not share cache sets.
void *new_fiber()
{
  Machine &m = machine();
  if (m.free_stacks.empty()) {
    void *s = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED) out_of_memory("a stack");
    mprotect(s, 4096, PROT_NONE);
    m.stacks.push_back((char *)s);
    m.free_stacks.push_back((char *)s);
  }
  running.stack = m.free_stacks.back();
  m.free_stacks.pop_back();
  char *top = running.stack + kStackBytes - (uintptr_t)running.stack / kStackBytes % 61 * 832 - 64;
#if defined(TC_CPU_UCONTEXT)
  ucontext_t *context = (ucontext_t *)(running.stack + 4096);
  getcontext(context);
  context->uc_stack.ss_sp = running.stack + 4096 + sizeof(ucontext_t) / 64 * 64 + 64;
  context->uc_stack.ss_size = (size_t)(top - (char *)context->uc_stack.ss_sp);
  context->uc_link = nullptr;
  makecontext(context, fiber_main, 0);
  return context;
#elif defined(__x86_64__)
  void **frame = (void **)top - 8;  // six registers, the address to return to, and the ABI's alignment
  frame[6] = (void *)&fiber_main;
  return frame;
#else
  void **frame = (void **)top - 24;
  frame[11] = (void *)&fiber_main;  // x30
  return frame;
#endif
}

std::string deadlock()
{
  Machine &m = machine();
  std::string s = "deadlock";
  if (m.waiting != 0)
    s += ": " + std::to_string(m.waiting) + " of " + std::to_string(now.live) + " threads wait in __syncthreads() at " + m.barrier_file + ":" +
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
  Machine &m = machine();
  if (now.live != now.count)
    note_failure("__syncthreads() at " + std::string(m.barrier_file) + ":" + std::to_string(m.barrier_line) + " was reached by " +
                 std::to_string(now.live) + " of " + std::to_string(now.count) + " threads, the others have returned");
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
  Machine &m = machine();
  const bool all_began = now.started == now.count;
  if (!now.ready && all_began && m.waiting != 0 && m.waiting == now.live) release_barrier();
  if (!now.ready && all_began && now.live != 0) note_failure(deadlock());
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
  machine().stack_of[t] = running.stack;
  run_next(&machine().suspended[t]);
}

void fiber_main()
{
  for (;;) {
    machine().threads(running.args);
    if (!now.ready && now.started < now.count) continue;
    machine().free_stacks.push_back(running.stack);
    void *never;
    run_next(&never);
  }
}

void run_block()
{
  Machine &m = machine();
  now.started = 0;
  now.live = now.count;
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
  if (m.failed) m.free_stacks = m.stacks;
}

void poison_shared(bool first)
{
  const size_t fixed = (size_t)(running.shared_end - running.shared_begin);
  if (!options().poison) return;
  // The variables of all kernels of a package lie side by side; where they are many, once a launch has to do.
  if (fixed != 0 && (first || fixed <= 65536)) memset(running.shared_begin, 0xff, fixed);
  if (running.dynamic_bytes != 0) memset(now.dynamic_shared, 0xff, running.dynamic_bytes);
}

void read_order(const char *name, const char *last_word, Options::Order &order, uint64_t &seed)
{
  const char *value = getenv(name);
  if (value == nullptr) return;
  if (strcmp(value, last_word) == 0) order = Options::kReverse;
  if (strncmp(value, "random:", 7) == 0) {
    order = Options::kRandom;
    seed = strtoull(value + 7, nullptr, 10);
  }
}

// Says which thread touched unmapped memory, then lets the signal take its course.
void on_fault(int number, siginfo_t *info, void *)
{
  if (running.stack != nullptr) {
    char text[256];
    const int n = snprintf(text, sizeof text, "cuda_on_cpu: kernel %s block (%u,%u,%u) thread (%u,%u,%u): access outside memory at %p\n",
                           running.kernel, now.block.x, now.block.y, now.block.z, now.thread.x, now.thread.y, now.thread.z, info->si_addr);
    if (n > 0 && fwrite(text, 1, (size_t)n, stderr) != 0) fflush(stderr);
  }
  signal(number, SIG_DFL);
}

void catch_faults()
{
  static thread_local bool done = false;
  struct sigaction action = {}, old = {};
  if (done) return;
  done = true;
  stack_t alternative = {};
  alternative.ss_size = 65536;
  alternative.ss_sp = malloc(alternative.ss_size);  // as long as the thread may fault
  sigaltstack(&alternative, nullptr);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS})
    if (sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(number, &action, nullptr);
}

void begin_launch(const Launch &l)
{
  Machine &m = machine();
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
  now.dynamic_shared = (unsigned char *)m.dynamic + kMaxDynamic - (l.shared_bytes + 127) / 128 * 128;
  m.failed = false;
  ticks.launch = ++ticks.barrier;
}

}  // namespace

const Options &options()
{
  static const Options read = [] {
    Options o;
    read_order("TC_CUDA_ORDER", "reverse", o.order, o.order_seed);
    read_order("TC_CUDA_STREAM", "late", o.stream, o.stream_seed);
    const char *poison = getenv("TC_CUDA_POISON"), *protect = getenv("TC_CUDA_PROTECT");
    o.poison = poison == nullptr || *poison != '0';
    o.protect = protect != nullptr && *protect == '1';
    machine().random.state = o.order_seed;
    return o;
  }();
  return read;
}

bool run_grid(const Launch &l, void (*threads)(const void *), const void *args, size_t args_bytes)
{
  Machine &m = machine();
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
  fprintf(stderr, "cuda_on_cpu: kernel %s block (%u,%u,%u): %s\n", l.name, now.block.x, now.block.y, now.block.z, m.why.c_str());
  return false;
}

bool on_fiber_stack(const void *p)
{
  for (const char *s : machine().stacks)
    if ((const char *)p >= s && (const char *)p < s + kStackBytes) return true;
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
  tc_cpu_switch(&never, machine().launcher);
  abort();
}

void misaligned(const void *p, size_t bytes, const char *file, int line)
{
  fail("misaligned access at %s:%d: address %p is no multiple of %zu", file, line, p, bytes);
}

int barrier_count(int predicate, const char *file, int line)
{
  Machine &m = machine();
  if (m.waiting == 0) {
    m.barrier_file = file;
    m.barrier_line = line;
  } else if (m.barrier_line != line || strcmp(m.barrier_file, file) != 0) {
    fail("threads of one block wait in different __syncthreads(): at %s:%d and %s:%d", m.barrier_file, m.barrier_line, file, line);
  }
  m.at_barrier[now.linear] = true;
  m.waiting++;
  m.votes += predicate;
  wait_here();
  return m.result;
}
void barrier(const char *file, int line) { barrier_count(0, file, line); }

void warp_operation(const char *what, unsigned mask, void *arg, const char *file, int line, void (*op)(void **, unsigned))
{
  Machine &m = machine();
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
