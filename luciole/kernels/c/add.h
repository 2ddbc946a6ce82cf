/* ADD and MUL of tensors of bytes of the same shape. */
#ifndef LUC_ADD_H
#define LUC_ADD_H

#include "fixed_point.h"

struct luc_add_int8 {
    uint32_t count;
    int32_t x_zero;
    int32_t x_multiplier;
    int32_t x_shift;
    int32_t y_zero;
    int32_t y_multiplier;
    int32_t y_shift;
    int32_t multiplier;
    int32_t shift;
    int32_t finer; /* bits of the common grid behind those of the coarser operand */
    int32_t result_zero;
    int32_t least;
    int32_t most;
};

/* Both operands on a common grid, then on that of the result. */
static void luc_add_int8(const struct luc_add_int8 *op, const int8_t *x, const int8_t *y, int8_t *z)
{
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t a = (x[k] - op->x_zero) * (1 << op->finer);
        int32_t b = (y[k] - op->y_zero) * (1 << op->finer);
        a = luc_scaled(a, op->x_multiplier, op->x_shift);
        b = luc_scaled(b, op->y_multiplier, op->y_shift);
        a = luc_scaled(a + b, op->multiplier, op->shift);
        z[k] = luc_byte(a, op->result_zero, op->least, op->most);
    }
}

struct luc_mul_int8 {
    uint32_t count;
    int32_t x_zero;
    int32_t y_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t result_zero;
    int32_t least;
    int32_t most;
};

static void luc_mul_int8(const struct luc_mul_int8 *op, const int8_t *x, const int8_t *y, int8_t *z)
{
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t steps = (x[k] - op->x_zero) * (y[k] - op->y_zero);
        steps = luc_scaled(steps, op->multiplier, op->shift);
        z[k] = luc_byte(steps, op->result_zero, op->least, op->most);
    }
}

#endif
