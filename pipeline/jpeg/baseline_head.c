/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The markers of a JPEG file up to its scan.
 *
 * Every byte is hostile. What is not exactly as a plain encoder writes it is not taken: the file is
 * then libjpeg-turbo's, whose rules for odd files need not be known here. So there is one rule to
 * keep: what is taken must mean to libjpeg what it means here. Unknown application markers are
 * passed over as libjpeg does; the colour space is found as its default_decompress_parms() does.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

enum {
	HEAD_SOF0 = 0xc0,
	HEAD_SOF1 = 0xc1,
	HEAD_DHT = 0xc4,
	HEAD_SOI = 0xd8,
	HEAD_SOS = 0xda,
	HEAD_DQT = 0xdb,
	HEAD_DRI = 0xdd,
	HEAD_APP0 = 0xe0,
	HEAD_APP14 = 0xee,
	HEAD_APP15 = 0xef,
	HEAD_COM = 0xfe,
};

#define HEAD_MAX_SIDE 65500 /* libjpeg's JPEG_MAX_DIMENSION */

struct head_reader {
	struct baseline_head *head;
	bool has_frame, has_jfif, has_adobe;
	uint8_t adobe_transform;
};

static unsigned head_u16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static int head_app14(struct head_reader *reader, const uint8_t *at, size_t size)
{
	if (size >= 12 && memcmp(at, "Adobe", 5) == 0) {
		reader->has_adobe = true;
		reader->adobe_transform = at[11];
	}
	return 0;
}

/* One or more tables of 64 steps, bytes or (big-endian) words. 0 and those above 32767 are left to
 * libjpeg. */
static int head_dqt(struct head_reader *reader, const uint8_t *at, size_t size)
{
	while (size > 0) {
		unsigned wide = at[0] >> 4, number = at[0] & 15, step;
		size_t length = 1 + 64 * (1 + (size_t)wide);

		if (wide > 1 || number >= BASELINE_TABLES || size < length)
			return BASELINE_E_OTHER;
		for (unsigned i = 0; i < 64; i++) {
			step = wide ? head_u16(at + 1 + 2 * i) : at[1 + i];
			if (step == 0 || step > INT16_MAX)
				return BASELINE_E_OTHER;
			reader->head->quant[number][i] = (uint16_t)step;
		}
		reader->head->seen_quant |= (uint8_t)(1u << number);
		at += length;
		size -= length;
	}
	return 0;
}

static int head_dht(struct head_reader *reader, const uint8_t *at, size_t size)
{
	while (size > 0) {
		size_t symbols = 0;
		unsigned kind, number;

		if (size < 17)
			return BASELINE_E_OTHER;
		kind = at[0] >> 4;
		number = at[0] & 15;
		for (unsigned i = 1; i <= 16; i++)
			symbols += at[i];
		if (kind > 1 || number >= BASELINE_TABLES || symbols > 256 || size - 17 < symbols)
			return BASELINE_E_OTHER;
		reader->head->code[kind][number] = at + 1;
		at += 17 + symbols;
		size -= 17 + symbols;
	}
	return 0;
}

/* Whether the blocks of a MCU are those of grey, 4:4:4, 4:2:2 or 4:2:0. */
static bool head_is_sampled(const struct baseline_head *head)
{
	const struct baseline_component *c = head->component;

	if (head->n_components == 1)
		return c[0].across == 1 && c[0].down == 1;
	if (c[1].across != 1 || c[1].down != 1 || c[2].across != 1 || c[2].down != 1)
		return false;
	if (c[0].id == c[1].id || c[0].id == c[2].id || c[1].id == c[2].id)
		return false;
	return (c[0].across == 1 || c[0].across == 2) &&
	       (c[0].down == 1 || (c[0].down == 2 && c[0].across == 2));
}

