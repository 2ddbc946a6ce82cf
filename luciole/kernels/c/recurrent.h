/* SVDF, RNN and GRU, one step after the other. States last from call to call, but for that of GRU. */
#ifndef LUC_RECURRENT_H
#define LUC_RECURRENT_H

#include "fixed_point.h"
#include "unidirectional_sequence_lstm.h"

struct luc_svdf_float {
    uint32_t batches;
    uint32_t inputs;
    uint32_t units;
    uint32_t rank;   /* filters of a unit */
    uint32_t memory; /* sums that a filter remembers */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const float *feature; /* [units][rank][inputs] */
    const float *time;    /* [units][rank][memory] */
    const float *bias;    /* [units], or none */
};

static void luc_svdf_float(const struct luc_svdf_float *op, const float *x, float *state, float *y)
{
    uint32_t last = op->memory - 1;
    for (uint32_t b = 0; b < op->batches; b++, x += op->inputs) {
        for (uint32_t u = 0; u < op->units; u++) {
            float sum = op->bias != NULL ? op->bias[u] : 0.0f;
            for (uint32_t f = u * op->rank; f < (u + 1) * op->rank; f++, state += op->memory) {
                (void)memmove(state, state + 1, last * sizeof *state);
                state[last] = luc_product(op->feature + f * op->inputs, x, (int32_t)op->inputs);
                sum += luc_product(op->time + f * op->memory, state, (int32_t)op->memory);
            }
            if (op->has_least && sum < op->least) { sum = op->least; }
            if (op->has_most && sum > op->most) { sum = op->most; }
            *y++ = sum;
        }
    }
}

struct luc_svdf_int8 {
    uint32_t batches;
    uint32_t inputs;
    uint32_t units;
    uint32_t rank;
    uint32_t memory;
    int32_t input_zero;
    int32_t state_multiplier;
    int32_t state_shift;
    int32_t multiplier;
    int32_t shift;
    int32_t result_zero;
    const int8_t *feature; /* [units][rank][inputs] */
    const int16_t *time;   /* [units][rank][memory] */
    const int32_t *bias;   /* [units], or none */
};

static void luc_svdf_int8(const struct luc_svdf_int8 *op, const int8_t *x, int16_t *state, int8_t *y)
{
    uint32_t last = op->memory - 1;
    for (uint32_t b = 0; b < op->batches; b++, x += op->inputs) {
        for (uint32_t u = 0; u < op->units; u++) {
            int64_t sum = op->bias != NULL ? op->bias[u] : 0;
            for (uint32_t f = u * op->rank; f < (u + 1) * op->rank; f++, state += op->memory) {
                int32_t newest = 0;
                for (uint32_t k = 0; k < op->inputs; k++) {
                    newest += (x[k] - op->input_zero) * op->feature[f * op->inputs + k];
                }
                newest = luc_scaled(newest, op->state_multiplier, op->state_shift);
                (void)memmove(state, state + 1, last * sizeof *state);
                state[last] = (int16_t)(newest > 32767 ? 32767 : newest < -32768 ? -32768 : newest);
                for (uint32_t k = 0; k < op->memory; k++) { sum += state[k] * op->time[f * op->memory + k]; }
            }
            sum = luc_scaled((int32_t)sum, op->multiplier, op->shift);
            *y++ = luc_stored_int8((int32_t)sum, op->result_zero, -128, 127);
        }
    }
}

struct luc_rnn_float {
    int32_t batches;
    int32_t times;
    int32_t inputs;
    int32_t units;
    int32_t x_time; /* numbers from step to step, and from batch to batch */
    int32_t x_batch;
    int32_t y_time;
    int32_t y_batch;
    uint8_t is_tanh; /* the activation, else it cuts off */
    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
    const float *weights;   /* [units][inputs] */
    const float *recurrent; /* [units][units] */
    const float *bias;      /* [units] */
};

static void luc_rnn_float(const struct luc_rnn_float *op, const float *x, float *state, float *y)
{
    for (int32_t b = 0; b < op->batches; b++, state += op->units) {
        for (int32_t t = 0; t < op->times; t++) {
            const float *now = x + t * op->x_time + b * op->x_batch;
            float *result = y + t * op->y_time + b * op->y_batch;
            for (int32_t u = 0; u < op->units; u++) {
                float sum = luc_product(op->weights + u * op->inputs, now, op->inputs) +
                            luc_product(op->recurrent + u * op->units, state, op->units) + op->bias[u];
                if (op->is_tanh != 0) { sum = luc_tanh_of(sum); }
                if (op->has_least && sum < op->least) { sum = op->least; }
                if (op->has_most && sum > op->most) { sum = op->most; }
                result[u] = sum;
            }
            (void)memcpy(state, result, (uint32_t)op->units * sizeof *state);
        }
    }
}

struct luc_gru {
    int32_t times;
    int32_t batches;
    int32_t inputs;
    int32_t units;
    uint8_t keeps_all;        /* states of all steps are the result, else the last one's */
    const float *of_input;    /* [3][units][inputs]: update, reset, candidate */
    const float *of_state;    /* [3][units][units] */
    const float *input_bias;  /* [3][units] */
    const float *state_bias;  /* [3][units] */
};

/* Gates of one step: what the weights make of the input and of the state, then the next state. */
static void luc_gru_step(const struct luc_gru *op, const float *x, float *state, float *next)
{
    int32_t units = op->units;
    for (int32_t u = 0; u < units; u++) {
        float a[3], b[3], update, reset, candidate;
        for (int32_t gate = 0, row = u; gate < 3; gate++, row += units) {
            a[gate] = luc_product(op->of_input + row * op->inputs, x, op->inputs) + op->input_bias[row];
            b[gate] = luc_product(op->of_state + row * units, state, units) + op->state_bias[row];
        }
        update = luc_logistic_of(a[0] + b[0]);
        reset = luc_logistic_of(a[1] + b[1]);
        candidate = luc_tanh_of(a[2] + reset * b[2]);
        next[u] = update * state[u] + (1.0f - update) * candidate;
    }
    (void)memcpy(state, next, (uint32_t)units * sizeof *state);
}

static void luc_gru(const struct luc_gru *op, const float *x, const float *begun, float *y, void *scratch)
{
    float *state = (float *)scratch, *next = state + op->units;
    for (int32_t b = 0; b < op->batches; b++) {
        (void)memcpy(state, begun + b * op->units, (uint32_t)op->units * sizeof *state);
        for (int32_t t = 0; t < op->times; t++) {
            luc_gru_step(op, x + (t * op->batches + b) * op->inputs, state, next);
            if (op->keeps_all || t == op->times - 1) {
                (void)memcpy(y + ((op->keeps_all ? t : 0) * op->batches + b) * op->units, state,
                       (uint32_t)op->units * sizeof *state);
            }
        }
    }
}

#endif
