/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making packed coefficients (baseline_packed.c has the layout) of a file.
 *
 * The scan is decoded twice: first for how wide the numbers of each block are, from which the shapes are
 * chosen, then for the numbers. Keeping the numbers in between would take many times the file's bytes.
 *
 * Shapes: those that most blocks have stand for themselves, and if there are more than there is room for, one is
 * as wide as the widest of all. A block of any other shape takes the one with the fewest bytes that
 * is at least as wide in all groups, of those without a high shape if it has none and one is wide enough.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/little.h"
#include "pipeline/baseline.h"
#include "pipeline/baseline_inner.h"

#define PACK_KEYS (1u << 17) /* low shapes, and whether there is a high one */
#define PACK_HIGH (1u << 16) /* that bit */
#define PACK_MOST_TIMES 2    /* packed coefficients of more than so many times the file are none */
#define PACK_HEAD 8
#define PACK_SLACK 16                          /* bytes behind the last one that may be written */
#define PACK_EACH UINT64_C(0x0001000100010001) /* of four numbers of 16 bits */
#define PACK_MOST_UNIT 15

struct pack_count {
	uint32_t key, count;
};

/* Shapes of one kind. Kept from file to file, with counts of zero: to get and clear the memory each time
 * would take longer than much of the rest. */
struct pack_shapes {
	uint32_t n_seen, n;
	uint32_t count[PACK_KEYS];         /* of blocks, by key */
	struct pack_count seen[PACK_KEYS]; /* n_seen of them, the counts at the end */
	uint8_t code[PACK_KEYS];           /* of those keys: what stands for it */
	uint32_t shape[BASELINE_SHAPES];   /* keys */
};

struct pack {
	struct baseline *baseline;
	uint32_t per_row, rows;
	unsigned n_blocks;
	uint32_t *keys;  /* of each block: the low shape, and the high one above it */
	uint16_t *bytes; /* of each MCU */
	struct pack_shapes *low, *high; /* the handle's */
	uint32_t plain;                 /* low shapes without a high one */
	unsigned unit;
	uint8_t *out, *data; /* all, and where the MCUs begin */
};

static struct pack *pack_new(struct baseline *baseline)
{
	struct pack *pack = calloc(1, sizeof(*pack));

	if (!baseline->shapes)
		baseline->shapes = calloc(2, sizeof(*baseline->shapes));
	if (!pack || !baseline->shapes) {
		free(pack);
		return NULL;
	}
	pack->baseline = baseline;
	pack->n_blocks = baseline->scan.n_blocks;
	pack->low = &baseline->shapes[0];
	pack->high = &baseline->shapes[1];
	baseline_index_measure(baseline, &pack->per_row, &pack->rows);
	return pack;
}

static void pack_forget(struct pack_shapes *shapes)
{
	for (uint32_t i = 0; i < shapes->n_seen; i++)
		shapes->count[shapes->seen[i].key] = 0;
	shapes->n_seen = shapes->n = 0;
}

static void pack_freep(struct pack **pack)
{
	if (*pack) {
		pack_forget((*pack)->low);
		pack_forget((*pack)->high);
		free((*pack)->keys);
		free((*pack)->bytes);
		free((*pack)->out);
	}
	free(*pack);
}

/* ---- widths ---- */

/* Four numbers as they were read from memory, the first one lowest. */
static uint64_t pack_in_order(uint64_t four)
{
	const uint16_t first = 1;
	uint8_t is_little;

	memcpy(&is_little, &first, 1);
	if (is_little)
		return four;
	return four >> 48 | (four >> 16 & 0xffff0000) | (four & 0xffff0000) << 16 | four << 48;
}

/* Four numbers, each without its sign: its bits flipped where it is below 0. */
static uint64_t pack_unsigned(uint64_t four)
{
	return four ^ (four >> 15 & PACK_EACH) * UINT16_MAX;
}

/* Of the widest of eight numbers. */
static uint32_t pack_width(const int16_t *number)
{
	uint64_t half[2], bits;
	uint32_t width;

	memcpy(half, number, sizeof(half));
	bits = pack_unsigned(half[0]) | pack_unsigned(half[1]);
	bits |= bits >> 32;
	bits = (bits | bits >> 16) & UINT16_MAX;
	if (bits == 0)
		return (half[0] | half[1]) != 0; /* -1 */
	width = 33 - (uint32_t)__builtin_clz((uint32_t)bits);
	return width == 11 ? 12 : width;
}

/* The keys of a block's shapes; its coefficients end at `end`, and behind them is a zero. */
static void pack_measure(const int16_t *coef, unsigned end, uint32_t *ret_low, uint32_t *ret_high)
{
	uint32_t widths[2] = {0, 0};

	for (unsigned g = 0; 1 + 8 * g < end; g++)
		widths[g / 4] |= pack_width(coef + 1 + 8 * g) << 4 * (g % 4);
	*ret_low = widths[0] | (widths[1] != 0 ? PACK_HIGH : 0);
	*ret_high = widths[1];
}

