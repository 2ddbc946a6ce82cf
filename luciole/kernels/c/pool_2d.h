/* Pools of images [batches, height, width, channels]: what lies in the padding does not count. */
#ifndef LUC_POOL_2D_H
#define LUC_POOL_2D_H

#include "codes.h"
#include "windows.h"

struct luc_average_pool_2d_int8 {
    struct luc_windows windows;
    int32_t least;
    int32_t most;
};

static void luc_average_pool_2d_int8(const struct luc_average_pool_2d_int8 *op, const luc_code_int8 *x,
                                     luc_code_int8 *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w);
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        int32_t size = (at.rows.last - at.rows.first) * (at.columns.last - at.columns.first);
        for (int32_t c = 0; c < w->outputs; c++) {
            int32_t found = 0;
            for (int32_t k = at.rows.first; k < at.rows.last; k++) {
                for (int32_t l = at.columns.first; l < at.columns.last; l++) {
                    luc_code_int8 v = x[luc_pixel(w, &at, k, l) * w->channels + c];
                    found += v;
                }
            }
            found = (found < 0 ? -1 : 1) * (((found < 0 ? -found : found) + size / 2) / size);
            if (found < op->least) { found = op->least; }
            if (found > op->most) { found = op->most; }
            *y++ = (luc_code_int8)found;
        }
    }
}

struct luc_max_pool_2d_int8 {
    struct luc_windows windows;
    int32_t least;
    int32_t most;
};

static void luc_max_pool_2d_int8(const struct luc_max_pool_2d_int8 *op, const luc_code_int8 *x,
                                 luc_code_int8 *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w);
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        for (int32_t c = 0; c < w->outputs; c++) {
            int32_t found = op->least;
            for (int32_t k = at.rows.first; k < at.rows.last; k++) {
                for (int32_t l = at.columns.first; l < at.columns.last; l++) {
                    luc_code_int8 v = x[luc_pixel(w, &at, k, l) * w->channels + c];
                    if (v > found) { found = v; }
                }
            }
            if (found > op->most) { found = op->most; }
            *y++ = (luc_code_int8)found;
        }
    }
}

struct luc_average_pool_2d_float {
    struct luc_windows windows;
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
};

static void luc_average_pool_2d_float(const struct luc_average_pool_2d_float *op, const float *x, float *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w);
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        int32_t size = (at.rows.last - at.rows.first) * (at.columns.last - at.columns.first);
        for (int32_t c = 0; c < w->outputs; c++) {
            float found = 0.0f;
            for (int32_t k = at.rows.first; k < at.rows.last; k++) {
                for (int32_t l = at.columns.first; l < at.columns.last; l++) {
                    float v = x[luc_pixel(w, &at, k, l) * w->channels + c];
                    found += v;
                }
            }
            found /= (float)size;
            if (op->has_least && found < op->least) { found = op->least; }
            if (op->has_most && found > op->most) { found = op->most; }
            *y++ = found;
        }
    }
}

struct luc_max_pool_2d_float {
    struct luc_windows windows;
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
};

static void luc_max_pool_2d_float(const struct luc_max_pool_2d_float *op, const float *x, float *y)
{
    const struct luc_windows *w = &op->windows;
    int32_t count = luc_window_count(w);
    for (int32_t number = 0; number < count; number++) {
        struct luc_image_window at = luc_window_at(w, number);
        for (int32_t c = 0; c < w->outputs; c++) {
            float found = -3.402823466e38f;
            for (int32_t k = at.rows.first; k < at.rows.last; k++) {
                for (int32_t l = at.columns.first; l < at.columns.last; l++) {
                    float v = x[luc_pixel(w, &at, k, l) * w->channels + c];
                    if (v > found) { found = v; }
                }
            }
            if (op->has_least && found < op->least) { found = op->least; }
            if (op->has_most && found > op->most) { found = op->most; }
            *y++ = found;
        }
    }
}

#endif
