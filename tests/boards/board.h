/* What a program on a board can do: print, stop, count. */
#include <stdint.h>

void board_print(const char *text);
void board_bytes(const char *name, const void *bytes, uint32_t count);
void board_number(const char *name, uint32_t number);
uint32_t board_ticks(void);                              /* of a clock that falls */
uint32_t board_between(uint32_t before, uint32_t after); /* instructions, with QEMU's -icount */
void board_paint(void);                                  /* the stack below here */
uint32_t board_painted_over(void);                       /* bytes since it was painted */
