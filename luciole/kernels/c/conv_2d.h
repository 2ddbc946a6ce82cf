/* CONV_2D of images [batches, height, width, channels]. */
#ifndef LUC_CONV_2D_H
#define LUC_CONV_2D_H

#include "fixed_point.h"
#include "windows.h"

struct luc_conv_2d_int8 {
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
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t padding_top;
    int32_t padding_left;
    int32_t depth; /* channels of a filter: less than those of the image where there are groups */
    int32_t input_zero;
    int32_t result_zero;
    int32_t least;
    int32_t most;
    const int8_t *weights;      /* [outputs][kernel_height][kernel_width][depth] */
    const int32_t *bias;        /* [outputs], or none */
    const int32_t *multipliers; /* [outputs] */
    const int8_t *shifts;       /* [outputs] */
};

/* The sum of products of one window and one filter. */
static int32_t luc_conv_sum(const struct luc_conv_2d_int8 *op, const int8_t *x, const int8_t *w,
                            struct luc_taps rows, struct luc_taps columns)
{
    int32_t sum = 0, zero = op->input_zero, count = op->depth;
    for (int32_t k = rows.first; k < rows.last; k++) {
        int32_t line = (rows.begin + k * op->dilation_height) * op->input_width;
        for (int32_t l = columns.first; l < columns.last; l++) {
            const int8_t *a = x + (line + columns.begin + l * op->dilation_width) * op->channels;
            const int8_t *b = w + (k * op->kernel_width + l) * count;
            for (int32_t c = 0; c < count; c++) sum += (a[c] - zero) * b[c];
        }
    }
    return sum;
}

static void luc_conv_2d_int8(const struct luc_conv_2d_int8 *op, const int8_t *x, int8_t *y)
{
    int32_t size = op->kernel_height * op->kernel_width * op->depth;
    int32_t of_group = op->outputs / (op->channels / op->depth);
    for (int32_t n = 0; n < op->batches; n++, x += op->input_height * op->input_width * op->channels)
        for (int32_t i = 0; i < op->output_height; i++) {
            struct luc_taps rows = luc_taps(i, op->stride_height, op->padding_top, op->kernel_height,
                                            op->dilation_height, op->input_height);
            for (int32_t j = 0; j < op->output_width; j++) {
                struct luc_taps columns =
                    luc_taps(j, op->stride_width, op->padding_left, op->kernel_width,
                             op->dilation_width, op->input_width);
                for (int32_t o = 0; o < op->outputs; o++) {
                    const int8_t *from = x + o / of_group * op->depth;
                    int32_t sum = luc_conv_sum(op, from, op->weights + o * size, rows, columns);
                    if (op->bias) sum += op->bias[o];
                    sum = luc_scaled(sum, op->multipliers[o], op->shifts[o]);
                    *y++ = luc_byte(sum, op->result_zero, op->least, op->most);
                }
            }
        }
}

struct luc_conv_2d_float {
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
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t padding_top;
    int32_t padding_left;
    int32_t depth; /* channels of a filter */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const float *weights; /* [outputs][kernel_height][kernel_width][depth] */
    const float *bias;    /* [outputs], or none */
};

/* The sum of products of one window and one filter. */
static float luc_conv_float_sum(const struct luc_conv_2d_float *op, const float *x, const float *w,
                                struct luc_taps rows, struct luc_taps columns)
{
    float sum = 0.0f;
    for (int32_t k = rows.first; k < rows.last; k++) {
        int32_t line = (rows.begin + k * op->dilation_height) * op->input_width;
        for (int32_t l = columns.first; l < columns.last; l++) {
            const float *a = x + (line + columns.begin + l * op->dilation_width) * op->channels;
            const float *b = w + (k * op->kernel_width + l) * op->depth;
            for (int32_t c = 0; c < op->depth; c++) sum += a[c] * b[c];
        }
    }
    return sum;
}

static void luc_conv_2d_float(const struct luc_conv_2d_float *op, const float *x, float *y)
{
    int32_t size = op->kernel_height * op->kernel_width * op->depth;
    int32_t of_group = op->outputs / (op->channels / op->depth);
    for (int32_t n = 0; n < op->batches; n++, x += op->input_height * op->input_width * op->channels)
        for (int32_t i = 0; i < op->output_height; i++) {
            struct luc_taps rows = luc_taps(i, op->stride_height, op->padding_top, op->kernel_height,
                                            op->dilation_height, op->input_height);
            for (int32_t j = 0; j < op->output_width; j++) {
                struct luc_taps columns =
                    luc_taps(j, op->stride_width, op->padding_left, op->kernel_width,
                             op->dilation_width, op->input_width);
                for (int32_t o = 0; o < op->outputs; o++) {
                    const float *from = x + o / of_group * op->depth;
                    float sum = luc_conv_float_sum(op, from, op->weights + o * size, rows, columns);
                    if (op->bias) sum += op->bias[o];
                    if (op->has_least && sum < op->least) sum = op->least;
                    if (op->has_most && sum > op->most) sum = op->most;
                    *y++ = sum;
                }
            }
        }
}

#endif
