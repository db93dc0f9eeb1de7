/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over rows while they are in the cache.
 *
 * Rows come from the decoder in bands of planes. Where the height changes they go, two by two, into a ring of pairs (the row kernel's own form, resized
 * along the row already, or just the rows where the width stays or where Pillow would resize the
 * height first), from which the rows that have all their taps are made. Else they are made directly
 * of the band. What is made stands in a tile of a few rows, from where
 * it goes to the field, normalized and cast, or to a picture for the ops behind.
 *
 * FUSE_ROWS_STEP rows go in and what can be made of them comes out: rows enough that what is found
 * out for each step costs little, and few enough for the first cache. Planes are done one after
 * another, as the last step stores floats past the cache, where several streams at a time are slow;
 * and there the machine may have the column pass and the last step as one (fuse_kernels.h). Where the
 * field has the channels in turn, or pixels are wanted, the tiles of all three are made first.
 *
 * Where the rows go, and the black around them, is fuse_fan.c's: several may want the same part.
 *
 * Nothing here can fail once begun: what memory there must be is known from the plan.
 */

#include "pipeline/engine/fuse_rows.h"
#include "pipeline/ops/resize.h"

#define FUSE_ROWS_STEP 16 /* rows at a time, that come and that are made */
#define FUSE_ROWS_ALIGN 64
#define FUSE_ROWS_KEEP ((size_t)16 << 20)

void fuse_rows_fini(struct fuse_rows *rows)
{
	plane_cache_fini(&rows->across_cache);
	plane_cache_fini(&rows->down_cache);
	fuse_fan_fini(&rows->fan);
	picture_buffer_fini(&rows->room);
}

void fuse_rows_trim(struct fuse_rows *rows)
{
	plane_cache_trim(&rows->across_cache);
	plane_cache_trim(&rows->down_cache);
	if (rows->room.size > FUSE_ROWS_KEEP)
		picture_buffer_fini(&rows->room);
}

/* ---- memory and tables ---- */

/* The tables of the axes that change, and what they need of the picture. */
static int fuse_rows_get_tables(struct fuse_rows *rows)
{
	const struct fuse_plan *plan = &rows->fan.plan;
	const struct picture_box *window = &plan->window, *source = &plan->source;
	const struct plane_want across = {rows->kernels->across_form,
					  plan->filter,
					  source->width,
					  plan->to.width,
					  window->left,
					  window->width,
					  plan->mirrored,
					  plan->cut.across};
	const struct plane_want down = {PLANE_DOWN,      plan->filter,  source->height,
					plan->to.height, window->top,   window->height,
					false,           plan->cut.down};

	rows->across = rows->down = NULL;
	rows->box = (struct picture_box){source->top + window->top, source->left + window->left,
					 window->height, window->width};
	if (plan->resized && (across.in != across.out || filter_is_cut(across.cut))) {
		rows->across = plane_cache_get(&rows->across_cache, &across);
		if (!rows->across)
			return PIPELINE_FAIL_MEMORY;
		rows->box.left = source->left + rows->across->low;
		rows->box.width = rows->across->high - rows->across->low;
	}
	if (plan->resized && (down.in != down.out || filter_is_cut(down.cut))) {
		rows->down = plane_cache_get(&rows->down_cache, &down);
		if (!rows->down)
			return PIPELINE_FAIL_MEMORY;
		rows->box.top = source->top + rows->down->low;
		rows->box.height = rows->down->high - rows->down->low;
	}
	rows->down_first =
	    rows->across && rows->down &&
	    resize_down_first(source->height, source->width, plan->to.height, plan->to.width);
	return 0;
}

/* n rows of that many bytes with their pads, from *at on; *at goes behind them. */
static uint8_t *fuse_rows_take(uint8_t **at, size_t stride, size_t n)
{
	uint8_t *taken = *at + PLANE_PAD;

	*at += stride * n + PLANE_PAD;
	return taken;
}

static size_t fuse_rows_stride(size_t bytes)
{
	return base_align_up(bytes, FUSE_ROWS_ALIGN) + PLANE_PAD;
}

