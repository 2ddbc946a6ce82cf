/* Runs the self test of @NAME@, and prints what came of it on the console. */
#include <zephyr/kernel.h>

int @NAME@_test(void);

int main(void)
{
    printk("@NAME@: %s\n", @NAME@_test() ? "FAIL" : "PASS");
    return 0;
}
