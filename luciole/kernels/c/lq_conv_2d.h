/* LQ_CONV_2D: a convolution with learned levels, in integers alone.
 *
 * An image's row is listed once: the places of its inputs, level by level. In such a list those that
 * a line of a window meets follow each other, so that a window's rows of weights are a few pieces of
 * lists, each moved by a constant. What lies outside of the image is in no list and adds nothing.
 * The level nearest to 0 is in no segment: what it adds stands in the starts, which depend on the
 * taps inside.
 */
#ifndef LUC_LQ_CONV_2D_H
#define LUC_LQ_CONV_2D_H

#include "learned_levels.h"
#include "windows.h"

#include <stddef.h>

struct luc_lq_conv_2d {
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
    int32_t kept_rows;           /* of the image, whose lists are kept */
    uint16_t levels;
    uint16_t parts;              /* kinds of segments */
    uint16_t most_segments;
    uint16_t column_cases;
    uint8_t weight_bits;
    uint8_t next_bits;           /* of the levels that results are turned into, 0: they are kept */
    const uint8_t *members;      /* levels of each part, one part behind the other */
    const uint8_t *ends;         /* [parts]: where members of a part end */
    const int32_t *differs;      /* [parts]: from the level that is in no segment */
    const uint32_t *bits;        /* [blocks][taps * channels + 1][words]: weights, then a row of 0 */
    const int32_t *scales;       /* [outputs / words][weight_bits][words]: bases of the weights */
    const uint8_t *row_case;     /* [output_height]: by the taps inside */
    const uint8_t *column_case;  /* [output_width] */
    const int32_t *starts;       /* [row cases][column_cases][outputs, in whole words] */
    const int32_t *offsets;      /* [outputs]: added to all of an output's weights, or none */
    const int32_t *thresholds;   /* [(1 << next_bits) - 1], between the levels of the next layer */
};

/* The lists of one row of an image, and how places become rows of weights. */
struct luc_line {
    const uint16_t *begin;  /* [levels][input_width + 1]: where those of a pixel begin */
    const uint16_t *places; /* column * channels + channel */
    uint32_t moved;
};

/* What a window needs besides the layer. */
struct luc_window {
    struct luc_line *lines; /* [kernel_height] */
    uint16_t *begin;        /* [kept_rows][levels][input_width + 1] */
    uint16_t *places;       /* [kept_rows][input_width * channels] */
    luc_bits (*planes)[LUC_PLANES];
    int32_t *results;       /* [outputs, in whole words] */
    struct luc_sorted sorted;
};

/* Numbers in whole vectors. */
#define LUC_WHOLE(count) (((count) + LUC_WORDS - 1) / LUC_WORDS * LUC_WORDS)

/* Lists the inputs of one row of an image by their levels. */
static void luc_list_row(const struct luc_lq_conv_2d *op, const uint8_t *x, uint16_t *begin,
                         uint16_t *places)
{
    uint32_t width = (uint32_t)op->input_width, channels = (uint32_t)op->channels, place = 0;
    uint32_t end[LUC_MOST_LEVELS], count = width * channels, levels = op->levels;
    for (uint32_t l = 0; l < levels; l++) end[l] = 0;
    for (uint32_t k = 0; k < count; k++) end[x[k]]++;
    for (uint32_t l = 0, first = 0; l < levels; l++) {
        uint32_t size = end[l];
        end[l] = first;
        first += size;
    }
    for (uint32_t column = 0; column < width; column++) {
        for (uint32_t l = 0; l < levels; l++) begin[l * (width + 1) + column] = (uint16_t)end[l];
        for (uint32_t k = 0; k < channels; k++, place++) places[end[x[place]]++] = (uint16_t)place;
    }
    for (uint32_t l = 0; l < levels; l++) begin[l * (width + 1) + width] = (uint16_t)end[l];
}

