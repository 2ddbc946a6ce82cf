/* Runs the self test of @NAME@, and prints whether its results are those of the
 * computer that wrote it: @NAME@_test.c says what they are. */
#include "board.h"

int @NAME@_test(void);

int main(void)
{
    board_begin();
    board_print("@NAME@: ");
    board_print(@NAME@_test() ? "FAIL\r\n" : "PASS\r\n");
    for (;;) {}
}
