/* Normalization of rows, and of channels, in float. */
#ifndef LUC_ROWS_H
#define LUC_ROWS_H

#include "floats.h"

struct luc_log_softmax {
    uint32_t rows;
    uint32_t depth;
};

static void luc_log_softmax(const struct luc_log_softmax *op, const float *x, float *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth, y += op->depth) {
        float most = x[0], sum = 0.0f;
        for (uint32_t k = 1; k < op->depth; k++) {
            if (x[k] > most) { most = x[k]; }
        }
        for (uint32_t k = 0; k < op->depth; k++) { sum += luc_exp_below_of(x[k] - most); }
        sum = luc_log_of(sum);
        for (uint32_t k = 0; k < op->depth; k++) { y[k] = x[k] - most - sum; }
    }
}

struct luc_l2_normalization {
    uint32_t rows;
    uint32_t depth;
    float least; /* what shorter rows are divided by */
};

/* Rows divided by their length; squares are taken of shares of the largest, so that none is lost. */
static void luc_l2_normalization(const struct luc_l2_normalization *op, const float *x, float *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth, y += op->depth) {
        float most = 0.0f, sum = 0.0f, length;
        for (uint32_t k = 0; k < op->depth; k++) {
            if (luc_magnitude(x[k]) > most) { most = luc_magnitude(x[k]); }
        }
        if (!(most > 0.0f)) { most = 1.0f; }
        for (uint32_t k = 0; k < op->depth; k++) { sum += x[k] / most * (x[k] / most); }
        length = most * luc_root(sum);
        if (length < op->least) { length = op->least; }
        for (uint32_t k = 0; k < op->depth; k++) { y[k] = x[k] / length; }
    }
}

/* Numbers [outer, count, inner], normalized along the middle axis; channels by their number, which is
 * that of the inner element, or of the outer one modulo their count.
 */
struct luc_normalize {
    uint32_t outer;
    uint32_t count;
    uint32_t inner;
    uint32_t channels;
    uint8_t inside; /* channels are the inner elements */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    float epsilon;
    const float *scale; /* [channels] */
    const float *shift; /* [channels] */
};

static void luc_normalize(const struct luc_normalize *op, const float *x, float *y)
{
    uint32_t inner = op->inner;
    for (uint32_t i = 0; i < op->outer; i++, x += op->count * inner, y += op->count * inner) {
        for (uint32_t j = 0; j < inner; j++) {
            uint32_t channel = op->inside ? j : i % op->channels;
            float mean = 0.0f, variance = 0.0f;
            for (uint32_t k = 0; k < op->count; k++) { mean += x[k * inner + j]; }
            mean /= (float)op->count;
            for (uint32_t k = 0; k < op->count; k++) {
                float off = x[k * inner + j] - mean;
                variance += off * off;
            }
            variance = 1.0f / luc_root(variance / (float)op->count + op->epsilon) * op->scale[channel];
            for (uint32_t k = 0; k < op->count; k++) {
                float z = (x[k * inner + j] - mean) * variance + op->shift[channel];
                if (op->has_least && z < op->least) { z = op->least; }
                if (op->has_most && z > op->most) { z = op->most; }
                y[k * inner + j] = z;
            }
        }
    }
}

struct luc_rms_norm {
    uint32_t rows;
    uint32_t depth;
    float epsilon;
    const float *scale; /* [depth] */
};

static void luc_rms_norm(const struct luc_rms_norm *op, const float *x, float *y)
{
    for (uint32_t row = 0; row < op->rows; row++, x += op->depth, y += op->depth) {
        float sum = 0.0f;
        for (uint32_t k = 0; k < op->depth; k++) { sum += x[k] * x[k]; }
        sum = 1.0f / luc_root(sum / (float)op->depth + op->epsilon);
        for (uint32_t k = 0; k < op->depth; k++) { y[k] = x[k] * sum * op->scale[k]; }
    }
}

#endif
