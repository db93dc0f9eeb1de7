/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crop index: where in the scan each few MCUs begin.
 *
 * A Huffman code can be read from its beginning only, so a part costs what is before it, too. An entry
 * says of every few MCUs of a row at which bit of the file they begin and what the predictions of DC are there: all
 * that decoding depends on, since how far the next restart is follows from the number of the MCU. With
 * it each row of a part begins a few MCUs before it, and what is above it, beside it and below it is not looked
 * at. The file itself stays as it is.
 *
 *	 0  MCUs from entry to entry (u32), 0 (u32)
 *	 8  each row of MCUs: its place in bits (u64: bytes of the file from the scan's first, stuffing
 *	    included, times 8, and bits of that byte), then its entries (u64 each): in the low 28 bits the
 *	    place from the row's on, above it each component's prediction, 12 bits
 *	    the scan's end, as a row with one entry
 *
 * All numbers are little-endian. Before a restart marker the entry is that of before it: the end of the
 * segment.
 *
 * Only files that the quick decoder takes as a whole, to the end marker, get one. So with an index nobody
 * looks at the bytes that a part does not need. That an index is of a file, and undamaged, is for who stores it to
 * know (form.c); what it says is believed as far as no memory depends on it. Places must rise and
 * lie in the file, the rest is found out while decoding, where a row comes to an entry and is not as the
 * entry says (baseline_index_agrees), or needs more bytes than lie before the next. Then the file is decoded by
 * libjpeg-turbo, as any damaged one.
 *
 * Rejected: places in the data without stuffing (all bytes before them would have to be looked at);
 * entries by differences, of any length (they could no longer be found by their number).
 */

#include "base/little.h"
#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

#define INDEX_HEAD 8
#define INDEX_WORD 8
#define INDEX_SHARE 51      /* of the file's bytes, an index has a 51st */
#define INDEX_MOST_SHARE 30 /* or more, but not more than a 30th, if nothing else is left */
#define INDEX_PLACE_BITS 28
#define INDEX_DC_BITS 12

void baseline_index_measure(const struct baseline *baseline, uint32_t *ret_per_row,
			    uint32_t *ret_rows)
{
	const struct baseline_head *head = &baseline->head;
	const uint32_t width = head->component[0].across * 8u,
		       height = head->component[0].down * 8u;

	*ret_per_row = (head->width + width - 1) / width;
	*ret_rows = (head->height + height - 1) / height;
}

static uint64_t index_row_size(uint32_t per_row, uint32_t step)
{
	return INDEX_WORD + ((uint64_t)per_row + step - 1) / step * INDEX_WORD;
}

static uint64_t index_size(const struct baseline *baseline, uint32_t step)
{
	uint32_t per_row, rows;

	baseline_index_measure(baseline, &per_row, &rows);
	return INDEX_HEAD + rows * index_row_size(per_row, step) + 2 * INDEX_WORD;
}

/* ---- making ---- */

struct index_maker {
	struct baseline *baseline;
	uint64_t gone;       /* bytes of the segment without stuffing that have left the window */
	const uint8_t *file; /* a place in the segment */
	uint64_t walked;     /* bytes before it, not counted what is stuffing */
	uint64_t row;        /* the place of the row's first MCU */
	uint8_t *to;         /* the next word */
};

/* The segment's byte of that number, not counted what is stuffing; it is not before the last one. */
static const uint8_t *index_walk(struct index_maker *maker, uint64_t number)
{
	while (maker->walked < number) {
		size_t rest = (size_t)(number - maker->walked);
		const uint8_t *stuffed = memchr(maker->file, 0xff, rest);

		if (!stuffed) {
			maker->file += rest;
			maker->walked = number;
			break;
		}
		maker->walked += (uint64_t)(stuffed - maker->file) + 1;
		maker->file = stuffed + 2;
	}
	return maker->file;
}

static int index_place(struct index_maker *maker, uint64_t *ret)
{
	const struct baseline *baseline = maker->baseline;
	const struct baseline_bits *bits = &baseline->scan.bits;
	uint64_t consumed;

	if (baseline_bits_is_overrun(bits))
		return BASELINE_E_DAMAGED;
	consumed = (maker->gone + (uint64_t)(bits->next - bits->window)) * 8 - bits->count;
	*ret = (uint64_t)(index_walk(maker, consumed / 8) - baseline->head.scan) * 8 + consumed % 8;
	return 0;
}

/* A row's place. */
static int index_add_row(struct index_maker *maker)
{
	int r = index_place(maker, &maker->row);

	if (r != 0)
		return r;
	little_put(maker->to, maker->row, INDEX_WORD);
	maker->to += INDEX_WORD;
	return 0;
}

