/* ADD, MUL and their like of quantized tensors of the same shape. */
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

/* Integers to another grid: those below the zero point have a factor of their own, and change their
 * sign before it or after it where these are -1.
 */
struct luc_scaling {
    uint32_t count;
    int32_t zero;
    int32_t to_zero;
    int32_t least;
    int32_t most;
    int32_t above_multiplier;
    int32_t above_shift;
    int32_t below_multiplier;
    int32_t below_shift;
    int32_t before;
    int32_t after;
};

/* A number on the common grid. */
static inline int32_t luc_on_grid(int32_t steps, int32_t finer, int32_t multiplier, int32_t shift)
{
    return luc_scaled(steps * (1 << finer), multiplier, shift);
}

/* PRELU: x, or the product of both where x is below zero; each has a factor of its own. */
static void luc_prelu_int8(const struct luc_add_int8 *op, const luc_code_int8 *x,
                           const luc_code_int8 *y, luc_code_int8 *z)
{
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t steps = x[k] - op->x_zero;
        if (steps >= 0) {
            steps = luc_scaled(steps, op->x_multiplier, op->x_shift);
        } else {
            steps = luc_scaled(steps * (y[k] - op->y_zero), op->y_multiplier, op->y_shift);
        }
        z[k] = luc_stored_int8(steps, op->result_zero, op->least, op->most);
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

static void luc_mul_int8(const struct luc_mul_int8 *op, const luc_code_int8 *x,
                         const luc_code_int8 *y, luc_code_int8 *z)
{
    for (uint32_t k = 0; k < op->count; k++) {
        int32_t steps = (x[k] - op->x_zero) * (y[k] - op->y_zero);
        steps = luc_scaled(steps, op->multiplier, op->shift);
        z[k] = luc_stored_int8(steps, op->result_zero, op->least, op->most);
    }
}

#endif
