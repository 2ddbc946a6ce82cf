/* Runs the self test of @NAME@, and prints whether its results are those of the
 * computer that wrote it: @NAME@_test.c says what they are. */
#include <stdio.h>

int @NAME@_test(void);

int main(void)
{
    int wrong = @NAME@_test();
    if (wrong)
        printf("@NAME@: FAIL, %d numbers differ\n", wrong);
    else
        printf("@NAME@: PASS\n");
    return wrong != 0;
}
