/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed coefficients: a picture's blocks without Huffman codes, each MCU by itself.
 *
 *	 0  low shapes (u16), those of them without a high one (u16), high shapes (u16), unit (u16)
 *	 8  the low shapes, then the high ones (u16 each)
 *	    each row of MCUs: its first byte (u32), then that of each MCU from the row's on, in units of
 *	    1 << unit bytes (u16 each); then the last row's end (u32)
 *	    the MCUs
 *
 * All numbers are little-endian; bytes are counted from the first MCU's. Behind DC, a block's coefficients (in
 * zigzag order) are eight groups of eight, the last one of seven and a zero. The numbers of a group have all the same width in bits: as
 * many as the largest needs, so that a group has as many bytes as its numbers have bits. A shape is
 * four widths of four bits: of a block's first four groups, or its last four, which most blocks do
 * not have. A picture has at most 256 of each, and a block whose shape is rare takes a wider one. A MCU is
 *
 *	the DC of all blocks, 12 bits each
 *	a byte for each block: its low shape; from a number on they are those with a high one
 *	a byte for each block with a high shape: which
 *	the groups of all blocks
 *
 * so that a block's place follows from shapes alone, and nothing but whether there is a high one is a branch.
 * Widths are 0 to 10, and 12: then each number lies within two bytes, which is what the vector kernel
 * takes it from.
 *
 * Every byte is hostile. Shapes are checked when the picture is opened, an MCU's place when it is
 * decoded; no MCU is longer than BASELINE_PACKED_MOST, so that near the end it is copied before, and after it decoding must
 * be where the next one begins. What comes out is any coefficients then, never more than a block.
 *
 * Rejected: eight widths in each block's head (6 bytes a block: 1.35 times a photograph's bytes and 2.1
 * at quality 75, against 1.16 and 1.51); a bit for each group that is there (1.27 and 1.69); one shape
 * for all eight groups (there are too many kinds: 1.28 and 1.53); PDEP (some processors take a hundred cycles).
 */

#include <string.h>
#include "base/little.h"
#include "pipeline/baseline.h"
#include "pipeline/baseline_inner.h"

#define PACKED_HEAD 8

/* ---- the head ---- */

/* Shapes from at on; those from number `plain` on have a high one. False: one has a width that there is not. */
static bool packed_shapes(struct baseline_shape *shape, const uint8_t *at, uint32_t count,
			  uint32_t plain)
{
	uint32_t wrong = 0;

	memset(shape + count, 0, (BASELINE_SHAPES - count) * sizeof(*shape));
	for (uint32_t i = 0; i < BASELINE_SHAPES; i++) {
		shape[i].has_high = i >= plain;
		shape[i].keep = i >= plain ? BASELINE_SHAPES - 1 : BASELINE_SHAPES;
	}

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t widths = little_16(at + (size_t)2 * i);
		/* a byte each, the first one lowest; then their sums up to each */
		const uint32_t apart = (widths | widths << 8) & 0x00ff00ff;
		const uint32_t width = (apart | apart << 4) & 0x0f0f0f0f;
		const uint32_t upto = width * 0x01010101, before = upto << 8;

		/* 11, and above 12 */
		wrong |= width >> 3 & (width >> 2 | width >> 1) & (width >> 2 | width) &
			 (width >> 1 | width) & 0x01010101;
		shape[i].widths = (uint16_t)widths;
		shape[i].bytes = (uint8_t)(upto >> 24);
		little_put_32(shape[i].width, width);
		little_put_32(shape[i].before, before);
	}
	return wrong == 0;
}

/* Whether each row begins where the one before ends, or behind it, so that no bytes are two MCUs'. */
static bool packed_rises(const uint8_t *row, size_t row_size, uint32_t rows)
{
	bool is_good = little_32(row) == 0;

	for (; rows > 0; rows--, row += row_size)
		is_good &= little_32(row) <= little_32(row + row_size);
	return is_good;
}

