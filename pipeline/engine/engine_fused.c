/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fused engine: from the decoder's rows into the slot in one pass (fuse_rows.c), for as many of
 * the first ops as one step can do (fuse_plan.c). For the usual pipelines that is all of them. Where
 * others follow, the pass gives a picture, and they are done one after another as ever (branch.c).
 *
 * How far the step reaches is decided for each picture, since it may depend on its size. So is which
 * of several programs share a pass: those whose plans resize the same part alike (fuse_fan.c), be it
 * that their lists of ops begin alike or that they come to the same for this picture. Behind the pass
 * programs whose ops up to there are the same have one picture, that of the first of them.
 */

#include <limits.h>
#include "pipeline/engine/branch.h"
#include "pipeline/engine/drive.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/fuse_plan.h"
#include "pipeline/engine/fuse_rows.h"

struct fused_scratch {
	struct steps_scratch *steps; /* owned */
	struct fuse_rows rows;
	/* of the picture that has begun */
	struct fuse_plan plan;
	struct draw draw;
	bool direct;          /* nothing but finishing three channels is behind the plan */
	uint32_t behind;      /* otherwise: whose ops go on from the picture in `branch`, 0: it is
	                       * another's */
	struct branch branch; /* what ops behind the plan work on */
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

	if (!scratch || steps_scratch_new(&scratch->steps) != 0) {
		free(scratch);
		return -ENOMEM;
	}
	if (((const struct steps *)program)->shape.by_exif)
		decode_by_exif(scratch->steps->decode);
	*ret = (struct engine_scratch *)scratch;
	return 0;
}

/* ---- beginning ---- */

static struct fused_scratch *fused_of(const struct engine_part *part)
{
	return (struct fused_scratch *)part->scratch;
}

static void fused_plan(struct engine_part *part, const struct pipeline_key *key,
		       const struct decode_about *about)
{
	const struct steps *steps = (const struct steps *)part->program;
	struct fused_scratch *scratch = fused_of(part);
	struct fuse_plan *plan = &scratch->plan;
	struct reduce reduce;

	draw_init(&scratch->draw, key);
	scratch->draw.first = steps->shape.draws;
	scratch->draw.choices = part->choices;
	fuse_plan_make(steps->ops, about->done, steps->shape.pixel_ops, &scratch->draw,
		       about->height, about->width, plan);
	reduce_choose(steps->ops, &scratch->draw, about, &reduce);
	if (reduce.shift > 0)
		fuse_plan_reduce(plan, &reduce);
	scratch->direct = plan->next == steps->shape.pixel_ops && !steps->shape.views &&
			  !steps->shape.patches.most && steps->shape.channels == 3;
	scratch->branch = (struct branch){.steps = steps,
					  .scratch = scratch->steps,
					  .draw = &scratch->draw,
					  .out = part->out,
					  .alike = part->alike,
					  .work = &part->work};
	scratch->behind = 0;
	scratch->steps->at = 0;
	part->need = (struct engine_need){.shift = plan->shift};
}

/* Whose picture the ops of a part go on from: its own, or that of the first one whose ops are the same
 * up to there. */
static unsigned fused_owner(const struct engine_part part[], uint32_t who, unsigned number)
{
	const struct fused_scratch *own = fused_of(&part[number]);
	uint32_t before = who & part[number].alike[own->plan.next] & ((UINT32_C(1) << number) - 1);

	for (; before; before &= before - 1) {
		unsigned other = (unsigned)__builtin_ctz(before);
		const struct fused_scratch *scratch = fused_of(&part[other]);

		if (!scratch->direct && scratch->plan.next == own->plan.next)
			return other;
	}
	return number;
}

/* Makes the picture that a part's ops go on from, where it is its own. Is there anything for a pass to
 * write for it? */
static int fused_target(struct engine_part part[], uint32_t who, unsigned number, bool *ret_is_own)
{
	struct fused_scratch *own = fused_of(&part[number]);
	unsigned owner = own->direct ? number : fused_owner(part, who, number);

	*ret_is_own = owner == number;
	if (own->direct)
		return 0;
	fused_of(&part[owner])->behind |= UINT32_C(1) << number;
	if (owner != number)
		return 0;
	return picture_make(&own->steps->buffer[0], own->plan.frame.height, own->plan.frame.width,
			    &own->branch.picture);
}

