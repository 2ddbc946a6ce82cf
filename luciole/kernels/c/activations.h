/* Activations of floats that cut off. */
#ifndef LUC_ACTIVATIONS_H
#define LUC_ACTIVATIONS_H

#include <stdint.h>

struct luc_clamp {
    uint32_t count;
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
};

/* RELU, RELU6 and their like. */
static void luc_clamp(const struct luc_clamp *op, const float *x, float *y)
{
    for (uint32_t k = 0; k < op->count; k++) {
        float z = x[k];
        if (op->has_least && z < op->least) { z = op->least; }
        if (op->has_most && z > op->most) { z = op->most; }
        y[k] = z;
    }
}

#endif
