/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_iou_crop: torchvision's RandomIoUCrop, the crop of SSD.
 *
 * Which part is taken depends on the boxes as they are by then, so it is chosen where boxes follow the picture, before any
 * pixel is made (follow.c), and handed to whoever makes pixels and masks (draw.h).
 *
 * torchvision draws until a part fits or until "as it is" is drawn; here the picture also stays as it is where there are no
 * boxes, and behind so many parts that do not fit.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"

#define IOU_CROP_MOST 4000

/* Four numbers: top, left, height and width; height 0: as it is. */
enum { IOU_CROP_TOP, IOU_CROP_LEFT, IOU_CROP_HEIGHT, IOU_CROP_WIDTH, IOU_CROP_NUMBERS };
_Static_assert(IOU_CROP_NUMBERS <= DRAW_CHOSEN, "they are handed on");

static bool iou_crop_is_random(const struct op *op)
{
	const struct op_value *options = &op->value[OP_RANDOM_IOU_CROP_SAMPLER_OPTIONS];

	for (unsigned i = 0; i < options->count; i++)
		if (options->number[i] < 1)
			return true;
	return false;
}

static const char *iou_crop_shape(const struct op *op, struct shape *shape)
{
	if (op_number(op, OP_RANDOM_IOU_CROP_MIN_SCALE, 0) >
	    op_number(op, OP_RANDOM_IOU_CROP_MAX_SCALE, 0))
		return "\"min_scale\" is above \"max_scale\"; give a smaller one";
	if (op_number(op, OP_RANDOM_IOU_CROP_MIN_ASPECT_RATIO, 0) >
	    op_number(op, OP_RANDOM_IOU_CROP_MAX_ASPECT_RATIO, 0))
		return "\"min_aspect_ratio\" is above \"max_aspect_ratio\"; give a smaller one";
	if (iou_crop_is_random(op))
		shape->height = shape->width = 0;
	return NULL;
}

/* Does its middle lie within the part? */
static bool iou_crop_has(const double *part, const float box[4])
{
	const double x = 0.5 * ((double)box[0] + box[2]) - part[IOU_CROP_LEFT];
	const double y = 0.5 * ((double)box[1] + box[3]) - part[IOU_CROP_TOP];

	return x > 0 && x < part[IOU_CROP_WIDTH] && y > 0 && y < part[IOU_CROP_HEIGHT];
}

static double iou_crop_overlap(const double *part, const float box[4])
{
	const double right = part[IOU_CROP_LEFT] + part[IOU_CROP_WIDTH];
	const double bottom = part[IOU_CROP_TOP] + part[IOU_CROP_HEIGHT];
	const double across = fmin(box[2], right) - fmax(box[0], part[IOU_CROP_LEFT]);
	const double down = fmin(box[3], bottom) - fmax(box[1], part[IOU_CROP_TOP]);
	const double both = fmax(across, 0) * fmax(down, 0);
	const double own = ((double)box[2] - box[0]) * ((double)box[3] - box[1]);

	return both / (part[IOU_CROP_WIDTH] * part[IOU_CROP_HEIGHT] + own - both);
}

/* One part: is it one of those that are wanted? */
static bool iou_crop_try(const struct op *op, const struct follow *follow, double overlap,
			 struct philox_seq *seq, double *part)
{
	const double least = op_number(op, OP_RANDOM_IOU_CROP_MIN_SCALE, 0);
	const double most = op_number(op, OP_RANDOM_IOU_CROP_MAX_SCALE, 0);
	double ratio, best = -1;

	part[IOU_CROP_WIDTH] = floor(follow->width * draw_between(seq, least, most));
	part[IOU_CROP_HEIGHT] = floor(follow->height * draw_between(seq, least, most));
	ratio = part[IOU_CROP_WIDTH] / part[IOU_CROP_HEIGHT];
	if (!(part[IOU_CROP_HEIGHT] >= 1 &&
	      ratio >= op_number(op, OP_RANDOM_IOU_CROP_MIN_ASPECT_RATIO, 0) &&
	      ratio <= op_number(op, OP_RANDOM_IOU_CROP_MAX_ASPECT_RATIO, 0)))
		return false;
	part[IOU_CROP_LEFT] = floor((follow->width - part[IOU_CROP_WIDTH]) * philox_unit(seq));
	part[IOU_CROP_TOP] = floor((follow->height - part[IOU_CROP_HEIGHT]) * philox_unit(seq));
	for (uint64_t i = 0; i < follow->n; i++)
		if (iou_crop_has(part, follow->box[i]))
			best = fmax(best, iou_crop_overlap(part, follow->box[i]));
	return best >= overlap;
}

static void iou_crop_choose(const struct op *op, const struct follow *follow,
			    struct op_drawn *drawn)
{
	const struct op_value *options = &op->value[OP_RANDOM_IOU_CROP_SAMPLER_OPTIONS];
	const unsigned trials = (unsigned)op_number(op, OP_RANDOM_IOU_CROP_TRIALS, 0);
	double part[IOU_CROP_NUMBERS], overlap = 0;

	for (unsigned i = 0; i < IOU_CROP_MOST && follow->n > 0; i++) {
		if (i % trials == 0)
			overlap = options->number[draw_integer(&drawn->seq, 0, options->count - 1)];
		if (overlap >= 1)
			return;
		if (!iou_crop_try(op, follow, overlap, &drawn->seq, part))
			continue;
		memcpy(drawn->number, part, sizeof(part));
		return;
	}
}

static int iou_crop_run(struct steps_scratch *scratch, const struct op *op,
			const struct op_drawn *drawn, struct picture *picture)
{
	const struct picture_box box = {
	    (uint32_t)drawn->number[IOU_CROP_TOP], (uint32_t)drawn->number[IOU_CROP_LEFT],
	    (uint32_t)drawn->number[IOU_CROP_HEIGHT], (uint32_t)drawn->number[IOU_CROP_WIDTH]};

	(void)op;
	if (box.height == 0)
		return 0;
	if (box.height > picture->height - BASE_MIN(box.top, picture->height) ||
	    box.width > picture->width - BASE_MIN(box.left, picture->width))
		return steps_refuse(scratch, "the picture is another");
	*picture = picture_part(picture, &box);
	return 0;
}

/* Boxes whose middle is not in the part are gone, whatever else of them is. */
static void iou_crop_follow(const struct op *op, const struct op_drawn *drawn,
			    struct follow *follow)
{
	(void)op;
	if (drawn->number[IOU_CROP_HEIGHT] == 0)
		return;
	for (uint64_t i = 0; i < follow->n; i++)
		if (!iou_crop_has(drawn->number, follow->box[i]))
			memset(follow->box[i], 0, sizeof(follow->box[i]));
	follow_window(follow, drawn->number[IOU_CROP_TOP], drawn->number[IOU_CROP_LEFT],
		      drawn->number[IOU_CROP_HEIGHT], drawn->number[IOU_CROP_WIDTH]);
}

const struct op_impl iou_crop_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = iou_crop_shape,
    .choose = iou_crop_choose,
    .is_random = iou_crop_is_random,
    .run = iou_crop_run,
    .follow = iou_crop_follow,
};
