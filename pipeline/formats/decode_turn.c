/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The eight orientations of EXIF.
 *
 * Each is three exchanges in turn: of left and right, of top and bottom, of rows and columns
 * (decode_turn_kinds). A pixel of the file's picture goes to where it belongs at once. Bands have a
 * few rows; where those become columns, a column of the band is written after the other, so that
 * each line of the cache is filled in one go.
 */

#include "pipeline/formats/decode_turn.h"

static const struct turn_kind {
	bool across, down; /* of the file: left and right, top and bottom are exchanged */
} decode_turn_kinds[9] = {
    [1] = {false, false}, [2] = {true, false}, [3] = {true, true}, [4] = {false, true},
    [5] = {false, false}, [6] = {false, true}, [7] = {true, true}, [8] = {true, false},
};

void decode_turn_ends(unsigned orientation, bool *ret_upside_down, bool *ret_mirrored)
{
	const struct turn_kind *kind = &decode_turn_kinds[orientation];
	const bool exchanges = decode_turn_exchanges(orientation);

	*ret_upside_down = exchanges ? kind->across : kind->down;
	*ret_mirrored = exchanges ? kind->down : kind->across;
}

void decode_turn_box(unsigned orientation, uint32_t height, uint32_t width,
		     const struct picture_box *box, struct picture_box *ret)
{
	const struct turn_kind *kind = &decode_turn_kinds[orientation];

	*ret = *box;
	if (decode_turn_exchanges(orientation))
		*ret = (struct picture_box){box->left, box->top, box->width, box->height};
	if (kind->across)
		ret->left = width - ret->width - ret->left;
	if (kind->down)
		ret->top = height - ret->height - ret->top;
}

struct turn_place { /* where pixels of the file go */
	uint8_t *origin;
	ptrdiff_t right, below; /* bytes to where the next column, the next row goes */
};

/* to is the turned picture. */
static struct turn_place decode_turn_place(unsigned orientation, const struct picture *to)
{
	const struct turn_kind *kind = &decode_turn_kinds[orientation];
	bool exchanges = decode_turn_exchanges(orientation);
	const ptrdiff_t height = exchanges ? to->width : to->height;
	const ptrdiff_t width = exchanges ? to->height : to->width;
	struct turn_place place = {to->data, 4, (ptrdiff_t)to->stride};

	if (exchanges)
		place = (struct turn_place){to->data, (ptrdiff_t)to->stride, 4};
	if (kind->across) {
		place.origin += (width - 1) * place.right;
		place.right = -place.right;
	}
	if (kind->down) {
		place.origin += (height - 1) * place.below;
		place.below = -place.below;
	}
	return place;
}

void decode_turn_picture(unsigned orientation, const struct picture *from, const struct picture *to)
{
	const struct turn_place place = decode_turn_place(orientation, to);

	for (uint32_t y = 0; y < from->height; y++) {
		uint8_t *at = place.origin + (ptrdiff_t)y * place.below;
		const uint8_t *pixel = picture_row(from, y);

		for (uint32_t x = 0; x < from->width; x++, at += place.right, pixel += 4)
			memcpy(at, pixel, 4);
	}
}

static inline void decode_turn_pixel(const struct decode_band *band, size_t at, uint8_t *to)
{
	for (unsigned c = 0; c < 3; c++)
		to[c] = band->plane[c][at];
}

void decode_turn_band(unsigned orientation, const struct decode_band *band, uint32_t y,
		      const struct picture *to)
{
	const bool exchanges = decode_turn_exchanges(orientation);
	const uint32_t width = exchanges ? to->height : to->width;
	const struct turn_place place = decode_turn_place(orientation, to);
	uint8_t *first = place.origin + (ptrdiff_t)y * place.below;

	if (!exchanges) {
		for (uint32_t row = 0; row < band->rows; row++, first += place.below)
			for (uint32_t x = 0; x < width; x++)
				decode_turn_pixel(band, row * band->stride + x,
						  first + (ptrdiff_t)x * place.right);
		return;
	}
	for (uint32_t x = 0; x < width; x++, first += place.right)
		for (uint32_t row = 0; row < band->rows; row++)
			decode_turn_pixel(band, row * band->stride + x,
					  first + (ptrdiff_t)row * place.below);
}
