/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JPEG's lossless process (SOF3, Huffman) of 2 to 16 bits, as DICOM files have it. The bytes are hostile. */

#include "pipeline/formats/decode.h"

struct decode_lossless {
	uint32_t height, width;
	unsigned components, bits;
	/* beyond here its own */
	const uint8_t *data, *scan; /* borrowed; the entropy-coded bytes of the scan */
	size_t size;
	uint32_t restart; /* pixels from marker to marker; 0: there are none */
	unsigned predictor, shift;
	const uint8_t *huffman[4]; /* DHT's counts, then its values; NULL: none */
	uint8_t table[3];          /* of each component */
};

/* Reads the head of data (borrowed). 0, or PIPELINE_E_BAD with *ret_error. */
int decode_lossless_open(struct decode_lossless *lossless, const uint8_t *data, size_t size,
			 struct pipeline_error *ret_error);
/* height x width pixels of `components` samples each to `to`. As open. */
int decode_lossless_read(const struct decode_lossless *lossless, uint16_t *to,
			 struct pipeline_error *ret_error);
