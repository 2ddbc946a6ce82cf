/* A program of Linux as a board; QEMU's plugin counts.c watches its clock. */
#include "board.h"

#include <stdio.h>

void board_print(const char *text)
{
    fputs(text, stdout);
}

__attribute__((noinline)) uint32_t board_ticks(void)
{
    __asm__ volatile("" ::: "memory");
    return 0;
}

uint32_t board_between(uint32_t before, uint32_t after)
{
    return after - before;
}