static uint32_t pack_sum(uint32_t key)
{
	return (key & 15) + (key >> 4 & 15) + (key >> 8 & 15) + (key >> 12 & 15) + (key >> 16 & 1);
}

/* Is a at least as wide in all? Nibbles in bytes, so that what is borrowed shows. */
static bool pack_covers(uint32_t a, uint32_t b)
{
	const uint32_t even = ((a & 0x0f0f) | 0x1010) - (b & 0x0f0f);
	const uint32_t odd = ((a >> 4 & 0x0f0f) | 0x1010) - (b >> 4 & 0x0f0f);

	return (even & odd & 0x1010) == 0x1010 && a >> 16 >= b >> 16;
}

static uint32_t pack_widest(uint32_t a, uint32_t b)
{
	uint32_t key = (a | b) & PACK_HIGH;

	for (unsigned shift = 0; shift < 16; shift += 4)
		key |= BASE_MAX(a >> shift & 15, b >> shift & 15) << shift;
	return key;
}

/* ---- shapes ---- */

static int pack_compare(const void *a, const void *b)
{
	const struct pack_count *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* The plain ones first, as they stand in the file; those of fewer bytes first. */
static uint32_t pack_order(uint32_t key)
{
	return (key & PACK_HIGH) | pack_sum(key);
}

static int pack_compare_keys(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const uint32_t x_order = pack_order(x), y_order = pack_order(y);

	if (x_order != y_order)
		return x_order < y_order ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* No shape of fewer bytes covers it, and of as many only the same one. */
static uint8_t pack_code(const struct pack_shapes *shapes, uint32_t key)
{
	const uint32_t order = pack_order(key);
	uint32_t i = 0, end = shapes->n;

	while (i < end) { /* the first one that is not of fewer */
		const uint32_t middle = (i + end) / 2;

		if (pack_order(shapes->shape[middle]) < order)
			i = middle + 1;
		else
			end = middle;
	}
	while (i + 1 < shapes->n && !pack_covers(shapes->shape[i], key))
		i++;
	return (uint8_t)BASE_MIN(i, shapes->n - 1);
}

static void pack_see(struct pack_shapes *shapes, uint32_t key)
{
	if (shapes->count[key]++ == 0)
		shapes->seen[shapes->n_seen++].key = key;
}

static void pack_choose(struct pack_shapes *shapes)
{
	uint32_t widest = 0;

	for (uint32_t i = 0; i < shapes->n_seen; i++) {
		shapes->seen[i].count = shapes->count[shapes->seen[i].key];
		widest = pack_widest(widest, shapes->seen[i].key);
	}
	qsort(shapes->seen, shapes->n_seen, sizeof(shapes->seen[0]), pack_compare);
	while (shapes->n < shapes->n_seen && shapes->n < BASELINE_SHAPES) {
		shapes->shape[shapes->n] = shapes->seen[shapes->n].key;
		shapes->n++;
	}
	if (shapes->n_seen > BASELINE_SHAPES)
		shapes->shape[BASELINE_SHAPES - 1] = widest;
	qsort(shapes->shape, shapes->n, sizeof(shapes->shape[0]), pack_compare_keys);
	for (uint32_t i = 0; i < shapes->n_seen; i++)
		shapes->code[shapes->seen[i].key] = pack_code(shapes, shapes->seen[i].key);
	/* A block without a high shape may take a low one that goes with one. */
	shapes->code[0] = pack_code(shapes, 0);
}

/* What stands for a block: shapes as they are in the file. */
struct pack_block {
	uint8_t low, high;
	bool has_high;
	uint32_t widths[2];
};

static struct pack_block pack_block(const struct pack *pack, uint32_t key)
{
	struct pack_block block = {0};

	block.low = pack->low->code[(key & 0xffff) | (key >> 16 != 0 ? PACK_HIGH : 0)];
	block.has_high = block.low >= pack->plain;
	block.widths[0] = pack->low->shape[block.low] & 0xffff;
	if (block.has_high) {
		block.high = pack->high->code[key >> 16];
		block.widths[1] = pack->high->shape[block.high];
	}
	return block;
}

/* ---- the scan ---- */

typedef int pack_fn(struct pack *pack, struct baseline_mcu *mcu, size_t number);

static int pack_next(struct baseline *baseline, struct baseline_mcu *mcu)
{
	struct baseline_bits *bits = &baseline->scan.bits;
	int r = 0;

	if (baseline->head.interval > 0 && baseline->until_restart == 0)
		r = baseline_rows_begin(baseline);
	if (r == 0 && bits->next > bits->limit)
		r = baseline_bits_more(bits, baseline->kernels);
	if (r != 0)
		return r;
	baseline->until_restart--;
	return baseline->kernels->mcu(&baseline->scan, UINT32_MAX, mcu);
}

/* Each MCU of the scan to one. */
static int pack_each(struct pack *pack, pack_fn *one)
{
	struct baseline *baseline = pack->baseline;
	const size_t count = (size_t)pack->per_row * pack->rows;
	int r = 0;

	baseline->index.rows = NULL;
	baseline->packed.rows = NULL;
	baseline_rows_start(baseline);
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = pack_next(baseline, &baseline->mcu[0]);
		if (r == 0)
			r = one(pack, &baseline->mcu[0], i);
		if (r == 0 && baseline_bits_is_overrun(&baseline->scan.bits))
			r = BASELINE_E_DAMAGED;
	}
	if (r == 0 && !baseline_bits_has_end(&baseline->scan.bits, baseline->kernels))
		r = BASELINE_E_DAMAGED;
	return r;
}

static int pack_count(struct pack *pack, struct baseline_mcu *mcu, size_t number)
{
	const int16_t half = 1 << (BASELINE_PACKED_DC - 1);

	for (unsigned i = 0; i < pack->n_blocks; i++) {
		uint32_t low, high;

		if (mcu->coef[i][0] < -half || mcu->coef[i][0] >= half)
			return BASELINE_E_OTHER;
		mcu->coef[i][64] = 0;
		pack_measure(mcu->coef[i], mcu->end[i], &low, &high);
		pack_see(pack->low, low);
		if (low & PACK_HIGH)
			pack_see(pack->high, high);
		pack->keys[number * pack->n_blocks + i] = high << 16 | (low & 0xffff);
	}
	return 0;
}

/* ---- places ---- */

/* How many bytes each MCU has, before they are made a multiple of the unit. */
static void pack_measure_mcus(struct pack *pack)
{
	const size_t count = (size_t)pack->per_row * pack->rows;

	for (size_t number = 0; number < count; number++) {
		const uint32_t *key = pack->keys + number * pack->n_blocks;
		unsigned bytes = (pack->n_blocks * 3 + 1) / 2 + pack->n_blocks;

		for (unsigned i = 0; i < pack->n_blocks; i++) {
			struct pack_block block = pack_block(pack, key[i]);

			bytes +=
			    block.has_high + pack_sum(block.widths[0]) + pack_sum(block.widths[1]);
		}
		pack->bytes[number] = (uint16_t)bytes;
	}
}

static size_t pack_mcu_bytes(const struct pack *pack, size_t number)
{
	return base_align_up(pack->bytes[number], UINT64_C(1) << pack->unit);
}

/* The bytes of all MCUs with the unit set; the widest row's in *ret_row. */
static uint64_t pack_all_bytes(const struct pack *pack, uint64_t *ret_row)
{
	uint64_t all = 0;

	*ret_row = 0;
	for (size_t y = 0; y < pack->rows; y++) {
		uint64_t row = 0;

		for (size_t x = 0; x < pack->per_row; x++)
			row += pack_mcu_bytes(pack, y * pack->per_row + x);
		*ret_row = BASE_MAX(*ret_row, row);
		all += row;
	}
	return all;
}

/* The smallest unit in which all places can be told. *ret_bytes: of all MCUs. */
static int pack_set_unit(struct pack *pack, uint64_t *ret_bytes)
{
	uint64_t row;

	for (pack->unit = 0; pack->unit <= PACK_MOST_UNIT; pack->unit++) {
		*ret_bytes = pack_all_bytes(pack, &row);
		if (row >> pack->unit <= UINT16_MAX)
			return *ret_bytes <= UINT32_MAX ? 0 : BASELINE_E_OTHER;
	}
	return BASELINE_E_OTHER;
}

/* ---- writing ---- */

static uint8_t *pack_put(uint8_t *to, uint64_t value, unsigned bytes)
{
	little_put(to, value, bytes);
	return to + bytes;
}

/* The head, shapes and places. */
static void pack_write_front(struct pack *pack)
{
	uint8_t *to = pack->out;
	uint32_t place = 0, row = 0;
	size_t number = 0;

	to = pack_put(to, pack->low->n, 2);
	to = pack_put(to, pack->plain, 2);
	to = pack_put(to, pack->high->n, 2);
	to = pack_put(to, pack->unit, 2);
	for (uint32_t i = 0; i < pack->low->n; i++)
		to = pack_put(to, pack->low->shape[i], 2);
	for (uint32_t i = 0; i < pack->high->n; i++)
		to = pack_put(to, pack->high->shape[i], 2);
	for (uint32_t y = 0; y < pack->rows; y++, row = place) {
		to = pack_put(to, row, 4);
		for (uint32_t x = 0; x < pack->per_row; x++, number++) {
			to = pack_put(to, (place - row) >> pack->unit, 2);
			place += (uint32_t)pack_mcu_bytes(pack, number);
		}
	}
	pack->data = pack_put(to, place, 4);
}

/* Four numbers side by side, each of so many bits: in pairs, then both pairs. */
static uint64_t pack_four(const int16_t *number, unsigned width)
{
	const uint64_t low = UINT64_C(0x0000ffff0000ffff);
	uint64_t four;

	memcpy(&four, number, sizeof(four));
	four = pack_in_order(four) & PACK_EACH * ((1u << width) - 1);
	four = (four & low) | (four >> 16 & low) << width;
	return (four & UINT32_MAX) | four >> 32 << 2 * width;
}

/* Eight numbers of so many bits each; 16 bytes are written. */
static uint8_t *pack_numbers(uint8_t *to, const int16_t *number, unsigned width)
{
	const uint64_t first = pack_four(number, width), second = pack_four(number + 4, width);

	little_put_64(to, first | second << 4 * width);
	if (width > 8)
		little_put_64(to + 8, second >> (64 - 4 * width));
	return to + width;
}

/* 12 bits each, and four more where they are odd. */
static uint8_t *pack_dc(uint8_t *to, const struct baseline_mcu *mcu, unsigned n)
{
	for (unsigned i = 0; i < n; i += 2) {
		uint32_t two = (uint32_t)mcu->coef[i][0] & 4095;

		if (i + 1 < n)
			two |= ((uint32_t)mcu->coef[i + 1][0] & 4095) << BASELINE_PACKED_DC;
		to = pack_put(to, two, i + 1 < n ? 3 : 2);
	}
	return to;
}

static int pack_write(struct pack *pack, struct baseline_mcu *mcu, size_t number)
{
	const unsigned n = pack->n_blocks;
	struct pack_block block[BASELINE_BLOCKS];
	uint8_t *to = pack->data, *start = to;

	for (unsigned i = 0; i < n; i++) {
		block[i] = pack_block(pack, pack->keys[number * n + i]);
		mcu->coef[i][64] = 0;
	}
	to = pack_dc(to, mcu, n);
	for (unsigned i = 0; i < n; i++)
		*to++ = block[i].low;
	for (unsigned i = 0; i < n; i++) {
		if (block[i].has_high)
			*to++ = block[i].high;
	}
	for (unsigned i = 0; i < n; i++) {
		for (unsigned g = 0; g < (block[i].has_high ? 8 : 4); g++)
			to = pack_numbers(to, mcu->coef[i] + 1 + 8 * g,
					  block[i].widths[g / 4] >> 4 * (g % 4) & 15);
	}
	pack->data = start + base_align_up((uint64_t)(to - start), UINT64_C(1) << pack->unit);
	return 0;
}

/* ---- all of it ---- */

static int pack_prepare(struct pack *pack)
{
	const size_t blocks = (size_t)pack->per_row * pack->rows * pack->n_blocks;
	int r;

	pack->keys = malloc(blocks * sizeof(*pack->keys));
	pack->bytes = malloc(blocks / pack->n_blocks * sizeof(*pack->bytes));
	if (!pack->keys || !pack->bytes)
		return -ENOMEM;
	r = pack_each(pack, pack_count);
	if (r != 0)
		return r;
	pack_choose(pack->low);
	pack_choose(pack->high);
	while (pack->plain < pack->low->n && pack->low->shape[pack->plain] < PACK_HIGH)
		pack->plain++;
	pack_measure_mcus(pack);
	return 0;
}

int baseline_pack(struct baseline *baseline, uint8_t **ret, size_t *ret_size)
{
	_cleanup_(pack_freep) struct pack *pack = pack_new(baseline);
	uint64_t size, bytes;
	int r;

	if (!pack)
		return -ENOMEM;
	r = pack_prepare(pack);
	if (r == 0)
		r = pack_set_unit(pack, &bytes);
	if (r != 0)
		return r;
	size = PACK_HEAD + (uint64_t)2 * (pack->low->n + pack->high->n) +
	       pack->rows * (4 + (uint64_t)2 * pack->per_row) + 4 + bytes;
	if (size / PACK_MOST_TIMES > baseline->size)
		return BASELINE_E_OTHER;
	pack->out = calloc(1, size + PACK_SLACK);
	if (!pack->out)
		return -ENOMEM;
	pack_write_front(pack);
	r = pack_each(pack, pack_write);
	if (r != 0)
		return r;
	*ret = base_take_ptr(pack->out);
	*ret_size = size;
	return 0;
}
