/* What main.c needs of the board: the rest is board.c. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Writes a text to the console of the debugger or of QEMU. */
void board_print(const char *text);
/* The same with a number. */
void board_print_number(uint32_t n);
/* Bytes of the stack that were used since the reset. */
size_t board_stack_used(void);

int main(void);

#endif
