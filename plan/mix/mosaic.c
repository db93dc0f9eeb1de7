/* SPDX-License-Identifier: Apache-2.0 */

/* What mosaic draws for a picture, and where it puts what is seen on the four. */

#include "plan/mix/mosaic.h"

#include <math.h>

#include "base/philox.h"

#define MOSAIC_DOMAIN UINT64_C(0x6f616d6f73616963)

static bool mosaic_is_pair(const double pair[2], double least, double most)
{
	return pair[0] >= least && pair[0] <= pair[1] && pair[1] <= most;
}

bool mosaic_is_good(const struct mosaic_ask *ask)
{
	return ask->p >= 0 && ask->p <= 1 && mosaic_is_pair(ask->center, 0, 2) &&
	       mosaic_is_pair(ask->scale, MOSAIC_LEAST_SCALE, MOSAIC_MOST_SCALE) &&
	       ask->min_size >= 0 && ask->min_visibility >= 0 && ask->min_visibility <= 1;
}

/* ---- draws ---- */

static double mosaic_between(struct philox_seq *seq, const double pair[2])
{
	return pair[0] + (pair[1] - pair[0]) * philox_unit(seq);
}

/* Three others of the batch, all different; of a batch of fewer than four, any. */
static void mosaic_draw_others(struct philox_seq *seq, uint32_t number, uint32_t count,
			       uint32_t from[MOSAIC_TILES])
{
	from[0] = number;
	for (unsigned i = 1; i < MOSAIC_TILES; i++) {
		bool is_new;

		do {
			from[i] = (uint32_t)philox_below(seq, count);
			is_new = true;
			for (unsigned k = 0; k < i; k++)
				is_new &= from[k] != from[i];
		} while (!is_new && count >= MOSAIC_TILES);
	}
}

struct mosaic mosaic_draw(const struct mosaic_ask *ask, const struct batch_mix_key *key,
			  uint32_t number, uint32_t count, uint32_t height, uint32_t width)
{
	struct philox first =
	    philox_block(key->seed ^ MOSAIC_DOMAIN, key->nonce, (uint64_t)key->sample);
	struct mosaic mosaic = {.from = {number}, .height = height, .width = width, .scale = 1};
	struct philox_seq seq;

	if (ask->epochs && key->epoch >= ask->epochs)
		return mosaic;
	philox_seq_init(&seq, philox_half(&first, 0), philox_half(&first, 1) + key->epoch, number);
	mosaic.is_done = philox_unit(&seq) < ask->p;
	if (!mosaic.is_done)
		return mosaic;
	mosaic.center_y = (uint32_t)(mosaic_between(&seq, ask->center) * height);
	mosaic.center_x = (uint32_t)(mosaic_between(&seq, ask->center) * width);
	mosaic.scale = mosaic_between(&seq, ask->scale);
	mosaic_draw_others(&seq, number, count, mosaic.from);
	return mosaic;
}

/* ---- boxes and points ---- */

struct mosaic_axis {        /* of a picture on the canvas: down or across */
	double shift;       /* where it begins */
	double side, scale; /* of a picture */
	float least, most;  /* where it is seen in the result */
};

static double mosaic_map(const struct mosaic_axis *axis, double at)
{
	return (at + axis->shift - axis->side) * axis->scale + floor(axis->side / 2);
}

static float mosaic_within(const struct mosaic_axis *axis, double at)
{
	return (float)fmin(fmax(at, 0), axis->side);
}

static struct mosaic_axis mosaic_axis(uint32_t side, uint32_t center, double scale, bool is_second)
{
	struct mosaic_axis axis = {.side = side, .scale = scale};

	axis.shift = is_second ? center : (double)center - side;
	axis.least = mosaic_within(&axis, mosaic_map(&axis, fmax(-axis.shift, 0)));
	axis.most =
	    mosaic_within(&axis, mosaic_map(&axis, fmin(2 * axis.side - axis.shift, axis.side)));
	return axis;
}

static struct mosaic_axis mosaic_across(const struct mosaic *mosaic, unsigned tile)
{
	return mosaic_axis(mosaic->width, mosaic->center_x, mosaic->scale, tile & 1);
}

static struct mosaic_axis mosaic_down(const struct mosaic *mosaic, unsigned tile)
{
	return mosaic_axis(mosaic->height, mosaic->center_y, mosaic->scale, tile >> 1);
}

static float mosaic_cut(const struct mosaic_axis *axis, float at)
{
	const float to = (float)mosaic_map(axis, at);

	return to < axis->least ? axis->least : to > axis->most ? axis->most : to;
}

bool mosaic_box(const struct mosaic_ask *ask, const struct mosaic *mosaic, unsigned tile,
		const float box[4], float ret[4])
{
	const struct mosaic_axis across = mosaic_across(mosaic, tile),
				 down = mosaic_down(mosaic, tile);
	double width, height, area;

	for (unsigned k = 0; k < 4; k++)
		ret[k] = mosaic_cut(k & 1 ? &down : &across, box[k]);
	width = (double)ret[2] - ret[0];
	height = (double)ret[3] - ret[1];
	area =
	    ((double)box[2] - box[0]) * ((double)box[3] - box[1]) * mosaic->scale * mosaic->scale;
	return width > 0 && height > 0 && width >= ask->min_size && height >= ask->min_size &&
	       width * height >= ask->min_visibility * area;
}

static bool mosaic_is_seen(const struct mosaic_axis *axis, float at)
{
	return at >= axis->least && at <= axis->most;
}

void mosaic_point(const struct mosaic *mosaic, unsigned tile, const float point[3], float ret[3])
{
	const struct mosaic_axis across = mosaic_across(mosaic, tile),
				 down = mosaic_down(mosaic, tile);

	ret[0] = (float)mosaic_map(&across, point[0]);
	ret[1] = (float)mosaic_map(&down, point[1]);
	ret[2] = mosaic_is_seen(&across, ret[0]) && mosaic_is_seen(&down, ret[1]) ? point[2] : 0;
}
