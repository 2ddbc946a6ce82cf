/* QUANTIZE of floats to bytes. */
#ifndef LUC_QUANTIZE_H
#define LUC_QUANTIZE_H

#include <stdint.h>

struct luc_quantize_int8 {
    uint32_t count;
    int32_t zero;
    float scale;
};

/* The nearest steps, halves away from zero, saturated; not a number gets the lowest. */
static void luc_quantize_int8(const struct luc_quantize_int8 *op, const float *x, int8_t *y)
{
    for (uint32_t k = 0; k < op->count; k++) {
        float steps = x[k] / op->scale;
        int32_t found = -1000;
        if (steps > 1000.0f) found = 1000;
        if (steps >= -1000.0f && steps <= 1000.0f) {
            found = (int32_t)steps;
            if (steps - (float)found >= 0.5f)
                found++;
            else if (steps - (float)found <= -0.5f)
                found--;
        }
        found += op->zero;
        y[k] = (int8_t)(found < -128 ? -128 : found > 127 ? 127 : found);
    }
}

#endif
