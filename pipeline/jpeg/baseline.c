/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quick JPEG decoder: its handle, and which rows and columns of which plane a part needs.
 *
 * It goes through the scan once, MCU row by MCU row, and gives pixels as soon as they can be made;
 * planes and pixels of one MCU row stand in the cache. Work is only done for blocks that the part
 * needs: those it touches, and for halved chroma one sample around. Entropy decoding ends with the
 * last MCU wanted; then the rest of the file is only looked through for its end marker.
 *
 * Damage: whatever libjpeg would have warned of in what was decoded, and a file whose rest is not
 * entropy-coded bytes, restart markers and the end marker, is BASELINE_E_DAMAGED. Damage in what was
 * only read over may go unseen where it cannot have an effect: before a restart marker that is where
 * and what it must be, or behind the last row.
 *
 * All memory is the handle's and is used again; only a part wider than all before makes it grow. Its
 * size follows the part's width, not the file or the picture's height.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

#define BASELINE_PAD 64          /* readable bytes beside rows; kernels read and write ahead less */
#define BASELINE_KEEP (1u << 20) /* bytes of memory that a trim leaves */

const struct baseline_kernels *baseline_kernels_best(void)
{
	const struct baseline_kernels *fast = baseline_kernels_avx512();

	if (!fast)
		fast = baseline_kernels_avx2();
	if (!fast)
		fast = baseline_kernels_neon();
	return fast ? fast : &baseline_kernels_plain;
}

int baseline_new(struct baseline **ret)
{
	size_t size = base_align_up(sizeof(struct baseline), BASE_CACHE_LINE);
	struct baseline *baseline = aligned_alloc(BASE_CACHE_LINE, size);
	int r;

	if (!baseline)
		return -ENOMEM;
	memset(baseline, 0, size);
	r = baseline_tables_new(&baseline->tables);
	if (r != 0) {
		free(baseline);
		return r;
	}
	baseline->kernels = baseline_kernels_best();
	*ret = baseline;
	return 0;
}

void baseline_free(struct baseline *baseline)
{
	if (!baseline)
		return;
	baseline_tables_free(baseline->tables);
	free(baseline->memory);
	free(baseline);
}

void baseline_trim(struct baseline *baseline)
{
	if (baseline->memory_size <= BASELINE_KEEP)
		return;
	free(baseline->memory);
	baseline->memory = NULL;
	baseline->memory_size = 0;
}

/* ---- the head ---- */

/* The tables of each block of a MCU. */
static int baseline_set_blocks(struct baseline *baseline)
{
	const struct baseline_head *head = &baseline->head;
	struct baseline_scan *scan = &baseline->scan;

	scan->n_blocks = 0;
	for (unsigned c = 0; c < head->n_components; c++) {
		const struct baseline_component *component = &head->component[c];
		struct baseline_block_kind kind = {
		    .dc = baseline_tables_dc(baseline->tables, head->code[0][component->dc]),
		    .ac = baseline_tables_ac(baseline->tables, head->code[1][component->ac]),
		    .component = c,
		};

		if (!kind.dc || !kind.ac)
			return BASELINE_E_OTHER;
		for (int i = 0; i < component->across * component->down; i++)
			scan->block[scan->n_blocks++] = kind;
		for (unsigned i = 0; i < 64; i++)
			baseline->quant[c][baseline_natural[i]] = head->quant[component->quant][i];
	}
	return 0;
}

int baseline_open(struct baseline *baseline, const void *data, size_t size, uint32_t *ret_height,
		  uint32_t *ret_width)
{
	int r;

	baseline->data = data;
	baseline->size = size;
	baseline->index.rows = NULL;
	baseline->packed.rows = NULL;
	r = baseline_head_read(data, size, &baseline->head);
	r = r ? r : baseline_set_blocks(baseline);
	if (r != 0)
		return r;
	*ret_height = baseline->head.height;
	*ret_width = baseline->head.width;
	return baseline_reduce(baseline, 0);
}

size_t baseline_front(const struct baseline *baseline)
{
	return (size_t)(baseline->head.scan - baseline->data);
}

/* ---- the scale ---- */

