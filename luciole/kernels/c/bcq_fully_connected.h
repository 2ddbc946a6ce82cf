/* BCQ_FULLY_CONNECTED: float inputs, weights that are sums of scaled signs. */
#ifndef LUC_BCQ_FULLY_CONNECTED_H
#define LUC_BCQ_FULLY_CONNECTED_H

#include <stdint.h>

struct luc_bcq_fully_connected {
    int32_t outputs;
    int32_t batch;
    int32_t words; /* of 32 signs in a plane */
    int32_t planes;
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const uint32_t *bits; /* [words][planes] */
    const float *scales;  /* [planes] */
    const int32_t *rows;  /* [planes]: the output that each is a plane of */
    const float *bias;    /* [outputs], or none */
};

/* The 16 sums of 4 numbers that lie apart, each + where the bit is set, else -: doubled number by
 * number, so that nothing is subtracted that was added.
 */
static void luc_bcq_sums(const float *x, int32_t apart, float sums[16])
{
    sums[0] = 0.0f;
    for (int32_t k = 0; k < 4; k++, x += apart) {
        for (int32_t j = 0, size = 1 << k; j < size; j++) {
            sums[size + j] = sums[j] + *x;
            sums[j] -= *x;
        }
    }
}

/* Adds what the signs of a word make of 32 numbers to the sum of every plane. */
static void luc_bcq_word(const uint32_t *bits, int32_t planes, float (*tables)[16], float *sums)
{
    for (int32_t p = 0; p < planes; p++) {
        uint32_t word = bits[p];
        float low = tables[0][word & 15] + tables[1][word >> 4 & 15];
        float high = tables[4][word >> 16 & 15] + tables[5][word >> 20 & 15];
        low += tables[2][word >> 8 & 15] + tables[3][word >> 12 & 15];
        high += tables[6][word >> 24 & 15] + tables[7][word >> 28];
        sums[p] += low + high;
    }
}

/* x [words * 32][batch] to y [outputs][batch]: samples are columns. */
static void luc_bcq_fully_connected(const struct luc_bcq_fully_connected *op, const float *x, float *y,
                                    void *scratch)
{
    float(*tables)[16] = (float(*)[16])scratch, *sums = tables[8];
    for (int32_t b = 0; b < op->batch; b++) {
        for (int32_t p = 0; p < op->planes; p++) { sums[p] = 0.0f; }
        for (int32_t w = 0; w < op->words; w++) {
            for (int32_t k = 0; k < 8; k++) {
                luc_bcq_sums(x + (32 * w + 4 * k) * op->batch + b, op->batch, tables[k]);
            }
            luc_bcq_word(op->bits + w * op->planes, op->planes, tables, sums);
        }
        for (int32_t o = 0; o < op->outputs; o++) { y[o * op->batch + b] = op->bias != NULL ? op->bias[o] : 0.0f; }
        for (int32_t p = 0; p < op->planes; p++) {
            y[op->rows[p] * op->batch + b] += op->scales[p] * sums[p];
        }
        for (int32_t o = 0; o < op->outputs; o++) {
            float *z = &y[o * op->batch + b];
            if (op->has_least && *z < op->least) { *z = op->least; }
            if (op->has_most && *z > op->most) { *z = op->most; }
        }
    }
}

#endif
