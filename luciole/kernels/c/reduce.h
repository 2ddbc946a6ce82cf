/* MEAN over neighbouring axes: [outer, count, inner] to [outer, inner]. */
#ifndef LUC_REDUCE_H
#define LUC_REDUCE_H

#include "fixed_point.h"

struct luc_mean_float {
    uint32_t outer;
    uint32_t count;
    uint32_t inner;
};

static void luc_mean_float(const struct luc_mean_float *op, const float *x, float *y)
{
    for (uint32_t i = 0; i < op->outer; i++, x += op->count * op->inner) {
        for (uint32_t j = 0; j < op->inner; j++) {
            float sum = 0.0f;
            for (uint32_t k = 0; k < op->count; k++) { sum += x[k * op->inner + j]; }
            *y++ = sum / (float)op->count;
        }
    }
}

struct luc_mean_int8 {
    uint32_t outer;
    uint32_t count;
    uint32_t inner;
    int32_t input_zero;
    int32_t result_zero;
    int32_t least;
    int32_t most;
    int32_t multiplier;
    int32_t shift;
};

static void luc_mean_int8(const struct luc_mean_int8 *op, const luc_code_int8 *x,
                          luc_code_int8 *y)
{
    for (uint32_t i = 0; i < op->outer; i++, x += op->count * op->inner) {
        for (uint32_t j = 0; j < op->inner; j++) {
            int32_t sum = 0;
            for (uint32_t k = 0; k < op->count; k++) { sum += x[k * op->inner + j] - op->input_zero; }
            sum = luc_scaled(sum, op->multiplier, op->shift);
            *y++ = luc_stored_int8(sum, op->result_zero, op->least, op->most);
        }
    }
}

#endif
