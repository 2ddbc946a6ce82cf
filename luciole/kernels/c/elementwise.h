/* Further operators on two tensors of floats, element by element. */
#ifndef LUC_ELEMENTWISE_H
#define LUC_ELEMENTWISE_H

#include <stdint.h>

struct luc_sub_float {
    uint32_t count;
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
};

static void luc_sub_float(const struct luc_sub_float *op, const float *x, const float *y, float *z)
{
    for (uint32_t k = 0; k < op->count; k++) {
        float found = x[k] - y[k];
        if (op->has_least && found < op->least) found = op->least;
        if (op->has_most && found > op->most) found = op->most;
        z[k] = found;
    }
}

struct luc_maximum_float {
    uint32_t count;
};

/* y where one of both is not a number, as in LiteRT. */
static void luc_maximum_float(const struct luc_maximum_float *op, const float *x, const float *y, float *z)
{
    for (uint32_t k = 0; k < op->count; k++) z[k] = x[k] > y[k] ? x[k] : y[k];
}

struct luc_minimum_float {
    uint32_t count;
};

static void luc_minimum_float(const struct luc_minimum_float *op, const float *x, const float *y, float *z)
{
    for (uint32_t k = 0; k < op->count; k++) z[k] = x[k] < y[k] ? x[k] : y[k];
}

#endif