/* Where chroma has half the rows and columns it gets blocks twice as large in a smaller picture, and
 * where it has half the columns of single pixels, each twice: nothing is left to be smoothed. */
static void baseline_set_sides(struct baseline *baseline)
{
	const struct baseline_head *head = &baseline->head;
	const bool across = head->component[0].across == 2, down = head->component[0].down == 2;
	const uint32_t side = 8u >> baseline->shift;
	unsigned block = 0;

	baseline->is_half = across && side > 1 && !(down && side < 8);
	baseline->is_low = down && side == 8;
	baseline->detailed = 0;
	for (unsigned c = 0; c < head->n_components; c++) {
		const unsigned n = head->component[c].across * head->component[c].down;
		struct baseline_plane *plane = &baseline->plane[c];
		bool is_twice = c > 0 && across && side < 8;

		plane->side = is_twice && down ? 2 * side : side;
		plane->block_width = is_twice && side == 1 ? 2 : plane->side;
		if (plane->side > 1)
			baseline->detailed |= ((1u << n) - 1) << block;
		block += n;
	}
}

int baseline_reduce(struct baseline *baseline, unsigned shift)
{
	const uint32_t round = (1u << shift) - 1;

	baseline->shift = shift;
	baseline->height = (baseline->head.height + round) >> shift;
	baseline->width = (baseline->head.width + round) >> shift;
	baseline_set_sides(baseline);
	/* So narrow that libjpeg repeats chroma instead of smoothing it. */
	return baseline->is_half && baseline->width <= 4 ? BASELINE_E_OTHER : 0;
}

/* ---- the part ---- */

/* Samples that pixels first ... end - 1 of size are made from. Across, pixels go in pairs; down, an
 * even row needs the chroma above, an odd one that below. */
static struct baseline_span baseline_half(uint32_t first, uint32_t end, uint32_t size, bool is_down)
{
	uint32_t last = (end - 1) / 2 + (is_down ? (end - 1) % 2 : 1);
	uint32_t before = is_down ? 1 - first % 2 : 1;
	uint32_t half = (size + 1) / 2;

	first /= 2;
	return (struct baseline_span){first - BASE_MIN(first, before), BASE_MIN(last + 1, half)};
}

static void baseline_set_spans(struct baseline *baseline)
{
	const struct picture_box *box = &baseline->box;
	const uint32_t height = baseline->height, width = baseline->width;
	struct baseline_span across = {box->left, box->left + box->width};
	struct baseline_span down = {box->top, box->top + box->height};

	for (unsigned c = 0; c < baseline->head.n_components; c++) {
		struct baseline_plane *plane = &baseline->plane[c];
		bool is_half = c > 0 && baseline->is_half, is_low = c > 0 && baseline->is_low;

		plane->across =
		    is_half ? baseline_half(across.first, across.end, width, false) : across;
		plane->down = is_low ? baseline_half(down.first, down.end, height, true) : down;
		plane->width = is_half ? (width + 1) / 2 : width;
		plane->height = is_low ? (height + 1) / 2 : height;
	}
}

static void baseline_set_columns(struct baseline *baseline)
{
	const struct baseline_head *head = &baseline->head;
	uint32_t mcu = head->component[0].across * 8u;

	baseline->place.columns = (struct baseline_span){UINT32_MAX, 0};
	baseline->place.mcu_row = UINT32_MAX;
	for (unsigned c = 0; c < head->n_components; c++) {
		const struct baseline_plane *plane = &baseline->plane[c];
		uint32_t across = head->component[c].across * plane->block_width,
			 down = head->component[c].down * plane->side;

		baseline->place.columns.first =
		    BASE_MIN(baseline->place.columns.first, plane->across.first / across);
		baseline->place.columns.end =
		    BASE_MAX(baseline->place.columns.end, (plane->across.end - 1) / across + 1);
		baseline->place.mcu_row =
		    BASE_MIN(baseline->place.mcu_row, plane->down.first / down);
	}
	baseline->place.per_row = (head->width + mcu - 1) / mcu;
	baseline->place.gap = (uint64_t)baseline->place.mcu_row * baseline->place.per_row +
			      baseline->place.columns.first;
	baseline->place.y = baseline->box.top;
}

