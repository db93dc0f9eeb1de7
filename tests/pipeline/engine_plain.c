/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain engine: the whole picture, then op after op. It can run everything and is the oracle
 * that every other engine is held against, so nothing clever belongs here.
 */

#include <errno.h>
#include "pipeline/engine/steps.h"
#include "tests/pipeline/engine_plain.h"

static int engine_plain_compile(const struct op_list *ops, const struct shape *shape,
				struct engine_program **ret)
{
	return steps_new(ops, shape, (struct steps **)ret);
}

static void engine_plain_program_free(struct engine_program *program)
{
	steps_free((struct steps *)program);
}

static int engine_plain_scratch_new(const struct engine_program *program,
				    struct engine_scratch **ret)
{
	struct steps_scratch *scratch;

	if (steps_scratch_new(&scratch) != 0)
		return -ENOMEM;
	if (((const struct steps *)program)->shape.by_exif)
		decode_by_exif(scratch->decode);
	*ret = (struct engine_scratch *)scratch;
	return 0;
}

static void engine_plain_scratch_free(struct engine_scratch *scratch)
{
	steps_scratch_free((struct steps_scratch *)scratch);
}

/* The picture; the ops from *ret_next on are left. */
static int engine_plain_decode(const struct steps *steps, struct steps_scratch *scratch,
			       const struct draw *draw, struct picture *ret, unsigned *ret_next,
			       struct pipeline_error *ret_error)
{
	struct decode_about about;
	struct picture part, made;
	struct reduce reduce;
	int r;

	decode_tell(scratch->decode, &about);
	reduce_choose(steps->ops, draw, &about, &reduce);
	decode_reduce(scratch->decode, reduce.shift);
	*ret_next = reduce.shift > 0 ? 2 : about.done;
	r = decode_whole(scratch->decode, &scratch->buffer[0], ret, ret_error);
	if (r != 0 || reduce.shift == 0)
		return r;
	part = picture_part(ret, &reduce.box);
	r = rescale_run(&scratch->rescale, &part, reduce.filter, &reduce.cut, reduce.height,
			reduce.width, &scratch->buffer[!scratch->at], &made);
	if (r != 0)
		return steps_fail(ret_error, &steps->ops->op[1], r);
	steps_end(scratch, &made, ret);
	return 0;
}

static int engine_plain_run(const struct engine_program *program,
			    struct engine_scratch *engine_scratch, const void *data, size_t size,
			    const struct pipeline_key *key, void *out,
			    struct pipeline_error *ret_error)
{
	const struct steps *steps = (const struct steps *)program;
	struct steps_scratch *scratch = (struct steps_scratch *)engine_scratch;
	struct picture picture;
	struct draw draw;
	uint32_t height, width;
	unsigned next;
	int r;

	draw_init(&draw, key);
	draw.first = steps->shape.draws;
	scratch->at = 0;
	r = decode_open(scratch->decode, data, size, &height, &width, ret_error);
	if (r == 0)
		r = engine_plain_decode(steps, scratch, &draw, &picture, &next, ret_error);
	for (; r == 0 && next < steps->shape.pixel_ops; next++)
		r = steps_one(steps, scratch, next, &picture, &draw, ret_error);
	if (r == 0)
		steps_finish(steps, scratch, &picture, &draw, out);
	steps_trim(scratch);
	return r;
}

const struct engine engine_plain = {
    .name = "plain",
    .pixels = ENGINE_PIXELS,
    .compile = engine_plain_compile,
    .program_free = engine_plain_program_free,
    .scratch_new = engine_plain_scratch_new,
    .scratch_free = engine_plain_scratch_free,
    .run = engine_plain_run,
};
