/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The numbers of a picture's file, of any number of channels and of more than 8 bits, as float32: planes of pictures whose pixels' four
 * bytes are one number. Formats read rows as the file has them, and give them here.
 */

#include "pipeline/picture.h"

#define DECODE_NUMBERS_MOST 4096 /* channels that a file may have */

struct decode_numbers_head {
	uint32_t height, width;
	unsigned channels;
	unsigned depth; /* so many of them are a volume's slices, and the next ones another's */
};

struct decode_numbers {          /* where they go */
	struct picture all;      /* planes, one below the other */
	struct picture_box part; /* of each of the file's channels, what a plane has */
	unsigned n;              /* planes */
	uint16_t channel[DECODE_NUMBERS_MOST]; /* of the file, that each plane is */
	bool is_inverted; /* of DICOM where the least number is white, so that it is the greatest */
};

/* Is any of the `count` channels from first on wanted? */
bool decode_numbers_want(const struct decode_numbers *to, unsigned first, unsigned count);
/* n pixels of the file's row y from its column x on, of which those within the part are taken. A pixel has `step` numbers of that
 * type, the machine's byte order, of which the first `count` are of the channels from first on. */
void decode_numbers_put(const struct decode_numbers *to, enum pipeline_dtype dtype,
			const uint8_t *from, unsigned step, unsigned first, unsigned count,
			uint32_t y, uint32_t x, uint32_t n);
/* n numbers of that type, the machine's byte order, `stride` bytes apart, to float32 one behind the other. */
void decode_numbers_take(enum pipeline_dtype dtype, const uint8_t *from, size_t stride, uint32_t n,
			 uint8_t *to);
/* Bytes of a number; 0: of no type that is read here. */
unsigned decode_numbers_bytes(enum pipeline_dtype dtype);

/* The number at `from`, of a type that double holds and in the machine's byte order, for who computes with it. */
static inline double decode_numbers_value(enum pipeline_dtype dtype, const uint8_t *from)
{
#define DECODE_NUMBERS_OF(dtype, type)                 \
	case dtype: {                                  \
		type number;                           \
                                                       \
		memcpy(&number, from, sizeof(number)); \
		return (double)number;                 \
	}
	switch (dtype) {
		DECODE_NUMBERS_OF(PIPELINE_U8, uint8_t)
		DECODE_NUMBERS_OF(PIPELINE_I8, int8_t)
		DECODE_NUMBERS_OF(PIPELINE_U16, uint16_t)
		DECODE_NUMBERS_OF(PIPELINE_I16, int16_t)
		DECODE_NUMBERS_OF(PIPELINE_U32, uint32_t)
		DECODE_NUMBERS_OF(PIPELINE_I32, int32_t)
		DECODE_NUMBERS_OF(PIPELINE_F32, float)
		DECODE_NUMBERS_OF(PIPELINE_F64, double)
	default:
		return 0;
	}
#undef DECODE_NUMBERS_OF
}
