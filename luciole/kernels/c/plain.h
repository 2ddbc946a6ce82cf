/* What printed functions of plain numbers take. */
#ifndef LUC_PLAIN_H
#define LUC_PLAIN_H

#include "floats.h"

struct luc_each {
    uint32_t count;
};

/* Numbers [outer, count, inner], along the middle axis. */
struct luc_lines {
    uint32_t outer;
    uint32_t count;
    uint32_t inner;
};

struct luc_running {
    uint32_t outer;
    uint32_t count;
    uint32_t inner;
    uint8_t without; /* the number itself */
    uint8_t backwards;
};

/* The nearest whole number that is not above x; large ones are whole. */
static inline float luc_whole(float x)
{
    float whole;
    if (!(luc_magnitude(x) < 8388608.0f)) { return x; }
    whole = (float)(int32_t)x;
    if (whole > x) { return whole - 1.0f; }
    return x < 0.0f ? whole : luc_of_bits(luc_bits_of(whole) | (luc_bits_of(x) & 0x80000000u));
}

struct luc_select {
    uint32_t count;
    uint32_t size; /* bytes of an element */
};

/* Elements of x where a truth is not 0, else of y. */
static void luc_select(const struct luc_select *op, const uint8_t *truths, const void *x, const void *y,
                       void *z)
{
    for (uint32_t k = 0, at = 0; k < op->count; k++, at += op->size) {
        (void)memcpy((unsigned char *)z + at, (const unsigned char *)(truths[k] ? x : y) + at, op->size);
    }
}

#endif
