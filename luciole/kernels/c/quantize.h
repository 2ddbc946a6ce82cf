/* QUANTIZE of floats, and DEQUANTIZE. */
#ifndef LUC_QUANTIZE_H
#define LUC_QUANTIZE_H

#include "codes.h"

struct luc_quantize_int8 {
    uint32_t count;
    int32_t zero;
    int32_t least;
    int32_t most;
    float scale;
};

/* The nearest steps, halves away from zero, saturated; not a number gets the lowest. */
static void luc_quantize_int8(const struct luc_quantize_int8 *op, const float *x, luc_code_int8 *y)
{
    for (uint32_t k = 0; k < op->count; k++) {
        float steps = x[k] / op->scale;
        int32_t found = -100000;
        if (steps > 100000.0f) { found = 100000; }
        if (steps >= -100000.0f && steps <= 100000.0f) {
            found = (int32_t)steps;
            if (steps - (float)found >= 0.5f) {
                found++;
            } else if (steps - (float)found <= -0.5f) { found--; }
        }
        found += op->zero;
        y[k] = (luc_code_int8)(found < op->least ? op->least : found > op->most ? op->most : found);
    }
}

struct luc_dequantize_int8 {
    uint32_t count;
    int32_t zero;
    float scale;
};

static void luc_dequantize_int8(const struct luc_dequantize_int8 *op, const luc_code_int8 *x, float *y)
{
    for (uint32_t k = 0; k < op->count; k++) { y[k] = (float)(x[k] - op->zero) * op->scale; }
}

#endif
