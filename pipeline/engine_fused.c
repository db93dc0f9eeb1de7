/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fused engine: from the decoder's rows into the slot in one pass (fuse_rows.c), for as many of
 * the first ops as one step can do (fuse_plan.c). For the usual pipelines that is all of them. Where
 * others follow, the pass gives a picture, and they are done one after another as ever (steps.c).
 *
 * How far the step reaches is decided for each picture, since it may depend on its size.
 */

#include <errno.h>
#include <stdlib.h>
#include "pipeline/drive.h"
#include "pipeline/engine.h"
#include "pipeline/fuse_rows.h"
#include "pipeline/steps.h"

struct fused_scratch {
	struct steps_scratch *steps; /* owned */
	struct fuse_rows rows;
	/* of the picture that has begun */
	struct fuse_plan plan;
	struct draw draw;
	struct picture picture; /* what ops behind the plan work on */
	bool direct;            /* there are none */
	void *out;              /* borrowed */
};

static int engine_fused_compile(const struct op_list *ops, const struct shape *shape,
				struct engine_program **ret)
{
	return steps_new(ops, shape, (struct steps **)ret);
}

static void engine_fused_program_free(struct engine_program *program)
{
	steps_free((struct steps *)program);
}

static void engine_fused_scratch_free(struct engine_scratch *engine_scratch)
{
	struct fused_scratch *scratch = (struct fused_scratch *)engine_scratch;

	if (!scratch)
		return;
	steps_scratch_free(scratch->steps);
	fuse_rows_fini(&scratch->rows);
	free(scratch);
}

static int engine_fused_scratch_new(const struct engine_program *program,
				    struct engine_scratch **ret)
{
	struct fused_scratch *scratch = calloc(1, sizeof(*scratch));

	if (!scratch)
		return -ENOMEM;
	if (steps_scratch_new(&scratch->steps) != 0) {
		free(scratch);
		return -ENOMEM;
	}
	if (((const struct steps *)program)->shape.by_exif)
		decode_by_exif(scratch->steps->decode);
	*ret = (struct engine_scratch *)scratch;
	return 0;
}

static int engine_fused_begin(const struct engine_program *program,
			      struct engine_scratch *engine_scratch, const struct pipeline_key *key,
			      const struct decode_about *about, void *out,
			      struct engine_need *ret_need, struct pipeline_error *ret_error)
{
	const struct steps *steps = (const struct steps *)program;
	struct fused_scratch *scratch = (struct fused_scratch *)engine_scratch;
	struct fuse_plan *plan = &scratch->plan;
	struct reduce reduce;
	int r = 0;

	draw_init(&scratch->draw, key);
	fuse_plan_make(steps->ops, steps->shape.pixel_ops, &scratch->draw, about->height,
		       about->width, plan);
	reduce_choose(steps->ops, &scratch->draw, about, &reduce);
	if (reduce.shift > 0)
		fuse_plan_reduce(plan, &reduce);
	scratch->direct = plan->next == steps->shape.pixel_ops && !steps->shape.views;
	scratch->out = out;
	scratch->steps->at = 0;
	if (!scratch->direct)
		r = picture_make(&scratch->steps->buffer[0], plan->frame.height, plan->frame.width,
				 &scratch->picture);
	if (r == 0)
		r = fuse_rows_begin(&scratch->rows, plan, scratch->direct ? &steps->finish : NULL,
				    out, &scratch->picture);
	if (r != 0)
		return decode_fail(ret_error, (enum pipeline_fail)r, 0,
				   "no room for %u x %u pixels", about->width, about->height);
	*ret_need = (struct engine_need){plan->shift, scratch->rows.box};
	return 0;
}

static void engine_fused_feed(struct engine_scratch *scratch, const struct decode_band *band)
{
	fuse_rows_feed(&((struct fused_scratch *)scratch)->rows, band);
}

static int engine_fused_end(const struct engine_program *program,
			    struct engine_scratch *engine_scratch, struct pipeline_error *ret_error)
{
	const struct steps *steps = (const struct steps *)program;
	struct fused_scratch *scratch = (struct fused_scratch *)engine_scratch;

	if (!scratch->direct)
		return steps_rest(steps, scratch->steps, scratch->plan.next, &scratch->picture,
				  &scratch->draw, scratch->out, ret_error);
	finish_end(&steps->finish);
	steps_finished(steps, &scratch->draw, scratch->out);
	return 0;
}

static void engine_fused_trim(struct engine_scratch *engine_scratch)
{
	struct fused_scratch *scratch = (struct fused_scratch *)engine_scratch;

	steps_trim(scratch->steps);
	fuse_rows_trim(&scratch->rows);
}

static int engine_fused_run(const struct engine_program *program, struct engine_scratch *scratch,
			    const void *data, size_t size, const struct pipeline_key *key,
			    void *out, struct pipeline_error *ret_error)
{
	struct drive_part part = {
	    .engine = &engine_fused, .program = program, .scratch = scratch, .out = out};

	return drive_sample(((struct fused_scratch *)scratch)->steps->decode, &part, 1, data, size,
			    key, ret_error);
}

const struct engine engine_fused = {
    .name = "fused",
    .pixels = ENGINE_PIXELS,
    .compile = engine_fused_compile,
    .program_free = engine_fused_program_free,
    .scratch_new = engine_fused_scratch_new,
    .scratch_free = engine_fused_scratch_free,
    .begin = engine_fused_begin,
    .feed = engine_fused_feed,
    .end = engine_fused_end,
    .trim = engine_fused_trim,
    .run = engine_fused_run,
};
