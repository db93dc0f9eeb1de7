/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The last step of a pipeline: normalize, cast and layout of 8-bit values into the slot. */

#include "pipeline/picture.h"
#include "pipeline/spec/shape.h"

struct finish_line { /* of a channel: what a value becomes, in five operations (finish_avx2.c) */
	float scale, scale_rest, mean, inverse, inverse_rest;
};

struct finish { /* immutable once made */
	enum pipeline_dtype dtype;
	enum op_order order;
	unsigned channels; /* the first so many of a picture */
	union {            /* what a value of a channel becomes */
		float f32[3][256];
		uint16_t half[3][256]; /* float16 or bfloat16 */
	} table;
	struct finish_line line[3];
	const struct finish_kernels *kernels;
};

struct finish_kernels { /* all makes give the same bytes */
	/* n values of channel c from a row of its plane. */
	void (*plane)(const struct finish *finish, unsigned c, const uint8_t *from, size_t n,
		      void *out);
	/* n values, channels in turn, red first. */
	void (*pixels)(const struct finish *finish, const uint8_t *from, size_t n, void *out);
	/* n pixels of three planes: channels in turn. */
	void (*zip)(const uint8_t *const from[3], size_t n, uint8_t *to);
	/* n pixels of three planes: four bytes each, the last is anything. */
	void (*join)(const uint8_t *const from[3], size_t n, uint8_t *to);
	/* What was stored past the cache is seen by all before what is stored after this. */
	void (*fence)(void);
};
extern const struct finish_kernels finish_plain; /* by table, and the reference */
/* NULL where the machine lacks AVX2, FMA or F16C. */
const struct finish_kernels *finish_avx2(void);
/* NULL where it is not an AArch64 one. */
const struct finish_kernels *finish_neon(void);
const struct finish_kernels *finish_best(void);

void finish_init(struct finish *finish, const struct shape *shape);
/* A picture of shape's size to out, which holds exactly the field. */
void finish_run(const struct finish *finish, const struct picture *picture, void *out);

/* Of a picture behind the op patches: its patches, one after another, and zeros behind them. As finish_run. */
void finish_patches(const struct finish *finish, const struct shape *shape,
		    const struct picture *picture, void *out);

/* In parts. A row of an OP_CHW image, of one channel, to its place in the field; a row of an OP_HWC
 * one. scratch has room for 3 n bytes. finish_end once, when all is written. */
void finish_plane(const struct finish *finish, unsigned c, const uint8_t *from, size_t n,
		  void *out);
void finish_pixels(const struct finish *finish, const uint8_t *const from[3], size_t n,
		   uint8_t *scratch, void *out);
void finish_end(const struct finish *finish);
/* A row of n pixels of a picture, from planes. */
void finish_join(const uint8_t *const from[3], size_t n, uint8_t *to);
/* What normalize, NULL for none, makes of a float of that channel. */
float finish_normalize(const struct op *normalize, unsigned channel, float value);
/* Bytes of a value. */
unsigned finish_value_bytes(enum pipeline_dtype dtype);
