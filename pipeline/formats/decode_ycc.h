/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rows of Y, Cb and Cr, as libjpeg decodes them, to planes of red, green and blue. */

#include "pipeline/formats/decode.h"

#define DECODE_YCC_ROWS 8  /* of a band: they stay in the first cache */
#define DECODE_YCC_SLOTS 4 /* rows of chroma at a time; three are looked at */

struct baseline_kernels;

struct decode_ycc_shape {
	unsigned across, down; /* pixels of a sample of chroma: 2 x 2, 2 x 1 or 1 x 1 */
	uint32_t width;        /* pixels of a row */
	uint32_t room;         /* bytes of a row of luma that may be read, at least width */
};

struct decode_ycc { /* all zero at the start */
	struct picture_buffer buffer;
	const struct baseline_kernels *kernels;
	struct decode_ycc_shape shape;
	uint32_t samples;  /* of a row of chroma */
	uint32_t read;     /* bytes of luma that the kernels read */
	uint8_t *plane[3]; /* rows that were made */
	size_t stride;
	uint8_t *luma; /* a row, where there is no room behind it; or NULL */
	uint8_t *chroma[2][DECODE_YCC_SLOTS];
	int64_t number[2][DECODE_YCC_SLOTS]; /* of the row in each slot */
	int64_t group;                       /* since the start */
};

void decode_ycc_fini(struct decode_ycc *ycc);
void decode_ycc_trim(struct decode_ycc *ycc);

/* Rows of that shape will come from now on. 0 or PIPELINE_FAIL_MEMORY. */
int decode_ycc_start(struct decode_ycc *ycc, const struct decode_ycc_shape *shape);

/* Makes row `row` of the planes from line `line` (below shape.down) of a group: as many rows of luma as a
 * sample of chroma is high, and one of Cb and of Cr. samples[c] are the rows of component c, and group is
 * the group's place there; with down = 2 the rows of chroma before and behind are looked at, too. Groups
 * come one after another, each line in turn. */
void decode_ycc_row(struct decode_ycc *ycc, uint8_t **const *samples, uint32_t group, unsigned line,
		    unsigned row);
