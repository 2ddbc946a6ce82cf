/* CONV_2D of images [batches, height, width, channels]. */
#ifndef LUC_CONV_2D_H
#define LUC_CONV_2D_H

#include "dots.h"
#include "fixed_point.h"
#include "packed.h"
#include "windows.h"

struct luc_conv_2d_int8 {
    struct luc_windows windows;
    int32_t depth; /* channels of a filter: less than those of the image where there are groups */
    int32_t input_zero;
    int32_t result_zero;
    int32_t least;
    int32_t most;
    const int8_t *weights;      /* [outputs][kernel_height][kernel_width][depth] */
    const int16_t *zeros;       /* [outputs]: zero points of weights, or none */
    const luc_bias_int8 *bias;  /* [outputs], or none */
    const int32_t *multipliers; /* [outputs] */
    const int8_t *shifts;       /* [outputs] */
};

/* A sum of products with weights less their zero point, of that with the weights, and of inputs. */
static inline luc_sum_int8 luc_conv_centred_int8(const struct luc_conv_2d_int8 *op, int32_t output,
                                                 luc_sum_int8 sum, int32_t total)
{
    (void)op;
    (void)output;
    (void)total;
    return sum;
}

static inline luc_sum_uint8 luc_conv_centred_uint8(const struct luc_conv_2d_uint8 *op, int32_t output,
                                                   luc_sum_uint8 sum, int32_t total)
{
    return sum - op->zeros[output] * total;
}

/* Lists what the taps of a window meet, less the zero point: outside of the image nothing. Where fours
 * of taps are no pixel's own, elements are gathered first.
 */
static void luc_gather_int8(const struct luc_conv_2d_int8 *op, const luc_code_int8 *x, int32_t number,
                            luc_code_int8 *gathered, int16_t *to)
{
    const struct luc_windows *w = &op->windows;
    struct luc_image_window at = luc_window_at(w, number);
    int32_t zero = op->input_zero, depth = op->depth, width = w->kernel_width;
    int32_t size = w->kernel_height * width * depth, step = w->dilation_width * w->channels;
    int32_t columns = at.columns.last - at.columns.first, whole = depth % 4 == 0;
    int32_t taps = step == depth ? columns : 1; /* side by side */
    if ((at.rows.last - at.rows.first) * columns * depth < size) {
        if (whole != 0) {
            luc_spread_nothing(size, to, 2);
        } else {
            for (int32_t k = 0; k < size; k++) { gathered[k] = (luc_code_int8)zero; }
        }
    }
    for (int32_t k = at.rows.first; k < at.rows.last; k++) {
        int32_t l = at.columns.first;
        const luc_code_int8 *from = x + luc_pixel(w, &at, k, l) * w->channels;
        for (; l < at.columns.last; l += taps, from += taps * step) {
            int32_t place = (k * width + l) * depth, count = taps * depth;
            if (whole != 0) {
                luc_spread_int8(from, zero, count, to + luc_listed(place, 2), 2);
            } else {
                (void)memcpy(gathered + place, from, (size_t)count * sizeof *from);
            }
        }
    }
    if (whole == 0) { luc_spread_int8(gathered, zero, size, to, 2); }
}

/* An output of two windows. */
static inline void luc_conv_outputs_int8(const struct luc_conv_2d_int8 *op, int32_t output, int32_t cuts,
                                         luc_sum_int8 first, luc_sum_int8 second, luc_code_int8 *y,
                                         luc_code_int8 *z)
{
    luc_bias_int8 bias = op->bias != NULL ? op->bias[output] : 0;
    int32_t multiplier = op->multipliers[output], steps[2];
    int shift = op->shifts[output];
    steps[0] = luc_rescaled_int8(first + bias, multiplier, shift);
    steps[1] = luc_rescaled_int8(second + bias, multiplier, shift);
    luc_kept_int8(steps, op->result_zero, op->least, op->most, cuts);
    y[output] = (luc_code_int8)steps[0];
    z[output] = (luc_code_int8)steps[1];
}

/* The results of some filters, whose weights are given, for two listed windows, at `y` and `z`. */
static LUC_APART void luc_conv_pair_int8(const struct luc_conv_2d_int8 *op, const int8_t *weights,
                                         const int16_t *lists, int32_t size, int32_t first,
                                         int32_t end, luc_code_int8 *y, luc_code_int8 *z)
{
    int32_t cuts = luc_cuts_int8(op->least, op->most), p = luc_total_int8(lists, size, 2);
    int32_t q = luc_total_int8(lists + luc_second_list(size), size, 2);
    for (int32_t o = first; o < end; o += 2, weights += 2 * size) {
        luc_sum_int8 sums[4];
        int32_t other = o + 1 < end;
        luc_dots_2x2_int8(weights, weights + (other ? size : 0), lists, size, sums);
        sums[0] = luc_conv_centred_int8(op, o, sums[0], p);
        sums[2] = luc_conv_centred_int8(op, o, sums[2], q);
        luc_conv_outputs_int8(op, o, cuts, sums[0], sums[2], y, z);
        if (other == 0) { break; }
        sums[1] = luc_conv_centred_int8(op, o + 1, sums[1], p);
        sums[3] = luc_conv_centred_int8(op, o + 1, sums[3], q);
        luc_conv_outputs_int8(op, o + 1, cuts, sums[1], sums[3], y, z);
    }
}

