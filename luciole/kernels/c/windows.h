/* Windows over images. */
#ifndef LUC_WINDOWS_H
#define LUC_WINDOWS_H

#include <stdint.h>

/* Which taps of a window lie inside an image, from the first to before the last. */
struct luc_taps {
    int32_t first;
    int32_t last;
    int32_t begin; /* where tap 0 lies */
};

/* Taps along one axis: those whose places are from 0 to before size. */
static inline struct luc_taps luc_taps(int32_t output, int32_t stride, int32_t before, int32_t kernel,
                                       int32_t dilation, int32_t size)
{
    struct luc_taps found;
    found.begin = output * stride - before;
    found.first = found.begin < 0 ? (-found.begin + dilation - 1) / dilation : 0;
    found.last = kernel;
    if (found.begin + (kernel - 1) * dilation >= size)
        found.last = size > found.begin ? (size - found.begin + dilation - 1) / dilation : 0;
    return found;
}

#endif