int baseline_packed_use(struct baseline *baseline, const void *packed, size_t size)
{
	struct baseline_packed *to = &baseline->packed;
	const uint8_t *at = packed;
	uint32_t per_row, rows, low, high;
	uint64_t front;

	to->rows = NULL;
	if (size < PACKED_HEAD)
		return BASELINE_E_OTHER;
	low = little_16(at);
	to->plain = little_16(at + 2);
	high = little_16(at + 4);
	to->unit = little_16(at + 6);
	baseline_index_measure(baseline, &per_row, &rows);
	to->row_size = 4 + (size_t)2 * per_row;
	front = PACKED_HEAD + (uint64_t)2 * (low + high) + rows * (uint64_t)to->row_size + 4;
	if (low > BASELINE_SHAPES || high > BASELINE_SHAPES || to->plain > low || to->unit > 15 ||
	    front > size || !packed_shapes(to->low, at + PACKED_HEAD, low, to->plain) ||
	    !packed_shapes(to->high, at + PACKED_HEAD + (size_t)2 * low, high, BASELINE_SHAPES))
		return BASELINE_E_OTHER;
	at += PACKED_HEAD + (size_t)2 * (low + high);
	if (!packed_rises(at, to->row_size, rows))
		return BASELINE_E_OTHER;
	to->high[BASELINE_SHAPES] = (struct baseline_shape){.bytes = 0};
	to->rows = at;
	to->data = (const uint8_t *)packed + front;
	to->size = size - front;
	return 0;
}

/* ---- MCUs ---- */

/* 12 bits with a sign, the number-th of those at from. */
static int16_t packed_dc(const uint8_t *from, unsigned number)
{
	uint32_t two = little_16(from + number * 3 / 2) >> (number & 1 ? 4 : 0);

	return (int16_t)((int32_t)((two & 4095) ^ 2048) - 2048);
}

/* Eight numbers of width bits each. */
static void packed_group(const uint8_t *from, unsigned width, int16_t *to)
{
	memset(to, 0, 8 * sizeof(*to));
	if (width == 0)
		return;
	for (unsigned i = 0; i < 8; i++) {
		const unsigned bit = i * width;
		uint32_t left = little_16(from + bit / 8) << (32 - width - bit % 8);

		to[i] = (int16_t)((int32_t)left >> (32 - width));
	}
}

/* Where the block's coefficients end, as precisely as kernels care. */
static unsigned packed_end(const struct baseline_shape *low, bool has_high, const int16_t *coef)
{
	if (has_high)
		return 64;
	if (low->widths == 0)
		return 1;
	if (low->widths >> 8 != 0)
		return 33;
	return coef[15] == 0 && coef[16] == 0 ? 15 : 17;
}

const uint8_t *baseline_packed_mcu_plain(const struct baseline_packed *packed, const uint8_t *at,
					 unsigned n_blocks, unsigned wanted,
					 struct baseline_mcu *mcu)
{
	const uint8_t *dc = at, *low = at + (n_blocks * 3 + 1) / 2, *high = low + n_blocks;

	at = high;
	for (unsigned i = 0; i < n_blocks; i++)
		at += low[i] >= packed->plain;
	for (unsigned i = 0; i < n_blocks; i++) {
		const bool has_high = low[i] >= packed->plain;
		const struct baseline_shape *shape[2] = {&packed->low[low[i]],
							 &packed->high[has_high ? *high++ : 0]};
		int16_t *coef = mcu->coef[i];

		coef[0] = packed_dc(dc, i);
		mcu->end[i] = 0;
		if (!(wanted >> i & 1)) {
			at += shape[0]->bytes + (has_high ? shape[1]->bytes : 0);
			continue;
		}
		for (unsigned g = 0; g < 8; g++) {
			unsigned width =
			    g < 4 || has_high ? shape[g / 4]->widths >> 4 * (g % 4) & 15 : 0;

			packed_group(at, width, coef + 1 + 8 * g);
			at += width;
		}
		mcu->end[i] = (uint8_t)packed_end(shape[0], has_high, coef);
	}
	return at;
}

/* Column x of the row that comes: its bytes, and how many they are. Near the end of all they are copied,
 * with as many zeros behind them as may be read. */
