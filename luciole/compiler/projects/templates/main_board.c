/* Runs the self test of @NAME@, and prints what came of it. */
#include "board.h"

int @NAME@_test(void);

int main(void)
{
    board_begin();
    board_print("@NAME@: ");
    board_print(@NAME@_test() ? "FAIL\r\n" : "PASS\r\n");
    for (;;) {}
}
