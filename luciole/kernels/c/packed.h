/* Weights in few bits: the codes of an output one behind the other, the lowest bit first, and what each
 * stands for.
 */
#ifndef LUC_PACKED_H
#define LUC_PACKED_H

#include "dsp.h"

struct luc_packed {
    uint32_t bits;        /* of a code */
    int32_t row;          /* bytes of an output's codes */
    int32_t apart;        /* from an output's levels to the next ones; 0 where all have the same */
    int32_t block;        /* outputs that are unpacked at a time */
    const uint8_t *codes; /* [outputs][row] */
    const int8_t *levels; /* [outputs or 1][2^bits] */
};

/* The weights of an output, which are so many elements apart. */
static LUC_UNSEEN void luc_unpack(const struct luc_packed *packed, int32_t output, int32_t count,
                                int32_t step, int8_t *to)
{
    const uint8_t *codes = packed->codes + output * packed->row;
    const int8_t *levels = packed->levels + output * packed->apart;
    uint32_t bits = packed->bits, mask = (1u << bits) - 1u, held = 0, have = 0;
    for (; count > 0; count--, to += step) {
        if (have < bits) {
            held |= (uint32_t)*codes++ << have;
            have += 8;
        }
        *to = levels[held & mask];
        held >>= bits, have -= bits;
    }
}

#endif
