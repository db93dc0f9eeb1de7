/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for plane.h's kernels, made of filter.c's weights: of a window of the outputs only, and
 * mirrored where a flip follows, which so costs nothing.
 *
 * Along a row, in blocks of eight outputs. A weight has 24 bits and a multiplication of pairs
 * (pmaddwd) takes 16, so each is split, exactly, in two signed parts, weight = high * 65536 + low
 * (PLANE_LOW_BITS); eight sums of one and of the other are made and put together at the end. The
 * parts of a weight have its sign or are small, so no sum of low parts leaves 32 bits. Pair number k of an output's taps are
 * the inputs first + 2 k and first + 2 k + 1: with the same shuffle for all k, as the bytes that
 * are shuffled are loaded 2 k bytes further on. A block has two halves of four outputs, as the
 * registers have; a half's inputs of a pair must lie within 16 bytes (pictures that shrink to less
 * than a quarter have no such form, PLANE_TAPS serves them). Where even the block's do, the same 16
 * bytes are loaded for both (narrow). `at` says where they begin, from input low on.
 *
 * Few weights that are not negative have high parts of 64 and a little together, which fit bytes.
 * Where 16-bit numbers stood there are then, as bytes, those of outputs 0 to 3, the same again, and
 * those of 4 to 7 in the same way (PLANE_BYTES).
 *
 * Where machines add four products of bytes at once (PLANE_QUADS), taps go in fours, outputs in sixteens, and a weight is
 * three signed bytes, weight = (high * 256 + middle) * 256 + low: of each four taps 64 bytes of high ones, then of the others. A shuffle
 * reaches the 64 bytes from `at` on. Outputs stand in the order that packing leaves: 0 to 3, 8 to 11, 4 to 7, 12 to 15.
 *
 * Along a column, rows come in pairs (0, 1), (2, 3) ... from row low on, so an output begins at an
 * even one, with a weight of 0 in front where need be.
 */

#include "pipeline/engine/plane.h"

#define PLANE_TABLE_ALIGN 64
#define PLANE_TABLE_FEW 3
#define PLANE_TABLE_NONE 0x80 /* in a shuffle: a zero */

/* The number of output x of the window among all outputs of the axis. */
static uint32_t plane_table_output(const struct plane_want *want, uint32_t x)
{
	return want->first + (want->mirrored ? want->count - 1 - x : x);
}

static bool plane_table_reserve(struct plane_table *table, size_t size)
{
	size = base_align_up(size, PLANE_TABLE_ALIGN);
	if (size > table->size) {
		free(table->memory);
		table->size = 0;
		table->memory = aligned_alloc(PLANE_TABLE_ALIGN, size);
		if (!table->memory)
			return false;
		table->size = size;
	}
	memset(table->memory, 0, size);
	return true;
}

/* Which inputs the window needs, and the most taps that an output has. */
static uint32_t plane_table_reach(struct plane_table *table, const struct filter_table *filter)
{
	uint32_t most = 0;

	table->low = UINT32_MAX;
	table->high = 0;
	for (uint32_t x = 0; x < table->want.count; x++) {
		uint32_t i = table->want.first + x, first = filter->first[i];

		table->low = BASE_MIN(table->low, first);
		table->high = BASE_MAX(table->high, first + filter->count[i]);
		most = BASE_MAX(most, filter->count[i]);
	}
	return most;
}

/* ---- PLANE_TAPS and PLANE_DOWN ---- */

/* A weight in two parts, `apart` numbers from each other. */
static void plane_table_split(int32_t weight, int16_t *high, unsigned apart)
{
	high[0] = (int16_t)((weight + (1 << (PLANE_LOW_BITS - 1))) >> PLANE_LOW_BITS);
	high[apart] = (int16_t)(weight - high[0] * (1 << PLANE_LOW_BITS));
}

static void plane_table_fill_taps(const struct plane_table *table,
				  const struct filter_table *filter, uint32_t x)
{
	const uint32_t i = plane_table_output(&table->want, x), count = filter->count[i];

	table->first[x] = filter->first[i] - table->low;
	table->count[x] = (uint32_t)base_align_up(count, 2);
	memcpy(table->weight + (size_t)x * table->taps, filter->weight + (size_t)i * filter->taps,
	       count * sizeof(*table->weight));
}

static void plane_table_fill_down(const struct plane_table *table,
				  const struct filter_table *filter, uint32_t y)
{
	const uint32_t i = plane_table_output(&table->want, y);
	const uint32_t first = filter->first[i] - table->low, odd = first & 1;
	const int32_t *weight = filter->weight + (size_t)i * filter->taps;
	int16_t *split = table->split + 2 * (size_t)y * table->taps;

	table->first[y] = first - odd;
	table->count[y] = (uint32_t)base_align_up(filter->count[i] + odd, 2);
	for (uint32_t t = 0; t < filter->count[i]; t++)
		plane_table_split(weight[t], split + 4 * ((t + odd) / 2) + (t + odd) % 2, 2);
}

