/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A band: what a decoder gives at a time, a few rows of a part of its picture. */

#include <stddef.h>
#include <stdint.h>

struct decode_band {             /* rows of a part; valid until the next call on the handle */
	const uint8_t *plane[3]; /* red, green, blue: the first pixel of the band's first row */
	size_t stride;           /* bytes from row to row, the same for all planes */
	uint32_t rows;           /* 64 bytes before and behind each may be read */
};
