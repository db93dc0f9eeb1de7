/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Op after op.
 *
 * The picture moves between two buffers of the scratch; ops that only look at part of it or change
 * it in place do not move it. What each op does is its own file's (op_run.h).
 */

#include "pipeline/engine/steps.h"
#include "pipeline/ops/apply.h"

int steps_new(const struct op_list *ops, const struct shape *shape, struct steps **ret)
{
	struct steps *steps = calloc(1, sizeof(*steps));

	if (!steps)
		return -ENOMEM;
	steps->ops = ops;
	steps->shape = *shape;
	finish_init(&steps->finish, shape);
	*ret = steps;
	return 0;
}

void steps_free(struct steps *steps)
{
	free(steps);
}

int steps_scratch_new(struct steps_scratch **ret)
{
	struct steps_scratch *scratch = calloc(1, sizeof(*scratch));

	if (!scratch || decode_new(&scratch->decode) != 0) {
		free(scratch);
		return -ENOMEM;
	}
	*ret = scratch;
	return 0;
}

void steps_scratch_free(struct steps_scratch *scratch)
{
	if (!scratch)
		return;
	decode_free(scratch->decode);
	rescale_fini(&scratch->rescale);
	picture_buffer_fini(&scratch->buffer[0]);
	picture_buffer_fini(&scratch->buffer[1]);
	picture_buffer_fini(&scratch->work);
	picture_buffer_fini(&scratch->kept);
	free(scratch);
}

void steps_trim(struct steps_scratch *scratch)
{
	decode_close(scratch->decode);
	picture_buffer_trim(&scratch->buffer[0]);
	picture_buffer_trim(&scratch->buffer[1]);
	picture_buffer_trim(&scratch->work);
	picture_buffer_trim(&scratch->kept);
	rescale_trim(&scratch->rescale);
}

int steps_fail(struct pipeline_error *ret_error, const struct op *op, int r)
{
	static const char *const texts[] = {
	    [PIPELINE_FAIL_REFUSED] = "the picture would get too large",
	    [PIPELINE_FAIL_MEMORY] = "no memory for the picture",
	};

	return decode_fail(ret_error, (enum pipeline_fail)r, 0, "%.12s: %s", op_name(op->id),
			   texts[r]);
}

/* ---- what ops are made of ---- */

int steps_begin(struct steps_scratch *scratch, uint64_t height, uint64_t width, struct picture *ret)
{
	return picture_make(&scratch->buffer[!scratch->at], height, width, ret);
}

void steps_end(struct steps_scratch *scratch, const struct picture *made, struct picture *picture)
{
	scratch->at = !scratch->at;
	*picture = *made;
}

int steps_scale(struct steps_scratch *scratch, enum filter_id filter, uint64_t height,
		uint64_t width, struct picture *picture)
{
	static const struct resize_cut none;
	struct picture made;
	int r = rescale_run(&scratch->rescale, picture, filter, &none, height, width,
			    &scratch->buffer[!scratch->at], &made);

	if (r == 0)
		steps_end(scratch, &made, picture);
	return r;
}

void *steps_work(struct steps_scratch *scratch, size_t size)
{
	return picture_bytes(&scratch->work, size);
}

void *steps_keep(struct steps_scratch *scratch, size_t size)
{
	return picture_bytes(&scratch->kept, size);
}

int steps_refuse(struct steps_scratch *scratch, const char *why)
{
	scratch->why = why;
	return PIPELINE_FAIL_OP;
}

/* ---- ops ---- */

int steps_op(struct steps_scratch *scratch, const struct op *op, const struct op_drawn *drawn,
	     struct picture *picture, struct pipeline_error *ret_error)
{
	int r = op_impl(op->id)->run(scratch, op, drawn, picture);

	if (r == PIPELINE_FAIL_OP)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "%.14s: %s", op_name(op->id),
				   scratch->why);
	return r == 0 ? 0 : steps_fail(ret_error, op, r);
}

void steps_finished(const struct steps *steps, const struct draw *draw, void *out)
{
	const struct shape *shape = &steps->shape;

	for (unsigned i = 0; shape->finished >> i != 0; i++) {
		const struct op *op = &steps->ops->op[i];
		struct op_drawn drawn;

		if (!(shape->finished >> i & 1))
			continue;
		op_draw(op, i, draw, shape->height, shape->width, &drawn);
		op_impl(op->id)->finished(shape, op, &drawn, out);
	}
}

/* One picture to its place in the field, then what ops behind normalize write over it. */
static void steps_finish_one(const struct steps *steps, const struct picture *picture,
			     const struct draw *draw, void *out)
{
	finish_run(&steps->finish, picture, out);
	steps_finished(steps, draw, out);
}

void steps_finish(const struct steps *steps, const struct steps_scratch *scratch,
		  const struct picture *picture, const struct draw *draw, void *out)
{
	const struct shape *shape = &steps->shape;
	size_t bytes = (size_t)shape->height * shape->width * shape->channels *
		       finish_value_bytes(shape->dtype);

	if (shape->patches.most > 0)
		finish_patches(&steps->finish, shape, picture, out);
	else if (!shape->views)
		steps_finish_one(steps, picture, draw, out);
	for (unsigned i = 0; i < shape->views; i++) {
		struct picture view = picture_part(picture, &scratch->view[i]);

		steps_finish_one(steps, &view, draw, (uint8_t *)out + i * bytes);
	}
}

int steps_one(const struct steps *steps, struct steps_scratch *scratch, unsigned i,
	      struct picture *picture, const struct draw *draw, struct pipeline_error *ret_error)
{
	const struct op *op = &steps->ops->op[i];
	struct op_drawn drawn;

	if (apply_skips(steps->ops, i, draw))
		return 0;
	op_draw(op, i, draw, picture->height, picture->width, &drawn);
	return steps_op(scratch, op, &drawn, picture, ret_error);
}
