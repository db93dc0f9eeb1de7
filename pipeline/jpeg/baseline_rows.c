/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of MCUs: entropy-coded bytes to samples in the planes.
 *
 * What is not wanted of a row is read over. Between restart markers that is decoding without the
 * values; whole segments between two of them are not looked into at all, since each begins anew.
 * Where a MCU is at the border of the part, only its blocks within are wanted. With a crop index each
 * row begins at an entry of it, a few MCUs before the part's first column.
 *
 * MCUs are decoded in pairs, so that all blocks have a neighbour of the same component for the
 * inverse DCT, which takes two.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

#define ROWS_RST0 0xd0

static const int16_t rows_zeros[BASELINE_BLOCK] __attribute__((aligned(32)));

/* ---- what is wanted ---- */

static bool rows_overlap(const struct baseline_span *span, uint32_t first, uint32_t size)
{
	return span->first < first + size && first < span->end;
}

/* A bit for each block of a MCU: those that the part's columns touch, in MCU x of any row. */
static unsigned rows_across(const struct baseline *baseline, uint32_t x)
{
	unsigned wanted = 0, bit = 0;

	for (unsigned c = 0; c < baseline->head.n_components; c++) {
		const struct baseline_component *component = &baseline->head.component[c];
		const struct baseline_plane *plane = &baseline->plane[c];

		for (uint32_t i = 0; i < component->across * component->down; i++, bit++) {
			uint32_t column = x * component->across + i % component->across;

			if (rows_overlap(&plane->across, column * plane->block_width,
					 plane->block_width))
				wanted |= 1u << bit;
		}
	}
	return wanted;
}

/* Those that the part's rows touch, in any MCU of the row. */
static unsigned rows_down(const struct baseline *baseline)
{
	unsigned wanted = 0, bit = 0;

	for (unsigned c = 0; c < baseline->head.n_components; c++) {
		const struct baseline_component *component = &baseline->head.component[c];
		const struct baseline_plane *plane = &baseline->plane[c];

		for (uint32_t i = 0; i < component->across * component->down; i++, bit++) {
			uint32_t row =
			    baseline->place.mcu_row * component->down + i / component->across;

			if (rows_overlap(&plane->down, row * plane->side, plane->side))
				wanted |= 1u << bit;
		}
	}
	return wanted;
}

unsigned baseline_rows_wanted(const struct baseline *baseline, uint32_t x)
{
	uint32_t before = x - baseline->place.columns.first,
		 behind = baseline->place.columns.end - 1 - x;

	if (before < 2)
		return baseline->wanted.down & baseline->wanted.first[before];
	return behind < 2 ? baseline->wanted.down & baseline->wanted.last[behind]
			  : baseline->wanted.down;
}

/* ---- MCUs ---- */

void baseline_rows_start(struct baseline *baseline)
{
	struct baseline_scan *scan = &baseline->scan;
	const struct baseline_span *columns = &baseline->place.columns;

	/* Only at the ends of a row do columns differ, in two MCUs each. */
	for (uint32_t i = 0; i < 2 && i < columns->end - columns->first; i++) {
		baseline->wanted.first[i] = rows_across(baseline, columns->first + i);
		baseline->wanted.last[i] = rows_across(baseline, columns->end - 1 - i);
	}
	for (unsigned c = 0; c < BASELINE_COMPONENTS; c++)
		scan->dc[c] = 0;
	baseline->restart.until = baseline->head.interval;
	baseline->restart.next = 0;
	if (!baseline->index.rows && !baseline->packed.rows)
		baseline_bits_start(&scan->bits, baseline->kernels, baseline->head.scan,
				    baseline->data + baseline->size);
}

static int rows_restart(struct baseline *baseline)
{
	struct baseline_bits *bits = &baseline->scan.bits;
	uint8_t marker = (uint8_t)(ROWS_RST0 + baseline->restart.next);

	if (baseline_bits_is_overrun(bits))
		return BASELINE_E_DAMAGED;
	for (unsigned c = 0; c < BASELINE_COMPONENTS; c++)
		baseline->scan.dc[c] = 0;
	baseline->restart.until = baseline->head.interval;
	baseline->restart.next = (baseline->restart.next + 1) & 7;
	return baseline_bits_restart(bits, baseline->kernels, marker);
}

int baseline_rows_begin(struct baseline *baseline)
{
	if (baseline->head.interval == 0 || baseline->restart.until > 0)
		return 0;
	return rows_restart(baseline);
}

/* Column x of the MCU row. */
static int rows_mcu(struct baseline *baseline, uint32_t x, struct baseline_mcu *mcu)
{
	struct baseline_bits *bits = &baseline->scan.bits;
	const unsigned wanted = baseline_rows_wanted(baseline, x);
	int r;

	if (baseline->packed.rows)
		return baseline_packed_mcu(baseline, x, wanted, mcu);
	if (baseline->index.rows && !baseline_index_agrees(baseline, x))
		return BASELINE_E_DAMAGED;
	r = baseline_rows_begin(baseline);
	if (r != 0)
		return r;
	if (bits->next > bits->limit) {
		r = baseline_bits_more(bits, baseline->kernels);
		if (r != 0)
			return r;
	}
	baseline->restart.until--;
	return baseline->kernels->mcu(&baseline->scan, wanted, mcu);
}

