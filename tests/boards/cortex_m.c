/* Start of a Cortex-M without a C library; output by semihosting. */
#include "board.h"

#include <stddef.h>

extern uint32_t board_stack, board_data_from, board_data, board_data_end, board_bss, board_bss_end;
int main(void);
void board_start(void);

static int semihost(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_print(const char *text)
{
    semihost(4, text);
}

static void stop(int code)
{
    semihost(0x18, (void *)(code ? 0x20023 : 0x20026));
    for (;;) {}
}

#define SYSTICK ((volatile uint32_t *)0xe000e010)

uint32_t board_ticks(void)
{
    return SYSTICK[2];
}

uint32_t board_between(uint32_t before, uint32_t after)
{
    return (uint32_t)((uint64_t)((before - after) & 0xffffff) * TICK_PICOSECONDS / 1000);
}

void board_reset(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* floats are on */
    __asm__ volatile("dsb\nisb");
#endif
    board_start();
}

__attribute__((noinline)) void board_start(void)
{
    uint32_t *from = &board_data_from;
    for (uint32_t *to = &board_data; to < &board_data_end;) *to++ = *from++;
    for (uint32_t *to = &board_bss; to < &board_bss_end;) *to++ = 0;
    SYSTICK[1] = 0xffffff;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
    stop(main());
}

void board_fault(void)
{
    board_print("fault\n");
    stop(1);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &board_stack,         (void *)board_reset, (void *)board_fault, (void *)board_fault,
    (void *)board_fault, (void *)board_fault, (void *)board_fault,
};
