/* Of a C library that is not there, what compiled networks call. */
#include <stddef.h>

void *memset(void *to, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);
