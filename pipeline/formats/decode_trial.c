/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial: pictures by two ways of a format, before one of them is trusted.
 *
 * The pictures are made here, of a head and bytes that look random. Codes are short, and those
 * bytes never have the bits that are none, so they are blocks of an ordinary scan, as many as anyone
 * wants, with edges and colours everywhere. Sides are no multiples of anything, and there are three
 * rows of MCUs at least, which libjpeg goes through the first, others and the last of in ways of
 * their own.
 */

#include "pipeline/formats/decode_trial.h"

#define TRIAL_HEIGHT 45
#define TRIAL_WIDTH 71
#define TRIAL_SCAN 2048 /* bytes; more than any of the pictures has */
#define TRIAL_STEP 3    /* of all coefficients */

/* What comes before the tables of steps' 64 bytes, and behind them. */
static const uint8_t trial_start[] = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
static const uint8_t trial_frame[] = {0xff, 0xc0, 0, 17,   8, 0, TRIAL_HEIGHT, 0, TRIAL_WIDTH, 3, 1,
				      0,    0,    2, 0x11, 0, 3, 0x11,         0};
#define TRIAL_FACTORS 11 /* of the first component: their place in trial_frame */
static const uint8_t trial_rest[] = {
    /* codes of DC: seven of three bits, one of four */
    0xff, 0xc4, 0, 27, 0, 0, 0, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 5, 2, 6, 1, 4,
    /* of AC */
    0xff, 0xc4, 0, 27, 0x10, 0, 0, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x11, 3, 0, 0x13,
    0x22, 0x31,
    /* the scan */
    0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0};

struct trial_file {
	uint8_t bytes[256 + TRIAL_SCAN];
	size_t size;
};

static void trial_add(struct trial_file *file, const uint8_t *bytes, size_t size)
{
	memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
}

/* A file whose first component has these factors of sampling. */
static void trial_make(uint8_t factors, struct trial_file *ret)
{
	uint32_t random = 1;

	ret->size = 0;
	trial_add(ret, trial_start, sizeof(trial_start));
	memset(ret->bytes + ret->size, TRIAL_STEP, 64);
	ret->size += 64;
	trial_add(ret, trial_frame, sizeof(trial_frame));
	ret->bytes[ret->size - sizeof(trial_frame) + TRIAL_FACTORS] = factors;
	trial_add(ret, trial_rest, sizeof(trial_rest));
	for (unsigned i = 0; i < TRIAL_SCAN; i++) {
		random = random * 1664525 + 1013904223;
		ret->bytes[ret->size++] = (uint8_t)(random >> 24) & 0x77; /* no four ones */
	}
	trial_add(ret, (const uint8_t *)"\xff\xd9", 2);
}

static bool trial_is_same(const struct decode_band *band, const struct picture *part, uint32_t y)
{
	for (uint32_t i = 0; i < band->rows; i++) {
		const uint8_t *pixel = picture_row(part, y + i);

		for (uint32_t x = 0; x < part->width * 3; x++)
			if (band->plane[x % 3][i * band->stride + x / 3] !=
			    pixel[x / 3 * 4 + x % 3])
				return false;
	}
	return true;
}

static bool trial_rows(const struct decode_format *format, void *state,
		       const struct trial_file *file, const struct picture *whole,
		       const struct picture_box *box)
{
	const struct picture part = picture_part(whole, box);
	struct pipeline_error error;
	struct decode_band band;
	struct picture pixels;
	uint32_t height, width;

	if (format->open(state, file->bytes, file->size, &height, &width, &error) != 0 ||
	    format->rows_start(state, box, &error) != 0)
		return false;
	for (uint32_t y = 0; y < box->height; y += band.rows) {
		band.rows = 0;
		if (format->rows_next(state, &pixels, &band, &error) != 0 || band.rows == 0 ||
		    band.rows > box->height - y || !trial_is_same(&band, &part, y))
			return false;
	}
	return true;
}

static bool trial_kind(const struct decode_format *format, void *state,
		       struct picture_buffer *buffer, uint8_t factors)
{
	static const struct picture_box boxes[] = {{0, 0, TRIAL_HEIGHT, TRIAL_WIDTH},
						   {19, 21, 25, 31}};
	_cleanup_free_ struct trial_file *file = malloc(sizeof(*file));
	struct pipeline_error error;
	struct picture whole;
	uint32_t height, width;

	if (!file)
		return false;
	trial_make(factors, file);
	if (format->open(state, file->bytes, file->size, &height, &width, &error) != 0 ||
	    height != TRIAL_HEIGHT || width != TRIAL_WIDTH ||
	    format->whole(state, buffer, &whole, &error) != 0)
		return false;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(boxes); i++) {
		if (!trial_rows(format, state, file, &whole, &boxes[i]))
			return false;
	}
	return true;
}

bool decode_trial(const struct decode_format *format, void *state)
{
	static const uint8_t factors[] = {0x22, 0x21, 0x11};
	struct picture_buffer buffer = {0};
	bool is_right = true;

	for (unsigned i = 0; i < sizeof(factors) && is_right; i++)
		is_right = trial_kind(format, state, &buffer, factors[i]);
	picture_buffer_fini(&buffer);
	return is_right;
}
