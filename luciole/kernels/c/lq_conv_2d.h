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

#include "fixed.h"
#include "learned_levels.h"
#include "windows.h"

#include <stddef.h>

struct luc_lq_conv_2d {
    struct luc_windows windows;
    int32_t kept_rows;           /* of the image, whose lists are kept */
    uint16_t levels;
    uint16_t parts;              /* kinds of segments */
    uint16_t most_segments;
    uint16_t column_cases;
    uint8_t weight_bits;
    uint8_t next_bits;           /* of the levels that results are turned into, 0: they are kept */
    uint8_t down;                /* places that a sum with another tensor does not have */
    uint8_t added_down;          /* the same of the other tensor */
    int32_t least;               /* of sums */
    int32_t most;
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
    const int32_t *table;        /* [256]: what bytes that are added stand for; none: those are int32 */
};

/* The lists of one row of an image, and how places become rows of weights. */
struct luc_line {
    const uint16_t *begin;  /* [levels][input_width + 1]: where those of a pixel begin */
    const uint16_t *places; /* column * channels + channel */
    uint32_t moved;
};

/* What a window needs besides the layer. */
struct luc_lists {
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
    const struct luc_windows *w = &op->windows;
    uint32_t width = (uint32_t)w->input_width, channels = (uint32_t)w->channels, place = 0;
    uint32_t end[LUC_MOST_LEVELS], count = width * channels, levels = op->levels;
    for (uint32_t l = 0; l < levels; l++) { end[l] = 0; }
    for (uint32_t k = 0; k < count; k++) { end[x[k]]++; }
    for (uint32_t l = 0, first = 0; l < levels; l++) {
        uint32_t size = end[l];
        end[l] = first;
        first += size;
    }
    for (uint32_t column = 0; column < width; column++) {
        for (uint32_t l = 0; l < levels; l++) { begin[l * (width + 1) + column] = (uint16_t)end[l]; }
        for (uint32_t k = 0; k < channels; k++, place++) { places[end[x[place]]++] = (uint16_t)place; }
    }
    for (uint32_t l = 0; l < levels; l++) { begin[l * (width + 1) + width] = (uint16_t)end[l]; }
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
static uint16_t *luc_meet(const struct luc_lq_conv_2d *op, const struct luc_lists *lists,
                          uint32_t level, struct luc_taps rows, struct luc_taps columns, uint16_t *to)
{
    const struct luc_windows *w = &op->windows;
    uint32_t width = (uint32_t)w->input_width + 1, channels = (uint32_t)w->channels;
    int32_t run = w->dilation_width == 1 ? columns.last - columns.first : 1;
    for (int32_t k = rows.first; k < rows.last; k++) {
        const struct luc_line *line = &lists->lines[k];
        const uint16_t *begin = line->begin + level * width;
        for (int32_t l = columns.first; l < columns.last; l += run) {
            int32_t column = columns.begin + l * w->dilation_width;
            uint32_t moved = line->moved + (uint32_t)(l - column) * channels;
            to = luc_append(to, line->places + begin[column], line->places + begin[column + run],
                            moved);
        }
    }
    return to;
}

/* Makes the segments of a lists. */
static void luc_sort_window(const struct luc_lq_conv_2d *op, struct luc_lists *lists,
                            struct luc_taps rows, struct luc_taps columns)
{
    const struct luc_windows *w = &op->windows;
    struct luc_sorted *to = &lists->sorted;
    uint16_t zeros = (uint16_t)(w->kernel_height * w->kernel_width * w->channels);
    uint32_t first = 0, member = 0;
    to->segments = 0;
    to->constant = 0;
    to->total = 0;
    for (uint32_t part = 0; part < op->parts; part++) {
        uint16_t *end = to->rows + first;
        uint32_t count;
        for (; member < op->ends[part]; member++) {
            end = luc_meet(op, lists, op->members[member], rows, columns, end);
        }
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
static void luc_lq_window(const struct luc_lq_conv_2d *op, const struct luc_lists *lists,
                          const struct luc_results *to, void *y)
{
    const struct luc_windows *w = &op->windows;
    const struct luc_sorted *x = &lists->sorted;
    const luc_bits *bits = (const luc_bits *)(const void *)op->bits;
    const struct luc_products none = {0};
    struct luc_products sum = none;
    uint32_t row = (uint32_t)(w->kernel_height * w->kernel_width * w->channels) + 1, output = 0;
    const int32_t *scales = op->scales;
    unsigned left = op->weight_bits;
    for (;; bits += row) {
        for (unsigned s = 0; s < x->segments; s++) {
            luc_count(bits, x->rows + x->segment[s].first, &x->segment[s], lists->planes[s]);
            luc_transpose(lists->planes[s], x->segment[s].width);
        }
        for (unsigned i = 0; i < LUC_PLANES; i++) {
            luc_sums sums[4];
            luc_weigh_window(x, lists->planes[0] + i, sums);
            for (unsigned k = 0; k < 4; k++, scales += LUC_WORDS) {
                luc_add_products(&sum, &sums[k], scales);
                if (--left != 0) { continue; }
                luc_finish(to, &sum, x->total, output, y);
                output += LUC_WORDS;
                if (output >= to->outputs) { return; }
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
                              const struct luc_lists *lists, struct luc_taps rows, int32_t done)
{
    const struct luc_windows *w = &op->windows;
    int32_t width = w->input_width * w->channels, begins = op->levels * (w->input_width + 1);
    int32_t last = rows.begin + (rows.last - 1) * w->dilation_height;
    if (rows.first >= rows.last) { return done; }
    for (done = done < rows.begin ? rows.begin : done; done <= last; done++) {
        int32_t kept = done % op->kept_rows;
        luc_list_row(op, x + done * width, lists->begin + kept * begins,
                     lists->places + kept * width);
    }
    for (int32_t k = rows.first; k < rows.last; k++) {
        int32_t kept = (rows.begin + k * w->dilation_height) % op->kept_rows;
        lists->lines[k].begin = lists->begin + kept * begins;
        lists->lines[k].places = lists->places + kept * width;
        lists->lines[k].moved = (uint32_t)(k * w->kernel_width * w->channels);
    }
    return done;
}

/* Adds another tensor to the results of a lists. */
static void luc_lq_sums(const struct luc_lq_conv_2d *op, const int32_t *results, const void *added,
                        void *y)
{
    const uint8_t *bytes = (const uint8_t *)added;
    const int32_t *numbers = (const int32_t *)added, *table = op->table, *thresholds = op->thresholds;
    const int32_t least = op->least, most = op->most;
    const uint32_t count = (uint32_t)op->windows.outputs;
    const unsigned down = op->down, added_down = op->added_down, bits = op->next_bits;
    for (uint32_t k = 0; k < count; k++) {
        int32_t sum = luc_fewer_places(results[k], down);
        sum += table ? table[bytes[k]] : luc_fewer_places(numbers[k], added_down);
        luc_store(luc_between(sum, least, most), thresholds, bits, y, k);
    }
}

/* One row of results, from column to column; `added` may be none. */
static void luc_lq_windows(const struct luc_lq_conv_2d *op, struct luc_lists *lists,
                           struct luc_taps rows, const int32_t *starts, const uint8_t *added, uint8_t *y)
{
    const struct luc_windows *w = &op->windows;
    uint32_t outputs = (uint32_t)w->outputs, size = outputs * (op->next_bits ? 1u : 4u);
    struct luc_results to = {outputs, op->next_bits, NULL, op->offsets, op->thresholds};
    if (added != 0) { to.next_bits = 0; }
    for (int32_t j = 0; j < w->output_width; j++, y += size) {
        struct luc_taps columns = luc_taps(j, w->stride_width, w->padding_left, w->kernel_width,
                                           w->dilation_width, w->input_width);
        int is_apart = LUC_WORDS > 1 || added;
        to.starts = starts + op->column_case[j] * LUC_WHOLE(w->outputs);
        luc_sort_window(op, lists, rows, columns);
        luc_lq_window(op, lists, &to, is_apart ? (void *)lists->results : (void *)y);
        if (added != 0) {
            luc_lq_sums(op, lists->results, added, y);
            added += outputs * (op->table ? 1u : 4u);
        } else if (is_apart != 0) {
            luc_leave(&to, lists->results, y);
        }
    }
}

/* All windows, one row after the other. */
static void luc_lq_images(const struct luc_lq_conv_2d *op, const uint8_t *x, const uint8_t *added,
                          uint8_t *y, void *scratch)
{
    const struct luc_windows *w = &op->windows;
    struct luc_lists lists;
    int32_t size = LUC_WHOLE(w->outputs), width = w->input_width * w->channels;
    uint32_t row = (uint32_t)(w->output_width * w->outputs);
    lists.lines = (struct luc_line *)scratch;
    lists.results = (int32_t *)(void *)(lists.lines + w->kernel_height);
    lists.planes = (luc_bits(*)[LUC_PLANES])(void *)(lists.results + size);
    lists.sorted.segment = (struct luc_segment *)(void *)(lists.planes + op->most_segments);
    lists.begin = (uint16_t *)(void *)(lists.sorted.segment + op->most_segments);
    lists.places = lists.begin + op->kept_rows * op->levels * (w->input_width + 1);
    lists.sorted.rows = lists.places + op->kept_rows * width;
    for (int32_t n = 0; n < w->batches; n++, x += w->input_height * width) {
        for (int32_t i = 0, done = 0; i < w->output_height; i++) {
            struct luc_taps rows = luc_taps(i, w->stride_height, w->padding_top, w->kernel_height,
                                            w->dilation_height, w->input_height);
            const int32_t *starts = op->starts + op->row_case[i] * op->column_cases * size;
            done = luc_find_lines(op, x, &lists, rows, done);
            luc_lq_windows(op, &lists, rows, starts, added, y);
            y += row * (op->next_bits ? 1u : 4u);
            if (added != 0) { added += row * (op->table ? 1u : 4u); }
        }
    }
}

/* y: int32_t [batches][output_height][output_width][outputs], or uint8_t of the same shape where
 * there are next levels.
 */
static void luc_lq_conv_2d(const struct luc_lq_conv_2d *op, const uint8_t *x, void *y, void *scratch)
{
    luc_lq_images(op, x, NULL, (uint8_t *)y, scratch);
}

/* The same, and another tensor of the results' shape added to them: int32_t, or bytes by a table. */
static void luc_lq_conv_2d_add(const struct luc_lq_conv_2d *op, const uint8_t *x, const void *added,
                               void *y, void *scratch)
{
    luc_lq_images(op, x, (const uint8_t *)added, (uint8_t *)y, scratch);
}

#endif