/* An entry for the MCU that comes. */
static int index_add(struct index_maker *maker)
{
	const int32_t half = 1 << (INDEX_DC_BITS - 1);
	uint64_t word;
	int r = index_place(maker, &word);

	if (r != 0)
		return r;
	word -= maker->row;
	if (word >> INDEX_PLACE_BITS != 0)
		return BASELINE_E_OTHER;
	for (unsigned c = 0; c < maker->baseline->head.n_components; c++) {
		int32_t dc = maker->baseline->scan.dc[c];

		if (dc < -half || dc >= half)
			return BASELINE_E_OTHER;
		word |= ((uint64_t)dc & ((1 << INDEX_DC_BITS) - 1))
			<< (INDEX_PLACE_BITS + c * INDEX_DC_BITS);
	}
	little_put(maker->to, word, INDEX_WORD);
	maker->to += INDEX_WORD;
	return 0;
}

/* Over MCUs of one segment. */
static int index_skip(struct index_maker *maker, uint32_t count)
{
	struct baseline *baseline = maker->baseline;
	struct baseline_bits *bits = &baseline->scan.bits;

	for (;;) {
		int64_t left = baseline->kernels->skip(&baseline->scan, count);
		int r;

		if (left <= 0)
			return left == 0 ? 0 : BASELINE_E_DAMAGED;
		count = (uint32_t)left;
		maker->gone += (uint64_t)(bits->next - bits->window);
		r = baseline_bits_more(bits, baseline->kernels);
		if (r != 0)
			return r;
	}
}

static int index_restart(struct index_maker *maker)
{
	struct baseline *baseline = maker->baseline;
	int r;

	if (baseline->head.interval == 0 || baseline->restart.until > 0)
		return 0;
	r = baseline_rows_begin(baseline);
	if (r != 0)
		return r;
	maker->file = baseline->kernels->find(maker->file, baseline->data + baseline->size) + 2;
	maker->gone = maker->walked = 0;
	return 0;
}

static int index_pass(struct index_maker *maker, uint32_t count)
{
	struct baseline *baseline = maker->baseline;
	int r = 0;

	while (r == 0 && count > 0) {
		uint32_t run = count;

		r = index_restart(maker);
		if (r != 0)
			break;
		if (baseline->head.interval > 0)
			run = BASE_MIN(run, baseline->restart.until);
		baseline->restart.until -= run;
		count -= run;
		r = index_skip(maker, run);
	}
	return r;
}

static int index_fill(struct baseline *baseline, uint32_t step, uint8_t *to)
{
	struct index_maker maker = {.baseline = baseline, .file = baseline->head.scan, .to = to};
	uint32_t per_row, rows;
	int r = 0;

	baseline_index_measure(baseline, &per_row, &rows);
	baseline->index.rows = NULL;
	baseline->packed.rows = NULL;
	baseline_rows_start(baseline);
	for (uint32_t y = 0; r == 0 && y < rows; y++) {
		r = index_add_row(&maker);
		for (uint32_t x = 0; r == 0 && x < per_row; x += step) {
			r = index_add(&maker);
			r = r ? r : index_pass(&maker, BASE_MIN(step, per_row - x));
		}
	}
	r = r ? r : index_add_row(&maker);
	r = r ? r : index_add(&maker);
	if (r == 0 && !baseline_bits_has_end(&baseline->scan.bits, baseline->kernels))
		r = BASELINE_E_DAMAGED;
	return r;
}

/* 0: none is small enough. */
static uint32_t index_choose(const struct baseline *baseline)
{
	uint32_t step = 1, per_row, rows;

	baseline_index_measure(baseline, &per_row, &rows);
	while (step < per_row && index_size(baseline, step) > baseline->size / INDEX_SHARE)
		step++;
	return index_size(baseline, step) > baseline->size / INDEX_MOST_SHARE ? 0 : step;
}

int baseline_index_make(struct baseline *baseline, uint32_t step, uint8_t **ret, size_t *ret_size)
{
	_cleanup_free_ uint8_t *index = NULL;
	size_t size;
	int r;

	if (step == 0)
		step = index_choose(baseline);
	if (step == 0)
		return BASELINE_E_OTHER;
	size = index_size(baseline, step);
	index = calloc(1, size);
	if (!index)
		return -ENOMEM;
	little_put(index, step, 4);
	r = index_fill(baseline, step, index + INDEX_HEAD);
	if (r != 0)
		return r;
	*ret = base_take_ptr(index);
	*ret_size = size;
	return 0;
}

/* ---- using ---- */

static uint64_t index_word(const uint8_t *from)
{
	return little_64(from);
}

static uint64_t index_word_place(uint64_t word)
{
	return word & ((1 << INDEX_PLACE_BITS) - 1);
}

/* Whether the places of a row's entries rise from the row's on. *ret_last: the last one. */
static bool index_row_rises(const uint8_t *row, uint64_t entries, uint64_t *ret_last)
{
	uint64_t last = 0;
	bool is_good = index_word_place(index_word(row + INDEX_WORD)) == 0;

	for (uint64_t i = 1; i < entries; i++) {
		const uint64_t next = index_word_place(index_word(row + INDEX_WORD * (i + 1)));

		is_good &= next > last;
		last = next;
	}
	*ret_last = index_word(row) + last;
	return is_good;
}

