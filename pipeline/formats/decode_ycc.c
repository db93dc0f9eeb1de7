/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples to planes: libjpeg's upsampling and its conversion of colours in one pass, by the kernels of
 * the quick decoder, which have its pixels.
 *
 * The kernels look at the samples beside a row's ends, which are those of the ends again, and read
 * whole registers past them, where libjpeg's rows may end. So rows of chroma, each of which is
 * looked at by four rows of pixels, are copied once, to where there is room around them; and rows of
 * luma where they are nearly as wide as what libjpeg keeps of them.
 */

#include "pipeline/formats/decode_ycc.h"
#include "pipeline/jpeg/baseline_inner.h"

#define DECODE_YCC_PAD 64
#define DECODE_YCC_STEP 32 /* samples of chroma: kernels take so many at once */

void decode_ycc_fini(struct decode_ycc *ycc)
{
	picture_buffer_fini(&ycc->buffer);
}

void decode_ycc_trim(struct decode_ycc *ycc)
{
	picture_buffer_trim(&ycc->buffer);
}

/* n rows of that many bytes, each with a pad before and behind it, from *at on, which goes behind them. */
static uint8_t *decode_ycc_take(uint8_t **at, size_t stride, size_t n)
{
	uint8_t *taken = *at + DECODE_YCC_PAD;

	*at += stride * n;
	return taken;
}

int decode_ycc_start(struct decode_ycc *ycc, const struct decode_ycc_shape *shape)
{
	const uint32_t samples = (shape->width + shape->across - 1) / shape->across;
	const size_t read = base_align_up((size_t)samples, DECODE_YCC_STEP) * shape->across;
	const size_t stride = base_align_up(read, DECODE_YCC_PAD) + DECODE_YCC_PAD;
	uint8_t *at =
	    picture_bytes(&ycc->buffer, stride * (3 * DECODE_YCC_ROWS + 1 + 2 * DECODE_YCC_SLOTS) +
					    DECODE_YCC_PAD);

	if (!at)
		return PIPELINE_FAIL_MEMORY;
	ycc->kernels = baseline_kernels_best();
	ycc->shape = *shape;
	ycc->samples = samples;
	ycc->stride = stride;
	for (unsigned c = 0; c < 3; c++)
		ycc->plane[c] = decode_ycc_take(&at, stride, DECODE_YCC_ROWS);
	ycc->luma = shape->room < read ? decode_ycc_take(&at, stride, 1) : NULL;
	for (unsigned i = 0; i < 2 * DECODE_YCC_SLOTS; i++) {
		ycc->chroma[i % 2][i / 2] = decode_ycc_take(&at, stride, 1);
		ycc->number[i % 2][i / 2] = -2;
	}
	ycc->group = 0;
	return 0;
}

/* Chroma's row of that number, counted from the first group on, with its ends repeated. */
static const uint8_t *decode_ycc_chroma(struct decode_ycc *ycc, unsigned c, int64_t number,
					const uint8_t *from)
{
	const size_t slot = (size_t)number % DECODE_YCC_SLOTS, n = ycc->samples;
	uint8_t *to = ycc->chroma[c][slot];

	if (ycc->number[c][slot] == number)
		return to;
	ycc->number[c][slot] = number;
	memcpy(to, from, n);
	to[-1] = to[0];
	to[n] = to[n - 1];
	return to;
}

static const uint8_t *decode_ycc_luma(struct decode_ycc *ycc, const uint8_t *from)
{
	return ycc->luma ? memcpy(ycc->luma, from, ycc->shape.width) : from;
}

void decode_ycc_row(struct decode_ycc *ycc, uint8_t **const *samples, uint32_t group, unsigned line,
		    unsigned row)
{
	const unsigned down = ycc->shape.down;
	const int beside = line == 0 ? -1 : 1;
	const uint8_t *y = decode_ycc_luma(ycc, samples[0][(size_t)group * down + line]);
	const uint8_t *near[2], *far[2] = {NULL, NULL};
	uint8_t *to[3];

	for (unsigned c = 0; c < 3; c++)
		to[c] = ycc->plane[c] + row * ycc->stride;
	for (unsigned c = 0; c < 2; c++) {
		uint8_t *const *from = samples[1 + c] + group;

		near[c] = decode_ycc_chroma(ycc, c, ycc->group, from[0]);
		if (down == 2)
			far[c] = decode_ycc_chroma(ycc, c, ycc->group + beside, from[beside]);
	}
	if (ycc->shape.across == 1)
		ycc->kernels->h1v1(y, near, to, ycc->samples);
	else if (down == 1)
		ycc->kernels->h2v1(y, near, to, ycc->samples);
	else
		ycc->kernels->h2v2(y, near, far, to, ycc->samples);
	ycc->group += line + 1 == down;
}