/* Appends a piece of a list, moved; returns the end. */
static inline uint16_t *luc_append(uint16_t *to, const uint16_t *from, const uint16_t *end,
                                   uint32_t moved)
{
    while (end - from >= 4) {
        to[0] = (uint16_t)(from[0] + moved);
        to[1] = (uint16_t)(from[1] + moved);
        to[2] = (uint16_t)(from[2] + moved);
        to[3] = (uint16_t)(from[3] + moved);
        to += 4, from += 4;
    }
    while (from < end) *to++ = (uint16_t)(*from++ + moved);
    return to;
}

/* Appends what a window meets of one level; returns the end. */
static uint16_t *luc_meet(const struct luc_lq_conv_2d *op, const struct luc_window *window,
                          uint32_t level, struct luc_taps rows, struct luc_taps columns, uint16_t *to)
{
    uint32_t width = (uint32_t)op->input_width + 1, channels = (uint32_t)op->channels;
    int32_t run = op->dilation_width == 1 ? columns.last - columns.first : 1;
    for (int32_t k = rows.first; k < rows.last; k++) {
        const struct luc_line *line = &window->lines[k];
        const uint16_t *begin = line->begin + level * width;
        for (int32_t l = columns.first; l < columns.last; l += run) {
            int32_t column = columns.begin + l * op->dilation_width;
            uint32_t moved = line->moved + (uint32_t)(l - column) * channels;
            to = luc_append(to, line->places + begin[column], line->places + begin[column + run],
                            moved);
        }
    }
    return to;
}

/* Makes the segments of a window. */
static void luc_sort_window(const struct luc_lq_conv_2d *op, struct luc_window *window,
                            struct luc_taps rows, struct luc_taps columns)
{
    struct luc_sorted *to = &window->sorted;
    uint16_t zeros = (uint16_t)(op->kernel_height * op->kernel_width * op->channels);
    uint32_t first = 0, member = 0;
    to->segments = 0;
    to->constant = 0;
    to->total = 0;
    for (uint32_t part = 0; part < op->parts; part++) {
        uint16_t *end = to->rows + first;
        uint32_t count;
        for (; member < op->ends[part]; member++)
            end = luc_meet(op, window, op->members[member], rows, columns, end);
        count = (uint32_t)(end - to->rows) - first;
        to->total += (int64_t)count * op->differs[part];
        first = luc_close(to, first, first + count, zeros, (uint32_t)op->differs[part]);
    }
}

/* Sums of 4 lanes: every segment's counts times its factor. */
static inline void luc_weigh_window(const struct luc_sorted *x, const luc_bits *counts, luc_sums sums[4])
{
    luc_bits a = LUC_ZERO, b, c, d;
    const struct luc_segment *end = x->segment + x->segments;
    a += x->constant;
    b = c = d = a;
    for (const struct luc_segment *s = x->segment; s < end; s++, counts += LUC_PLANES) {
        luc_bits four = *counts;
        uint32_t factor = s->factor;
        a += (four & 255) * factor;
        b += (four >> 8 & 255) * factor;
        c += (four >> 16 & 255) * factor;
        d += (four >> 24) * factor;
    }
    sums[0] = (luc_sums)a;
    sums[1] = (luc_sums)b;
    sums[2] = (luc_sums)c;
    sums[3] = (luc_sums)d;
}

/* One window: to fixed point int32 or numbers of levels [outputs]. */
static void luc_lq_window(const struct luc_lq_conv_2d *op, const struct luc_window *window,
                          const struct luc_results *to, void *y)
{
    const struct luc_sorted *x = &window->sorted;
    const luc_bits *bits = (const luc_bits *)(const void *)op->bits;
    const struct luc_products none = {0};
    struct luc_products sum = none;
    uint32_t row = (uint32_t)(op->kernel_height * op->kernel_width * op->channels) + 1, output = 0;
    const int32_t *scales = op->scales;
    unsigned left = op->weight_bits;
    for (;; bits += row) {
        for (unsigned s = 0; s < x->segments; s++) {
            luc_count(bits, x->rows + x->segment[s].first, &x->segment[s], window->planes[s]);
            luc_transpose(window->planes[s], x->segment[s].width);
        }
        for (unsigned i = 0; i < LUC_PLANES; i++) {
            luc_sums sums[4];
            luc_weigh_window(x, window->planes[0] + i, sums);
            for (unsigned k = 0; k < 4; k++, scales += LUC_WORDS) {
                luc_add_products(&sum, &sums[k], scales);
                if (--left) continue;
                luc_finish(to, &sum, x->total, output, y);
                output += LUC_WORDS;
                if (output >= to->outputs) return;
                left = op->weight_bits;
                sum = none;
            }
        }
    }
}