/* Reads over run MCUs, none of which follows a restart. */
static int rows_skip_run(struct baseline *baseline, uint32_t run)
{
	struct baseline_bits *bits = &baseline->scan.bits;

	while (run > 0) {
		int64_t left = baseline->kernels->skip(&baseline->scan, run);
		int r;

		if (left < 0)
			return BASELINE_E_DAMAGED;
		run = (uint32_t)left;
		if (run == 0)
			break;
		r = baseline_bits_more(bits, baseline->kernels);
		if (r != 0)
			return r;
	}
	return 0;
}

static int rows_skip(struct baseline *baseline, uint64_t count)
{
	while (count > 0) {
		uint32_t run = (uint32_t)BASE_MIN(count, (uint64_t)UINT32_MAX);
		int r = baseline_rows_begin(baseline);

		if (r != 0)
			return r;
		if (baseline->head.interval > 0)
			run = BASE_MIN(run, baseline->restart.until);
		count -= run;
		baseline->restart.until -= run;
		if (baseline->head.interval > 0 && baseline->restart.until == 0)
			continue; /* the marker is looked for, not what is before it */
		r = rows_skip_run(baseline, run);
		if (r != 0)
			return r;
	}
	return 0;
}

/* ---- samples ---- */

struct rows_block {
	const int16_t *coef;
	unsigned end;
};

static struct rows_block rows_block(const struct baseline_mcu *mcu, unsigned block)
{
	if (mcu->end[block] == 0)
		return (struct rows_block){rows_zeros, 0};
	return (struct rows_block){mcu->coef[block], mcu->end[block]};
}

static int rows_pair(const struct baseline *baseline, unsigned component, struct rows_block a,
		     struct rows_block b, uint8_t *to)
{
	unsigned end = BASE_MAX(a.end, b.end);

	if (end == 0)
		return 0;
	return baseline->kernels->idct(a.coef, b.coef, end, baseline->quant[component], to,
				       baseline->plane[component].stride);
}

/* Both MCUs' blocks to samples; x is the first one's column, counted from the first one wanted. */
static int rows_samples(const struct baseline *baseline, uint32_t x)
{
	const struct baseline_mcu *a = &baseline->mcu[0], *b = &baseline->mcu[1];
	unsigned block = 0;
	int r = 0;

	for (unsigned c = 0; c < baseline->head.n_components; c++) {
		const struct baseline_component *component = &baseline->head.component[c];
		const struct baseline_plane *plane = &baseline->plane[c];
		uint8_t *to = plane->rows + (size_t)x * component->across * 8;

		for (unsigned j = 0; j < component->down; j++, to += 8 * plane->stride) {
			if (component->across == 1) {
				r |= rows_pair(baseline, c, rows_block(a, block),
					       rows_block(b, block), to);
				block++;
				continue;
			}
			r |= rows_pair(baseline, c, rows_block(a, block), rows_block(a, block + 1),
				       to);
			r |= rows_pair(baseline, c, rows_block(b, block), rows_block(b, block + 1),
				       to + 16);
			block += 2;
		}
	}
	return r == 0 ? 0 : BASELINE_E_DAMAGED;
}

static int rows_columns(struct baseline *baseline, uint32_t x)
{
	for (unsigned i = 0; i < 2; i++) {
		int r;

		if (x + i >= baseline->place.columns.end) {
			for (unsigned block = 0; block < BASELINE_BLOCKS; block++)
				baseline->mcu[i].end[block] = baseline->mcu[i].coef[block][0] = 0;
			continue;
		}
		r = rows_mcu(baseline, x + i, &baseline->mcu[i]);
		if (r != 0)
			return r;
	}
	if (baseline->shift > 0)
		return baseline_scaled_samples(baseline, x - baseline->place.columns.first);
	return rows_samples(baseline, x - baseline->place.columns.first);
}

/* To the first MCU wanted of the row. */
static int rows_go(struct baseline *baseline)
{
	if (baseline->packed.rows)
		return 0;
	if (baseline->index.rows)
		return rows_skip(baseline, baseline_index_seek(baseline));
	return rows_skip(baseline, baseline->place.gap);
}

int baseline_rows_decode(struct baseline *baseline)
{
	const bool is_packed =
	    baseline->packed.rows && baseline->kernels->packed_unit && baseline->shift == 0;
	int r = rows_go(baseline);

	baseline->wanted.down = rows_down(baseline) & baseline->detailed;
	if (is_packed)
		r = baseline_packed_row(baseline);
	for (uint32_t x = baseline->place.columns.first;
	     !is_packed && r == 0 && x < baseline->place.columns.end; x += 2)
		r = rows_columns(baseline, x);
	if (r != 0)
		return r;
	if (baseline->index.rows && !baseline_index_agrees(baseline, baseline->place.columns.end))
		return BASELINE_E_DAMAGED;
	baseline->place.gap =
	    baseline->place.per_row - (baseline->place.columns.end - baseline->place.columns.first);
	baseline->place.mcu_row++;
	if (baseline->packed.rows)
		return 0;
	return baseline_bits_is_overrun(&baseline->scan.bits) ? BASELINE_E_DAMAGED : 0;
}
