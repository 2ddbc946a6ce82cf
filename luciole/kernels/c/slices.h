/* Operators that read a part of a tensor, or its elements in another order. */
#ifndef LUC_SLICES_H
#define LUC_SLICES_H

#include <stdint.h>
#include <string.h>

struct luc_take {
    uint32_t run; /* bytes that lie next to each other in both */
    uint32_t axes;
    int32_t first;           /* where the first byte is */
    const uint32_t *extents; /* [axes] of the result, the innermost first */
    const int32_t *steps;    /* [axes]: bytes of the operand from one to the next */
};

/* Copies what lies apart in a tensor, one behind the other. */
static void luc_take(const struct luc_take *op, const void *x, void *y)
{
    const unsigned char *from = (const unsigned char *)x;
    unsigned char *to = (unsigned char *)y;
    uint32_t count = 1;
    for (uint32_t a = 0; a < op->axes; a++) count *= op->extents[a];
    for (uint32_t k = 0; k < count; k++, to += op->run) {
        uint32_t left = k;
        int32_t at = op->first;
        for (uint32_t a = 0; a < op->axes; a++) {
            at += (int32_t)(left % op->extents[a]) * op->steps[a];
            left /= op->extents[a];
        }
        memcpy(to, from + at, op->run);
    }
}

#endif