/* Where the pairs of plane c stand, twice over: so those of one output are always side by side. */
static void fuse_rows_number(struct fuse_rows *rows, unsigned c, const uint8_t **pair)
{
	rows->pair[c] = pair;
	for (uint32_t i = 0; i < 2 * rows->slots; i++)
		pair[i] = rows->ring[c] + (i & (rows->slots - 1)) * rows->ring_stride;
}

static int fuse_rows_get_room(struct fuse_rows *rows)
{
	const struct fuse_plan *plan = &rows->fan.plan;
	const size_t held = fuse_rows_stride(rows->box.width);
	const size_t width =
	    rows->down_first || !rows->across ? rows->box.width : plan->window.width;
	const size_t widest = BASE_MAX(width, plan->frame.width);
	const size_t temporary = fuse_rows_stride(3 * widest);
	size_t pairs;
	uint8_t *at;

	rows->slots = 1;
	while (rows->down && rows->slots < rows->down->taps / 2 + FUSE_ROWS_STEP / 2 + 1)
		rows->slots *= 2;
	rows->ring_stride = fuse_rows_stride(2 * width);
	rows->tile_stride = fuse_rows_stride(plan->frame.width);
	pairs = base_align_up(2 * rows->slots * sizeof(*rows->pair[0]), FUSE_ROWS_ALIGN);
	at = picture_bytes(&rows->room,
			   3 * (pairs + held + temporary + rows->slots * rows->ring_stride +
				FUSE_ROWS_STEP * rows->tile_stride + 4 * PLANE_PAD));
	if (!at)
		return PIPELINE_FAIL_MEMORY;
	at += 3 * pairs;
	for (unsigned c = 0; c < 3; c++) {
		rows->held[c] = fuse_rows_take(&at, held, 1);
		rows->temporary[c] = fuse_rows_take(&at, temporary, 1);
		rows->tile[c] = fuse_rows_take(&at, rows->tile_stride, FUSE_ROWS_STEP);
		rows->ring[c] = fuse_rows_take(&at, rows->ring_stride, rows->slots);
		fuse_rows_number(rows, c, (const uint8_t **)(rows->room.memory + c * pairs));
	}
	return 0;
}

/* ---- beginning ---- */

/* Are the window's rows those of the one sink's field, and made by the column pass as they are? */
static bool fuse_rows_is_fused(const struct fuse_rows *rows)
{
	const struct fuse_plan *plan = rows->fan.sink[0].plan;

	return rows->fan.n == 1 && rows->fan.has_planes && rows->down && !rows->down_first &&
	       (rows->across || !plan->mirrored) && plan->frame.width == plan->window.width;
}

int fuse_rows_begin_fan(struct fuse_rows *rows)
{
	int r;

	rows->kernels = plane_best();
	rows->fed = rows->made = 0;
	r = fuse_rows_get_tables(rows);
	r = r ? r : fuse_rows_get_room(rows);
	if (r != 0)
		return r;
	rows->fused = fuse_rows_is_fused(rows) ? fuse_avx2(rows->fan.sink[0].finish) : NULL;
	return fuse_fan_begin(&rows->fan);
}

int fuse_rows_begin(struct fuse_rows *rows, const struct fuse_sink *sink)
{
	fuse_fan_start(&rows->fan, sink);
	return fuse_rows_begin_fan(rows);
}

/* ---- the ring ---- */

/* Two rows of plane c, or one twice, as pair number `pair`. */
static void fuse_rows_keep_pair(const struct fuse_rows *rows, unsigned c, uint32_t pair,
				const uint8_t *a, const uint8_t *b)
{
	uint8_t *to = rows->ring[c] + (pair & (rows->slots - 1)) * rows->ring_stride;

	if (rows->across && !rows->down_first)
		rows->kernels->across(rows->across, a, b, to);
	else
		rows->kernels->zip(a, b, rows->box.width, to);
}

/* n rows of plane c, the first of which is row y of box. */
static void fuse_rows_keep(const struct fuse_rows *rows, unsigned c, uint32_t y,
			   const uint8_t *from, size_t stride, uint32_t n)
{
	const uint32_t end = y + n;

	if (y % 2 == 1) {
		fuse_rows_keep_pair(rows, c, y / 2, rows->held[c], from);
		from += stride;
		y++;
	}
	for (; y + 2 <= end; y += 2, from += 2 * stride)
		fuse_rows_keep_pair(rows, c, y / 2, from, from + stride);
	if (y == end)
		return;
	if (end == rows->box.height)
		fuse_rows_keep_pair(rows, c, y / 2, from, from);
	else
		memcpy(rows->held[c], from, rows->box.width);
}

