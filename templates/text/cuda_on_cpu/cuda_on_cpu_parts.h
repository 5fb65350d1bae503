// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// What the parts of the emulation share; no .cu file includes it.
#ifndef TC_CUDA_ON_CPU_PARTS_H
#define TC_CUDA_ON_CPU_PARTS_H
#include <vector>

#include "cuda_on_cpu.h"
#include "cuda_on_cpu_api.h"

// Saves what a call preserves on the stack, the stack pointer in *save, and goes on where `load` was saved.
extern "C" void tc_cpu_switch(void **save, void *load);

namespace tc_cpu {

constexpr int kMaxThreads = 1024, kMaxWarps = kMaxThreads / 32;
constexpr size_t kStackBytes = 256 << 10;

// Numbers of the intervals between barriers, ascending over all launches. Whoever holds an older number than launch was
// before this launch, than block before this block.
struct Clock {
  uint32_t launch = 1, block = 1, barrier = 1;
  uint32_t warp[kMaxWarps] = {};  // operations of each warp that order its lanes
};
extern Clock ticks;

struct Running {  // the launch whose blocks run
  const char *kernel;
  const void *args;
  size_t args_bytes;
  const unsigned char *constant_begin, *constant_end;
  unsigned char *shared_begin, *shared_end;
  size_t dynamic_bytes;
  char *stack;  // of the running fiber; null outside kernels
};
extern Running running;

// --- fibers: a stack has kStackBytes, the lowest page of which cannot be touched
char *new_stack();
const std::vector<char *> &all_stacks();
bool on_fiber_stack(const void *p);
void *first_frame(char *stack, void (*entry)());  // to go on at: the begin of entry, which must not return
void catch_faults();                              // in the calling thread, if nobody else does: says which CUDA thread faulted
[[noreturn]] void out_of_memory(const char *what);

struct View {  // an array that shares its bytes of shared memory with others: the newest on its bytes
  unsigned char *p;
  size_t bytes;
  const char *name;
  uint32_t interval;  // of Clock::barrier, in which it was declared
};
// That of the running block which holds p; null if there is none.
const View *view_at(const void *p);

// Runs all blocks of a launch; false after a failure, which is then on stderr. One call at a time.
bool run_grid(const Launch &launch, void (*threads)(const void *), const void *args, size_t args_bytes);

// Ends the running block with a message about the running thread.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// A rendezvous of the lanes in mask: the last one to arrive runs op on everybody's arg (indexed by lane).
void warp_operation(const char *what, unsigned mask, void *arg, const char *file, int line, void (*op)(void **args, unsigned mask));
inline unsigned whole_warp()  // the lanes that exist
{
  const int left = now.count - now.linear / 32 * 32;
  return left < 32 ? (1u << left) - 1 : ~0u;
}

struct Options {
  enum Order { kForward, kReverse, kRandom };
  Order order = kForward, stream = kForward;  // kReverse of streams: late
  uint64_t order_seed = 1, stream_seed = 1;
  bool poison = true, protect = false;
};
const Options &options();

struct Random {
  uint64_t state;
  unsigned next()
  {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
  }
};

// The checks of cuda_on_cpu_check.cc, where they are linked.
struct Checker {
  void (*block_begins)();
  void (*memory)(void *p, size_t bytes, bool allocated);  // device memory appears or goes
  void (*host_writes)(void *p, size_t bytes);              // by a copy or a fill
  void (*view_begins)(void *p, size_t bytes, const char *file, int line);  // of shared memory
  void (*access)(const void *p, size_t bytes, bool write, bool atomic, const char *file, int line);
};
extern const Checker *checker;

}  // namespace tc_cpu
#endif
