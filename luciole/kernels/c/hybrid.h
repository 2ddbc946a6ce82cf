/* Layers of floats with weights of bytes: each image, or row, is brought to a grid of its own, and sums
 * are integers. One function for CONV_2D, DEPTHWISE_CONV_2D (groups of one channel) and FULLY_CONNECTED
 * (images of one pixel).
 */
#ifndef LUC_HYBRID_H
#define LUC_HYBRID_H

#include "floats.h"
#include "packed.h"
#include "windows.h"

struct luc_hybrid {
    struct luc_windows windows;
    int32_t depth;      /* channels of a filter */
    uint8_t asymmetric; /* grids have a zero point */
    uint8_t together;   /* both scales are multiplied before the sum */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const int8_t *weights; /* [outputs][kernel_height][kernel_width][depth] */
    const float *scales;   /* [outputs] */
    const float *bias;     /* [outputs], or none */
};

/* The nearest step, halves away from zero, between limits. */
static int16_t luc_step(float steps, float least, float most)
{
    steps += steps < 0.0f ? -0.5f : 0.5f;
    if (steps > most) { steps = most; }
    return (int16_t)(steps < least ? least : steps);
}

/* The integer of 0 on a grid that begins and ends at these steps from it: the one of two that is
 * computed with less error.
 */
static float luc_zero_of(double least, double most)
{
    double begun = -128.0 - least, ended = 127.0 - most;
    double chosen = 128.0 - least < 127.0 + (most < 0.0 ? -most : most) ? begun : ended;
    chosen += chosen < 0.0 ? -0.5 : 0.5;
    if (chosen > 127.0) { chosen = 127.0; }
    return (float)(int32_t)(chosen < -128.0 ? -128.0 : chosen);
}

/* Brings numbers to a grid around 0; its scale, not a number where one of them is none or infinite. */
static float luc_around_zero(const float *x, int32_t count, int16_t *steps)
{
    float span = 0.0f, inverse;
    int finite = 1;
    for (int32_t k = 0; k < count; k++) {
        float size = luc_magnitude(x[k]);
        finite &= size <= 3.4028235e38f;
        if (size > span) { span = size; }
    }
    inverse = span > 0.0f ? 127.0f / span : 0.0f;
    if (!finite || !(inverse <= 3.4028235e38f)) { inverse = 0.0f; }
    for (int32_t k = 0; k < count; k++) {
        steps[k] = (int16_t)(inverse > 0.0f ? luc_step(x[k] * inverse, -127.0f, 127.0f) : 0);
    }
    if (finite == 0) { return luc_of_bits(0x7fc00000u); }
    return inverse > 0.0f ? span / 127.0f : 1.0f;
}

/* The same on a grid from the least number to the largest one, 0 among them. */
static float luc_between_ends(const float *x, int32_t count, int16_t *steps)
{
    float least = 0.0f, most = 0.0f, zero, inverse, scale;
    double exact;
    int finite = 1;
    for (int32_t k = 0; k < count; k++) {
        finite &= luc_magnitude(x[k]) <= 3.4028235e38f;
        if (x[k] < least) { least = x[k]; }
        if (x[k] > most) { most = x[k]; }
    }
    exact = finite && most > least ? ((double)most - (double)least) / 255.0 : 1.0;
    scale = (float)exact;
    zero = luc_zero_of((double)least / exact, (double)most / exact);
    inverse = scale > 0.0f ? (float)(1.0 / (double)scale) : 0.0f;
    if (!finite || !(most > least) || !(inverse <= 3.4028235e38f)) { inverse = 0.0f; }
    for (int32_t k = 0; k < count; k++) {
        steps[k] = (int16_t)(inverse > 0.0f ? luc_step(x[k] * inverse, -128.0f - zero, 127.0f - zero) : 0);
    }
    return finite ? scale : luc_of_bits(0x7fc00000u);
}