/* Finds the lists that the windows of one row of results meet. Rows before `done` are listed, the
 * next ones are by now, but for those above the window: no later one meets them. Returns the new end.
 */
static int32_t luc_find_lines(const struct luc_lq_conv_2d *op, const uint8_t *x,
                              const struct luc_window *window, struct luc_taps rows, int32_t done)
{
    int32_t width = op->input_width * op->channels, begins = op->levels * (op->input_width + 1);
    int32_t last = rows.begin + (rows.last - 1) * op->dilation_height;
    if (rows.first >= rows.last) return done;
    for (done = done < rows.begin ? rows.begin : done; done <= last; done++) {
        int32_t kept = done % op->kept_rows;
        luc_list_row(op, x + done * width, window->begin + kept * begins,
                     window->places + kept * width);
    }
    for (int32_t k = rows.first; k < rows.last; k++) {
        int32_t kept = (rows.begin + k * op->dilation_height) % op->kept_rows;
        window->lines[k].begin = window->begin + kept * begins;
        window->lines[k].places = window->places + kept * width;
        window->lines[k].moved = (uint32_t)(k * op->kernel_width * op->channels);
    }
    return done;
}

/* One row of results, from column to column. */
static uint8_t *luc_lq_windows(const struct luc_lq_conv_2d *op, struct luc_window *window,
                               struct luc_taps rows, const int32_t *starts, uint8_t *y)
{
    uint32_t outputs = (uint32_t)op->outputs;
    struct luc_results to = {outputs, op->next_bits, NULL, op->offsets, op->thresholds};
    for (int32_t j = 0; j < op->output_width; j++, y += outputs * (op->next_bits ? 1u : 4u)) {
        struct luc_taps columns = luc_taps(j, op->stride_width, op->padding_left, op->kernel_width,
                                           op->dilation_width, op->input_width);
        to.starts = starts + op->column_case[j] * LUC_WHOLE(op->outputs);
        luc_sort_window(op, window, rows, columns);
#if LUC_WORDS > 1
        luc_lq_window(op, window, &to, window->results);
        luc_leave(&to, window->results, y);
#else
        luc_lq_window(op, window, &to, y);
#endif
    }
    return y;
}

/* y: int32_t [batches][output_height][output_width][outputs], or uint8_t of the same shape where
 * there are next levels.
 */
static void luc_lq_conv_2d(const struct luc_lq_conv_2d *op, const uint8_t *x, void *y, void *scratch)
{
    struct luc_window window;
    int32_t size = LUC_WHOLE(op->outputs), width = op->input_width * op->channels;
    uint8_t *to = (uint8_t *)y;
    window.lines = (struct luc_line *)scratch;
    window.results = (int32_t *)(void *)(window.lines + op->kernel_height);
    window.planes = (luc_bits(*)[LUC_PLANES])(void *)(window.results + (LUC_WORDS > 1 ? size : 0));
    window.sorted.segment = (struct luc_segment *)(void *)(window.planes + op->most_segments);
    window.begin = (uint16_t *)(void *)(window.sorted.segment + op->most_segments);
    window.places = window.begin + op->kept_rows * op->levels * (op->input_width + 1);
    window.sorted.rows = window.places + op->kept_rows * width;
    for (int32_t n = 0; n < op->batches; n++, x += op->input_height * width)
        for (int32_t i = 0, done = 0; i < op->output_height; i++) {
            struct luc_taps rows = luc_taps(i, op->stride_height, op->padding_top, op->kernel_height,
                                            op->dilation_height, op->input_height);
            const int32_t *starts = op->starts + op->row_case[i] * op->column_cases * size;
            done = luc_find_lines(op, x, &window, rows, done);
            to = luc_lq_windows(op, &window, rows, starts, to);
        }
}

#endif
