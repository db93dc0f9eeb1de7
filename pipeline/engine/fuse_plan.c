/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops to one step, for one picture: its size and the sample's draws are known, its pixels are not.
 *
 * Ops are taken one after another into the plan as long as it can say what they do. It can say:
 * crop as often as one likes, then resize once, then crop, then what adds black around, then flips.
 * What is in the plan already decides: flips commute with nothing in front of them bit for bit (a
 * resize's weights are rounded from left to right), black that was added would have to be resized,
 * and so on; then the plan ends, and the ops from there on work on the picture that it gives. So
 * does it before an op that would refuse the picture (it gets too large), which then tells so.
 */

#include "pipeline/engine/fuse_plan.h"
#include "pipeline/ops/crop.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/resize.h"
#include "pipeline/ops/scale.h"

#define FUSE_PLAN_MAX_SIDE 65536 /* of what is resized here; larger tables are the op's */

/* Is nothing in the plan but crops? */
static bool fuse_plan_is_source(const struct fuse_plan *plan)
{
	return !plan->resized && !plan->mirrored && !plan->turned &&
	       plan->frame.height == plan->source.height && plan->frame.width == plan->source.width;
}

static bool fuse_plan_is_framed(const struct fuse_plan *plan)
{
	return plan->mirrored || plan->turned || plan->frame.height != plan->window.height ||
	       plan->frame.width != plan->window.width;
}

static bool fuse_plan_fits(uint64_t height, uint64_t width)
{
	return height >= 1 && width >= 1 && height <= FUSE_PLAN_MAX_SIDE &&
	       width <= FUSE_PLAN_MAX_SIDE && height * width <= OP_MAX_PIXELS;
}

static void fuse_plan_show(struct fuse_plan *plan, uint32_t height, uint32_t width)
{
	plan->to = (struct fuse_size){height, width};
	plan->window = (struct picture_box){0, 0, height, width};
	plan->frame = plan->to;
}

static void fuse_plan_crop(struct fuse_plan *plan, const struct picture_box *box)
{
	if (plan->resized) {
		plan->window.top += box->top;
		plan->window.left += box->left;
		plan->window.height = box->height;
		plan->window.width = box->width;
		plan->frame = (struct fuse_size){box->height, box->width};
		return;
	}
	plan->source.top += box->top;
	plan->source.left += box->left;
	plan->source.height = box->height;
	plan->source.width = box->width;
	fuse_plan_show(plan, box->height, box->width);
}

/* The picture in between the passes is one, too, and must not be too large either. */
static bool fuse_plan_resize(struct fuse_plan *plan, const struct picture_box *source,
			     enum filter_id filter, uint64_t height, uint64_t width)
{
	bool both = height != source->height && width != source->width;

	if (!fuse_plan_fits(height, width) || !fuse_plan_fits(source->height, source->width))
		return false;
	if (both &&
	    !(resize_down_first(source->height, source->width, (uint32_t)height, (uint32_t)width)
		  ? fuse_plan_fits(height, source->width)
		  : fuse_plan_fits(source->height, width)))
		return false;
	plan->source = *source;
	plan->resized = height != source->height || width != source->width;
	plan->filter = filter;
	fuse_plan_show(plan, (uint32_t)height, (uint32_t)width);
	return true;
}

/* ---- ops; false: not in the plan ---- */

static bool fuse_plan_random_resized_crop(struct fuse_plan *plan, const struct op *op,
					  const struct op_drawn *drawn)
{
	struct picture_box box = plan->source;

	if (!fuse_plan_is_source(plan))
		return false;
	box.top += (uint32_t)drawn->number[0];
	box.left += (uint32_t)drawn->number[1];
	box.height = (uint32_t)drawn->number[2];
	box.width = (uint32_t)drawn->number[3];
	return fuse_plan_resize(plan, &box, (enum filter_id)drawn->number[4],
				(uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 0),
				(uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 1));
}

static bool fuse_plan_scale(struct fuse_plan *plan, const struct op *op,
			    const struct op_drawn *drawn)
{
	const struct picture_box source = plan->source;
	uint64_t height, width;

	if (!fuse_plan_is_source(plan))
		return false;
	scale_to(op, drawn, source.height, source.width, &height, &width);
	return fuse_plan_resize(plan, &source,
				(enum filter_id)op_number(op, OP_RESIZE_INTERPOLATION, 0), height,
				width);
}

static bool fuse_plan_center_crop(struct fuse_plan *plan, const struct op *op)
{
	const uint32_t height = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0);
	const uint32_t width = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1);
	struct picture_box box;

	if (fuse_plan_is_framed(plan) || !fuse_plan_fits(height, width))
		return false;
	crop_middle(op, plan->frame.height, plan->frame.width, &box);
	if ((box.height < height || box.width < width) && !crop_fills_black(op))
		return false;
	fuse_plan_crop(plan, &box);
	plan->top = (height - box.height) / 2;
	plan->left = (width - box.width) / 2;
	plan->frame = (struct fuse_size){height, width};
	return true;
}

