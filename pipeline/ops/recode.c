/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg: torchvision's JPEG on a Pillow image, which is written as a JPEG file of a drawn quality and read again: what that loses is
 * lost. libjpeg-turbo writes it with Pillow's settings: colours of half the height and width, the slow integer DCT, no table of its own.
 * It is read as any JPEG file is.
 *
 * A picture of one channel is one of three equal ones, and comes back as such: its colours are 0 everywhere, exactly, and its
 * luminance is what a grey file holds.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

static const char *recode_shape(const struct op *op, struct shape *shape)
{
	const double *quality = op->value[OP_JPEG_QUALITY].number;

	(void)shape;
	if (quality[0] != floor(quality[0]) || quality[1] != floor(quality[1]))
		return "there is no quality between two whole numbers; give whole ones";
	return NULL;
}

/* One number: the quality. */
static void recode_draw(const struct op *op, uint32_t height, uint32_t width,
			struct op_drawn *drawn)
{
	const double *quality = op->value[OP_JPEG_QUALITY].number;

	(void)height;
	(void)width;
	drawn->number[0] =
	    (double)draw_integer(&drawn->seq, (int64_t)quality[0], (int64_t)quality[1]);
}

static bool recode_is_random(const struct op *op)
{
	return op_is_span(op, OP_JPEG_QUALITY);
}

static int recode_run(struct steps_scratch *scratch, const struct op *op,
		      const struct op_drawn *drawn, struct picture *picture)
{
	_cleanup_free_ uint8_t *file = NULL;
	struct pipeline_error error;
	struct picture to;
	uint32_t height, width;
	size_t size;
	int r = decode_jpeg_write(picture, (unsigned)drawn->number[0], &file, &size);

	(void)op;
	if (r == PIPELINE_FAIL_REFUSED)
		return steps_refuse(scratch, "a side above 65500");
	if (r != 0)
		return r;
	r = decode_open(scratch->decode, file, size, &height, &width, &error);
	r = r ? r : decode_whole(scratch->decode, &scratch->buffer[!scratch->at], &to, &error);
	decode_close(scratch->decode);
	if (r != 0) /* the file is right */
		return PIPELINE_FAIL_MEMORY;
	steps_end(scratch, &to, picture);
	return 0;
}

const struct op_impl recode_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .shape = recode_shape,
    .draw = recode_draw,
    .is_random = recode_is_random,
    .run = recode_run,
};
