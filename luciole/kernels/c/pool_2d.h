/* Pools of images [batches, height, width, channels]: what lies in the padding does not count. */
#ifndef LUC_POOL_2D_H
#define LUC_POOL_2D_H

#include "windows.h"

struct luc_average_pool_2d_int8 {
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
    int32_t least;
    int32_t most;
};

static void luc_average_pool_2d_int8(const struct luc_average_pool_2d_int8 *op, const int8_t *x, int8_t *y)
{
    for (int32_t n = 0; n < op->batches; n++, x += op->input_height * op->input_width * op->channels)
        for (int32_t i = 0; i < op->output_height; i++) {
            struct luc_taps rows = luc_taps(i, op->stride_height, op->padding_top, op->kernel_height,
                                            op->dilation_height, op->input_height);
            for (int32_t j = 0; j < op->output_width; j++) {
                struct luc_taps columns =
                    luc_taps(j, op->stride_width, op->padding_left, op->kernel_width,
                             op->dilation_width, op->input_width);
                int32_t count = (rows.last - rows.first) * (columns.last - columns.first);
                for (int32_t c = 0; c < op->outputs; c++) {
                    int32_t found = 0;
                    for (int32_t k = rows.first; k < rows.last; k++)
                        for (int32_t l = columns.first; l < columns.last; l++) {
                            int32_t line = (rows.begin + k) * op->input_width;
                            int8_t v = x[(line + columns.begin + l) * op->channels + c];
                            found += v;
                        }
                    found = (found < 0 ? -1 : 1) * (((found < 0 ? -found : found) + count / 2) / count);
                    if (found < op->least) found = op->least;
                    if (found > op->most) found = op->most;
                    *y++ = (int8_t)found;
                }
            }
        }
}

struct luc_max_pool_2d_int8 {
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
    int32_t least;
    int32_t most;
};

static void luc_max_pool_2d_int8(const struct luc_max_pool_2d_int8 *op, const int8_t *x, int8_t *y)
{
    for (int32_t n = 0; n < op->batches; n++, x += op->input_height * op->input_width * op->channels)
        for (int32_t i = 0; i < op->output_height; i++) {
            struct luc_taps rows = luc_taps(i, op->stride_height, op->padding_top, op->kernel_height,
                                            op->dilation_height, op->input_height);
            for (int32_t j = 0; j < op->output_width; j++) {
                struct luc_taps columns =
                    luc_taps(j, op->stride_width, op->padding_left, op->kernel_width,
                             op->dilation_width, op->input_width);
                for (int32_t c = 0; c < op->outputs; c++) {
                    int32_t found = -128;
                    for (int32_t k = rows.first; k < rows.last; k++)
                        for (int32_t l = columns.first; l < columns.last; l++) {
                            int32_t line = (rows.begin + k) * op->input_width;
                            int8_t v = x[(line + columns.begin + l) * op->channels + c];
                            if (v > found) found = v;
                        }
                    if (found < op->least) found = op->least;
                    if (found > op->most) found = op->most;
                    *y++ = (int8_t)found;
                }
            }
        }
}

struct luc_average_pool_2d_float {
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
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
};

static void luc_average_pool_2d_float(const struct luc_average_pool_2d_float *op, const float *x, float *y)
{
    for (int32_t n = 0; n < op->batches; n++, x += op->input_height * op->input_width * op->channels)
        for (int32_t i = 0; i < op->output_height; i++) {
            struct luc_taps rows = luc_taps(i, op->stride_height, op->padding_top, op->kernel_height,
                                            op->dilation_height, op->input_height);
            for (int32_t j = 0; j < op->output_width; j++) {
                struct luc_taps columns =
                    luc_taps(j, op->stride_width, op->padding_left, op->kernel_width,
                             op->dilation_width, op->input_width);
                int32_t count = (rows.last - rows.first) * (columns.last - columns.first);
                for (int32_t c = 0; c < op->outputs; c++) {
                    float found = 0.0f;
                    for (int32_t k = rows.first; k < rows.last; k++)
                        for (int32_t l = columns.first; l < columns.last; l++) {
                            int32_t line = (rows.begin + k) * op->input_width;
                            float v = x[(line + columns.begin + l) * op->channels + c];
                            found += v;
                        }
                    found /= (float)count;
                    if (op->has_least && found < op->least) found = op->least;
                    if (op->has_most && found > op->most) found = op->most;
                    *y++ = found;
                }
            }
        }
}

struct luc_max_pool_2d_float {
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
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
};

static void luc_max_pool_2d_float(const struct luc_max_pool_2d_float *op, const float *x, float *y)
{
    for (int32_t n = 0; n < op->batches; n++, x += op->input_height * op->input_width * op->channels)
        for (int32_t i = 0; i < op->output_height; i++) {
            struct luc_taps rows = luc_taps(i, op->stride_height, op->padding_top, op->kernel_height,
                                            op->dilation_height, op->input_height);
            for (int32_t j = 0; j < op->output_width; j++) {
                struct luc_taps columns =
                    luc_taps(j, op->stride_width, op->padding_left, op->kernel_width,
                             op->dilation_width, op->input_width);
                for (int32_t c = 0; c < op->outputs; c++) {
                    float found = -3.402823466e38f;
                    for (int32_t k = rows.first; k < rows.last; k++)
                        for (int32_t l = columns.first; l < columns.last; l++) {
                            int32_t line = (rows.begin + k) * op->input_width;
                            float v = x[(line + columns.begin + l) * op->channels + c];
                            if (v > found) found = v;
                        }
                    if (op->has_least && found < op->least) found = op->least;
                    if (op->has_most && found > op->most) found = op->most;
                    *y++ = found;
                }
            }
        }
}

#endif
