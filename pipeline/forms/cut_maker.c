/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture behind a cut, made as the fused engine makes it: one pass of rows for as many ops as one
 * step can do, straight into the form's planes where those are all; else into a picture, which the other ops
 * work on before it is taken apart.
 *
 * The size is known before the first pixel, or before they are taken apart; a form that does not fit
 * its room is not begun.
 */

#include "pipeline/engine/fuse_plan.h"
#include "pipeline/engine/fuse_rows.h"
#include "pipeline/engine/steps.h"
#include "pipeline/forms/cut_maker.h"
#include "pipeline/ops/apply.h"

struct cut_maker {
	struct steps_scratch *scratch; /* owned */
	struct fuse_rows rows;
	struct finish finish; /* to planes */
	/* of the picture under way */
	struct fuse_plan plan;
	struct draw draw;
	struct picture picture;
};

int cut_maker_new(bool by_exif, struct cut_maker **ret)
{
	const struct shape planes = {.channels = 3, .dtype = PIPELINE_U8, .order = OP_CHW};
	struct cut_maker *maker = calloc(1, sizeof(*maker));

	if (!maker || steps_scratch_new(&maker->scratch) != 0) {
		free(maker);
		return -ENOMEM;
	}
	if (by_exif)
		decode_by_exif(maker->scratch->decode);
	finish_init(&maker->finish, &planes);
	*ret = maker;
	return 0;
}

void cut_maker_free(struct cut_maker *maker)
{
	if (!maker)
		return;
	steps_scratch_free(maker->scratch);
	fuse_rows_fini(&maker->rows);
	free(maker);
}

/* The picture's size is known: does the form fit? */
static int cut_maker_fit(struct cut *cut, uint32_t height, uint32_t width, struct cut_room *room)
{
	const uint64_t bytes = cut_bytes(height, width, 3);

	cut->height = height;
	cut->width = width;
	room->needed = bytes;
	return bytes <= room->size ? 0 : PIPELINE_E_ROOM;
}

static int cut_maker_no_room(const struct decode_about *about, int r,
			     struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, (enum pipeline_fail)r, 0, "no room for %u x %u pixels",
			   about->width, about->height);
}

/* Plans the pass for the open picture, and begins it. */
static int cut_maker_begin(struct cut_maker *maker, const struct op_list *ops, struct cut *cut,
			   struct cut_room *room, struct pipeline_error *ret_error)
{
	struct fuse_plan *plan = &maker->plan;
	struct decode_about about;
	struct reduce reduce;
	struct fuse_sink sink = {.plan = plan};
	int r = 0;

	decode_tell(maker->scratch->decode, &about);
	fuse_plan_make(ops, about.done, cut->ops, &maker->draw, about.height, about.width, plan);
	reduce_choose(ops, &maker->draw, &about, &reduce);
	if (reduce.shift > 0)
		fuse_plan_reduce(plan, &reduce);
	maker->scratch->at = 0;
	if (plan->next == cut->ops) {
		r = cut_maker_fit(cut, plan->frame.height, plan->frame.width, room);
		if (r != 0)
			return r;
		sink.finish = &maker->finish;
		sink.out = cut_pixels(room->form);
	} else {
		r = picture_make(&maker->scratch->buffer[0], plan->frame.height, plan->frame.width,
				 &maker->picture);
		sink.picture = &maker->picture;
	}
	r = r ? r : fuse_rows_begin(&maker->rows, &sink);
	return r == 0 ? 0 : cut_maker_no_room(&about, r, ret_error);
}

/* The pass. As decode_band_next. */
static int cut_maker_pass(struct cut_maker *maker, struct pipeline_error *ret_error)
{
	const struct picture_box *box = &maker->rows.box;
	struct decode *decode = maker->scratch->decode;
	struct decode_band band = {.rows = 0};
	int r;

	decode_reduce(decode, maker->plan.shift);
	r = decode_band_start(decode, box, ret_error);
	for (uint32_t y = 0; r == 0 && y < box->height; y += band.rows) {
		r = decode_band_next(decode, &band, ret_error);
		if (r == 0)
			fuse_rows_feed(&maker->rows, &band);
	}
	return r;
}

/* The ops behind the pass, on the picture, which is then taken apart. */
static int cut_maker_rest(struct cut_maker *maker, const struct op_list *ops, struct cut *cut,
			  struct cut_room *room, struct pipeline_error *ret_error)
{
	struct picture *picture = &maker->picture;
	int r = 0;

	for (unsigned i = maker->plan.next; r == 0 && i < cut->ops; i++) {
		struct op_drawn drawn;

		if (apply_skips(ops, i, &maker->draw))
			continue;
		op_draw(&ops->op[i], i, &maker->draw, picture->height, picture->width, &drawn);
		r = steps_op(maker->scratch, &ops->op[i], &drawn, picture, ret_error);
	}
	r = r ? r : cut_maker_fit(cut, picture->height, picture->width, room);
	if (r == 0)
		finish_run(&maker->finish, picture, cut_pixels(room->form));
	return r;
}

static unsigned cut_maker_planes(const struct cut *cut, const uint8_t *pixels)
{
	const size_t plane = (size_t)cut->height * cut->width;

	return memcmp(pixels, pixels + plane, plane) == 0 &&
		       memcmp(pixels, pixels + 2 * plane, plane) == 0
		   ? 1
		   : 3;
}

/* Of an open picture: its pixels, where they are to stand. */
static int cut_maker_pixels(struct cut_maker *maker, const struct op_list *ops, struct cut *cut,
			    struct cut_room *room, struct pipeline_error *ret_error)
{
	int r;

	do {
		r = cut_maker_begin(maker, ops, cut, room, ret_error);
		r = r ? r : cut_maker_pass(maker, ret_error);
	} while (r == DECODE_E_AGAIN);
	if (r == 0 && maker->plan.next < cut->ops)
		r = cut_maker_rest(maker, ops, cut, room, ret_error);
	return r;
}

int cut_maker_run(struct cut_maker *maker, const struct op_list *ops, const void *data, size_t size,
		  const struct pipeline_key *key, struct cut *cut, struct cut_room *room,
		  struct pipeline_error *ret_error)
{
	struct decode *decode = maker->scratch->decode;
	struct cut kept;
	int r = decode_open(decode, data, size, &cut->source_height, &cut->source_width, ret_error);

	draw_init(&maker->draw, key);
	if (r == 0 && cut_read(data, size, &kept) == 0) {
		cut->source_height = kept.source_height;
		cut->source_width = kept.source_width;
	}
	r = r ? r : cut_maker_pixels(maker, ops, cut, room, ret_error);
	steps_trim(maker->scratch);
	fuse_rows_trim(&maker->rows);
	if (r != 0)
		return r;
	finish_end(&maker->finish);
	cut->planes = cut_maker_planes(cut, cut_pixels(room->form));
	room->needed = cut_bytes(cut->height, cut->width, cut->planes);
	cut_write(cut, room->form);
	return 0;
}
