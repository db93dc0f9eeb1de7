/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of every type to float32: those of up to 16 bits, and float32, as they are; larger whole numbers and float64 are rounded to the
 * nearest.
 */

#include "pipeline/formats/decode_numbers.h"

#include "base/half.h"

typedef void numbers_fn(const uint8_t *from, size_t stride, uint32_t n, uint8_t *to);

#define NUMBERS_OF(name, type, value)                                                 \
	static void name(const uint8_t *from, size_t stride, uint32_t n, uint8_t *to) \
	{                                                                             \
		for (uint32_t i = 0; i < n; i++, from += stride, to += 4) {           \
			type number;                                                  \
			float converted;                                              \
                                                                                      \
			memcpy(&number, from, sizeof(number));                        \
			converted = (value);                                          \
			memcpy(to, &converted, sizeof(converted));                    \
		}                                                                     \
	}
NUMBERS_OF(numbers_u8, uint8_t, (float)number)
NUMBERS_OF(numbers_i8, int8_t, (float)number)
NUMBERS_OF(numbers_u16, uint16_t, (float)number)
NUMBERS_OF(numbers_i16, int16_t, (float)number)
NUMBERS_OF(numbers_u32, uint32_t, (float)number)
NUMBERS_OF(numbers_i32, int32_t, (float)number)
NUMBERS_OF(numbers_u64, uint64_t, (float)number)
NUMBERS_OF(numbers_i64, int64_t, (float)number)
NUMBERS_OF(numbers_f16, uint16_t, half_f16_value(number))
NUMBERS_OF(numbers_f32, float, number)
NUMBERS_OF(numbers_f64, double, (float)number)
#undef NUMBERS_OF

static const struct {
	numbers_fn *convert;
	unsigned bytes;
} numbers_types[] = {
    [PIPELINE_U8] = {numbers_u8, 1},   [PIPELINE_I8] = {numbers_i8, 1},
    [PIPELINE_U16] = {numbers_u16, 2}, [PIPELINE_I16] = {numbers_i16, 2},
    [PIPELINE_U32] = {numbers_u32, 4}, [PIPELINE_I32] = {numbers_i32, 4},
    [PIPELINE_U64] = {numbers_u64, 8}, [PIPELINE_I64] = {numbers_i64, 8},
    [PIPELINE_F16] = {numbers_f16, 2}, [PIPELINE_F32] = {numbers_f32, 4},
    [PIPELINE_F64] = {numbers_f64, 8}, [PIPELINE_BOOL] = {numbers_u8, 1},
};

unsigned decode_numbers_bytes(enum pipeline_dtype dtype)
{
	return (unsigned)dtype < BASE_ARRAY_LEN(numbers_types) ? numbers_types[dtype].bytes : 0;
}

bool decode_numbers_want(const struct decode_numbers *to, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < to->n; i++)
		if (to->channel[i] >= first && to->channel[i] - first < count)
			return true;
	return false;
}

void decode_numbers_put(const struct decode_numbers *to, enum pipeline_dtype dtype,
			const uint8_t *from, unsigned step, unsigned first, unsigned count,
			uint32_t y, uint32_t x, uint32_t n)
{
	const size_t bytes = numbers_types[dtype].bytes;
	const uint32_t first_x = BASE_MAX(x, to->part.left);
	const uint32_t end_x = BASE_MIN(x + n, to->part.left + to->part.width);

	if (y - to->part.top >= to->part.height || first_x >= end_x)
		return;
	from += (size_t)(first_x - x) * step * bytes;
	for (unsigned i = 0; i < to->n; i++) {
		const unsigned channel = to->channel[i];

		if (channel < first || channel - first >= count)
			continue;
		numbers_types[dtype].convert(
		    from + (channel - first) * bytes, step * bytes, end_x - first_x,
		    picture_row(&to->all, i * to->part.height + y - to->part.top) +
			(size_t)(first_x - to->part.left) * 4);
	}
}

void decode_numbers_take(enum pipeline_dtype dtype, const uint8_t *from, size_t stride, uint32_t n,
			 uint8_t *to)
{
	numbers_types[dtype].convert(from, stride, n, to);
}
