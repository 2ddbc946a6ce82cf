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
    memcpy(y, x, op->bytes);
}

struct luc_class_of_fixed {
    uint32_t rows;
    uint32_t depth;
};

/* Where the largest number of each row is, the first of equal ones. */
static void luc_class_of_fixed(const struct luc_class_of_fixed *op, const int32_t *x, int32_t *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth) {
        uint32_t most = 0;
        for (uint32_t k = 1; k < op->depth; k++)
            if (x[k] > x[most]) most = k;
        y[row] = (int32_t)most;
    }
}

struct luc_class_of_floats {
    uint32_t rows;
    uint32_t depth;
};

static void luc_class_of_floats(const struct luc_class_of_floats *op, const float *x, int32_t *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth) {
        uint32_t most = 0;
        for (uint32_t k = 1; k < op->depth; k++)
            if (x[k] > x[most]) most = k;
        y[row] = (int32_t)most;
    }
}

struct luc_class_of_int8 {
    uint32_t rows;
    uint32_t depth;
};

static void luc_class_of_int8(const struct luc_class_of_int8 *op, const int8_t *x, int32_t *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth) {
        uint32_t most = 0;
        for (uint32_t k = 1; k < op->depth; k++)
            if (x[k] > x[most]) most = k;
        y[row] = (int32_t)most;
    }
}

#endif