/* The sum of products of one window and one filter. */
static int32_t luc_hybrid_sum(const struct luc_hybrid *op, const int16_t *x, const int8_t *filter,
                              const struct luc_image_window *at)
{
    const struct luc_windows *w = &op->windows;
    int32_t sum = 0;
    for (int32_t k = at->rows.first; k < at->rows.last; k++) {
        for (int32_t l = at->columns.first; l < at->columns.last; l++) {
            const int16_t *a = x + luc_pixel(w, at, k, l) * w->channels;
            const int8_t *b = filter + (k * w->kernel_width + l) * op->depth;
            for (int32_t c = 0; c < op->depth; c++) { sum += a[c] * b[c]; }
        }
    }
    return sum;
}

/* Brings an image to its grid; returns the scale. */
static float luc_hybrid_steps(const struct luc_hybrid *op, const float *x, int16_t *steps)
{
    const struct luc_windows *w = &op->windows;
    int32_t numbers = w->input_height * w->input_width * w->channels;
    return op->asymmetric ? luc_between_ends(x, numbers, steps) : luc_around_zero(x, numbers, steps);
}

/* Some outputs of all windows of an image, from the weights of these outputs. */
static void luc_hybrid_outputs(const struct luc_hybrid *op, const int8_t *weights, const int16_t *steps,
                               float scale, int32_t first, int32_t end, float *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t size = w->kernel_height * w->kernel_width * op->depth;
    int32_t of_group = w->outputs / (w->channels / op->depth);
    for (int32_t number = 0; number < w->output_height * w->output_width; number++, y += w->outputs) {
        struct luc_image_window at = luc_window_at(w, number);
        for (int32_t o = first; o < end; o++) {
            const int16_t *from = steps + o / of_group * op->depth;
            float sum = (float)luc_hybrid_sum(op, from, weights + (o - first) * size, &at);
            sum = op->together ? sum * (scale * op->scales[o]) : sum * op->scales[o] * scale;
            if (op->bias != NULL) { sum += op->bias[o]; }
            if (op->has_least && sum < op->least) { sum = op->least; }
            if (op->has_most && sum > op->most) { sum = op->most; }
            y[o] = sum;
        }
    }
}

/* `scratch` has the steps of one image. */
static void luc_hybrid(const struct luc_hybrid *op, const float *x, float *y, void *scratch)
{
    const struct luc_windows *w = &op->windows;
    int32_t numbers = w->input_height * w->input_width * w->channels;
    int32_t results = w->output_height * w->output_width * w->outputs;
    int16_t *steps = (int16_t *)scratch;
    for (int32_t b = 0; b < w->batches; b++, x += numbers, y += results) {
        float scale = luc_hybrid_steps(op, x, steps);
        luc_hybrid_outputs(op, op->weights, steps, scale, 0, w->outputs, y);
    }
}

struct luc_hybrid_packed {
    struct luc_hybrid layer;
    struct luc_packed packed;
};

/* Each filter is unpacked once; of several images each is brought to its grid for each block. */
static void luc_hybrid_packed(const struct luc_hybrid_packed *op, const float *x, float *y, void *scratch)
{
    const struct luc_windows *w = &op->layer.windows;
    int32_t numbers = w->input_height * w->input_width * w->channels;
    int32_t results = w->output_height * w->output_width * w->outputs, block = op->packed.block;
    int32_t size = w->kernel_height * w->kernel_width * op->layer.depth;
    int16_t *steps = (int16_t *)scratch;
    int8_t *weights = (int8_t *)(steps + (numbers + 3) / 4 * 4);
    float scale = 0.0f;
    for (int32_t first = 0; first < w->outputs; first += block) {
        int32_t end = first + block < w->outputs ? first + block : w->outputs;
        for (int32_t o = first; o < end; o++) {
            luc_unpack(&op->packed, o, size, 1, weights + (o - first) * size);
        }
        for (int32_t b = 0; b < w->batches; b++) {
            if (first == 0 || w->batches > 1) { scale = luc_hybrid_steps(&op->layer, x + b * numbers, steps); }
            luc_hybrid_outputs(&op->layer, weights, steps, scale, first, end, y + b * results);
        }
    }
}

#endif