/* An odd number of cache lines, so that rows do not meet in the same sets of the cache. */
static size_t baseline_stride(size_t bytes)
{
	return base_align_up(bytes + (size_t)2 * BASELINE_PAD, BASE_CACHE_LINE) | BASE_CACHE_LINE;
}

/* Places the planes and the rows of pixels in memory; returns how many bytes they take. memory may
 * be NULL. */
static size_t baseline_place(struct baseline *baseline, uint8_t *memory)
{
	const struct baseline_head *head = &baseline->head;
	size_t pairs = (baseline->place.columns.end - baseline->place.columns.first + 1) / 2,
	       used = 0;
	uint32_t out_rows = head->component[0].down * 8u + 1;

	for (unsigned c = 0; c < head->n_components; c++) {
		const struct baseline_component *component = &head->component[c];
		struct baseline_plane *plane = &baseline->plane[c];

		plane->stride = baseline_stride(pairs * 16 * component->across);
		plane->rows = memory ? memory + used + plane->stride + BASELINE_PAD : NULL;
		used += plane->stride * (component->down * 8u + 1);
	}
	baseline->out_stride = baseline_stride((size_t)baseline->box.width + 1);
	for (unsigned i = 0; i < 3 && head->n_components > 1; i++) {
		baseline->out[i] = memory ? memory + used + BASELINE_PAD : NULL;
		used += baseline->out_stride * out_rows;
	}
	return used;
}

int baseline_start(struct baseline *baseline, const struct picture_box *box)
{
	size_t size;

	baseline->box = *box;
	baseline_set_spans(baseline);
	baseline_set_columns(baseline);
	size = baseline_place(baseline, NULL);
	if (size > baseline->memory_size) {
		void *memory = aligned_alloc(BASE_CACHE_LINE, size);

		if (!memory)
			return -ENOMEM;
		memset(memory, 0, size);
		free(baseline->memory);
		baseline->memory = memory;
		baseline->memory_size = size;
	}
	baseline_place(baseline, baseline->memory);
	baseline_rows_start(baseline);
	return 0;
}

/* ---- rows ---- */

/* What the next MCU row looks at of this one. */
static void baseline_keep_last(const struct baseline *baseline)
{
	for (unsigned c = 0; c < baseline->head.n_components; c++) {
		const struct baseline_plane *plane = &baseline->plane[c];
		size_t down = baseline->head.component[c].down * (size_t)8;
		uint8_t *first = plane->rows - BASELINE_PAD;

		memcpy(first - plane->stride, first + (down - 1) * plane->stride, plane->stride);
	}
}

/* The first and the last sample of chroma's rows again, outside. */
static void baseline_extend(const struct baseline *baseline)
{
	if (!baseline->is_half)
		return;
	for (unsigned c = 1; c < baseline->head.n_components; c++) {
		const struct baseline_plane *plane = &baseline->plane[c];
		uint8_t *row = plane->rows;
		size_t last =
		    plane->width - 1 - (size_t)baseline->place.columns.first * plane->side;

		for (unsigned y = 0; y < plane->side; y++, row += plane->stride) {
			if (baseline->place.columns.first == 0)
				row[-1] = row[0];
			if (plane->across.end == plane->width)
				row[last + 1] = row[last];
		}
	}
}

int baseline_next(struct baseline *baseline, struct decode_band *ret)
{
	const struct picture_box *box = &baseline->box;
	uint32_t high = baseline->head.component[0].down * baseline->plane[0].side, end;
	bool late = baseline->is_low;

	do {
		int r;

		if (late)
			baseline_keep_last(baseline);
		r = baseline_rows_decode(baseline);
		if (r != 0)
			return r;
		baseline_extend(baseline);
		end = baseline->place.mcu_row * high;
		end = end >= baseline->height ? baseline->height : end - late;
		end = BASE_MIN(end, box->top + box->height);
	} while (end <= baseline->place.y);
	/* Who made an index, or packed, has looked. */
	if (end == box->top + box->height && !baseline->index.rows && !baseline->packed.rows &&
	    !baseline_bits_has_end(&baseline->scan.bits, baseline->kernels))
		return BASELINE_E_DAMAGED;
	baseline_band_make(baseline, end, ret);
	baseline->place.y = end;
	return 0;
}
