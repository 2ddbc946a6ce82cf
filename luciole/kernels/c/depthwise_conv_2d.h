/* DEPTHWISE_CONV_2D of images [batches, height, width, channels]. */
#ifndef LUC_DEPTHWISE_CONV_2D_H
#define LUC_DEPTHWISE_CONV_2D_H

#include "fixed_point.h"
#include "packed.h"
#include "windows.h"

struct luc_depthwise_conv_2d_int8 {
    struct luc_windows windows;
    int32_t times; /* filters of each channel */
    int32_t input_zero;
    int32_t result_zero;
    int32_t least;
    int32_t most;
    const luc_weight_int8 *weights; /* [kernel_height][kernel_width][outputs] */
    const luc_bias_int8 *bias;  /* [outputs], or none */
    const int32_t *multipliers; /* [outputs] */
    const int8_t *shifts;       /* [outputs] */
};

/* Adds one tap of four neighbouring outputs, each of a channel of its own. */
static inline void luc_depthwise_tap_int8(const luc_code_int8 *from, const luc_weight_int8 *by, int32_t zero,
                                          luc_sum_int8 sums[4])
{
#if LUC_DSP
    const uint32_t both = (-(uint32_t)zero & 0xffffu) * 0x10001u, x = luc_load(from), w = luc_load(by);
    uint32_t pair = luc_add_even_bytes(both, x), weights = luc_even_bytes(w);
    sums[0] = luc_add_lower(pair, weights, sums[0]);
    sums[2] = luc_add_higher(pair, weights, sums[2]);
    pair = luc_add_odd_bytes(both, x), weights = luc_odd_bytes(w);
    sums[1] = luc_add_lower(pair, weights, sums[1]);
    sums[3] = luc_add_higher(pair, weights, sums[3]);
#else
    for (int k = 0; k < 4; k++) { sums[k] += (from[k] - zero) * by[k]; }
#endif
}

static inline luc_code_int8 luc_depthwise_output_int8(const struct luc_depthwise_conv_2d_int8 *op,
                                                      int32_t output, luc_sum_int8 sum)
{
    luc_bias_int8 bias = op->bias != NULL ? op->bias[output] : 0;
    int32_t steps = luc_rescaled_int8(sum + bias, op->multipliers[output], op->shifts[output]);
    return luc_stored_int8(steps, op->result_zero, op->least, op->most);
}

/* Adds a row of taps of four neighbouring outputs. */
static LUC_INSIDE void luc_depthwise_taps_int8(const luc_code_int8 *from, int32_t step,
                                               const luc_weight_int8 *by, int32_t outputs,
                                               int32_t taps, int32_t zero, luc_sum_int8 sums[4])
{
#if LUC_MVE
    int32x4_t four = vldrwq_s32(sums);
    for (; taps > 0; taps--, from += step, by += outputs) {
        four = vaddq_s32(four, vmulq_s32(vsubq_n_s32(vldrbq_s32(from), zero), vldrbq_s32(by)));
    }
    vstrwq_s32(sums, four);
#else
    for (; taps >= 3; taps -= 3, from += 3 * step, by += 3 * outputs) {
        LUC_UNKNOWN(step);
        LUC_UNKNOWN(outputs);
        luc_depthwise_tap_int8(from, by, zero, sums);
        luc_depthwise_tap_int8(from + step, by + outputs, zero, sums);
        luc_depthwise_tap_int8(from + 2 * step, by + 2 * outputs, zero, sums);
    }
    for (; taps > 0; taps--, from += step, by += outputs) { luc_depthwise_tap_int8(from, by, zero, sums); }
#endif
}

static LUC_INSIDE void luc_depthwise_taps_uint8(const luc_code_uint8 *from, int32_t step,
                                                const luc_weight_uint8 *by, int32_t outputs,
                                                int32_t taps, int32_t zero, luc_sum_uint8 sums[4])
{
    for (; taps > 0; taps--, from += step, by += outputs) {
        for (int k = 0; k < 4; k++) { sums[k] += (from[k] - zero) * by[k]; }
    }
}

static LUC_INSIDE void luc_depthwise_taps_int16(const luc_code_int16 *from, int32_t step,
                                                const int8_t *by, int32_t outputs, int32_t taps,
                                                int32_t zero, luc_sum_int16 sums[4])
{
    (void)zero;
    for (; taps > 0; taps--, from += step, by += outputs) {
        for (int k = 0; k < 4; k++) { sums[k] += from[k] * by[k]; }
    }
}

/* Two neighbouring outputs. */
static LUC_INSIDE void luc_depthwise_2_int8(const struct luc_depthwise_conv_2d_int8 *op, int32_t output,
                                            int32_t cuts, const luc_sum_int8 sums[2], luc_code_int8 *y)
{
    int32_t steps[2];
    for (int k = 0; k < 2; k++) {
        luc_bias_int8 sum = sums[k] + (op->bias != NULL ? op->bias[output + k] : 0);
        steps[k] = luc_rescaled_int8(sum, op->multipliers[output + k], op->shifts[output + k]);
    }
    luc_kept_int8(steps, op->result_zero, op->least, op->most, cuts);
    y[0] = (luc_code_int8)steps[0];
    y[1] = (luc_code_int8)steps[1];
}