static bool plane_table_fill(struct plane_table *table, const struct filter_table *filter)
{
	const uint32_t count = table->want.count;

	if (!plane_table_reserve(table, (size_t)count * (8 + table->taps * 4)))
		return false;
	table->weight = (int32_t *)table->memory;
	table->split = (int16_t *)table->memory;
	table->first = (uint32_t *)(table->weight + (size_t)count * table->taps);
	table->count = table->first + count;
	for (uint32_t x = 0; x < count; x++)
		(table->form == PLANE_DOWN ? plane_table_fill_down
					   : plane_table_fill_taps)(table, filter, x);
	return true;
}

/* ---- PLANE_BLOCKS ---- */

/* Do the first taps of every n outputs, n dividing 8, lie so close that a shuffle reaches them, and
 * may all that is loaded be read? */
static bool plane_table_is_close(const struct plane_table *table, const struct filter_table *filter,
				 uint32_t n)
{
	const uint32_t width = table->high - table->low;

	for (uint32_t x = 0; x < table->want.count; x += n) {
		uint32_t end = BASE_MIN(x + n, table->want.count) - 1;
		uint32_t a = filter->first[plane_table_output(&table->want, x)];
		uint32_t b = filter->first[plane_table_output(&table->want, end)];
		uint32_t least = BASE_MIN(a, b), most = BASE_MAX(a, b);

		if (most - least > 14 ||
		    least - table->low + 2 * table->pairs + 14 > width + PLANE_PAD)
			return false;
	}
	return true;
}

static void plane_table_fill_output(const struct plane_table *table,
				    const struct filter_table *filter, uint32_t x, uint32_t least)
{
	const uint32_t i = plane_table_output(&table->want, x), place = x % 8;
	const int32_t *weight = filter->weight + (size_t)i * filter->taps;
	uint8_t *shuffle = table->shuffle + (size_t)(x / 8) * 32 + (size_t)place * 4;
	int16_t *split = table->split + (size_t)(x / 8) * table->pairs * 32 + (size_t)place * 2;

	shuffle[0] = (uint8_t)(filter->first[i] - least);
	shuffle[2] = (uint8_t)(filter->first[i] - least + 1);
	for (uint32_t t = 0; t < filter->count[i]; t++)
		plane_table_split(weight[t], split + (size_t)(t / 2) * 32 + t % 2, 16);
}

/* The high parts of a block's pair as bytes, those of each four outputs twice. */
static void plane_table_to_bytes(int16_t *high)
{
	int8_t bytes[32];

	for (unsigned i = 0; i < 16; i++)
		bytes[i / 8 * 16 + i % 8] = bytes[i / 8 * 16 + i % 8 + 8] = (int8_t)high[i];
	memcpy(high, bytes, sizeof(bytes));
}

/* n outputs from output x on, whose loads begin at one place. */
static void plane_table_fill_close(const struct plane_table *table,
				   const struct filter_table *filter, uint32_t x, uint32_t n)
{
	uint32_t end = BASE_MIN(x + n, table->want.count), least = UINT32_MAX;

	for (uint32_t i = x; i < end; i++)
		least = BASE_MIN(least, filter->first[plane_table_output(&table->want, i)]);
	for (uint32_t i = x; i < x + n; i += 4)
		table->at[i / 4] = least - table->low;
	for (uint32_t i = x; i < end; i++)
		plane_table_fill_output(table, filter, i, least);
}

static bool plane_table_fill_blocks(struct plane_table *table, const struct filter_table *filter)
{
	const uint32_t n = table->narrow ? 8 : 4;

	table->blocks = (uint32_t)base_align_up((table->want.count + 7) / 8, 2);
	if (!plane_table_reserve(table, (size_t)table->blocks * (64 * table->pairs + 32 + 8)))
		return false;
	table->split = (int16_t *)table->memory;
	table->shuffle = table->memory + (size_t)table->blocks * table->pairs * 64;
	table->at = (uint32_t *)(table->shuffle + (size_t)table->blocks * 32);
	memset(table->shuffle, PLANE_TABLE_NONE, (size_t)table->blocks * 32);
	for (uint32_t x = 0; x < table->want.count; x += n)
		plane_table_fill_close(table, filter, x, n);
	for (uint32_t i = 0; table->form == PLANE_BYTES && i < table->blocks * table->pairs; i++)
		plane_table_to_bytes(table->split + (size_t)i * 32);
	return true;
}

/* ---- PLANE_QUADS ---- */

/* The number in its block of the output at a place in it, and the other way round. */
static uint32_t plane_table_turn(uint32_t place)
{
	return (place & 3) | (place & 4) << 1 | (place & 8) >> 1;
}