/* Some filters of a group, whose weights are given. Windows are computed in pairs, of an odd number the
 * last one with itself.
 */
static void luc_conv_filters_int8(const struct luc_conv_2d_int8 *op, const int8_t *weights,
                                  const luc_code_int8 *x, int32_t first, int32_t end, luc_code_int8 *y,
                                  int16_t *lists)
{
    const struct luc_windows *w = &op->windows;
    int32_t size = w->kernel_height * w->kernel_width * op->depth, count = luc_window_count(w);
    luc_code_int8 *gathered = (luc_code_int8 *)(lists + 2 * ((size + 3) / 4 * 4));
    for (int32_t k = 0; k < count; k += 2) {
        int32_t other = k + 1 < count ? k + 1 : k;
        luc_gather_int8(op, x, k, gathered, lists);
        luc_gather_int8(op, x, other, gathered, lists + luc_second_list(size));
        luc_conv_pair_int8(op, weights, lists, size, first, end, y + k * w->outputs,
                           y + other * w->outputs);
    }
}

static void luc_conv_2d_int8(const struct luc_conv_2d_int8 *op, const luc_code_int8 *x, luc_code_int8 *y,
                             void *scratch)
{
    const struct luc_windows *w = &op->windows;
    int32_t size = w->kernel_height * w->kernel_width * op->depth;
    int32_t of_group = w->outputs / (w->channels / op->depth);
    for (int32_t k = 0; k < w->outputs; k += of_group, x += op->depth) {
        luc_conv_filters_int8(op, op->weights + k * size, x, k, k + of_group, y, (int16_t *)scratch);
    }
}

struct luc_conv_2d_packed_int8 {
    struct luc_conv_2d_int8 layer;
    struct luc_packed packed;
};

/* Windows are listed once for each block of filters, and each filter is unpacked once. */
static void luc_conv_2d_packed_int8(const struct luc_conv_2d_packed_int8 *op, const luc_code_int8 *x,
                                    luc_code_int8 *y, void *scratch)
{
    const struct luc_windows *w = &op->layer.windows;
    int32_t depth = op->layer.depth, size = w->kernel_height * w->kernel_width * depth;
    int32_t of_group = w->outputs / (w->channels / depth), block = op->packed.block;
    int16_t *lists = (int16_t *)scratch;
    int32_t fours = (size + 3) / 4;
    luc_code_int8 *gathered = (luc_code_int8 *)(lists + 8 * fours);
    int8_t *weights = (int8_t *)(gathered + (depth % 4 ? 4 * fours : 0));
    for (int32_t group = of_group; group <= w->outputs; group += of_group, x += depth) {
        for (int32_t first = group - of_group; first < group; first += block) {
            int32_t end = first + block < group ? first + block : group;
            for (int32_t o = first; o < end; o++) {
                luc_unpack(&op->packed, o, size, 1, weights + (o - first) * size);
            }
            luc_conv_filters_int8(&op->layer, weights, x, first, end, y, lists);
        }
    }
}

struct luc_conv_2d_float {
    struct luc_windows windows;
    int32_t depth; /* channels of a filter */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const float *weights; /* [outputs][kernel_height][kernel_width][depth] */
    const float *bias;    /* [outputs], or none */
};

/* The sum of products of one window and one filter. */
static float luc_conv_float_sum(const struct luc_conv_2d_float *op, const float *x, const float *filter,
                                const struct luc_image_window *at)
{
    const struct luc_windows *w = &op->windows;
    float sum = 0.0f;
    for (int32_t k = at->rows.first; k < at->rows.last; k++) {
        for (int32_t l = at->columns.first; l < at->columns.last; l++) {
            const float *a = x + luc_pixel(w, at, k, l) * w->channels;
            const float *b = filter + (k * w->kernel_width + l) * op->depth;
            for (int32_t c = 0; c < op->depth; c++) { sum += a[c] * b[c]; }
        }
    }
    return sum;
}

static void luc_conv_2d_float(const struct luc_conv_2d_float *op, const float *x, float *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t size = w->kernel_height * w->kernel_width * op->depth, count = luc_window_count(w);
    int32_t of_group = w->outputs / (w->channels / op->depth);
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        for (int32_t o = 0; o < w->outputs; o++) {
            const float *from = x + o / of_group * op->depth;
            float sum = luc_conv_float_sum(op, from, op->weights + o * size, &at);
            if (op->bias != NULL) { sum += op->bias[o]; }
            if (op->has_least && sum < op->least) { sum = op->least; }
            if (op->has_most && sum > op->most) { sum = op->most; }
            *y++ = sum;
        }
    }
}

#endif
