/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crop engine: where the op after decode is a crop, only the part that it takes is decoded. The
 * part is known before any pixel is, from the picture's size and the sample's draws. Everything
 * behind it is the plain engine's.
 */

#include "pipeline/engine.h"
#include "pipeline/steps.h"

static bool engine_crop_can_run(const struct op_list *ops)
{
	return ops->count > 1 && steps_is_crop(&ops->op[1]);
}

static int engine_crop_compile(const struct op_list *ops, const struct shape *shape,
			       struct engine_program **ret)
{
	return steps_new(ops, shape, (struct steps **)ret);
}

static void engine_crop_program_free(struct engine_program *program)
{
	steps_free((struct steps *)program);
}

static int engine_crop_scratch_new(const struct engine_program *program,
				   struct engine_scratch **ret)
{
	(void)program;
	return steps_scratch_new((struct steps_scratch **)ret);
}

static void engine_crop_scratch_free(struct engine_scratch *scratch)
{
	steps_scratch_free((struct steps_scratch *)scratch);
}

static int engine_crop_sample(const struct steps *steps, struct steps_scratch *scratch,
			      const void *data, size_t size, const struct pipeline_key *key,
			      void *out, struct pipeline_error *ret_error)
{
	const struct op *crop = &steps->ops->op[1];
	struct picture picture;
	struct picture_box box;
	struct draw draw;
	uint32_t height, width;
	int r;

	draw_init(&draw, key);
	scratch->at = 0;
	r = decode_open(scratch->decode, data, size, &height, &width, ret_error);
	if (r != 0)
		return r;
	steps_part(crop, 1, &draw, height, width, &box);
	r = decode_part(scratch->decode, &box, &scratch->buffer[0], &picture, ret_error);
	if (r != 0)
		return r;
	r = steps_complete(scratch, crop, &picture);
	if (r != 0)
		return steps_fail(ret_error, crop, r);
	return steps_rest(steps, scratch, 2, &picture, &draw, out, ret_error);
}

static int engine_crop_run(const struct engine_program *program,
			   struct engine_scratch *engine_scratch, const void *data, size_t size,
			   const struct pipeline_key *key, void *out,
			   struct pipeline_error *ret_error)
{
	struct steps_scratch *scratch = (struct steps_scratch *)engine_scratch;
	int r = engine_crop_sample((const struct steps *)program, scratch, data, size, key, out,
				   ret_error);

	steps_trim(scratch);
	return r;
}

const struct engine engine_crop = {
    .name = "crop",
    .pixels = ENGINE_PIXELS,
    .can_run = engine_crop_can_run,
    .compile = engine_crop_compile,
    .program_free = engine_crop_program_free,
    .scratch_new = engine_crop_scratch_new,
    .scratch_free = engine_crop_scratch_free,
    .run = engine_crop_run,
};
