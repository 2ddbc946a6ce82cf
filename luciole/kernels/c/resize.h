/* RESIZE_BILINEAR of images [batches, height, width, channels]. */
#ifndef LUC_RESIZE_H
#define LUC_RESIZE_H

#include "codes.h"

struct luc_resize_bilinear_float {
    uint32_t batches;
    uint32_t rows;
    uint32_t columns;
    uint32_t height;
    uint32_t width;
    uint32_t channels;
    const uint32_t *row_lower; /* [rows]: the neighbours of each row of the result, and the share of */
    const uint32_t *row_upper; /* the upper one */
    const float *row_part;
    const uint32_t *column_lower; /* [columns] */
    const uint32_t *column_upper;
    const float *column_part;
};

static void luc_resize_bilinear_float(const struct luc_resize_bilinear_float *op, const float *x, float *y)
{
    for (uint32_t b = 0; b < op->batches; b++, x += op->height * op->width * op->channels) {
        for (uint32_t i = 0; i < op->rows; i++) {
            for (uint32_t j = 0; j < op->columns; j++) {
                const float *above = x + op->row_lower[i] * op->width * op->channels;
                const float *below = x + op->row_upper[i] * op->width * op->channels;
                uint32_t left = op->column_lower[j] * op->channels;
                uint32_t right = op->column_upper[j] * op->channels;
                float down = op->row_part[i], up = 1.0f - down;
                float across = op->column_part[j], back = 1.0f - across;
                for (uint32_t c = 0; c < op->channels; c++) {
                    float sum = above[left + c] * up * back;
                    sum += below[left + c] * down * back;
                    sum += above[right + c] * up * across;
                    *y++ = sum + below[right + c] * down * across;
                }
            }
        }
    }
}

struct luc_resize_bilinear_int8 {
    uint32_t batches;
    uint32_t rows;
    uint32_t columns;
    uint32_t height;
    uint32_t width;
    uint32_t channels;
    const uint32_t *row_lower;
    const uint32_t *row_upper;
    const int32_t *row_part; /* shares of 1024 */
    const uint32_t *column_lower;
    const uint32_t *column_upper;
    const int32_t *column_part;
};

/* Halves are rounded away from zero. */
static void luc_resize_bilinear_int8(const struct luc_resize_bilinear_int8 *op, const luc_code_int8 *x,
                                     luc_code_int8 *y)
{
    for (uint32_t b = 0; b < op->batches; b++, x += op->height * op->width * op->channels) {
        for (uint32_t i = 0; i < op->rows; i++) {
            for (uint32_t j = 0; j < op->columns; j++) {
                const luc_code_int8 *above = x + op->row_lower[i] * op->width * op->channels;
                const luc_code_int8 *below = x + op->row_upper[i] * op->width * op->channels;
                uint32_t left = op->column_lower[j] * op->channels;
                uint32_t right = op->column_upper[j] * op->channels;
                int32_t down = op->row_part[i], up = 1024 - down;
                int32_t across = op->column_part[j], back = 1024 - across;
                for (uint32_t c = 0; c < op->channels; c++) {
                    luc_sum_int8 sum = (luc_sum_int8)above[left + c] * up * back;
                    sum += (luc_sum_int8)below[left + c] * down * back;
                    sum += (luc_sum_int8)above[right + c] * up * across;
                    sum += (luc_sum_int8)below[right + c] * down * across;
                    sum += sum < 0 ? -(1 << 19) : 1 << 19;
                    *y++ = (luc_code_int8)(sum / (1 << 20));
                }
            }
        }
    }
}

#endif