/* How many rows of the window can be made when so many rows of box are there. */
static uint32_t fuse_rows_ready(const struct fuse_rows *rows, uint32_t fed)
{
	const struct plane_table *down = rows->down;
	const uint32_t there = (fed == rows->box.height ? fed + 1 : fed) / 2 * 2;
	uint32_t y = rows->made;

	if (!down)
		return fed;
	while (y < down->want.count && down->first[y] + down->count[y] <= there)
		y++;
	return y;
}

static void fuse_rows_down(const struct fuse_rows *rows, unsigned c, uint32_t y, uint32_t width,
			   uint8_t *to)
{
	const struct plane_table *down = rows->down;
	const uint32_t slot = down->first[y] / 2 & (rows->slots - 1);

	rows->kernels->down(rows->pair[c] + slot, down->count[y] / 2,
			    down->split + 2 * (size_t)y * down->taps, width, to);
}

/* ---- rows of the window ---- */

static uint8_t *fuse_rows_tile(const struct fuse_rows *rows, unsigned c, uint32_t i)
{
	return rows->tile[c] + i * rows->tile_stride;
}

/* Two rows a and b along the row, into rows i and i + 1 of the tile; n rows are wanted. */
static void fuse_rows_across(const struct fuse_rows *rows, unsigned c, uint32_t i, uint32_t n,
			     const uint8_t *a, const uint8_t *b)
{
	rows->kernels->across(rows->across, a, b, rows->temporary[2]);
	rows->kernels->unzip(rows->temporary[2], rows->fan.plan.window.width,
			     fuse_rows_tile(rows, c, i),
			     i + 1 < n ? fuse_rows_tile(rows, c, i + 1) : rows->temporary[0]);
}

/* n rows from row y of the window on, where the height changes. */
static void fuse_rows_make_down(const struct fuse_rows *rows, unsigned c, uint32_t y, uint32_t n)
{
	const uint32_t width = rows->fan.plan.window.width;

	for (uint32_t i = 0; i < n && rows->down_first; i += 2) {
		fuse_rows_down(rows, c, y + i, rows->box.width, rows->temporary[0]);
		fuse_rows_down(rows, c, i + 1 < n ? y + i + 1 : y + i, rows->box.width,
			       rows->temporary[1]);
		fuse_rows_across(rows, c, i, n, rows->temporary[0], rows->temporary[1]);
	}
	for (uint32_t i = 0; i < n && !rows->down_first; i++) {
		bool mirrored = rows->fan.plan.mirrored && !rows->across;
		uint8_t *to = fuse_rows_tile(rows, c, i);

		fuse_rows_down(rows, c, y + i, width, mirrored ? rows->temporary[0] : to);
		if (mirrored)
			rows->kernels->mirror(rows->temporary[0], width, to);
	}
}

/* n rows, where it does not. */
static void fuse_rows_make_same(const struct fuse_rows *rows, unsigned c, const uint8_t *from,
				size_t stride, uint32_t n)
{
	const uint32_t width = rows->fan.plan.window.width;

	for (uint32_t i = 0; i < n && rows->across; i += 2, from += 2 * stride)
		fuse_rows_across(rows, c, i, n, from, i + 1 < n ? from + stride : from);
	for (uint32_t i = 0; i < n && !rows->across; i++, from += stride) {
		if (rows->fan.plan.mirrored)
			rows->kernels->mirror(from, width, fuse_rows_tile(rows, c, i));
		else
			memcpy(fuse_rows_tile(rows, c, i), from, width);
	}
}

