/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making packed coefficients (baseline_packed.c has the layout) of a file.
 *
 * The scan is decoded once, and each unit written as it comes. Only if a row turns out to have more bytes than its places
 * can tell, or a DC more bits than its steps let expect, is it all done again, with places of larger steps or longer DCs.
 *
 * Who decodes what is packed does not look for numbers so large that decoders differ. So a picture that has
 * some is not packed.
 */

#include "base/little.h"
#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"
#include "pipeline/jpeg/baseline_packed.h"

#define PACK_MOST_TIMES 2 /* packed coefficients of more than so many times the file are none */
#define PACK_HEAD 4
#define PACK_EACH UINT64_C(0x0001000100010001) /* of four numbers of 16 bits */
#define PACK_LARGE (1 << 13)                   /* of a product; the least that decoders differ in */
#define PACK_E_WIDE 1000                       /* a row has too many bytes */
#define PACK_E_LONG 1001                       /* a DC has too many bits */
#define PACK_SHORT_STEP 8 /* from which on a sound file's DCs have eight bits */

struct pack {
	struct baseline *baseline;
	struct baseline_packed *layout;
	uint32_t columns, rows; /* of MCUs */
	unsigned shift;
	size_t front;      /* bytes before the first unit */
	uint8_t *out;      /* owned */
	size_t size, room; /* of out */
};

static void pack_fini(struct pack *pack)
{
	free(pack->out);
}

/* Room for one more unit, wherever it ends. */
static int pack_reserve(struct pack *pack)
{
	const size_t need =
	    pack->size + BASELINE_PACKED_MOST + ((size_t)1 << BASELINE_PACKED_SHIFT);

	return base_grow(&pack->out, &pack->room, need, 1) ? 0 : -ENOMEM;
}

/* ---- groups ---- */

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

/* Of the widest of eight numbers and eight others. */
static unsigned pack_width(const int16_t *number, const int16_t *other)
{
	uint64_t part[4], bits;
	unsigned width;

	memcpy(part, number, 8 * sizeof(*number));
	memcpy(part + 2, other, 8 * sizeof(*other));
	bits = pack_unsigned(part[0]) | pack_unsigned(part[1]) | pack_unsigned(part[2]) |
	       pack_unsigned(part[3]);
	bits |= bits >> 32;
	bits = (bits | bits >> 16) & UINT16_MAX;
	if (bits == 0)
		return (part[0] | part[1] | part[2] | part[3]) != 0; /* -1 */
	width = 33 - (unsigned)__builtin_clz((uint32_t)bits);
	return width == 11 ? 12 : width;
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

/* ---- pairs ---- */

struct pack_block { /* and its coefficients in groups */
	int16_t dc;
	int16_t number[8][8];
};

/* Does the first row have a product that is too large? */
static bool pack_is_large(const int16_t *coef, const uint16_t *quant)
{
	bool is_large = false;

	for (unsigned k = 0; k < 29; k++) {
		const unsigned place = baseline_natural[k];
		const int32_t product = place < 8 ? coef[k] * (int32_t)quant[place] : 0;

		is_large |= product < -PACK_LARGE || product >= PACK_LARGE;
	}
	return is_large;
}

/* Side i of a pair of the unit in the handle. False: its numbers do not fit. */
static bool pack_block(const struct pack *pack, const struct baseline_packed_place *place,
		       unsigned i, struct pack_block *ret)
{
	const int16_t half = (int16_t)(1 << (4 * pack->layout->dc_bytes - 1));
	struct baseline_mcu *mcu = &pack->baseline->mcu[place->mcu[i]];
	int16_t *coef = mcu->coef[place->block[i]];

	ret->dc = coef[0];
	if (coef[0] < -half || coef[0] >= half ||
	    pack_is_large(coef, pack->baseline->quant[place->component[i]]))
		return false;
	coef[64] = 0;
	for (unsigned g = 0; g < 8; g++) {
		for (unsigned n = 0; n < 8; n++)
			ret->number[g][n] = coef[baseline_packed_order[g][n]];
	}
	return true;
}

static uint32_t pack_widths(const struct pack_block block[2])
{
	uint32_t widths = 0;

	for (unsigned g = 0; g < 8; g++)
		widths |= (uint32_t)pack_width(block[0].number[g], block[1].number[g]) << 4 * g;
	return widths;
}

/* The last group that there is says it. */
static uint32_t pack_code(uint32_t widths)
{
	if (widths >> 16 != 0)
		return 3;
	return widths >> 8 != 0 ? 2 : widths != 0;
}

/* Returns its end. */
static uint8_t *pack_head(const struct pack *pack, uint8_t *to, const struct pack_block block[2],
			  uint32_t widths)
{
	const unsigned dc_bytes = pack->layout->dc_bytes, dc_bits = 4 * dc_bytes;
	const uint32_t bytes = baseline_packed_bytes(pack_code(widths));
	const uint32_t most = (1u << dc_bits) - 1;
	const uint32_t first = (uint32_t)block[0].dc & most, second = (uint32_t)block[1].dc & most;

	little_put(to, first | second << dc_bits, dc_bytes);
	little_put(to + dc_bytes, widths, bytes);
	return to + dc_bytes + bytes;
}

static uint8_t *pack_groups(uint8_t *to, const struct pack_block block[2], uint32_t widths)
{
	for (unsigned g = 0; widths != 0; g++, widths >>= 4) {
		to = pack_numbers(to, block[0].number[g], widths & 15);
		to = pack_numbers(to, block[1].number[g], widths & 15);
	}
	return to;
}

/* ---- units ---- */

static int pack_next(struct baseline *baseline, struct baseline_mcu *mcu)
{
	struct baseline_bits *bits = &baseline->scan.bits;
	int r = 0;

	if (baseline->head.interval > 0 && baseline->restart.until == 0)
		r = baseline_rows_begin(baseline);
	if (r == 0 && bits->next > bits->limit)
		r = baseline_bits_more(bits, baseline->kernels);
	if (r != 0)
		return r;
	baseline->restart.until--;
	r = baseline->kernels->mcu(&baseline->scan, UINT32_MAX, mcu);
	return r == 0 && baseline_bits_is_overrun(bits) ? BASELINE_E_DAMAGED : r;
}

/* The next unit into the handle; columns: MCUs that are left of the row. */
static int pack_read(struct pack *pack, uint32_t columns)
{
	struct baseline *baseline = pack->baseline;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < pack->layout->mcus; i++) {
		if (i < columns)
			r = pack_next(baseline, &baseline->mcu[i]);
		else
			memset(&baseline->mcu[i], 0, sizeof(baseline->mcu[i]));
	}
	return r;
}