static int head_sof(struct head_reader *reader, const uint8_t *at, size_t size)
{
	struct baseline_head *head = reader->head;

	if (reader->has_frame || size < 6 || at[0] != 8)
		return BASELINE_E_OTHER;
	reader->has_frame = true;
	head->height = head_u16(at + 1);
	head->width = head_u16(at + 3);
	head->n_components = at[5];
	if (head->n_components != 1 && head->n_components != 3)
		return BASELINE_E_OTHER;
	if (size != 6 + 3 * (size_t)head->n_components || head->height == 0 || head->width == 0 ||
	    head->height > HEAD_MAX_SIDE || head->width > HEAD_MAX_SIDE)
		return BASELINE_E_OTHER;
	for (unsigned i = 0; i < head->n_components; i++) {
		struct baseline_component *c = &head->component[i];

		c->id = at[6 + 3 * i];
		c->across = at[7 + 3 * i] >> 4;
		c->down = at[7 + 3 * i] & 15;
		c->quant = at[8 + 3 * i];
	}
	/* Grey: one block a MCU, whatever the factors. */
	if (head->n_components == 1 && head->component[0].across == 2 &&
	    head->component[0].down == 2)
		head->component[0].across = head->component[0].down = 1;
	/* So narrow that libjpeg repeats chroma instead of smoothing it. */
	if (head->component[0].across == 2 && head->width <= 4)
		return BASELINE_E_OTHER;
	return head_is_sampled(head) ? 0 : BASELINE_E_OTHER;
}

/* Whether libjpeg takes the components for YCbCr (or grey) without a warning. */
static bool head_is_ycc(const struct head_reader *reader)
{
	const struct baseline_component *c = reader->head->component;

	if (reader->head->n_components == 1 || reader->has_jfif)
		return true;
	if (reader->has_adobe)
		return reader->adobe_transform == 1;
	return c[0].id != 'R' || c[1].id != 'G' || c[2].id != 'B';
}

static int head_sos(struct head_reader *reader, const uint8_t *at, size_t size)
{
	struct baseline_head *head = reader->head;

	if (!reader->has_frame || !head_is_ycc(reader) || size < 1 || at[0] != head->n_components ||
	    size != 4 + 2 * (size_t)head->n_components)
		return BASELINE_E_OTHER;
	for (unsigned i = 0; i < head->n_components; i++) {
		struct baseline_component *c = &head->component[i];

		c->dc = at[2 + 2 * i] >> 4;
		c->ac = at[2 + 2 * i] & 15;
		if (at[1 + 2 * i] != c->id || c->dc >= BASELINE_TABLES ||
		    c->ac >= BASELINE_TABLES || !head->code[0][c->dc] || !head->code[1][c->ac] ||
		    c->quant >= BASELINE_TABLES || !(head->seen_quant >> c->quant & 1))
			return BASELINE_E_OTHER;
	}
	at += size - 3;
	head->scan = at + 3;
	return at[0] == 0 && at[1] == 63 && at[2] == 0 ? 0 : BASELINE_E_OTHER;
}

static int head_segment(struct head_reader *reader, uint8_t marker, const uint8_t *at, size_t size)
{
	switch (marker) {
	case HEAD_SOF0:
	case HEAD_SOF1:
		return head_sof(reader, at, size);
	case HEAD_DHT:
		return head_dht(reader, at, size);
	case HEAD_SOS:
		return head_sos(reader, at, size);
	case HEAD_DQT:
		return head_dqt(reader, at, size);
	case HEAD_DRI:
		if (size != 2)
			return BASELINE_E_OTHER;
		reader->head->interval = head_u16(at);
		return 0;
	case HEAD_APP0:
		if (size >= 14 && memcmp(at, "JFIF", 5) == 0)
			reader->has_jfif = true;
		return 0;
	case HEAD_APP14:
		return head_app14(reader, at, size);
	default:
		return (marker >= HEAD_APP0 && marker <= HEAD_APP15) || marker == HEAD_COM
			   ? 0
			   : BASELINE_E_OTHER;
	}
}

int baseline_head_read(const uint8_t *data, size_t size, struct baseline_head *ret)
{
	struct head_reader reader = {.head = ret};
	size_t at = 2, length;
	int r;

	memset(ret, 0, sizeof(*ret));
	if (size < 2 || data[0] != 0xff || data[1] != HEAD_SOI)
		return BASELINE_E_OTHER;
	while (!ret->scan) {
		if (size - at < 4 || data[at] != 0xff)
			return BASELINE_E_OTHER;
		length = head_u16(data + at + 2);
		if (length < 2 || length > size - at - 2)
			return BASELINE_E_OTHER;
		r = head_segment(&reader, data[at + 1], data + at + 4, length - 2);
		if (r != 0)
			return r;
		at += 2 + length;
	}
	return 0;
}
