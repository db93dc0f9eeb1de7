/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the rows of a pass go: to one sink, or to several.
 *
 * Plans that resize the same part of a picture to the same size differ only in what they show of it:
 * a window, turned or not, with black around. A pixel of the resized part is the same in whatever
 * window it is made. So the window around all is made once, and here, while its rows are in the
 * cache, each sink takes its own part of them to its field, with its own type and order, or to the
 * picture that further ops work on. Which ops the plans came from does not matter.
 *
 * One pass costs as much as its window is large. Small windows far from each other (of random crops)
 * are better made each by itself, so a sink is taken in only where the window around all is not
 * larger than the windows were.
 */

#include "pipeline/engine/fuse_fan.h"

void fuse_fan_fini(struct fuse_fan *fan)
{
	picture_buffer_fini(&fan->room);
}

/* ---- who is in it ---- */

static uint64_t fuse_fan_area(const struct picture_box *box)
{
	return (uint64_t)box->height * box->width;
}

static bool fuse_fan_has_planes(const struct fuse_sink *sink)
{
	return sink->finish && sink->finish->order == OP_CHW;
}

void fuse_fan_start(struct fuse_fan *fan, const struct fuse_sink *sink)
{
	const struct picture_box *window = &sink->plan->window;

	fan->n = 1;
	fan->sink[0] = *sink;
	fan->plan = *sink->plan;
	fan->plan.turned = false;
	fan->plan.frame = (struct fuse_size){window->height, window->width};
	fan->plan.top = fan->plan.left = 0;
	fan->has_planes = fuse_fan_has_planes(sink);
}

/* Do both show parts of the same? */
static bool fuse_fan_is_same(const struct fuse_plan *a, const struct fuse_plan *b)
{
	return a->shift == b->shift && memcmp(&a->source, &b->source, sizeof(a->source)) == 0 &&
	       memcmp(&a->cut, &b->cut, sizeof(a->cut)) == 0 && a->resized == b->resized &&
	       (!a->resized || a->filter == b->filter) && a->to.height == b->to.height &&
	       a->to.width == b->to.width;
}

bool fuse_fan_add(struct fuse_fan *fan, const struct fuse_sink *sink)
{
	const struct picture_box *window = &sink->plan->window;
	struct picture_box around = picture_around(&fan->plan.window, window);

	if (!fuse_fan_is_same(&fan->plan, sink->plan) ||
	    fuse_fan_area(&around) > fuse_fan_area(&fan->plan.window) + fuse_fan_area(window))
		return false;
	fan->sink[fan->n++] = *sink;
	fan->plan.window = around;
	fan->plan.frame = (struct fuse_size){around.height, around.width};
	fan->has_planes = fan->has_planes && fuse_fan_has_planes(sink);
	return true;
}

/* ---- where rows go ---- */

/* One row of one channel, as wide as the sink's frame, to row y of it. */
static void fuse_fan_put_plane(const struct fuse_sink *sink, unsigned c, const uint8_t *from,
			       uint32_t y)
{
	const struct fuse_size *frame = &sink->plan->frame;
	const size_t row = (size_t)frame->width * finish_value_bytes(sink->finish->dtype);

	finish_plane(sink->finish, c, from, frame->width,
		     (uint8_t *)sink->out + ((size_t)c * frame->height + y) * row);
}

static void fuse_fan_put_pixels(const struct fuse_fan *fan, const struct fuse_sink *sink,
				const uint8_t *const from[3], uint32_t y)
{
	const size_t n = sink->plan->frame.width;

	if (sink->finish)
		finish_pixels(sink->finish, from, n, fan->scratch,
			      (uint8_t *)sink->out +
				  y * n * 3 * finish_value_bytes(sink->finish->dtype));
	else
		finish_join(from, n, picture_row(sink->picture, y));
}

static void fuse_fan_put_black(const struct fuse_fan *fan, const struct fuse_sink *sink, uint32_t y,
			       uint32_t n)
{
	const uint8_t *const black[3] = {fan->row[0], fan->row[0], fan->row[0]};

	if (n > 0)
		memset(fan->row[0], 0, sink->plan->frame.width);
	for (unsigned c = 0; c < 3 && fuse_fan_has_planes(sink); c++) {
		for (uint32_t i = 0; i < n; i++)
			fuse_fan_put_plane(sink, c, black[c], y + i);
	}
	for (uint32_t i = 0; i < n && !fuse_fan_has_planes(sink); i++)
		fuse_fan_put_pixels(fan, sink, black, y + i);
}