/* Whether all places rise from the scan's beginning and lie in the file. */
static bool index_rises(const struct baseline *baseline, const uint8_t *row, uint32_t step)
{
	const uint64_t most = (uint64_t)(baseline->data + baseline->size - baseline->head.scan) * 8;
	uint32_t per_row, rows;
	uint64_t last;
	bool is_good = index_word(row) == 0;

	baseline_index_measure(baseline, &per_row, &rows);
	for (uint32_t y = 0; is_good && y < rows; y++) {
		is_good = index_word(row) < most &&
			  index_row_rises(row, (per_row + step - 1) / step, &last);
		row += index_row_size(per_row, step);
		is_good = is_good && index_word(row) > last;
	}
	return is_good && index_word(row) < most && index_row_rises(row, 1, &last);
}

int baseline_index_use(struct baseline *baseline, const void *index, size_t size)
{
	const uint8_t *at = index;
	uint32_t per_row, rows, step;

	baseline->index.rows = NULL;
	if (size < INDEX_HEAD)
		return BASELINE_E_OTHER;
	step = (uint32_t)little_get(at, 4);
	if (step == 0 || step > UINT16_MAX || little_get(at + 4, 4) != 0 ||
	    size != index_size(baseline, step) || !index_rises(baseline, at + INDEX_HEAD, step))
		return BASELINE_E_OTHER;
	baseline_index_measure(baseline, &per_row, &rows);
	baseline->index = (struct baseline_index){
	    .rows = at + INDEX_HEAD,
	    .row_size = index_row_size(per_row, step),
	    .step = step,
	};
	return 0;
}

struct index_entry {
	uint64_t place;
	int32_t dc[BASELINE_COMPONENTS];
};

/* The first entry that is not before column x of the MCU row that comes; of the next row, maybe. */
static struct index_entry index_entry(const struct baseline *baseline, uint32_t x)
{
	const struct baseline_index *index = &baseline->index;
	const uint8_t *row = index->rows + baseline->place.mcu_row * index->row_size;
	size_t number = INDEX_WORD + ((size_t)x + index->step - 1) / index->step * INDEX_WORD;
	struct index_entry entry;
	uint64_t word;

	if (number == index->row_size) {
		row += index->row_size;
		number = INDEX_WORD;
	}
	word = index_word(row + number);
	entry.place = index_word(row) + index_word_place(word);
	for (unsigned c = 0; c < BASELINE_COMPONENTS; c++) {
		unsigned above = 64 - INDEX_PLACE_BITS - (c + 1) * INDEX_DC_BITS;

		entry.dc[c] = (int32_t)((int64_t)(word << above) >> (64 - INDEX_DC_BITS));
	}
	return entry;
}

/* How far the next restart is from a MCU, and which: of before the marker, if one precedes it. */
static void index_set_restart(struct baseline *baseline, uint64_t mcu)
{
	const uint32_t interval = baseline->head.interval;
	uint64_t done;

	if (interval == 0)
		return;
	done = mcu == 0 ? 0 : (mcu - 1) / interval;
	baseline->restart.until = interval - (uint32_t)(mcu - done * interval);
	baseline->restart.next = (uint8_t)(done & 7);
}

uint32_t baseline_index_seek(struct baseline *baseline)
{
	struct baseline_index *index = &baseline->index;
	const uint8_t *end = baseline->data + baseline->size;
	const uint32_t left = baseline->place.columns.first % index->step;
	const uint32_t first = baseline->place.columns.first - left;
	const struct index_entry entry = index_entry(baseline, first);
	const struct index_entry behind = index_entry(baseline, baseline->place.columns.end);
	const uint8_t *stop = baseline->head.scan + behind.place / 8;

	for (unsigned c = 0; c < baseline->head.n_components; c++)
		baseline->scan.dc[c] = entry.dc[c];
	index_set_restart(baseline,
			  (uint64_t)baseline->place.mcu_row * baseline->place.per_row + first);
	/* That byte's first bits may be of this row, and a 00 behind it is its stuffing. */
	baseline_bits_start_within(&baseline->scan.bits, baseline->kernels,
				   baseline->head.scan + entry.place / 8, entry.place % 8,
				   end - stop < 2 ? end : stop + 2);
	index->next = BASE_MIN(first + index->step, baseline->place.per_row);
	return left;
}

bool baseline_index_agrees(struct baseline *baseline, uint32_t x)
{
	const struct baseline_scan *scan = &baseline->scan;
	struct index_entry entry;
	bool is_same;

	if (x < baseline->index.next)
		return true;
	baseline->index.next = BASE_MIN(x + baseline->index.step, baseline->place.per_row);
	entry = index_entry(baseline, x);
	is_same = (entry.place & 7) == (-scan->bits.count & 7);
	for (unsigned c = 0; c < baseline->head.n_components; c++)
		is_same &= scan->dc[c] == entry.dc[c];
	return is_same;
}
