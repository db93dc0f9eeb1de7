/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pixels of four bytes taken apart into planes of red, green and blue. */

#include "pipeline/formats/decode_band.h"
#include "pipeline/picture.h"

#define DECODE_PLANES_ROWS 8 /* of a band at most: with its pixels it stays in the first cache */

struct decode_planes { /* all zero at the start */
	struct picture_buffer buffer;
};
void decode_planes_fini(struct decode_planes *planes);
void decode_planes_trim(struct decode_planes *planes);

/* At most DECODE_PLANES_ROWS rows of picture. 0, or PIPELINE_FAIL_MEMORY. */
int decode_planes_fill(struct decode_planes *planes, const struct picture *picture,
		       struct decode_band *ret);

/* One row of width pixels. */
typedef void decode_planes_fn(const uint8_t *from, uint32_t width, uint8_t *red, uint8_t *green,
			      uint8_t *blue);
decode_planes_fn decode_planes_plain;       /* the reference */
decode_planes_fn *decode_planes_avx2(void); /* NULL where the machine lacks AVX2 */
decode_planes_fn *decode_planes_neon(void); /* NULL where it is not an AArch64 one */
decode_planes_fn *decode_planes_best(void);
