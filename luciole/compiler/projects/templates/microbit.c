/* Start of a BBC micro:bit (nRF51822), and its serial line. */
#include "board.h"

#include <stdint.h>

extern uint32_t board_stack, board_data_from, board_data, board_data_end, board_bss, board_bss_end;
int main(void);
void board_reset(void);

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CLOCK 0x40000000u
#define UART 0x40002000u
#define PINS 0x50000000u

enum { TX_PIN = 24, BAUD_115200 = 0x01d7e000 };

void board_begin(void)
{
    REGISTER(CLOCK + 0x000) = 1; /* the crystal, whose ticks are as even as serial lines need */
    while (!REGISTER(CLOCK + 0x100)) {}
    REGISTER(PINS + 0x508) = 1u << TX_PIN; /* high */
    REGISTER(PINS + 0x518) = 1u << TX_PIN; /* an output */
    REGISTER(UART + 0x50c) = TX_PIN;
    REGISTER(UART + 0x524) = BAUD_115200;
    REGISTER(UART + 0x500) = 4; /* on */
    REGISTER(UART + 0x008) = 1; /* sends */
}

void board_print(const char *text)
{
    for (; *text; text++) {
        REGISTER(UART + 0x11c) = 0;
        REGISTER(UART + 0x51c) = (uint8_t)*text;
        while (!REGISTER(UART + 0x11c)) {}
    }
}

void board_reset(void)
{
    uint32_t *from = &board_data_from;
    for (uint32_t *to = &board_data; to < &board_data_end;) *to++ = *from++;
    for (uint32_t *to = &board_bss; to < &board_bss_end;) *to++ = 0;
    main();
    for (;;) {}
}

static void board_fault(void)
{
    board_print("fault\r\n");
    for (;;) {}
}

__attribute__((section(".vectors"), used)) static const void *const vectors[48] = {
    &board_stack,
    (void *)board_reset,
    (void *)board_fault,
    (void *)board_fault,
};