static inline int packed_find(const struct baseline *baseline, uint32_t x,
			      uint8_t copy[BASELINE_PACKED_MOST], const uint8_t **ret,
			      uint64_t *ret_size)
{
	const struct baseline_packed *packed = &baseline->packed;
	const uint8_t *row = packed->rows + baseline->mcu_row * packed->row_size;
	const uint64_t first = little_32(row), unit = packed->unit;
	const uint64_t start = first + ((uint64_t)little_16(row + 4 + (size_t)2 * x) << unit);
	uint64_t end;

	end = x + 1 < baseline->per_row
		  ? first + ((uint64_t)little_16(row + 6 + (size_t)2 * x) << unit)
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

/* Whether a MCU of so many bytes has as many as it should. */
static int packed_check(const struct baseline_packed *packed, ptrdiff_t bytes, uint64_t size)
{
	return base_align_up((uint64_t)bytes, UINT64_C(1) << packed->unit) == size
		   ? 0
		   : BASELINE_E_DAMAGED;
}

int baseline_packed_mcu(struct baseline *baseline, uint32_t x, unsigned wanted,
			struct baseline_mcu *mcu)
{
	const struct baseline_packed *packed = &baseline->packed;
	uint8_t copy[BASELINE_PACKED_MOST];
	const uint8_t *at, *from;
	uint64_t size;
	int r = packed_find(baseline, x, copy, &from, &size);

	if (r != 0)
		return r;
	at = baseline->kernels->packed(packed, from, baseline->scan.n_blocks, wanted, mcu);
	return packed_check(packed, at - from, size);
}

/* ---- samples at once ---- */

#define PACKED_INLINE static inline __attribute__((always_inline))

/* Where a MCU has been read to. */
struct packed_cursor {
	const uint8_t *high, *at;
};

/* Whether there is a high shape is not a branch, which would be foretold wrong too often: its byte is
 * there in any case. */
PACKED_INLINE void packed_block(const struct baseline_packed *packed, struct packed_cursor *cursor,
				struct baseline_packed_block *ret)
{
	const struct baseline_shape *low = ret->low;
	const uint32_t number = (*cursor->high | BASELINE_SHAPES) & (uint32_t)low->keep;

	ret->high = &packed->high[number];
	ret->at = cursor->at;
	cursor->high += low->has_high;
	cursor->at += (size_t)low->bytes + ret->high->bytes;
}

/* Two blocks' DC, at at. */
PACKED_INLINE void packed_two(const uint8_t *at, struct baseline_packed_block *ret)
{
	const uint32_t two = little_32(at);

	ret[0].dc = (int16_t)((int32_t)(two << 20) >> 20);
	ret[1].dc = (int16_t)((int32_t)(two << 8) >> 20);
}

/* The block's low shape. Returns 1 if it has a high one. */
PACKED_INLINE size_t packed_low(const struct baseline_packed *packed, uint8_t code,
				struct baseline_packed_block *ret)
{
	ret->low = &packed->low[code];
	return ret->low->has_high;
}

/* The six of 4:2:0, as packed_blocks. */
static const uint8_t *packed_six(const struct baseline_packed *packed, const uint8_t *at,
				 struct baseline_packed_block ret[6])
{
	const uint8_t *low = at + 9;
	struct packed_cursor cursor = {low + 6, low + 6};

	cursor.at += packed_low(packed, low[0], &ret[0]) + packed_low(packed, low[1], &ret[1]) +
		     packed_low(packed, low[2], &ret[2]) + packed_low(packed, low[3], &ret[3]) +
		     packed_low(packed, low[4], &ret[4]) + packed_low(packed, low[5], &ret[5]);
	packed_block(packed, &cursor, &ret[0]);
	packed_block(packed, &cursor, &ret[1]);
	packed_block(packed, &cursor, &ret[2]);
	packed_block(packed, &cursor, &ret[3]);
	packed_block(packed, &cursor, &ret[4]);
	packed_block(packed, &cursor, &ret[5]);
	packed_two(at, ret);
	packed_two(at + 3, ret + 2);
	packed_two(at + 6, ret + 4);
	return cursor.at;
}

/* The blocks of the MCU at at, all of them; one more may be set. Returns its end. */
static const uint8_t *packed_blocks(const struct baseline_packed *packed, const uint8_t *at,
				    unsigned n_blocks, struct baseline_packed_block *ret)
{
	const uint8_t *low = at + (n_blocks * 3 + 1) / 2;
	struct packed_cursor cursor = {low + n_blocks, low + n_blocks};

	if (n_blocks == 6)
		return packed_six(packed, at, ret);
	for (unsigned i = 0; i < n_blocks; i++)
		cursor.at += packed_low(packed, low[i], &ret[i]);
	for (unsigned i = 0; i < n_blocks; i++)
		packed_block(packed, &cursor, &ret[i]);
	for (unsigned i = 0; i < n_blocks; i += 2)
		packed_two(at + i / 2 * 3, ret + i);
	return cursor.at;
}

/* Those that are not wanted are blocks of zeros. */
static void packed_leave(const struct baseline_packed *packed, unsigned n_blocks, unsigned wanted,
			 struct baseline_packed_block *block)
{
	for (unsigned i = 0; i < n_blocks; i++) {
		if (!(wanted >> i & 1))
			block[i].low = block[i].high = &packed->high[BASELINE_SHAPES];
	}
}

/* A pair's samples, if one of both is wanted. */
PACKED_INLINE int packed_pair(const struct baseline *baseline, unsigned component,
			      const struct baseline_packed_block *a,
			      const struct baseline_packed_block *b, unsigned wanted, uint8_t *to)
{
	if (!wanted)
		return 0;
	return baseline->kernels->packed_idct(a, b, baseline->quant[component], to,
					      baseline->plane[component].stride);
}

/* A component that has one block in a MCU, or two side by side, or four: the one or two rows of them. a and
 * b are the first ones of both MCUs. */
static int packed_component(const struct baseline *baseline, uint32_t x, unsigned c,
			    const struct baseline_packed_block *a,
			    const struct baseline_packed_block *b, unsigned left, unsigned right)
{
	const struct baseline_component *component = &baseline->head.component[c];
	const size_t stride = baseline->plane[c].stride;
	uint8_t *to = baseline->plane[c].rows + (size_t)x * component->across * 8;
	int r = 0;

	if (component->across == 1)
		return packed_pair(baseline, c, a, b, (left | right) & 1, to);
	for (unsigned j = 0; j < component->down; j++, to += 8 * stride) {
		r |= packed_pair(baseline, c, a + 2 * j, a + 2 * j + 1, left >> 2 * j & 3, to);
		r |=
		    packed_pair(baseline, c, b + 2 * j, b + 2 * j + 1, right >> 2 * j & 3, to + 16);
	}
	return r;
}

/* Both MCUs' blocks to samples, as of rows that are not packed (baseline_rows.c). */
static int packed_all(const struct baseline *baseline, uint32_t x,
		      const struct baseline_packed_block *a, const struct baseline_packed_block *b,
		      const unsigned wanted[2])
{
	unsigned at = 0;
	int r = 0;

	for (unsigned c = 0; c < baseline->head.n_components; c++) {
		r |= packed_component(baseline, x, c, a + at, b + at, wanted[0] >> at,
				      wanted[1] >> at);
		at += baseline->head.component[c].across * baseline->head.component[c].down;
	}
	return r == 0 ? 0 : BASELINE_E_DAMAGED;
}

/* The same of 4:2:0 where all is wanted. */
static int packed_all_six(const struct baseline *baseline, uint32_t x,
			  const struct baseline_packed_block a[6],
			  const struct baseline_packed_block b[6])
{
	const struct baseline_plane *luma = &baseline->plane[0], *cb = luma + 1, *cr = luma + 2;
	const size_t stride = luma->stride;
	uint8_t *to = luma->rows + (size_t)16 * x, *below = to + 8 * stride;
	int (*const idct)(const struct baseline_packed_block *,
			  const struct baseline_packed_block *, const uint16_t *, uint8_t *,
			  size_t) = baseline->kernels->packed_idct;
	int r = idct(&a[0], &a[1], baseline->quant[0], to, stride);

	r |= idct(&a[2], &a[3], baseline->quant[0], below, stride);
	r |= idct(&b[0], &b[1], baseline->quant[0], to + 16, stride);
	r |= idct(&b[2], &b[3], baseline->quant[0], below + 16, stride);
	r |= idct(&a[4], &b[4], baseline->quant[1], cb->rows + (size_t)8 * x, cb->stride);
	r |= idct(&a[5], &b[5], baseline->quant[2], cr->rows + (size_t)8 * x, cr->stride);
	return r == 0 ? 0 : BASELINE_E_DAMAGED;
}

int baseline_packed_samples(struct baseline *baseline, uint32_t x, const unsigned wanted[2])
{
	const struct baseline_packed *packed = &baseline->packed;
	const unsigned n = baseline->scan.n_blocks;
	struct baseline_packed_block block[2][BASELINE_BLOCKS + 1];
	uint8_t copy[2][BASELINE_PACKED_MOST];

	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *at, *from;
		uint64_t size;
		int r;

		/* Behind the last column stands that one again, of which nothing is wanted. */
		r = packed_find(baseline, BASE_MIN(x + i, baseline->columns.end - 1), copy[i],
				&from, &size);
		if (r != 0)
			return r;
		at = packed_blocks(packed, from, n, block[i]);
		if (packed_check(packed, at - from, size) != 0)
			return BASELINE_E_DAMAGED;
		if (wanted[i] != (1u << n) - 1)
			packed_leave(packed, n, wanted[i], block[i]);
	}
	if (n == 6 && (wanted[0] & wanted[1]) == (1u << 6) - 1)
		return packed_all_six(baseline, x - baseline->columns.first, block[0], block[1]);
	return packed_all(baseline, x - baseline->columns.first, block[0], block[1], wanted);
}
