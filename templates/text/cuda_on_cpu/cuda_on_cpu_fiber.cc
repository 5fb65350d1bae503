// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// Fibers: the stacks of CUDA threads that wait, and the switch between them; faults on them.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <vector>

#include "cuda_on_cpu_parts.h"

#if defined(__x86_64__) && !defined(TC_CPU_UCONTEXT)
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
#elif defined(__aarch64__) && !defined(TC_CPU_UCONTEXT)
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
#  undef TC_CPU_UCONTEXT
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
namespace {

std::vector<char *> stacks;

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

// A thread's stack for signals: a fault may be that its own one, or a fiber's, is full.
struct SignalStack {
  static constexpr size_t kBytes = 65536;
  void *memory = nullptr;
  void use()
  {
    stack_t s = {};
    memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) out_of_memory("a stack for signals");
    s.ss_sp = memory;
    s.ss_size = kBytes;
    sigaltstack(&s, nullptr);
  }
  ~SignalStack()
  {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    if (memory == nullptr) return;
    sigaltstack(&none, nullptr);
    munmap(memory, kBytes);
  }
};

bool is_default(int number)
{
  struct sigaction current = {};
  return sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_DFL;
}

}  // namespace

void catch_faults()
{
  static thread_local SignalStack stack;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  static const bool ours = is_default(SIGSEGV) && is_default(SIGBUS) && sigaction(SIGSEGV, &action, nullptr) == 0 && sigaction(SIGBUS, &action, nullptr) == 0;
  if (ours && stack.memory == nullptr) stack.use();
}

void out_of_memory(const char *what)
{
  fprintf(stderr, "cuda_on_cpu: no memory for %s\n", what);
  abort();
}

char *new_stack()
{
  void *s = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (s == MAP_FAILED) out_of_memory("a stack");
  mprotect(s, 4096, PROT_NONE);
  stacks.push_back((char *)s);
  return (char *)s;
}
const std::vector<char *> &all_stacks() { return stacks; }
bool on_fiber_stack(const void *p)
{
  for (const char *s : stacks)
    if ((const char *)p >= s && (const char *)p < s + kStackBytes) return true;
  return false;
}

// Stacks begin at different places, so that they do not share cache sets.
void *first_frame(char *stack, void (*entry)())
{
  char *top = stack + kStackBytes - (uintptr_t)stack / kStackBytes % 61 * 832 - 64;
#if defined(TC_CPU_UCONTEXT)
  ucontext_t *context = (ucontext_t *)(stack + 4096);
  getcontext(context);
  context->uc_stack.ss_sp = stack + 4096 + sizeof(ucontext_t) / 64 * 64 + 64;
  context->uc_stack.ss_size = (size_t)(top - (char *)context->uc_stack.ss_sp);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
#elif defined(__x86_64__)
  void **frame = (void **)top - 8;  // six registers, the address to return to, and the ABI's alignment
  frame[6] = (void *)entry;
  return frame;
#else
  void **frame = (void **)top - 24;
  frame[11] = (void *)entry;  // x30
  return frame;
#endif
}

}  // namespace tc_cpu
