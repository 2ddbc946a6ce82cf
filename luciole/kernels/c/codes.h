/* Types of numbers, by the kind of quantization. Functions and structs whose names end with a kind are
 * written for int8, and for another kind where that is computed otherwise: programs hold their text
 * for the kinds that they need, with types in place of these names.
 */
#ifndef LUC_CODES_H
#define LUC_CODES_H

#include <stdint.h>

typedef int8_t luc_code_int8;  /* an element */
typedef int8_t luc_right_int8; /* one of a second matrix */
typedef int8_t luc_weight_int8; /* less its zero point, where layers hold it so */
typedef int32_t luc_sum_int8;  /* a sum of products */
typedef int32_t luc_bias_int8; /* the same and a bias */

/* Bytes without a sign. */
typedef uint8_t luc_code_uint8;
typedef uint8_t luc_right_uint8;
typedef int16_t luc_weight_uint8;
typedef int32_t luc_sum_uint8;
typedef int32_t luc_bias_uint8;

/* Halfwords: sums of products have 32 bits, with a bias 64. */
typedef int16_t luc_code_int16;
typedef int16_t luc_right_int16;
typedef int8_t luc_weight_int16;
typedef int32_t luc_sum_int16;
typedef int64_t luc_bias_int16;

/* The same, where sums of products need 64 bits. */
typedef int16_t luc_code_int16_long;
typedef int16_t luc_right_int16_long;
typedef int8_t luc_weight_int16_long;
typedef int64_t luc_sum_int16_long;
typedef int64_t luc_bias_int16_long;

/* The same, times a matrix of bytes. */
typedef int16_t luc_code_int16_by_int8;
typedef int8_t luc_right_int16_by_int8;
typedef int8_t luc_weight_int16_by_int8;
typedef int64_t luc_sum_int16_by_int8;
typedef int64_t luc_bias_int16_by_int8;

/* Halfwords whose bias has 32 bits: TFLite scales their sums as it does those of bytes. */
typedef int16_t luc_code_int16_bias_int32;
typedef int16_t luc_right_int16_bias_int32;
typedef int8_t luc_weight_int16_bias_int32;
typedef int32_t luc_sum_int16_bias_int32;
typedef int32_t luc_bias_int16_bias_int32;

#endif
