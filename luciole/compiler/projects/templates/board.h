/* What a program on the board can do: print to its serial line, 115200 baud. */
#ifndef BOARD_H
#define BOARD_H

void board_begin(void);
void board_print(const char *text);

#endif
