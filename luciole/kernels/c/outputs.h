/* What a network gives back. */
#ifndef LUC_OUTPUTS_H
#define LUC_OUTPUTS_H

#include <stdint.h>
#include <string.h>

struct luc_copy {
    uint32_t bytes;
};

static void luc_copy(const struct luc_copy *op, const void *x, void *y)
{
    (void)memcpy(y, x, op->bytes);
}

enum { LUC_INTEGERS = 0, LUC_FLOATS = 1, LUC_BYTES = 2 };

struct luc_class_of {
    uint32_t rows;
    uint32_t depth;
    uint8_t kind; /* LUC_INTEGERS of 32 bits, ... */
};

/* A number as an integer in the same order; bits of floats are, without a unit that computes with
 * them.
 */
static int32_t luc_in_order(const void *x, uint32_t k, unsigned kind)
{
    int32_t number;
    if (kind == LUC_BYTES) { return ((const int8_t *)x)[k]; }
    (void)memcpy(&number, (const unsigned char *)x + 4 * (size_t)k, sizeof number);
    if (kind == LUC_INTEGERS || number >= 0) { return number; }
    return number == INT32_MIN ? 0 : number ^ INT32_MAX;
}

/* Where the largest number of each row is, the first of equal ones. */
static void luc_class_of(const struct luc_class_of *op, const void *x, int32_t *y)
{
    for (uint32_t row = 0, first = 0; row < op->rows; row++, first += op->depth) {
        uint32_t most = first;
        for (uint32_t k = first + 1; k < first + op->depth; k++) {
            if (luc_in_order(x, k, op->kind) > luc_in_order(x, most, op->kind)) { most = k; }
        }
        y[row] = (int32_t)(most - first);
    }
}

#endif
