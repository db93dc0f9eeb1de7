/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed coefficients: a picture's blocks without Huffman codes, each unit by itself.
 *
 *	 0  shift (u16), bits of a DC: 0 for 12, 1 for 8 (u16)
 *	    each row of MCUs: its first byte (u32), then that of each unit from the row's on, in steps of
 *	    1 << shift bytes (u16 each); then the last row's end (u32)
 *	    the units
 *
 * All numbers are little-endian; bytes are counted from the first unit's. Blocks go in pairs, as the inverse DCT takes
 * them: of 4:2:0 and 4:2:2 a unit is a MCU, of two or four blocks of luma side by side, and one of Cb with one of
 * Cr; of others a unit is two MCUs side by side, each component's two blocks a pair. A row's last unit may have one MCU,
 * and then zeros for the other.
 *
 * Behind DC, a block's coefficients are eight groups of eight, the last one of seven and a zero. The numbers of a group
 * have all the same width in bits, in both blocks of a pair: as many as the largest needs. So a group has as many bytes for each block as
 * its numbers have bits. A unit is
 *
 *	a byte: two bits for each pair, of whose groups there are none (0), the first two (1), four (2) or all (3)
 *	of each pair: the DC of both blocks (12 or 8 bits each), the widths of these groups (four bits each)
 *	of each pair: its groups, of each the first block's before the second's
 *
 * so that all places follow from widths alone, and nothing is a branch. DCs of 8 bits are all that files of low quality need, where
 * heads are most of a unit: with steps from 8 on (quality 75, about) there are no larger ones. Widths are 0 to 10, and 12: then each number lies within two bytes, which is what the
 * vector kernel takes it from.
 *
 * Which coefficients make a group (baseline_packed_order) was looked for with photographs at hand: the numbers of one are nearly
 * as much alike as of eight in zigzag order, and vectors of them are rows of coefficients with a few
 * steps (baseline_packed_avx2.c).
 *
 * Every byte is hostile. A unit's place is checked when it is decoded; none is longer than BASELINE_PACKED_MOST, whatever its
 * widths, so that near the end it is copied before, and after it decoding must be where the next one begins. What comes out is any
 * coefficients then, never more than a block.
 *
 * Rejected: widths and groups of single blocks, in zigzag order, with at most 256 kinds of four widths, each a byte (1.16 times a
 * photograph's bytes against 1.27, but a ninth slower, and longer to make); such kinds for pairs (rare ones take wider ones); a bit for each group that is
 * there; one kind for all eight groups (there are too many); PDEP (some processors take a hundred cycles).
 */

#include "base/little.h"
#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"
#include "pipeline/jpeg/baseline_packed.h"

#define PACKED_HEAD 4

const uint8_t baseline_packed_order[8][8] = {
    {9, 1, 5, 2, 4, 7, 3, 8},         {10, 19, 12, 6, 14, 11, 18, 24},
    {21, 34, 23, 32, 31, 30, 41, 43}, {20, 22, 17, 13, 16, 15, 27, 25},
    {45, 52, 37, 47, 50, 56, 59, 61}, {39, 54, 33, 38, 46, 26, 29, 42},
    {35, 36, 48, 49, 28, 40, 44, 53}, {51, 55, 60, 64, 57, 58, 62, 63},
};

/* ---- the head ---- */

/* Whether each row begins where the one before ends, or behind it, so that no bytes are two units'. */
static bool packed_rises(const uint8_t *row, size_t row_size, uint32_t rows)
{
	bool is_good = little_32(row) == 0;

	for (; rows > 0; rows--, row += row_size)
		is_good &= little_32(row) <= little_32(row + row_size);
	return is_good;
}

/* Pairs of one MCU: luma's blocks side by side, then both others'. */
static void packed_place_one(const struct baseline_head *head, struct baseline_packed *packed)
{
	const uint8_t luma = head->component[0].across * head->component[0].down;

	packed->n_pairs = 0;
	for (uint8_t i = 0; i < luma; i += 2)
		packed->place[packed->n_pairs++] =
		    (struct baseline_packed_place){.block = {i, (uint8_t)(i + 1)}};
	packed->place[packed->n_pairs++] = (struct baseline_packed_place){
	    .component = {1, 2}, .block = {luma, (uint8_t)(luma + 1)}};
}

/* Pairs of two MCUs, which have one block of each component. */
static void packed_place_two(const struct baseline_head *head, struct baseline_packed *packed)
{
	packed->n_pairs = head->n_components;
	for (uint8_t c = 0; c < head->n_components; c++)
		packed->place[c] = (struct baseline_packed_place){
		    .component = {c, c}, .mcu = {0, 1}, .block = {c, c}};
}

void baseline_packed_measure(const struct baseline *baseline, struct baseline_packed *packed)
{
	const struct baseline_head *head = &baseline->head;
	uint32_t per_row, rows;

	baseline_index_measure(baseline, &per_row, &rows);
	packed->mcus = head->component[0].across == 2 ? 1 : 2;
	packed->per_row = (per_row + packed->mcus - 1) / packed->mcus;
	packed->row_size = 4 + (size_t)2 * packed->per_row;
	(packed->mcus == 1 ? packed_place_one : packed_place_two)(head, packed);
}

int baseline_packed_use(struct baseline *baseline, const void *packed, size_t size)
{
	struct baseline_packed *to = &baseline->packed;
	const uint8_t *at = packed;
	uint32_t per_row, rows;
	uint64_t front;

	to->rows = NULL;
	if (size < PACKED_HEAD)
		return BASELINE_E_OTHER;
	to->shift = little_16(at);
	to->dc_bytes = little_16(at + 2) == 0 ? 3 : 2;
	baseline_index_measure(baseline, &per_row, &rows);
	baseline_packed_measure(baseline, to);
	front = PACKED_HEAD + rows * (uint64_t)to->row_size + 4;
	if (to->shift > BASELINE_PACKED_SHIFT || little_16(at + 2) > 1 || front > size ||
	    !packed_rises(at + PACKED_HEAD, to->row_size, rows))
		return BASELINE_E_OTHER;
	for (unsigned p = 0; p < to->n_pairs; p++) {
		for (unsigned i = 0; i < 2; i++) {
			const uint16_t *from = baseline->quant[to->place[p].component[i]];

			for (unsigned y = 0; y < 8; y++)
				memcpy(to->quant[p][y] + (size_t)8 * i, from + (size_t)8 * y,
				       8 * sizeof(*from));
		}
	}
	to->rows = at + PACKED_HEAD;
	to->data = (const uint8_t *)packed + front;
	to->size = size - front;
	return 0;
}

/* ---- units ---- */

/* Unit number x of the row that comes: its bytes, and how many they are. Near the end of all they are copied,
 * with as many zeros behind them as may be read. */
static inline int packed_find(const struct baseline *baseline, uint32_t x,
			      uint8_t copy[BASELINE_PACKED_MOST], const uint8_t **ret,
			      uint64_t *ret_size)
{
	const struct baseline_packed *packed = &baseline->packed;
	const uint8_t *row = packed->rows + baseline->place.mcu_row * packed->row_size;
	const uint64_t first = little_32(row), shift = packed->shift;
	const uint64_t start = first + ((uint64_t)little_16(row + 4 + (size_t)2 * x) << shift);
	uint64_t end;

	end = x + 1 < packed->per_row
		  ? first + ((uint64_t)little_16(row + 6 + (size_t)2 * x) << shift)
		  : little_32(row + packed->row_size);
	if (start > end || end > packed->size)
		return BASELINE_E_DAMAGED;
	*ret = packed->data + start;
	*ret_size = end - start;
	if (packed->size - start < BASELINE_PACKED_MOST) {
		memset(copy, 0, BASELINE_PACKED_MOST);
		memcpy(copy, *ret, packed->size - start);
		*ret = copy;
	}
	return 0;
}

/* Whether a unit of so many bytes has as many as it should. */
static inline int packed_check(const struct baseline_packed *packed, ptrdiff_t bytes, uint64_t size)
{
	return base_align_up((uint64_t)bytes, UINT64_C(1) << packed->shift) == size
		   ? 0
		   : BASELINE_E_DAMAGED;
}

/* ---- coefficients ---- */

/* Eight numbers of width bits each, to their places. */
static void packed_group(const uint8_t *from, unsigned width, const uint8_t order[8], int16_t *coef)
{
	for (unsigned i = 0; i < 8; i++) {
		const unsigned bit = i * width;
		const uint32_t left = (uint32_t)little_16(from + bit / 8) << (32 - width - bit % 8);

		coef[order[i]] = (int16_t)((int32_t)left >> (32 - width));
	}
}

/* The pair's first or second block. Returns where its coefficients end. */
static unsigned packed_block(const struct baseline_packed_pair *pair, unsigned side, int16_t *coef)
{
	unsigned end = 64;

	memset(coef, 0, 65 * sizeof(*coef));
	for (unsigned g = 0; g < 8; g++) {
		const unsigned width = pair->width[g];

		if (width > 0)
			packed_group(pair->at + 2 * pair->before[g] + side * width, width,
				     baseline_packed_order[g], coef);
	}
	while (end > 1 && coef[end - 1] == 0)
		end--;
	return end;
}

/* Those of a pair's blocks that MCU number `which` of the unit has. */
static void packed_blocks(const struct baseline_packed_place *place,
			  const struct baseline_packed_pair *pair, unsigned which, unsigned wanted,
			  struct baseline_mcu *mcu)
{
	for (unsigned i = 0; i < 2; i++) {
		const unsigned block = place->block[i];

		if (place->mcu[i] != which)
			continue;
		mcu->end[block] = 0;
		if (wanted >> block & 1)
			mcu->end[block] = (uint8_t)packed_block(pair, i, mcu->coef[block]);
		mcu->coef[block][0] = baseline_packed_dc(pair, i);
	}
}

int baseline_packed_mcu(struct baseline *baseline, uint32_t x, unsigned wanted,
			struct baseline_mcu *mcu)
{
	const struct baseline_packed *packed = &baseline->packed;
	struct baseline_packed_cursor cursor;
	uint8_t copy[BASELINE_PACKED_MOST];
	const uint8_t *from;
	uint64_t size;
	int r = packed_find(baseline, x / packed->mcus, copy, &from, &size);

	if (r != 0)
		return r;
	cursor = baseline_packed_begin(from, packed->n_pairs, packed->dc_bytes);
	for (unsigned p = 0; p < packed->n_pairs; p++) {
		struct baseline_packed_pair pair;

		baseline_packed_next(&cursor, &pair);
		packed_blocks(&packed->place[p], &pair, x % packed->mcus, wanted, mcu);
	}
	return packed_check(packed, cursor.at - from, size);
}

/* ---- samples at once ---- */

/* A bit for each pair of the unit with column x, the first one of it, of which a block is wanted. */
static unsigned packed_wanted(const struct baseline *baseline, uint32_t x)
{
	const struct baseline_packed *packed = &baseline->packed;
	const struct baseline_span *columns = &baseline->place.columns;
	unsigned wanted[2] = {0, 0}, pairs = 0;

	for (uint32_t i = 0; i < packed->mcus; i++) {
		if (x + i >= columns->first && x + i < columns->end)
			wanted[i] = baseline_rows_wanted(baseline, x + i);
	}
	for (unsigned p = 0; p < packed->n_pairs; p++) {
		const struct baseline_packed_place *place = &packed->place[p];
		const unsigned either = wanted[place->mcu[0]] >> place->block[0] |
					wanted[place->mcu[1]] >> place->block[1];

		pairs |= (either & 1) << p;
	}
	return pairs;
}

/* Where blocks of pair p of the row's first unit wanted go; it may begin a column before the first one wanted,
 * beside which there is room. */
static void packed_aim(struct baseline *baseline, unsigned p)
{
	const struct baseline_packed_place *place = &baseline->packed.place[p];
	const struct baseline_plane *plane = &baseline->plane[place->component[0]];
	struct baseline_packed_target *target = &baseline->packed.target[p];

	target->stride = plane->stride;
	target->step = 16;
	target->to[0] = plane->rows;
	if (baseline->packed.mcus == 2) {
		target->to[0] -= (size_t)8 * (baseline->place.columns.first % 2);
	} else if (place->component[0] == 0) {
		target->to[0] += 8 * p * plane->stride;
	} else {
		target->step = 8;
		target->to[1] = plane[1].rows;
		return;
	}
	target->to[1] = target->to[0] + 8;
}

/* The unit with column x, the n-th from the first one on. */
static int packed_samples(const struct baseline *baseline, uint32_t x, size_t n, unsigned wanted)
{
	const struct baseline_packed *packed = &baseline->packed;
	uint8_t copy[BASELINE_PACKED_MOST];
	const uint8_t *from, *end;
	uint64_t size;
	int r = packed_find(baseline, x / packed->mcus, copy, &from, &size);

	if (r != 0)
		return r;
	end = baseline->kernels->packed_unit(packed, from, n, wanted);
	return packed_check(packed, end - from, size);
}

int baseline_packed_row(struct baseline *baseline)
{
	const struct baseline_span *columns = &baseline->place.columns;
	const uint32_t mcus = baseline->packed.mcus, first = columns->first / mcus * mcus;
	unsigned inner = 0;
	int r = 0;

	for (unsigned p = 0; p < baseline->packed.n_pairs; p++)
		packed_aim(baseline, p);
	for (uint32_t x = first, n = 0; r == 0 && x < columns->end; x += mcus, n++) {
		const bool is_inner = n >= 3 && x + 4 < columns->end;

		if (!is_inner || n == 3)
			inner = packed_wanted(baseline, x);
		r = packed_samples(baseline, x, n, inner);
	}
	return r;
}
