/* Operators that only move elements into larger tensors: CONCATENATION, PAD and their like. */
#ifndef LUC_MOVES_H
#define LUC_MOVES_H

#include <stdint.h>
#include <string.h>

struct luc_fill {
    uint32_t bytes;
    uint8_t with;
};

static void luc_fill(const struct luc_fill *op, void *y)
{
    (void)memset(y, op->with, op->bytes);
}

struct luc_repeat {
    uint32_t count;
    uint32_t size;          /* bytes of an element */
    const uint8_t *element; /* [size] */
};

static void luc_repeat(const struct luc_repeat *op, void *y)
{
    unsigned char *to = (unsigned char *)y;
    for (uint32_t k = 0; k < op->count; k++, to += op->size) { (void)memcpy(to, op->element, op->size); }
}

struct luc_place {
    uint32_t run; /* bytes that lie next to each other in both */
    uint32_t axes;
    uint32_t first;          /* where the first byte goes */
    const uint32_t *extents; /* [axes], the innermost first */
    const uint32_t *steps;   /* [axes]: bytes of the result from one to the next */
};

/* Copies a tensor into a part of a larger one. */
static void luc_place(const struct luc_place *op, const void *x, void *y)
{
    const unsigned char *from = (const unsigned char *)x;
    uint32_t count = 1;
    for (uint32_t a = 0; a < op->axes; a++) { count *= op->extents[a]; }
    for (uint32_t k = 0; k < count; k++, from += op->run) {
        uint32_t left = k, to = op->first;
        for (uint32_t a = 0; a < op->axes; a++) {
            to += left % op->extents[a] * op->steps[a];
            left /= op->extents[a];
        }
        (void)memcpy((unsigned char *)y + to, from, op->run);
    }
}

struct luc_update {
    uint32_t bytes; /* of the result */
    uint32_t run;   /* bytes of the box that lie next to each other in both */
    uint32_t axes;
    const uint32_t *extents; /* [axes] of the box, the innermost first */
    const uint32_t *steps;   /* [axes]: bytes of the result from one to the next */
    const uint32_t *room;    /* [axes]: where the box begins at most */
};

/* Copies a tensor, and a box into it that begins at this byte. */
static void luc_update(const struct luc_update *op, const void *x, const void *box, uint32_t first, void *y)
{
    struct luc_place placed = {op->run, op->axes, first, op->extents, op->steps};
    (void)memcpy(y, x, op->bytes);
    luc_place(&placed, box, y);
}

/* The byte along an axis where a box begins that is moved so far that it does not reach outside. */
static inline uint32_t luc_begun(const struct luc_update *op, uint32_t a, int64_t at)
{
    uint32_t room = op->room[a];
    return (at < 0 ? 0u : at > (int64_t)room ? room : (uint32_t)at) * op->steps[a];
}

static void luc_update_int32(const struct luc_update *op, const void *x, const void *box,
                             const int32_t *begin, void *y)
{
    uint32_t first = 0;
    for (uint32_t a = 0; a < op->axes; a++) { first += luc_begun(op, a, begin[op->axes - 1 - a]); }
    luc_update(op, x, box, first, y);
}

static void luc_update_int64(const struct luc_update *op, const void *x, const void *box,
                             const int64_t *begin, void *y)
{
    uint32_t first = 0;
    for (uint32_t a = 0; a < op->axes; a++) { first += luc_begun(op, a, begin[op->axes - 1 - a]); }
    luc_update(op, x, box, first, y);
}

#endif
