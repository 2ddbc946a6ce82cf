/* EMBEDDING_LOOKUP: rows of integers to floats, a scale for each row or each block of one. */
#ifndef LUC_EMBEDDING_LOOKUP_H
#define LUC_EMBEDDING_LOOKUP_H

#include "packed.h"

struct luc_embedding {
    int32_t rows;
    int32_t count;  /* numbers of rows */
    int32_t blocks; /* of a row */
    int32_t size;   /* of a block */
    int32_t apart;  /* from a row's scales to the next ones; 0 where all have the same */
    const int8_t *weights; /* [rows][blocks][size] */
    const float *scales;   /* [rows or 1][blocks] */
};

/* Decodes a row, whose integers are given; zeros where no row has the number. */
static void luc_embedding_row(const struct luc_embedding *op, const int8_t *row, int32_t number, float *y)
{
    int there = number >= 0 && number < op->rows;
    const float *scales = op->scales + (there ? number * op->apart : 0);
    for (int32_t b = 0; b < op->blocks; b++, y += op->size) {
        for (int32_t k = 0; k < op->size; k++) { y[k] = there ? (float)*row++ * scales[b] : 0.0f; }
    }
}

static void luc_embedding(const struct luc_embedding *op, const int32_t *numbers, float *y)
{
    int32_t size = op->blocks * op->size;
    for (int32_t k = 0; k < op->count; k++, y += size) {
        int32_t row = numbers[k] >= 0 && numbers[k] < op->rows ? numbers[k] : 0;
        luc_embedding_row(op, op->weights + row * size, numbers[k], y);
    }
}

struct luc_embedding_packed {
    struct luc_embedding layer;
    struct luc_packed packed;
};

/* `scratch` has the integers of a row. */
static void luc_embedding_packed(const struct luc_embedding_packed *op, const int32_t *numbers, float *y,
                                 void *scratch)
{
    int32_t size = op->layer.blocks * op->layer.size;
    int8_t *codes = (int8_t *)scratch;
    for (int32_t k = 0; k < op->layer.count; k++, y += size) {
        int32_t row = numbers[k] >= 0 && numbers[k] < op->layer.rows ? numbers[k] : 0;
        luc_unpack(&op->packed, row, size, 1, codes);
        luc_embedding_row(&op->layer, codes, numbers[k], y);
    }
}

#endif