/* n rows from row y of the window on; from are the band's rows. */
static void fuse_rows_make(const struct fuse_rows *rows, unsigned c, uint32_t y,
			   const uint8_t *from, size_t stride, uint32_t n,
			   const uint8_t *ret[FUSE_ROWS_STEP])
{
	const bool direct = !rows->down && !rows->across && !rows->fan.plan.mirrored;

	for (uint32_t i = 0; i < n; i++)
		ret[i] = direct ? from + i * stride : fuse_rows_tile(rows, c, i);
	if (direct)
		return;
	if (rows->down)
		fuse_rows_make_down(rows, c, y, n);
	else
		fuse_rows_make_same(rows, c, from, stride, n);
}

/* Rows y to end - 1 of the window into plane c, by both steps at once. */
static void fuse_rows_write_fused(const struct fuse_rows *rows, unsigned c, uint32_t y,
				  uint32_t end)
{
	const struct fuse_sink *sink = &rows->fan.sink[0];
	const struct fuse_size *frame = &sink->plan->frame;
	const size_t row = (size_t)frame->width * finish_value_bytes(sink->finish->dtype);
	uint32_t to;
	struct fuse_down down = {
	    .table = rows->down,
	    .y = y,
	    .end = end,
	    .pair = rows->pair[c],
	    .mask = rows->slots - 1,
	    .finish = sink->finish,
	    .c = c,
	    .width = frame->width,
	    .step = sink->plan->turned ? -(ptrdiff_t)row : (ptrdiff_t)row,
	};

	fuse_fan_place(&rows->fan, sink, y, &to);
	down.out = (uint8_t *)sink->out + ((size_t)c * frame->height + to) * row;
	rows->fused->down(&down);
}

/* Rows y to end - 1 of the window into plane c; from are the band's rows. */
static void fuse_rows_write(const struct fuse_rows *rows, unsigned c, uint32_t y, uint32_t end,
			    const uint8_t *from, size_t stride)
{
	const uint8_t *made[FUSE_ROWS_STEP];

	if (rows->fused && y < end)
		fuse_rows_write_fused(rows, c, y, end);
	for (uint32_t n; !rows->fused && y < end; y += n) {
		n = BASE_MIN(end - y, FUSE_ROWS_STEP);
		fuse_rows_make(rows, c, y, from, stride, n, made);
		fuse_fan_plane(&rows->fan, c, made, y, n);
	}
}

/* A band's planes, each by itself; then so many rows of the window are made. */
static void fuse_rows_planes(const struct fuse_rows *rows, const struct decode_band *band,
			     uint32_t ready)
{
	for (unsigned c = 0; c < 3; c++) {
		if (rows->down)
			fuse_rows_keep(rows, c, rows->fed, band->plane[c], band->stride,
				       band->rows);
		fuse_rows_write(rows, c, rows->made, ready, band->plane[c], band->stride);
	}
}

/* All planes together, where their values go side by side. */
static void fuse_rows_pixels(const struct fuse_rows *rows, const struct decode_band *band,
			     uint32_t ready)
{
	const uint8_t *made[3][FUSE_ROWS_STEP], *const *const all[3] = {made[0], made[1], made[2]};

	for (unsigned c = 0; c < 3 && rows->down; c++)
		fuse_rows_keep(rows, c, rows->fed, band->plane[c], band->stride, band->rows);
	for (uint32_t y = rows->made; y < ready; y += FUSE_ROWS_STEP) {
		uint32_t n = BASE_MIN(ready - y, FUSE_ROWS_STEP);

		for (unsigned c = 0; c < 3; c++)
			fuse_rows_make(rows, c, y, band->plane[c], band->stride, n, made[c]);
		fuse_fan_rows(&rows->fan, all, y, n);
	}
}

void fuse_rows_feed(struct fuse_rows *rows, const struct decode_band *band)
{
	struct decode_band step = *band;
	uint32_t ready;

	for (uint32_t at = 0; at < band->rows; at += step.rows) {
		step.rows = BASE_MIN(band->rows - at, FUSE_ROWS_STEP);
		ready = fuse_rows_ready(rows, rows->fed + step.rows);
		if (rows->fan.has_planes)
			fuse_rows_planes(rows, &step, ready);
		else
			fuse_rows_pixels(rows, &step, ready);
		rows->fed += step.rows;
		rows->made = ready;
		for (unsigned c = 0; c < 3; c++)
			step.plane[c] += step.rows * step.stride;
	}
}