static struct fuse_sink fused_sink(const struct engine_part *part)
{
	struct fused_scratch *scratch = fused_of(part);

	return (struct fuse_sink){
	    .plan = &scratch->plan,
	    .finish = scratch->direct ? &((const struct steps *)part->program)->finish : NULL,
	    .out = part->out,
	    .picture = &scratch->branch.picture,
	};
}

/* A pass for the lowest of `left` and for all that can share it. The others are returned. */
static uint32_t fused_gather(struct engine_part part[], uint32_t left)
{
	struct fuse_fan *fan = &fused_of(&part[__builtin_ctz(left)])->rows.fan;
	struct fuse_sink sink = fused_sink(&part[__builtin_ctz(left)]);
	uint32_t others = left & (left - 1);

	fuse_fan_start(fan, &sink);
	for (left = others; left; left &= left - 1) {
		sink = fused_sink(&part[__builtin_ctz(left)]);
		if (fuse_fan_add(fan, &sink))
			others &= ~(left & -left);
	}
	return others;
}

static int fused_passes(struct engine_part part[], uint32_t who)
{
	uint32_t sinks = 0;
	int r = 0;

	for (uint32_t left = who; left && r == 0; left &= left - 1) {
		bool is_own;

		r = fused_target(part, who, (unsigned)__builtin_ctz(left), &is_own);
		if (is_own)
			sinks |= left & -left;
	}
	while (sinks && r == 0) {
		struct engine_part *first = &part[__builtin_ctz(sinks)];

		sinks = fused_gather(part, sinks);
		r = fuse_rows_begin_fan(&fused_of(first)->rows);
		first->need.box = fused_of(first)->rows.box;
	}
	return r;
}

static int engine_fused_begin(struct engine_part part[], uint32_t who,
			      const struct pipeline_key *key, const struct decode_about *about,
			      struct pipeline_error *ret_error)
{
	int r;

	for (uint32_t left = who; left; left &= left - 1)
		fused_plan(&part[__builtin_ctz(left)], key, about);
	r = fused_passes(part, who);
	if (r != 0)
		return decode_fail(ret_error, (enum pipeline_fail)r, 0,
				   "no room for %u x %u pixels", about->width, about->height);
	return 0;
}

/* ---- going on ---- */

static void engine_fused_feed(struct engine_part *part, const struct decode_band *band)
{
	fuse_rows_feed(&fused_of(part)->rows, band);
}

static int engine_fused_end(struct engine_part part[], uint32_t who,
			    struct pipeline_error *ret_error)
{
	struct branch *branch[PIPELINE_MAX_PARTS];
	unsigned failed = UINT_MAX;
	uint32_t all = who;

	for (uint32_t left = who; left; left &= left - 1)
		branch[__builtin_ctz(left)] = &fused_of(&part[__builtin_ctz(left)])->branch;
	for (; who; who &= who - 1) {
		struct engine_part *own = &part[__builtin_ctz(who)];
		const struct steps *steps = (const struct steps *)own->program;
		const struct fused_scratch *scratch = fused_of(own);

		own->work.passes += own->need.box.height > 0;
		if (scratch->direct) {
			finish_end(&steps->finish);
			steps_finished(steps, &scratch->draw, own->out);
		} else if (scratch->behind) {
			branch_run(branch, scratch->behind, scratch->plan.next, &failed, ret_error);
		}
	}
	for (; all; all &= all - 1) {
		part[__builtin_ctz(all)].height = branch[__builtin_ctz(all)]->height;
		part[__builtin_ctz(all)].width = branch[__builtin_ctz(all)]->width;
	}
	return failed == UINT_MAX ? 0 : PIPELINE_E_BAD;
}

static void engine_fused_trim(struct engine_part *part)
{
	struct fused_scratch *scratch = fused_of(part);

	steps_trim(scratch->steps);
	fuse_rows_trim(&scratch->rows);
}

static int engine_fused_run(const struct engine_program *program, struct engine_scratch *scratch,
			    const void *data, size_t size, const struct pipeline_key *key,
			    void *out, struct pipeline_error *ret_error)
{
	struct engine_part part = {.program = program, .scratch = scratch, .out = out};

	return drive_sample(&engine_fused, ((struct fused_scratch *)scratch)->steps->decode, &part,
			    1, data, size, key, ret_error);
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
