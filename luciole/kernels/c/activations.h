/* Activations of floats, without a library: e^x by its own. */
#ifndef LUC_ACTIVATIONS_H
#define LUC_ACTIVATIONS_H

#include <stdint.h>
#include <string.h>

/* e^x within 2 units in the last place: 2^n times a polynomial of the rest (Cephes' expf). */
static float luc_exp(float x)
{
    int32_t n, bits;
    float power, y;
    if (!(x > -87.33654f)) return x < 0.0f ? 0.0f : x; /* also not a number */
    if (x > 88.72283f) return x * 3.0e38f;
    n = (int32_t)(x * 1.44269504f + (x < 0.0f ? -0.5f : 0.5f));
    x -= (float)n * 0.693359375f;
    x -= (float)n * -2.12194440e-4f;
    y = 1.9875691500e-4f;
    y = y * x + 1.3981999507e-3f;
    y = y * x + 8.3334519073e-3f;
    y = y * x + 4.1665795894e-2f;
    y = y * x + 1.6666665459e-1f;
    y = y * x + 5.0000001201e-1f;
    y = y * x * x + x + 1.0f;
    if (n == 128) {
        n = 127;
        y *= 2.0f;
    }
    bits = (n + 127) * (1 << 23);
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

struct luc_tanh {
    uint32_t count;
};

static void luc_tanh(const struct luc_tanh *op, const float *x, float *y)
{
    for (uint32_t k = 0; k < op->count; k++) {
        float z = x[k], size = z < 0.0f ? -z : z, square = z * z;
        if (size < 0.625f) { /* Cephes' tanhf */
            float p = -5.70498872745e-3f;
            p = p * square + 2.06390887954e-2f;
            p = p * square - 5.37397155531e-2f;
            p = p * square + 1.33314422036e-1f;
            p = p * square - 3.33332819422e-1f;
            y[k] = size > 0.0f ? p * square * z + z : z; /* -0 stays */
        } else if (size < 10.0f) {
            float found = 1.0f - 2.0f / (luc_exp(2.0f * size) + 1.0f);
            y[k] = z < 0.0f ? -found : found;
        } else {
            y[k] = z < 0.0f ? -1.0f : z > 0.0f ? 1.0f : z;
        }
    }
}

struct luc_logistic {
    uint32_t count;
};

static void luc_logistic(const struct luc_logistic *op, const float *x, float *y)
{
    for (uint32_t k = 0; k < op->count; k++) {
        float e = luc_exp(x[k] < 0.0f ? x[k] : -x[k]);
        y[k] = (x[k] < 0.0f ? e : 1.0f) / (1.0f + e);
    }
}

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
        if (op->has_least && z < op->least) z = op->least;
        if (op->has_most && z > op->most) z = op->most;
        y[k] = z;
    }
}

#endif
