/* TRANSPOSE_CONV: each pixel of the result is the sum of the taps whose steps lead to it. */
#ifndef LUC_TRANSPOSE_CONV_H
#define LUC_TRANSPOSE_CONV_H

#include "fixed_point.h"
#include "packed.h"

struct luc_spreading {
    int32_t batches;
    int32_t input_height;
    int32_t input_width;
    int32_t channels;
    int32_t output_height;
    int32_t output_width;
    int32_t outputs;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t padding_top;
    int32_t padding_left;
};

/* The input that a tap brings to a place, or -1. */
static inline int32_t luc_brought(int32_t place, int32_t tap, int32_t stride, int32_t before, int32_t size)
{
    int32_t at = place + before - tap;
    return at < 0 || at % stride || at / stride >= size ? -1 : at / stride;
}

struct luc_transpose_conv_float {
    struct luc_spreading spreading;
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const float *weights; /* [outputs][kernel height][kernel width][channels] */
    const float *bias;    /* [outputs], or none */
};

/* What a pixel of an image gets for an output. */
static float luc_gathered_float(const struct luc_spreading *s, const float *x, const float *weights,
                                int32_t row, int32_t column)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < s->kernel_height; i++) {
        int32_t from = luc_brought(row, i, s->stride_height, s->padding_top, s->input_height);
        for (int32_t j = 0; from >= 0 && j < s->kernel_width; j++) {
            int32_t at = luc_brought(column, j, s->stride_width, s->padding_left, s->input_width);
            const float *tap = weights + (i * s->kernel_width + j) * s->channels;
            const float *pixel = x + (from * s->input_width + (at < 0 ? 0 : at)) * s->channels;
            for (int32_t c = 0; at >= 0 && c < s->channels; c++) { sum += pixel[c] * tap[c]; }
        }
    }
    return sum;
}

static void luc_transpose_conv_float(const struct luc_transpose_conv_float *op, const float *x, float *y)
{
    const struct luc_spreading *s = &op->spreading;
    int32_t taps = s->kernel_height * s->kernel_width * s->channels;
    for (int32_t b = 0; b < s->batches; b++, x += s->input_height * s->input_width * s->channels) {
        for (int32_t i = 0; i < s->output_height; i++) {
            for (int32_t j = 0; j < s->output_width; j++) {
                for (int32_t o = 0; o < s->outputs; o++) {
                    float sum = luc_gathered_float(s, x, op->weights + o * taps, i, j);
                    if (op->bias != NULL) { sum += op->bias[o]; }
                    if (op->has_least && sum < op->least) { sum = op->least; }
                    if (op->has_most && sum > op->most) { sum = op->most; }
                    *y++ = sum;
                }
            }
        }
    }
}

struct luc_transpose_conv_int8 {
    struct luc_spreading spreading;
    int32_t input_zero;
    int32_t result_zero;
    int32_t least;
    int32_t most;
    const luc_weight_int8 *weights; /* [outputs][kernel height][kernel width][channels] */
    const luc_bias_int8 *bias;  /* [outputs], or none */
    const int32_t *multipliers; /* [outputs] */
    const int32_t *shifts;      /* [outputs] */
};

static luc_sum_int8 luc_gathered_int8(const struct luc_transpose_conv_int8 *op, const luc_code_int8 *x,
                                      const luc_weight_int8 *weights, int32_t row, int32_t column)
{
    const struct luc_spreading *s = &op->spreading;
    luc_sum_int8 sum = 0;
    for (int32_t i = 0; i < s->kernel_height; i++) {
        int32_t from = luc_brought(row, i, s->stride_height, s->padding_top, s->input_height);
        for (int32_t j = 0; from >= 0 && j < s->kernel_width; j++) {
            int32_t at = luc_brought(column, j, s->stride_width, s->padding_left, s->input_width);
            const luc_weight_int8 *tap = weights + (i * s->kernel_width + j) * s->channels;
            const luc_code_int8 *pixel = x + (from * s->input_width + (at < 0 ? 0 : at)) * s->channels;
            for (int32_t c = 0; at >= 0 && c < s->channels; c++) {
                sum += (pixel[c] - op->input_zero) * tap[c];
            }
        }
    }
    return sum;
}

static void luc_transpose_conv_int8(const struct luc_transpose_conv_int8 *op, const luc_code_int8 *x,
                                    luc_code_int8 *y)
{
    const struct luc_spreading *s = &op->spreading;
    int32_t taps = s->kernel_height * s->kernel_width * s->channels;
    for (int32_t b = 0; b < s->batches; b++, x += s->input_height * s->input_width * s->channels) {
        for (int32_t i = 0; i < s->output_height; i++) {
            for (int32_t j = 0; j < s->output_width; j++) {
                for (int32_t o = 0; o < s->outputs; o++) {
                    luc_sum_int8 sum = luc_gathered_int8(op, x, op->weights + o * taps, i, j);
                    luc_bias_int8 bias = op->bias != NULL ? op->bias[o] : 0;
                    int32_t steps = luc_rescaled_int8(sum + bias, op->multipliers[o], op->shifts[o]);
                    *y++ = luc_stored_int8(steps, op->result_zero, op->least, op->most);
                }
            }
        }
    }
}

struct luc_transpose_conv_packed_int8 {
    struct luc_transpose_conv_int8 layer;
    struct luc_packed packed;
};

static void luc_transpose_conv_packed_int8(const struct luc_transpose_conv_packed_int8 *op,
                                           const luc_code_int8 *x, luc_code_int8 *y, void *scratch)
{
    struct luc_transpose_conv_int8 layer = op->layer;
    const struct luc_spreading *s = &layer.spreading;
    int32_t size = s->kernel_height * s->kernel_width * s->channels;
    int8_t *weights = (int8_t *)scratch;
    for (int32_t o = 0; o < s->outputs; o++) { luc_unpack(&op->packed, o, size, 1, weights + o * size); }
    layer.weights = weights;
    luc_transpose_conv_int8(&layer, x, y);
}

#endif