/* Where it lies within the picture; what it pads, or refuses, is the op's. */
static bool fuse_plan_part(struct fuse_plan *plan, const double at[2], double height, double width)
{
	struct picture_box box = {0};

	if (fuse_plan_is_framed(plan) || at[0] < 0 || at[1] < 0 ||
	    at[0] + height > plan->frame.height || at[1] + width > plan->frame.width)
		return false;
	box.top = (uint32_t)at[0];
	box.left = (uint32_t)at[1];
	box.height = (uint32_t)height;
	box.width = (uint32_t)width;
	fuse_plan_crop(plan, &box);
	return true;
}

static void fuse_plan_flip(struct fuse_plan *plan, bool across, bool down)
{
	if (across) {
		plan->mirrored = !plan->mirrored;
		plan->left = plan->frame.width - plan->window.width - plan->left;
	}
	if (down) {
		plan->turned = !plan->turned;
		plan->top = plan->frame.height - plan->window.height - plan->top;
	}
}

static bool fuse_plan_add(struct fuse_plan *plan, const struct op *op, unsigned index,
			  const struct draw *draw)
{
	struct op_drawn drawn;

	op_draw(op, index, draw, plan->frame.height, plan->frame.width, &drawn);
	switch (op->id) {
	case OP_RANDOM_RESIZED_CROP:
		return fuse_plan_random_resized_crop(plan, op, &drawn);
	case OP_RESIZE:
	case OP_SCALE_JITTER:
	case OP_RANDOM_SHORTEST_SIZE:
	case OP_RANDOM_RESIZE:
	case OP_PATCHES:
		return fuse_plan_scale(plan, op, &drawn);
	case OP_CENTER_CROP:
		return fuse_plan_center_crop(plan, op);
	case OP_RANDOM_CROP:
	case OP_FIXED_SIZE_CROP:
		return fuse_plan_part(plan, drawn.number, op_number(op, OP_RANDOM_CROP_SIZE, 0),
				      op_number(op, OP_RANDOM_CROP_SIZE, 1));
	case OP_RANDOM_IOU_CROP:
		return drawn.number[2] == 0 ||
		       fuse_plan_part(plan, drawn.number, drawn.number[2], drawn.number[3]);
	case OP_HFLIP:
		fuse_plan_flip(plan, drawn.number[0] != 0, false);
		return true;
	case OP_VFLIP:
		fuse_plan_flip(plan, false, drawn.number[0] != 0);
		return true;
	default:
		return false;
	}
}

void fuse_plan_make(const struct op_list *ops, unsigned from, unsigned end, const struct draw *draw,
		    uint32_t height, uint32_t width, struct fuse_plan *ret)
{
	*ret = (struct fuse_plan){.next = from, .source = {0, 0, height, width}};
	fuse_plan_show(ret, height, width);
	while (ret->next < end && fuse_plan_add(ret, &ops->op[ret->next], ret->next, draw))
		ret->next++;
}

void fuse_plan_reduce(struct fuse_plan *plan, const struct reduce *reduce)
{
	plan->shift = reduce->shift;
	plan->source = reduce->box;
	plan->cut = reduce->cut;
}
