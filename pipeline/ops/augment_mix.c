/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of changes, mixed (augment_mix.h).
 *
 * The picture is kept beside the scratch's two buffers, in which the changes work, and so are the sums. Each chain begins with a copy.
 */

#include "pipeline/ops/augment_mix.h"

#include <math.h>

#include "base/exact.h"

#define AUGMENT_MIX_DRAWN_DEPTH 3
#define AUGMENT_MIX_SHARES 16

struct augment_mix augment_mix_plan(double chains, double chain_depth, unsigned numbers)
{
	const bool is_deep = chain_depth >= 1;

	return (struct augment_mix){.chains = (unsigned)chains,
				    .depth =
					is_deep ? (unsigned)chain_depth : AUGMENT_MIX_DRAWN_DEPTH,
				    .numbers = numbers,
				    .is_deep = is_deep};
}

const char *augment_mix_check(const struct augment_mix *mix)
{
	return augment_mix_at(mix, mix->chains, 0) <= OP_MAX_DRAWN
		   ? NULL
		   : "so many changes of one picture are not there; give fewer chains or less "
		     "depth";
}

/* By logarithms, as small alphas give draws that are no doubles. */
void augment_mix_shares(struct philox_seq *seq, double alpha, unsigned n, float *ret)
{
	double value[AUGMENT_MIX_SHARES], most = -INFINITY, sum = 0;

	for (unsigned i = 0; i < n; i++) {
		value[i] = philox_log_gamma(seq, alpha);
		most = BASE_MAX(most, value[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		value[i] = value[i] - most < -700 ? 0 : exact_exp(value[i] - most);
		sum += value[i];
	}
	for (unsigned i = 0; i < n; i++)
		ret[i] = (float)(value[i] / sum);
}

unsigned augment_mix_depth(const struct augment_mix *mix, struct philox_seq *seq)
{
	return mix->is_deep ? mix->depth : (unsigned)draw_integer(seq, 1, mix->depth);
}

unsigned augment_mix_at(const struct augment_mix *mix, unsigned chain, unsigned i)
{
	return 1 + mix->chains + (chain * mix->depth + i) * mix->numbers;
}

/* ---- pixels ---- */

struct augment_mix_room {
	struct picture picture; /* as it was */
	float *sum;
	size_t row; /* values of one, the fourth of a pixel among them */
};

static bool augment_mix_keep(struct augment_mix_room *room, struct steps_scratch *scratch,
			     const struct picture *picture)
{
	const size_t row = (size_t)picture->width * 4, bytes = row * picture->height;

	room->sum = steps_keep(scratch, bytes * (sizeof(float) + 1));
	if (!room->sum)
		return false;
	room->row = row;
	room->picture = *picture;
	room->picture.data = (uint8_t *)(room->sum + bytes);
	room->picture.stride = row;
	for (uint32_t y = 0; y < picture->height; y++)
		memcpy(picture_row(&room->picture, y), picture_row(picture, y), row);
	return true;
}

static void augment_mix_copy(const struct picture *from, const struct picture *to)
{
	for (uint32_t y = 0; y < to->height; y++)
		memcpy(picture_row(to, y), picture_row(from, y), (size_t)to->width * 4);
}

static void augment_mix_add(const struct augment_mix_room *room, float weight,
			    const struct picture *picture, bool is_first)
{
	for (uint32_t y = 0; y < picture->height; y++) {
		const uint8_t *row = picture_row(picture, y);
		float *sum = room->sum + y * room->row;

		for (size_t i = 0; i < room->row; i++)
			sum[i] = (is_first ? 0 : sum[i]) + weight * row[i];
	}
}

static void augment_mix_end(const struct augment_mix_room *room, const float *last,
			    const struct picture *to)
{
	for (uint32_t y = 0; y < to->height; y++) {
		const uint8_t *from = picture_row(&room->picture, y);
		const float *sum = room->sum + y * room->row;
		uint8_t *row = picture_row(to, y);

		for (size_t i = 0; i < room->row; i++) {
			const uint8_t mixed = (uint8_t)BASE_MIN(sum[i], 255.0f);

			row[i] = last ? (uint8_t)((float)from[i] +
						  *last * (float)((int)mixed - (int)from[i]))
				      : mixed;
		}
	}
}

static int augment_mix_chain(const struct augment_mix *mix, unsigned chain,
			     struct steps_scratch *scratch, const struct op *op,
			     const struct op_drawn *drawn, augment_mix_fn *change,
			     struct picture *picture)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < mix->depth; i++) {
		const double *number = drawn->number + augment_mix_at(mix, chain, i);

		if (number[0] != 0)
			r = change(scratch, op, number, picture);
	}
	return r;
}

int augment_mix_run(const struct augment_mix *mix, struct steps_scratch *scratch,
		    const struct op *op, const struct op_drawn *drawn, augment_mix_fn *change,
		    float first, const float *last, struct picture *picture)
{
	struct augment_mix_room room;
	struct picture made = *picture;
	int r = 0;

	if (!augment_mix_keep(&room, scratch, picture))
		return PIPELINE_FAIL_MEMORY;
	augment_mix_add(&room, first, picture, true);
	for (unsigned chain = 0; r == 0 && chain < mix->chains; chain++) {
		if (chain > 0) {
			r = picture_make(&scratch->buffer[scratch->at], room.picture.height,
					 room.picture.width, &made);
			if (r != 0)
				return r;
			augment_mix_copy(&room.picture, &made);
		}
		r = augment_mix_chain(mix, chain, scratch, op, drawn, change, &made);
		if (r == 0)
			augment_mix_add(&room, (float)drawn->number[1 + chain], &made, false);
	}
	if (r != 0)
		return r;
	augment_mix_end(&room, last, &made);
	*picture = made;
	return 0;
}
