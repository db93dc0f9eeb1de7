/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pictures as their EXIF wants them: mirrored, turned by quarters, or both. */

#include "pipeline/formats/decode_band.h"
#include "pipeline/picture.h"

/* orientation is EXIF's, 1 to 8. Does it exchange height and width? */
static inline bool decode_turn_exchanges(unsigned orientation)
{
	return orientation >= 5;
}

/* Is the turned picture's first row the file's last row, or column? Its first column? */
void decode_turn_ends(unsigned orientation, bool *ret_upside_down, bool *ret_mirrored);

/* The part of a file's picture, height x width, that becomes box of the turned one. */
void decode_turn_box(unsigned orientation, uint32_t height, uint32_t width,
		     const struct picture_box *box, struct picture_box *ret);

/* A picture of the file's pixels, turned, to to, which has its size then. */
void decode_turn_picture(unsigned orientation, const struct picture *from,
			 const struct picture *to);

/* A band of a part of the file's picture, whose first row is row y of the part, to its place in
 * to: the part turned. */
void decode_turn_band(unsigned orientation, const struct decode_band *band, uint32_t y,
		      const struct picture *to);
