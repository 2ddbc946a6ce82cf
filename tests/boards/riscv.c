/* Start of a RISC-V without a C library; output by semihosting. */
#include "board.h"

int main(void);
void board_start(void);

static int semihost(int operation, const void *argument)
{
    register int a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\nslli x0, x0, 0x1f\nebreak\n"
                     "srai x0, x0, 7\n.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}

void board_print(const char *text)
{
    semihost(4, text);
}

uint32_t board_ticks(void)
{
    uint32_t instructions;
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop"
                     : "=r"(instructions));
    return instructions;
}

uint32_t board_between(uint32_t before, uint32_t after)
{
    return after - before;
}

void board_start(void)
{
    semihost(0x18, (void *)(main() ? 0x20023 : 0x20026));
    for (;;) {}
}

__attribute__((section(".start"), naked)) void board_reset(void)
{
    __asm__ volatile("la sp, board_stack\nj board_start");
}