/* Four neighbouring outputs, with Helium in one vector. */
static LUC_INSIDE void luc_depthwise_outputs_int8(const struct luc_depthwise_conv_2d_int8 *op,
                                                  int32_t output, int32_t cuts,
                                                  const luc_sum_int8 sums[4], luc_code_int8 *y)
{
#if LUC_MVE
    int32x4_t four = vldrwq_s32(sums), shifts = vldrbq_s32(op->shifts + output);
    int32x4_t none = vdupq_n_s32(0), right = vminq_s32(shifts, none);
    (void)cuts;
    if (op->bias != NULL) { four = vaddq_s32(four, vldrwq_s32(op->bias + output)); }
    four = vshlq_s32(four, vmaxq_s32(shifts, none));
    four = vqrdmulhq_s32(four, vldrwq_s32(op->multipliers + output));
    four = vaddq_s32(four, vshrq_n_s32(vandq_s32(four, right), 31)); /* -1 where both are below 0 */
    four = vqaddq_n_s32(vrshlq_s32(four, right), op->result_zero);
    four = vminq_s32(vmaxq_s32(four, vdupq_n_s32(op->least)), vdupq_n_s32(op->most));
    vstrbq_s32((int8_t *)y, four);
#else
    luc_depthwise_2_int8(op, output, cuts, sums, y);
    luc_depthwise_2_int8(op, output + 2, cuts, sums + 2, y + 2);
#endif
}

static LUC_INSIDE void luc_depthwise_outputs_int16(const struct luc_depthwise_conv_2d_int16 *op,
                                                   int32_t output, int32_t cuts,
                                                   const luc_sum_int16 sums[4], luc_code_int16 *y)
{
    luc_depthwise_2_int16(op, output, cuts, sums, y);
    luc_depthwise_2_int16(op, output + 2, cuts, sums + 2, y + 2);
}

/* Four neighbouring outputs at a time, of one window. */
static LUC_UNSEEN void luc_depthwise_4_int8(const struct luc_depthwise_conv_2d_int8 *op,
                                            const luc_code_int8 *x, const struct luc_image_window *at,
                                            int32_t count, luc_code_int8 *restrict y)
{
    const struct luc_windows *w = &op->windows;
    int32_t zero = op->input_zero, outputs = w->outputs, step = w->dilation_width * w->channels;
    int32_t first = at->columns.first, taps = at->columns.last - first;
    int32_t cuts = luc_cuts_int8(op->least, op->most);
    for (int32_t o = 0; o < count; o += 4) {
        luc_sum_int8 sums[4] = {0};
        for (int32_t k = at->rows.first; k < at->rows.last; k++) {
            const luc_code_int8 *from = x + luc_pixel(w, at, k, first) * w->channels + o;
            const luc_weight_int8 *by = op->weights + (k * w->kernel_width + first) * outputs + o;
            luc_depthwise_taps_int8(from, step, by, outputs, taps, zero, sums);
        }
        luc_depthwise_outputs_int8(op, o, cuts, sums, y + o);
    }
}

static luc_sum_int8 luc_depthwise_1_int8(const struct luc_depthwise_conv_2d_int8 *op, const luc_code_int8 *x,
                                         const struct luc_image_window *at, int32_t output)
{
    const struct luc_windows *w = &op->windows;
    luc_sum_int8 sum = 0;
    int32_t zero = op->input_zero;
    x += output / op->times;
    for (int32_t k = at->rows.first; k < at->rows.last; k++) {
        for (int32_t l = at->columns.first; l < at->columns.last; l++) {
            sum += (x[luc_pixel(w, at, k, l) * w->channels] - zero) *
                   op->weights[(k * w->kernel_width + l) * w->outputs + output];
        }
    }
    return sum;
}

static void luc_depthwise_conv_2d_int8(const struct luc_depthwise_conv_2d_int8 *op, const luc_code_int8 *x,
                                       luc_code_int8 *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w), fours = op->times == 1 ? w->outputs / 4 * 4 : 0;
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        luc_depthwise_4_int8(op, x, &at, fours, y);
        y += fours;
        for (int32_t o = fours; o < w->outputs; o++) {
            *y++ = luc_depthwise_output_int8(op, o, luc_depthwise_1_int8(op, x, &at, o));
        }
    }
}

struct luc_depthwise_conv_2d_packed_int8 {
    struct luc_depthwise_conv_2d_int8 layer;
    struct luc_packed packed;
};

static void luc_depthwise_conv_2d_packed_int8(const struct luc_depthwise_conv_2d_packed_int8 *op,
                                              const luc_code_int8 *x, luc_code_int8 *y, void *scratch)
{
    struct luc_depthwise_conv_2d_int8 layer = op->layer;
    int32_t outputs = layer.windows.outputs;
    int32_t taps = layer.windows.kernel_height * layer.windows.kernel_width;
    int8_t *weights = (int8_t *)scratch;
    for (int32_t o = 0; o < outputs; o++) { luc_unpack(&op->packed, o, taps, outputs, weights + o); }
    layer.weights = weights;
    luc_depthwise_conv_2d_int8(&layer, x, y);
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
            for (int32_t k = at.rows.first; k < at.rows.last; k++) {
                for (int32_t l = at.columns.first; l < at.columns.last; l++) {
                    sum += from[luc_pixel(w, &at, k, l) * w->channels] *
                           op->weights[(k * w->kernel_width + l) * w->outputs + o];
                }
            }
            if (op->bias != NULL) { sum += op->bias[o]; }
            if (op->has_least && sum < op->least) { sum = op->least; }
            if (op->has_most && sum > op->most) { sum = op->most; }
            *y++ = sum;
        }
    }
}

#endif
