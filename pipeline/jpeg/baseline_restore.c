/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From packed coefficients back to a JPEG file, for decoders that know no others.
 *
 * What stands before the scan is the file's own, so its Huffman codes and its restart interval are there; the
 * scan is written again with them. It has the file's coefficients, and hence its pixels, though not always its
 * bytes: an encoder may have ended blocks and the last byte otherwise.
 *
 * Numbers that the file's codes have no word for come of hostile bytes alone: no file then.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

/* Bytes, more than any has: 6 blocks of 64 words of 27 bits, stuffed */
#define RESTORE_MOST_MCU 4096

struct restore_codes { /* of a symbol; bits 0: there is none */
	uint16_t word[256];
	uint8_t bits[256];
};

struct restore {
	struct baseline *baseline;
	struct restore_codes dc[BASELINE_COMPONENTS], ac[BASELINE_COMPONENTS];
	int32_t before[BASELINE_COMPONENTS]; /* predictions */
	uint64_t held;                       /* bits that are no byte yet */
	unsigned n_held;
	uint8_t *out; /* owned */
	size_t size, room;
	bool is_bad;
};

/* 16 counts and the symbols, as the head has them. */
static void restore_set_codes(struct restore_codes *codes, const uint8_t *code)
{
	const uint8_t *symbol = code + 16;
	uint32_t word = 0;

	memset(codes, 0, sizeof(*codes));
	for (unsigned length = 1; length <= 16; length++, word <<= 1) {
		for (unsigned i = 0; i < code[length - 1]; i++, symbol++) {
			codes->word[*symbol] = (uint16_t)word++;
			codes->bits[*symbol] = (uint8_t)length;
		}
	}
}

/* ---- bytes ---- */

static int restore_grow(struct restore *restore, size_t more)
{
	return base_grow(&restore->out, &restore->room, restore->size + more, 1) ? 0 : -ENOMEM;
}

static void restore_bits(struct restore *restore, uint32_t value, unsigned bits)
{
	restore->held = restore->held << bits | (value & ((UINT32_C(1) << bits) - 1));
	for (restore->n_held += bits; restore->n_held >= 8; restore->n_held -= 8) {
		uint8_t byte = (uint8_t)(restore->held >> (restore->n_held - 8));

		restore->out[restore->size++] = byte;
		if (byte == 0xff)
			restore->out[restore->size++] = 0;
	}
}

static void restore_symbol(struct restore *restore, const struct restore_codes *codes,
			   unsigned symbol)
{
	restore->is_bad |= codes->bits[symbol] == 0;
	restore_bits(restore, codes->word[symbol], codes->bits[symbol]);
}

static void restore_marker(struct restore *restore, uint8_t marker)
{
	if (restore->n_held > 0)
		restore_bits(restore, 0xff, 8 - restore->n_held);
	restore->out[restore->size++] = 0xff;
	restore->out[restore->size++] = marker;
}

/* ---- numbers ---- */

static unsigned restore_bits_of(int32_t number)
{
	return number == 0 ? 0 : 32 - (unsigned)__builtin_clz((uint32_t)abs(number));
}

/* A number's bits: a negative one's are those of it less one. */
static void restore_number(struct restore *restore, int32_t number, unsigned bits)
{
	if (bits > 0)
		restore_bits(restore, (uint32_t)(number < 0 ? number - 1 : number), bits);
}

static void restore_block(struct restore *restore, unsigned component, const int16_t *coef)
{
	const struct restore_codes *ac = &restore->ac[component];
	int32_t difference = coef[0] - restore->before[component];
	unsigned bits = restore_bits_of(difference), run = 0;

	restore->before[component] = coef[0];
	restore_symbol(restore, &restore->dc[component], bits);
	restore_number(restore, difference, bits);
	for (unsigned k = 1; k < 64; k++, run++) {
		if (coef[k] == 0)
			continue;
		for (; run >= 16; run -= 16)
			restore_symbol(restore, ac, 0xf0);
		bits = restore_bits_of(coef[k]);
		restore->is_bad |= bits > 10;
		restore_symbol(restore, ac, run << 4 | (bits & 15));
		restore_number(restore, coef[k], bits);
		run = (unsigned)-1;
	}
	if (run > 0)
		restore_symbol(restore, ac, 0);
}

/* Column x of the row that comes. */
static int restore_mcu(struct restore *restore, uint32_t x)
{
	struct baseline *baseline = restore->baseline;
	struct baseline_mcu *mcu = &baseline->mcu[0];
	int r = baseline_packed_mcu(baseline, x, UINT32_MAX, mcu);

	r = r ? r : restore_grow(restore, RESTORE_MOST_MCU);
	if (r != 0)
		return r;
	for (unsigned i = 0; i < baseline->scan.n_blocks; i++)
		restore_block(restore, baseline->scan.block[i].component, mcu->coef[i]);
	return restore->is_bad ? BASELINE_E_DAMAGED : 0;
}

static void restore_restart(struct restore *restore, uint64_t number)
{
	restore_marker(restore, (uint8_t)(0xd0 + (number & 7)));
	memset(restore->before, 0, sizeof(restore->before));
}

static int restore_scan(struct restore *restore)
{
	struct baseline *baseline = restore->baseline;
	const uint32_t interval = baseline->head.interval;
	uint32_t rows;
	uint64_t number = 0;
	int r = 0;

	baseline_index_measure(baseline, &baseline->place.per_row, &rows);
	for (baseline->place.mcu_row = 0; baseline->place.mcu_row < rows;
	     baseline->place.mcu_row++) {
		for (uint32_t x = 0; r == 0 && x < baseline->place.per_row; x++, number++) {
			if (interval > 0 && number > 0 && number % interval == 0)
				restore_restart(restore, number / interval - 1);
			r = restore_mcu(restore, x);
		}
	}
	if (r == 0)
		restore_marker(restore, 0xd9);
	return r;
}

int baseline_restore(struct baseline *baseline, uint8_t **ret, size_t *ret_size)
{
	const size_t front = baseline_front(baseline);
	struct restore restore = {.baseline = baseline};
	int r = restore_grow(&restore, front + RESTORE_MOST_MCU);

	if (r != 0)
		return r;
	memcpy(restore.out, baseline->data, front);
	restore.size = front;
	for (unsigned c = 0; c < baseline->head.n_components; c++) {
		const struct baseline_component *component = &baseline->head.component[c];

		restore_set_codes(&restore.dc[c], baseline->head.code[0][component->dc]);
		restore_set_codes(&restore.ac[c], baseline->head.code[1][component->ac]);
	}
	r = restore_scan(&restore);
	if (r != 0) {
		free(restore.out);
		return r;
	}
	*ret = restore.out;
	*ret_size = restore.size;
	return 0;
}
