/* Runs the self test of @NAME@, and prints what came of it. */
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