/* Where loads of the block from output x on begin, from input low on: no more than may be read, if it can be. */
static uint32_t plane_table_begin(const struct plane_table *table,
				  const struct filter_table *filter, uint32_t x, uint32_t *ret_most)
{
	const uint32_t end = BASE_MIN(x + 16, table->want.count) - 1;
	const uint32_t a = filter->first[plane_table_output(&table->want, x)] - table->low;
	const uint32_t b = filter->first[plane_table_output(&table->want, end)] - table->low;
	const uint32_t last = table->high - table->low, behind = 4 * (table->quads - 1);

	*ret_most = BASE_MAX(a, b);
	return BASE_MIN(BASE_MIN(a, b), last > behind ? last - behind : 0);
}

static bool plane_table_has_quads(const struct plane_table *table,
				  const struct filter_table *filter)
{
	const uint32_t width = table->high - table->low;

	for (uint32_t x = 0; x < table->want.count; x += 16) {
		uint32_t most, begin = plane_table_begin(table, filter, x, &most);

		if (most - begin > 60 || begin + 4 * (table->quads - 1) > width)
			return false;
	}
	return true;
}

/* A weight in three parts. */
static void plane_table_to_digits(int32_t weight, int8_t *high)
{
	for (unsigned i = 3; i-- > 0;) {
		high[(size_t)i * 64] = (int8_t)weight;
		weight = (weight - high[(size_t)i * 64]) / 256;
	}
}

static void plane_table_fill_quad(const struct plane_table *table,
				  const struct filter_table *filter, uint32_t x, uint32_t begin)
{
	const uint32_t i = plane_table_output(&table->want, x),
		       place = plane_table_turn(x % 16) * 4;
	const int32_t *weight = filter->weight + (size_t)i * filter->taps;
	uint8_t *shuffle = table->shuffle + (size_t)(x / 16) * 64 + place;
	int8_t *digits = table->digits + (size_t)(x / 16) * table->quads * 192 + place;

	for (unsigned t = 0; t < 4; t++)
		shuffle[t] = (uint8_t)(filter->first[i] - table->low - begin + t);
	for (uint32_t t = 0; t < filter->count[i]; t++)
		plane_table_to_digits(weight[t], digits + (size_t)(t / 4) * 192 + t % 4);
}

static bool plane_table_fill_quads(struct plane_table *table, const struct filter_table *filter)
{
	const uint32_t count = table->want.count;

	table->blocks = (count + 15) / 16;
	if (!plane_table_reserve(table, (size_t)table->blocks * (192 * table->quads + 64 + 4)))
		return false;
	table->digits = (int8_t *)table->memory;
	table->shuffle = table->memory + (size_t)table->blocks * table->quads * 192;
	table->at = (uint32_t *)(table->shuffle + (size_t)table->blocks * 64);
	for (uint32_t x = 0; x < count; x++) {
		uint32_t most, begin = plane_table_begin(table, filter, x / 16 * 16, &most);

		table->at[x / 16] = begin;
		plane_table_fill_quad(table, filter, x, begin);
	}
	return true;
}

/* ---- any ---- */

static bool plane_table_make_form(struct plane_table *table, const struct filter_table *filter)
{
	uint32_t most = plane_table_reach(table, filter);

	table->overshoots = table->want.id == FILTER_BICUBIC || table->want.id == FILTER_LANCZOS;
	table->quads = (most + 3) / 4;
	if (table->form == PLANE_QUADS && plane_table_has_quads(table, filter))
		return plane_table_fill_quads(table, filter);
	if (table->form == PLANE_QUADS)
		table->form = PLANE_BYTES;
	table->pairs = (most + 1) / 2;
	table->narrow = plane_table_is_close(table, filter, 8);
	if (table->form == PLANE_BYTES && (table->overshoots || table->pairs > PLANE_TABLE_FEW))
		table->form = PLANE_BLOCKS;
	if (table->form == PLANE_BLOCKS || table->form == PLANE_BYTES) {
		if (table->narrow || plane_table_is_close(table, filter, 4))
			return plane_table_fill_blocks(table, filter);
		table->form = PLANE_TAPS;
	}
	table->taps =
	    (uint32_t)base_align_up(most + 1, table->form == PLANE_DOWN ? 2 : PLANE_TAPS_ALIGN);
	return plane_table_fill(table, filter);
}

bool plane_table_make(struct plane_table *table, struct filter_table *filter,
		      const struct plane_want *want)
{
	table->want = *want;
	table->form = want->form;
	if (filter_make(filter, want->id, want->in, want->out, want->cut) &&
	    plane_table_make_form(table, filter))
		return true;
	table->want.count = 0;
	return false;
}

void plane_table_fini(struct plane_table *table)
{
	free(table->memory);
	*table = (struct plane_table){0};
}
