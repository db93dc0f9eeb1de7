/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entropy-coded bytes without their stuffing, a window at a time.
 *
 * In the file each FF of the data is FF 00, and any other FF xx is a marker, which ends a segment.
 * The window holds a run of bytes of one segment with the zeros taken out, and zeros behind it: the
 * decoder refills without looking where the end is, and asks once a MCU. While the segment goes on
 * behind the window, a MCU begins only where all its bytes are there for certain; at the segment's
 * end it may run into the zeros, and is found out afterwards.
 *
 * FF FF is taken for a marker, which no decoder here goes on behind: libjpeg has rules for it.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

#define BITS_EOI 0xd9
#define BITS_TOUCHED 64 /* bytes behind what the kernel says */
#define BITS_RST0 0xd0
#define BITS_RST7 0xd7

/* As many zeros behind the last byte as a MCU may read. */
static void bits_clear(struct baseline_bits *bits)
{
	const size_t end = (size_t)(bits->fill - bits->window);

	if (bits->dirty <= end)
		return;
	memset(bits->fill, 0, BASE_MIN(bits->dirty - end, BASELINE_MARGIN));
	if (bits->dirty - end <= BASELINE_MARGIN)
		bits->dirty = end;
}

static void bits_fill(struct baseline_bits *bits, const struct baseline_kernels *kernels)
{
	size_t room = (size_t)(bits->window + BASELINE_WINDOW - bits->fill);

	bits->fill += kernels->unstuff(&bits->at, bits->stop, bits->fill, room);
	bits->dirty = BASE_MAX(bits->dirty, (size_t)(bits->fill - bits->window) + BITS_TOUCHED);
	/* Less than it could: up to a marker, or the end of the file. */
	bits->is_last = bits->fill < bits->window + BASELINE_WINDOW;
	/* Bits of the buffer may have come from eight bytes behind those consumed. */
	bits->limit = bits->is_last ? bits->fill + 8 : bits->fill - BASELINE_MCU_BYTES;
	if (bits->is_last)
		bits_clear(bits);
}

void baseline_bits_start(struct baseline_bits *bits, const struct baseline_kernels *kernels,
			 const uint8_t *at, const uint8_t *stop)
{
	bits->at = at;
	bits->stop = stop;
	bits->fill = bits->window;
	bits->next = bits->window;
	bits->buffer = 0;
	bits->count = 0;
	bits_fill(bits, kernels);
}

void baseline_bits_start_within(struct baseline_bits *bits, const struct baseline_kernels *kernels,
				const uint8_t *at, unsigned consumed, const uint8_t *stop)
{
	baseline_bits_start(bits, kernels, at, stop);
	if (consumed == 0)
		return;
	/* Where there is no byte it is a zero, and found out afterwards. */
	bits->buffer = (uint64_t)bits->window[0] << (56 + consumed);
	bits->count = 8 - consumed;
	bits->next++;
}

int baseline_bits_more(struct baseline_bits *bits, const struct baseline_kernels *kernels)
{
	size_t kept;

	if (bits->is_last)
		return BASELINE_E_DAMAGED;
	kept = (size_t)(bits->fill - bits->next);
	memmove(bits->window, bits->next, kept);
	bits->next = bits->window;
	bits->fill = bits->window + kept;
	bits_fill(bits, kernels);
	return 0;
}

bool baseline_bits_is_overrun(const struct baseline_bits *bits)
{
	return bits->next > bits->fill && (uint64_t)(bits->next - bits->fill) * 8 > bits->count;
}

int baseline_bits_restart(struct baseline_bits *bits, const struct baseline_kernels *kernels,
			  uint8_t marker)
{
	const uint8_t *at = kernels->find(bits->at, bits->stop);

	if (bits->stop - at < 2 || at[1] != marker)
		return BASELINE_E_DAMAGED;
	baseline_bits_start(bits, kernels, at + 2, bits->stop);
	return 0;
}

bool baseline_bits_has_end(const struct baseline_bits *bits, const struct baseline_kernels *kernels)
{
	const uint8_t *at = bits->at;

	for (;;) {
		at = kernels->find(at, bits->stop);
		if (bits->stop - at < 2)
			return false;
		if (at[1] == BITS_EOI)
			return true;
		if (at[1] == 0xff)
			at++;
		else if (at[1] >= BITS_RST0 && at[1] <= BITS_RST7)
			at += 2;
		else
			return false;
	}
}
