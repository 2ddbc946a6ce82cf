/* SOFTMAX along the last axis. */
#ifndef LUC_SOFTMAX_H
#define LUC_SOFTMAX_H

#include <stdint.h>

struct luc_softmax {
    uint32_t rows;
    uint32_t depth;
    float beta;
};

static void luc_softmax(const struct luc_softmax *op, const float *x, float *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth, y += op->depth) {
        float most = x[0], sum = 0.0f;
        for (uint32_t k = 1; k < op->depth; k++) {
            if (x[k] > most) { most = x[k]; }
        }
        for (uint32_t k = 0; k < op->depth; k++) { sum += y[k] = luc_exp_below_of((x[k] - most) * op->beta); }
        for (uint32_t k = 0; k < op->depth; k++) { y[k] /= sum; }
    }
}

#endif
