/* BATCH_MATMUL: [batches, rows, depth] times [batches, depth, columns], either turned where its steps
 * say so.
 */
#ifndef LUC_BATCH_MATMUL_H
#define LUC_BATCH_MATMUL_H

#include "fixed_point.h"

struct luc_matrices {
    uint32_t batches;
    uint32_t rows;
    uint32_t depth;
    uint32_t columns;
    uint32_t x_row; /* elements from row to row, and along the depth */
    uint32_t x_depth;
    uint32_t y_depth;
    uint32_t y_column;
    const uint32_t *x_places; /* [batches]: where the matrices of each begin */
    const uint32_t *y_places;
};

struct luc_batch_matmul_float {
    struct luc_matrices matrices;
};

static void luc_batch_matmul_float(const struct luc_batch_matmul_float *op, const float *x, const float *y,
                                   float *z)
{
    const struct luc_matrices *m = &op->matrices;
    for (uint32_t b = 0; b < m->batches; b++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t j = 0; j < m->columns; j++) {
                const float *left = x + m->x_places[b] + i * m->x_row;
                const float *right = y + m->y_places[b] + j * m->y_column;
                float sum = 0.0f;
                for (uint32_t k = 0; k < m->depth; k++) {
                    sum += left[k * m->x_depth] * right[k * m->y_depth];
                }
                *z++ = sum;
            }
        }
    }
}

struct luc_batch_matmul_int8 {
    struct luc_matrices matrices;
    int32_t x_zero;
    int32_t y_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t result_zero;
    int32_t least;
    int32_t most;
};

static void luc_batch_matmul_int8(const struct luc_batch_matmul_int8 *op, const luc_code_int8 *x,
                                  const luc_right_int8 *y, luc_code_int8 *z)
{
    const struct luc_matrices *m = &op->matrices;
    for (uint32_t b = 0; b < m->batches; b++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t j = 0; j < m->columns; j++) {
                const luc_code_int8 *left = x + m->x_places[b] + i * m->x_row;
                const luc_right_int8 *right = y + m->y_places[b] + j * m->y_column;
                luc_sum_int8 sum = 0;
                int32_t steps;
                for (uint32_t k = 0; k < m->depth; k++) {
                    sum += (luc_sum_int8)(left[k * m->x_depth] - op->x_zero) *
                           (right[k * m->y_depth] - op->y_zero);
                }
                steps = luc_rescaled_int8(sum, op->multiplier, op->shift);
                *z++ = luc_stored_int8(steps, op->result_zero, op->least, op->most);
            }
        }
    }
}

#endif