int fuse_fan_begin(struct fuse_fan *fan)
{
	uint32_t widest = 0;
	size_t stride;
	uint8_t *at;

	for (unsigned i = 0; i < fan->n; i++)
		widest = BASE_MAX(widest, fan->sink[i].plan->frame.width);
	stride = base_align_up(widest, PLANE_PAD) + 2 * PLANE_PAD;
	at = picture_bytes(&fan->room, 6 * stride);
	if (!at)
		return PIPELINE_FAIL_MEMORY;
	for (unsigned c = 0; c < 3; c++)
		fan->row[c] = at + c * stride + PLANE_PAD;
	fan->scratch = at + 3 * stride;
	fan->kernels = plane_best();
	for (unsigned i = 0; i < fan->n; i++) {
		const struct fuse_plan *plan = fan->sink[i].plan;
		const uint32_t end = plan->top + plan->window.height;

		fuse_fan_put_black(fan, &fan->sink[i], 0, plan->top);
		fuse_fan_put_black(fan, &fan->sink[i], end, plan->frame.height - end);
	}
	return 0;
}

/* ---- what of the rows is a sink's ---- */

bool fuse_fan_place(const struct fuse_fan *fan, const struct fuse_sink *sink, uint32_t y,
		    uint32_t *ret_y)
{
	const struct fuse_plan *plan = sink->plan;
	const uint32_t row = fan->plan.window.top + y;

	if (row < plan->window.top || row - plan->window.top >= plan->window.height)
		return false;
	y = row - plan->window.top;
	*ret_y = plan->top + (plan->turned ? plan->window.height - 1 - y : y);
	return true;
}

/* The sink's part of a row, as wide as its frame: as it stands there, or made in `room`. */
static const uint8_t *fuse_fan_cut(const struct fuse_fan *fan, const struct fuse_sink *sink,
				   const uint8_t *from, uint8_t *room)
{
	const struct fuse_plan *plan = sink->plan;
	const uint32_t width = plan->window.width, end = plan->left + width;
	uint32_t at = plan->window.left - fan->plan.window.left;

	if (fan->plan.mirrored)
		at = fan->plan.window.width - width - at;
	if (plan->mirrored == fan->plan.mirrored && width == plan->frame.width)
		return from + at;
	memset(room, 0, plan->left);
	if (plan->mirrored == fan->plan.mirrored)
		memcpy(room + plan->left, from + at, width);
	else
		fan->kernels->mirror(from + at, width, room + plan->left);
	memset(room + end, 0, plan->frame.width - end);
	return room;
}

static void fuse_fan_plane_of(const struct fuse_fan *fan, const struct fuse_sink *sink, unsigned c,
			      const uint8_t *const from[], uint32_t y, uint32_t n)
{
	uint32_t to;

	for (uint32_t i = 0; i < n; i++) {
		if (fuse_fan_place(fan, sink, y + i, &to))
			fuse_fan_put_plane(sink, c, fuse_fan_cut(fan, sink, from[i], fan->row[0]),
					   to);
	}
}

static void fuse_fan_pixels_of(const struct fuse_fan *fan, const struct fuse_sink *sink,
			       const uint8_t *const *const from[3], uint32_t y, uint32_t n)
{
	const uint8_t *row[3];
	uint32_t to;

	for (uint32_t i = 0; i < n; i++) {
		if (!fuse_fan_place(fan, sink, y + i, &to))
			continue;
		for (unsigned c = 0; c < 3; c++)
			row[c] = fuse_fan_cut(fan, sink, from[c][i], fan->row[c]);
		fuse_fan_put_pixels(fan, sink, row, to);
	}
}

void fuse_fan_plane(const struct fuse_fan *fan, unsigned c, const uint8_t *const from[], uint32_t y,
		    uint32_t n)
{
	for (unsigned i = 0; i < fan->n; i++)
		fuse_fan_plane_of(fan, &fan->sink[i], c, from, y, n);
}

void fuse_fan_rows(const struct fuse_fan *fan, const uint8_t *const *const from[3], uint32_t y,
		   uint32_t n)
{
	for (unsigned i = 0; i < fan->n; i++) {
		const struct fuse_sink *sink = &fan->sink[i];

		for (unsigned c = 0; c < 3 && fuse_fan_has_planes(sink); c++)
			fuse_fan_plane_of(fan, sink, c, from[c], y, n);
		if (!fuse_fan_has_planes(sink))
			fuse_fan_pixels_of(fan, sink, from, y, n);
	}
}
