/* What is the same on all boards. */
#include "board.h"

#include <stddef.h>

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

#ifndef __linux__
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
#endif
