/* Windows over images. */
#ifndef LUC_WINDOWS_H
#define LUC_WINDOWS_H

#include <stdint.h>

/* Images [batches, height, width, channels] and what is computed of each window. */
struct luc_windows {
    int32_t batches;
    int32_t input_height;
    int32_t input_width;
    int32_t channels;
    int32_t output_height;
    int32_t output_width;
    int32_t outputs;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t padding_top;
    int32_t padding_left;
};

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
    if (found.begin + (kernel - 1) * dilation >= size) {
        found.last = size > found.begin ? (size - found.begin + dilation - 1) / dilation : 0;
    }
    return found;
}

/* The taps of one window. */
struct luc_image_window {
    struct luc_taps rows;
    struct luc_taps columns;
    int32_t begin; /* the number of the pixel under the first tap, which may lie outside */
    int32_t down;  /* pixels from one row of taps to the next */
};

/* Windows are numbered as the pixels of the result. */
static inline int32_t luc_window_count(const struct luc_windows *w)
{
    return w->batches * w->output_height * w->output_width;
}

static struct luc_image_window luc_window_at(const struct luc_windows *w, int32_t number)
{
    int32_t line = number / w->output_width, image = line / w->output_height;
    struct luc_image_window found;
    found.rows = luc_taps(line - image * w->output_height, w->stride_height, w->padding_top,
                          w->kernel_height, w->dilation_height, w->input_height);
    found.columns = luc_taps(number - line * w->output_width, w->stride_width, w->padding_left,
                             w->kernel_width, w->dilation_width, w->input_width);
    found.begin = (image * w->input_height + found.rows.begin) * w->input_width + found.columns.begin;
    found.down = w->dilation_height * w->input_width;
    return found;
}

/* The number of the pixel under a tap that lies inside. */
static inline int32_t luc_pixel(const struct luc_windows *w, const struct luc_image_window *at, int32_t row,
                                int32_t column)
{
    return at->begin + row * at->down + column * w->dilation_width;
}

#endif
