/* From the reset to main() on a Cortex-M, and a console: semihosting, by which a program asks the debugger or QEMU to print. On
 * a board of your own this file and the linker script are what the vendor's start-up code and a UART take the place of. */
#include "board.h"

extern uint32_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[], stack_begin[], stack_end[];

enum { SYS_WRITE0 = 0x04, SYS_EXIT = 0x18, STOPPED_APPLICATION_EXIT = 0x20026, STOPPED_RUN_TIME_ERROR = 0x20023 };
enum { UNUSED = 0xa5a5a5a5 };

static void semihosting(uint32_t operation, uint32_t argument)
{
  register uint32_t r0 __asm__("r0") = operation;
  register uint32_t r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void stop(int failed)
{
  for (;;) semihosting(SYS_EXIT, failed ? STOPPED_RUN_TIME_ERROR : STOPPED_APPLICATION_EXIT);
}

void board_print(const char *text) { semihosting(SYS_WRITE0, (uint32_t)(uintptr_t)text); }

void board_print_number(uint32_t n)
{
  char digits[11], *d = digits + sizeof digits - 1;
  *d = 0;
  do *--d = (char)('0' + n % 10);
  while ((n /= 10) != 0);
  board_print(d);
}

size_t board_stack_used(void)
{
  const uint32_t *lowest = stack_begin;
  while (lowest < stack_end && *lowest == (uint32_t)UNUSED) lowest++;
  return (size_t)((const char *)stack_end - (const char *)lowest);
}

/* Faults, and everything else that nobody expects. */
static void fault(void)
{
  board_print("fault\n");
  stop(1);
}

__attribute__((used, noreturn)) static void start(void)
{
  for (uint32_t *to = data_begin, *from = data_load; to < data_end;) *to++ = *from++;
  for (uint32_t *to = bss_begin; to < bss_end;) *to++ = 0;
  stop(main() != 0);
  for (;;) {}
}

/* No C yet: the floating point unit is switched on and the stack is painted, so that it can be said how much of it was used. */
__attribute__((naked, noreturn)) void reset(void)
{
  __asm__ volatile(
      "ldr r0, =0xe000ed88 \n" /* CPACR: access to the coprocessors 10 and 11 */
      "ldr r1, [r0]        \n"
      "orr r1, r1, #0xf00000 \n"
      "str r1, [r0]        \n"
      "dsb                 \n"
      "isb                 \n"
      "ldr r0, =stack_begin \n"
      "ldr r1, =stack_end  \n"
      "ldr r2, =0xa5a5a5a5 \n"
      "1: str r2, [r0], #4 \n"
      "cmp r0, r1          \n"
      "blo 1b              \n"
      "b start             \n");
}

/* The first entries of the table of exceptions: stack, reset, faults. Interrupts are never switched on. */
__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_end, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
