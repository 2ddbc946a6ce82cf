/* Operators that read a part of a tensor, or its elements in another order. */
#ifndef LUC_SLICES_H
#define LUC_SLICES_H

#include <stdint.h>
#include <string.h>

struct luc_take {
    uint32_t run; /* bytes that lie next to each other in both */
    uint32_t axes;
    int32_t first;           /* where the first byte is */
    const uint32_t *extents; /* [axes] of the result, the innermost first */
    const int32_t *steps;    /* [axes]: bytes of the operand from one to the next */
};

/* Copies what lies apart in a tensor, one behind the other. */
static void luc_take(const struct luc_take *op, const void *x, void *y)
{
    const unsigned char *from = (const unsigned char *)x;
    unsigned char *to = (unsigned char *)y;
    uint32_t count = 1;
    for (uint32_t a = 0; a < op->axes; a++) { count *= op->extents[a]; }
    for (uint32_t k = 0; k < count; k++, to += op->run) {
        uint32_t left = k;
        int32_t at = op->first;
        for (uint32_t a = 0; a < op->axes; a++) {
            at += (int32_t)(left % op->extents[a]) * op->steps[a];
            left /= op->extents[a];
        }
        (void)memcpy(to, from + at, op->run);
    }
}

struct luc_pick {
    uint32_t run; /* bytes that lie next to each other in both */
    uint32_t axes;
    const uint32_t *extents; /* [axes] of the result, the innermost first */
    const uint32_t *places;  /* of each axis, in that order: the first bytes of its slices */
};

/* Copies slices of a tensor's axes in any order, any often. */
static void luc_pick(const struct luc_pick *op, const void *x, void *y)
{
    unsigned char *to = (unsigned char *)y;
    uint32_t count = 1;
    for (uint32_t a = 0; a < op->axes; a++) { count *= op->extents[a]; }
    for (uint32_t k = 0; k < count; k++, to += op->run) {
        uint32_t left = k, at = 0, first = 0;
        for (uint32_t a = 0; a < op->axes; a++) {
            at += op->places[first + left % op->extents[a]];
            left /= op->extents[a];
            first += op->extents[a];
        }
        (void)memcpy(to, (const unsigned char *)x + at, op->run);
    }
}

/* Slices [batches, outer, slices, run] by numbers [batches, count]: [batches, outer, count, run]. */
struct luc_look_up {
    uint32_t batches;
    uint32_t outer;
    uint32_t slices;
    uint32_t count;
    uint32_t run; /* bytes */
};

/* Copies the slice of a number, zeros where none has it. */
static void luc_slice(const struct luc_look_up *op, const unsigned char *slices, int64_t number,
                      unsigned char *y)
{
    if (number >= 0 && number < (int64_t)op->slices) {
        (void)memcpy(y, slices + (uint32_t)number * op->run, op->run);
    } else {
        (void)memset(y, 0, op->run);
    }
}

static void luc_look_up_int32(const struct luc_look_up *op, const void *x, const int32_t *numbers, void *y)
{
    const unsigned char *from = (const unsigned char *)x;
    unsigned char *to = (unsigned char *)y;
    for (uint32_t b = 0; b < op->batches; b++, numbers += op->count) {
        for (uint32_t o = 0; o < op->outer; o++, from += op->slices * op->run) {
            for (uint32_t k = 0; k < op->count; k++, to += op->run) { luc_slice(op, from, numbers[k], to); }
        }
    }
}

static void luc_look_up_int64(const struct luc_look_up *op, const void *x, const int64_t *numbers, void *y)
{
    const unsigned char *from = (const unsigned char *)x;
    unsigned char *to = (unsigned char *)y;
    for (uint32_t b = 0; b < op->batches; b++, numbers += op->count) {
        for (uint32_t o = 0; o < op->outer; o++, from += op->slices * op->run) {
            for (uint32_t k = 0; k < op->count; k++, to += op->run) { luc_slice(op, from, numbers[k], to); }
        }
    }
}

#endif
