/* SPDX-License-Identifier: Apache-2.0 */

/* Types of numbers: a table, and the loops that widen them. */

#include "base/number.h"

#include "base/base.h"
#include "base/little.h"

enum { BATCH_U8 = 1, BATCH_F16 = 2, BATCH_F32 = 3, BATCH_I64 = 4, BATCH_U64 = 11, BATCH_F64 = 12 };

static const struct number_type {
	const char *name, *numpy;
	uint8_t bytes, batch_bytes, batch_dtype;
	bool is_signed;
} number_type[] = {
    [NUMBER_U8] = {"uint8", "|u1", 1, 1, BATCH_U8, false},
    [NUMBER_I8] = {"int8", "|i1", 1, 8, BATCH_I64, true},
    [NUMBER_U16] = {"uint16", "<u2", 2, 8, BATCH_I64, false},
    [NUMBER_I16] = {"int16", "<i2", 2, 8, BATCH_I64, true},
    [NUMBER_U32] = {"uint32", "<u4", 4, 8, BATCH_I64, false},
    [NUMBER_I32] = {"int32", "<i4", 4, 8, BATCH_I64, true},
    [NUMBER_I64] = {"int64", "<i8", 8, 8, BATCH_I64, true},
    [NUMBER_F16] = {"float16", "<f2", 2, 2, BATCH_F16, true},
    [NUMBER_F32] = {"float32", "<f4", 4, 4, BATCH_F32, true},
    [NUMBER_BOOL] = {"bool", "|b1", 1, 1, BATCH_U8, false},
    [NUMBER_U64] = {"uint64", "<u8", 8, 8, BATCH_U64, false},
    [NUMBER_F64] = {"float64", "<f8", 8, 8, BATCH_F64, true},
};

unsigned number_bytes(enum number number)
{
	return (size_t)number < BASE_ARRAY_LEN(number_type) ? number_type[number].bytes : 0;
}

unsigned number_batch_bytes(enum number number)
{
	return number_type[number].batch_bytes;
}

unsigned number_batch_dtype(enum number number)
{
	return number_type[number].batch_dtype;
}

static enum number number_find(const char *text, bool by_numpy)
{
	for (size_t i = 1; i < BASE_ARRAY_LEN(number_type); i++)
		if (strcmp(by_numpy ? number_type[i].numpy : number_type[i].name, text) == 0)
			return (enum number)i;
	return (enum number)0;
}

enum number number_of_numpy(const char *descr)
{
	return number_find(descr, true);
}

enum number number_of_name(const char *name)
{
	return number_find(name, false);
}

/* Tokens are the case that counts, so u16 has a loop of its own: eight of them become eight numbers by two steps of zeros put
 * between them. What is read may lie where is written, further on: eight are read before they are written. */
typedef uint16_t eight_u16 __attribute__((vector_size(16)));
typedef uint32_t four_u32 __attribute__((vector_size(16)));

static void widen_u16(const uint8_t *from, size_t n, uint8_t *to)
{
	const eight_u16 zeros = {0};
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		four_u32 half[2], wide[4];
		eight_u16 tokens;

		memcpy(&tokens, from + 2 * i, sizeof(tokens));
		half[0] =
		    (four_u32)__builtin_shufflevector(tokens, zeros, 0, 8, 1, 9, 2, 10, 3, 11);
		half[1] =
		    (four_u32)__builtin_shufflevector(tokens, zeros, 4, 12, 5, 13, 6, 14, 7, 15);
		for (unsigned k = 0; k < 2; k++) {
			const four_u32 none = {0};

			wide[2 * k] = __builtin_shufflevector(half[k], none, 0, 4, 1, 5);
			wide[2 * k + 1] = __builtin_shufflevector(half[k], none, 2, 6, 3, 7);
		}
		memcpy(to + 8 * i, wide, sizeof(wide));
	}
	for (; i < n; i++)
		little_put_64(to + 8 * i, little_16(from + 2 * i));
}

static void widen_any(const struct number_type *type, const uint8_t *from, size_t n, uint8_t *to)
{
	const unsigned unused = 64 - 8U * type->bytes;

	for (size_t i = 0; i < n; i++, from += type->bytes) {
		const uint64_t value = little_get(from, type->bytes) << unused;

		little_put_64(to + 8 * i, type->is_signed ? (uint64_t)((int64_t)value >> unused)
							  : value >> unused);
	}
}

void number_widen(enum number number, const uint8_t *from, size_t n, void *to)
{
	const struct number_type *type = &number_type[number];

	if (type->bytes == type->batch_bytes)
		memcpy(to, from, n * type->bytes);
	else if (number == NUMBER_U16)
		widen_u16(from, n, to);
	else
		widen_any(type, from, n, to);
}
