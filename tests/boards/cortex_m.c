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

void board_bytes(const char *name, const void *bytes, uint32_t count)
{
    const uint8_t *from = bytes;
    board_print(name);
    board_print(" ");
    for (uint32_t k = 0; k < count; k++) {
        char two[3] = {"0123456789abcdef"[from[k] >> 4], "0123456789abcdef"[from[k] & 15], 0};
        board_print(two);
    }
    board_print("\n");
}

void board_number(const char *name, uint32_t number)
{
    board_bytes(name, &number, sizeof number);
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

enum { PAINTED = 8192, CLOSE = 64 };

static uint8_t *painted_from;

__attribute__((noinline)) void board_paint(void)
{
    uint8_t here;
    painted_from = (uint8_t *)((uintptr_t)&here - CLOSE);
    for (uint32_t k = 0; k < PAINTED; k++) *(volatile uint8_t *)(painted_from - k) = 0xa5;
}

__attribute__((noinline)) uint32_t board_painted_over(void)
{
    uint32_t deepest = PAINTED;
    while (deepest && *(volatile uint8_t *)(painted_from - deepest + 1) == 0xa5) deepest--;
    return deepest + CLOSE;
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

/* What compilers call on their own. */
void *memset(void *to, int c, size_t n)
{
    unsigned char *p = to;
    while (n--) *p++ = (unsigned char)c;
    return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
    unsigned char *p = to;
    const unsigned char *q = from;
    while (n--) *p++ = *q++;
    return to;
}
