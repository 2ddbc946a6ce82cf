/* DEPTHWISE_CONV_2D of images [batches, height, width, channels]. */
#ifndef LUC_DEPTHWISE_CONV_2D_H
#define LUC_DEPTHWISE_CONV_2D_H

#include "fixed_point.h"
#include "windows.h"

struct luc_depthwise_conv_2d_int8 {
    struct luc_windows windows;
    int32_t times; /* filters of each channel */
    int32_t input_zero;
    int32_t result_zero;
    int32_t least;
    int32_t most;
    const int8_t *weights;      /* [kernel_height][kernel_width][outputs] */
    const int32_t *bias;        /* [outputs], or none */
    const int32_t *multipliers; /* [outputs] */
    const int8_t *shifts;       /* [outputs] */
};

/* Sums of four neighbouring outputs, each of a channel of its own. */
static void luc_depthwise_4(const struct luc_depthwise_conv_2d_int8 *op, const int8_t *x,
                            const struct luc_image_window *at, int32_t output, int32_t sums[4])
{
    const struct luc_windows *w = &op->windows;
    int32_t a = 0, b = 0, c = 0, d = 0, zero = op->input_zero;
    for (int32_t k = at->rows.first; k < at->rows.last; k++) {
        int32_t l = at->columns.first;
        const int8_t *from = x + luc_pixel(w, at, k, l) * w->channels + output;
        const int8_t *by = op->weights + (k * w->kernel_width + l) * w->outputs + output;
        for (; l < at->columns.last; l++) {
            a += (from[0] - zero) * by[0];
            b += (from[1] - zero) * by[1];
            c += (from[2] - zero) * by[2];
            d += (from[3] - zero) * by[3];
            from += w->dilation_width * w->channels;
            by += w->outputs;
        }
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

static int32_t luc_depthwise_1(const struct luc_depthwise_conv_2d_int8 *op, const int8_t *x,
                               const struct luc_image_window *at, int32_t output)
{
    const struct luc_windows *w = &op->windows;
    int32_t sum = 0, zero = op->input_zero;
    x += output / op->times;
    for (int32_t k = at->rows.first; k < at->rows.last; k++)
        for (int32_t l = at->columns.first; l < at->columns.last; l++)
            sum += (x[luc_pixel(w, at, k, l) * w->channels] - zero) *
                   op->weights[(k * w->kernel_width + l) * w->outputs + output];
    return sum;
}

static inline int8_t luc_depthwise_byte(const struct luc_depthwise_conv_2d_int8 *op, int32_t output,
                                        int32_t sum)
{
    if (op->bias) sum += op->bias[output];
    sum = luc_scaled(sum, op->multipliers[output], op->shifts[output]);
    return luc_byte(sum, op->result_zero, op->least, op->most);
}

static void luc_depthwise_conv_2d_int8(const struct luc_depthwise_conv_2d_int8 *op, const int8_t *x,
                                       int8_t *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w), fours = op->times == 1 ? w->outputs / 4 * 4 : 0;
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        for (int32_t o = 0; o < fours; o += 4) {
            int32_t sums[4];
            luc_depthwise_4(op, x, &at, o, sums);
            for (int32_t k = 0; k < 4; k++) *y++ = luc_depthwise_byte(op, o + k, sums[k]);
        }
        for (int32_t o = fours; o < w->outputs; o++)
            *y++ = luc_depthwise_byte(op, o, luc_depthwise_1(op, x, &at, o));
    }
}

struct luc_depthwise_conv_2d_float {
    struct luc_windows windows;
    int32_t times; /* filters of each channel */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const float *weights; /* [kernel_height][kernel_width][outputs] */
    const float *bias;    /* [outputs], or none */
};

static void luc_depthwise_conv_2d_float(const struct luc_depthwise_conv_2d_float *op, const float *x,
                                        float *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w);
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        for (int32_t o = 0; o < w->outputs; o++) {
            const float *from = x + o / op->times;
            float sum = 0.0f;
            for (int32_t k = at.rows.first; k < at.rows.last; k++)
                for (int32_t l = at.columns.first; l < at.columns.last; l++)
                    sum += from[luc_pixel(w, &at, k, l) * w->channels] *
                           op->weights[(k * w->kernel_width + l) * w->outputs + o];
            if (op->bias) sum += op->bias[o];
            if (op->has_least && sum < op->least) sum = op->least;
            if (op->has_most && sum > op->most) sum = op->most;
            *y++ = sum;
        }
    }
}

#endif
