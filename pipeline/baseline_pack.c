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
#define PACK_MOST_UNIT 15

struct pack_count {
	uint32_t key, count;
};

/* Shapes of one kind. */
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
	uint32_t *keys; /* of each block: the low shape, and the high one above it */
	struct pack_shapes low, high;
	uint32_t plain; /* low shapes without a high one */
	unsigned unit;
	uint8_t *out, *data; /* all, and where the MCUs begin */
};

/* Most of its memory is written before it is read: to set it all would take longer than the rest. */
static struct pack *pack_new(struct baseline *baseline)
{
	struct pack *pack = malloc(sizeof(*pack));

	if (!pack)
		return NULL;
	pack->baseline = baseline;
	pack->n_blocks = baseline->scan.n_blocks;
	baseline_index_measure(baseline, &pack->per_row, &pack->rows);
	pack->keys = NULL;
	pack->out = pack->data = NULL;
	pack->plain = pack->unit = 0;
	pack->low.n_seen = pack->low.n = pack->high.n_seen = pack->high.n = 0;
	memset(pack->low.count, 0, sizeof(pack->low.count));
	memset(pack->high.count, 0,
	       PACK_HIGH * sizeof(pack->high.count[0])); /* others are not asked for */
	return pack;
}

static void pack_freep(struct pack **pack)
{
	if (*pack) {
		free((*pack)->keys);
		free((*pack)->out);
	}
	free(*pack);
}

/* ---- widths ---- */

/* Of the widest of eight numbers. */
static uint32_t pack_width(const int16_t *number)
{
	uint16_t bits = 0, any = 0;
	uint32_t width;

	for (unsigned i = 0; i < 8; i++) {
		bits |= (uint16_t)(number[i] ^ (number[i] >> 15));
		any |= (uint16_t)number[i];
	}
	if (bits == 0)
		return any != 0; /* -1 */
	width = 33 - (uint32_t)__builtin_clz(bits);
	return width == 11 ? 12 : width;
}

/* The keys of a block's shapes; behind its coefficients is a zero. */
static void pack_measure(const int16_t *coef, uint32_t *ret_low, uint32_t *ret_high)
{
	uint32_t widths[2] = {0, 0};

	for (unsigned g = 0; g < 8; g++)
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
static int pack_compare_keys(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const uint32_t x_order = (x & PACK_HIGH) | pack_sum(x),
		       y_order = (y & PACK_HIGH) | pack_sum(y);

	if (x_order != y_order)
		return x_order < y_order ? -1 : 1;
	return x < y ? -1 : x > y;
}

static uint8_t pack_code(const struct pack_shapes *shapes, uint32_t key)
{
	uint32_t i = 0;

	while (i + 1 < shapes->n && !pack_covers(shapes->shape[i], key))
		i++;
	return (uint8_t)i;
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

	block.low = pack->low.code[(key & 0xffff) | (key >> 16 != 0 ? PACK_HIGH : 0)];
	block.has_high = block.low >= pack->plain;
	block.widths[0] = pack->low.shape[block.low] & 0xffff;
	if (block.has_high) {
		block.high = pack->high.code[key >> 16];
		block.widths[1] = pack->high.shape[block.high];
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
		pack_measure(mcu->coef[i], &low, &high);
		pack_see(&pack->low, low);
		if (low & PACK_HIGH)
			pack_see(&pack->high, high);
		pack->keys[number * pack->n_blocks + i] = high << 16 | (low & 0xffff);
	}
	return 0;
}

/* ---- places ---- */

static size_t pack_mcu_bytes(const struct pack *pack, size_t number)
{
	size_t bytes = (pack->n_blocks * 3 + 1) / 2 + pack->n_blocks;

	for (unsigned i = 0; i < pack->n_blocks; i++) {
		struct pack_block block = pack_block(pack, pack->keys[number * pack->n_blocks + i]);

		bytes += block.has_high + pack_sum(block.widths[0]) + pack_sum(block.widths[1]);
	}
	return base_align_up(bytes, UINT64_C(1) << pack->unit);
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

	to = pack_put(to, pack->low.n, 2);
	to = pack_put(to, pack->plain, 2);
	to = pack_put(to, pack->high.n, 2);
	to = pack_put(to, pack->unit, 2);
	for (uint32_t i = 0; i < pack->low.n; i++)
		to = pack_put(to, pack->low.shape[i], 2);
	for (uint32_t i = 0; i < pack->high.n; i++)
		to = pack_put(to, pack->high.shape[i], 2);
	for (uint32_t y = 0; y < pack->rows; y++, row = place) {
		to = pack_put(to, row, 4);
		for (uint32_t x = 0; x < pack->per_row; x++, number++) {
			to = pack_put(to, (place - row) >> pack->unit, 2);
			place += (uint32_t)pack_mcu_bytes(pack, number);
		}
	}
	pack->data = pack_put(to, place, 4);
}

/* Eight numbers of so many bits each. */
static uint8_t *pack_numbers(uint8_t *to, const int16_t *number, unsigned width)
{
	const uint64_t mask = (UINT64_C(1) << width) - 1;
	uint64_t half[2] = {0, 0};

	if (width == 0)
		return to;
	for (unsigned i = 0; i < 8; i++)
		half[i / 4] |= ((uint64_t)number[i] & mask) << i % 4 * width;
	/* An odd width's halves, of 36 bits at most, do not end with a byte. */
	if (width % 2 != 0) {
		half[0] |= half[1] << 4 * width;
		half[1] >>= 64 - 4 * width;
		return pack_put(pack_put(to, half[0], BASE_MIN(width, 8)), half[1],
				width > 8 ? width - 8 : 0);
	}
	return pack_put(pack_put(to, half[0], width / 2), half[1], width / 2);
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
		for (unsigned g = 0; g < 8; g++)
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
	if (!pack->keys)
		return -ENOMEM;
	r = pack_each(pack, pack_count);
	if (r != 0)
		return r;
	pack_choose(&pack->low);
	pack_choose(&pack->high);
	while (pack->plain < pack->low.n && pack->low.shape[pack->plain] < PACK_HIGH)
		pack->plain++;
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
	size = PACK_HEAD + (uint64_t)2 * (pack->low.n + pack->high.n) +
	       pack->rows * (4 + (uint64_t)2 * pack->per_row) + 4 + bytes;
	if (size / PACK_MOST_TIMES > baseline->size)
		return BASELINE_E_OTHER;
	pack->out = calloc(1, size);
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
