/* Runs the self test of @NAME@, and prints on the console whether its
 * results are those of the computer that wrote it: @NAME@_test.c says what they are. */
#include <zephyr/kernel.h>

int @NAME@_test(void);

int main(void)
{
    printk("@NAME@: %s\n", @NAME@_test() ? "FAIL" : "PASS");
    return 0;
}