/* The unit in the handle to `to`. Returns its end, or NULL: there are numbers that do not fit. */
static uint8_t *pack_unit(const struct pack *pack, uint8_t *to)
{
	const struct baseline_packed *layout = pack->layout;
	struct pack_block block[BASELINE_PAIRS][2];
	uint32_t widths[BASELINE_PAIRS];
	uint8_t *codes = to++;

	*codes = 0;
	for (unsigned p = 0; p < layout->n_pairs; p++) {
		if (!pack_block(pack, &layout->place[p], 0, &block[p][0]) ||
		    !pack_block(pack, &layout->place[p], 1, &block[p][1]))
			return NULL;
		widths[p] = pack_widths(block[p]);
		*codes |= (uint8_t)(pack_code(widths[p]) << 2 * p);
		to = pack_head(pack, to, block[p], widths[p]);
	}
	for (unsigned p = 0; p < layout->n_pairs; p++)
		to = pack_groups(to, block[p], widths[p]);
	return to;
}

static int pack_write(struct pack *pack)
{
	uint8_t *to;
	size_t end;

	if (pack_reserve(pack) != 0)
		return -ENOMEM;
	to = pack_unit(pack, pack->out + pack->size);
	if (!to)
		return pack->layout->dc_bytes < 3 ? PACK_E_LONG : BASELINE_E_OTHER;
	end = (size_t)(to - pack->out) - pack->front;
	end = pack->front + base_align_up(end, UINT64_C(1) << pack->shift);
	memset(to, 0, (size_t)(pack->out + end - to));
	pack->size = end;
	return 0;
}

/* ---- rows ---- */

/* Row y: its places and its units. */
static int pack_row(struct pack *pack, uint32_t y)
{
	size_t at = PACK_HEAD + (size_t)y * pack->layout->row_size;
	const size_t start = pack->size;
	int r = 0;

	little_put(pack->out + at, start - pack->front, 4);
	at += 4;
	for (uint32_t x = 0; r == 0 && x < pack->columns; x += pack->layout->mcus, at += 2) {
		const size_t place = (pack->size - start) >> pack->shift;

		if (place > UINT16_MAX)
			return PACK_E_WIDE;
		little_put(pack->out + at, place, 2);
		r = pack_read(pack, pack->columns - x);
		r = r ? r : pack_write(pack);
	}
	if (pack->size / PACK_MOST_TIMES > pack->baseline->size ||
	    pack->size - pack->front > UINT32_MAX)
		return BASELINE_E_OTHER;
	return r;
}

/* All of it, with the shift that is set. */
static int pack_all(struct pack *pack)
{
	struct baseline *baseline = pack->baseline;
	int r;

	pack->size = pack->front;
	r = pack_reserve(pack);
	if (r != 0)
		return r;
	little_put(pack->out, pack->shift, 2);
	little_put(pack->out + 2, 3 - pack->layout->dc_bytes, 2);
	baseline_rows_start(baseline);
	for (uint32_t y = 0; r == 0 && y < pack->rows; y++)
		r = pack_row(pack, y);
	if (r != 0)
		return r;
	little_put(pack->out + pack->front - 4, pack->size - pack->front, 4);
	return baseline_bits_has_end(&baseline->scan.bits, baseline->kernels) ? 0
									      : BASELINE_E_DAMAGED;
}

static bool pack_may_be_short(const struct baseline *baseline)
{
	bool may = true;

	for (unsigned c = 0; c < baseline->head.n_components; c++)
		may = may && baseline->quant[c][0] >= PACK_SHORT_STEP;
	return may;
}

int baseline_pack(struct baseline *baseline, uint8_t **ret, size_t *ret_size)
{
	_cleanup_(pack_fini) struct pack pack = {.baseline = baseline, .layout = &baseline->packed};
	int r = PACK_E_WIDE;

	baseline->index.rows = NULL;
	baseline->packed.rows = NULL;
	baseline_packed_measure(baseline, &baseline->packed);
	baseline_index_measure(baseline, &pack.columns, &pack.rows);
	pack.front = PACK_HEAD + pack.rows * pack.layout->row_size + 4;
	if (pack.front / PACK_MOST_TIMES > baseline->size)
		return BASELINE_E_OTHER;
	pack.layout->dc_bytes = pack_may_be_short(baseline) ? 2 : 3;
	while (r >= PACK_E_WIDE && pack.shift <= BASELINE_PACKED_SHIFT) {
		r = pack_all(&pack);
		pack.shift += r == PACK_E_WIDE;
		if (r == PACK_E_LONG)
			pack.layout->dc_bytes = 3;
	}
	if (r != 0)
		return r == PACK_E_WIDE ? BASELINE_E_OTHER : r;
	*ret = base_take_ptr(pack.out);
	*ret_size = pack.size;
	return 0;
}
