/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a DICOM file (Part 10) says of its pixels. The bytes are hostile. */

#include "pipeline/formats/decode.h"

enum dicom_coding { DICOM_NATIVE, DICOM_RLE, DICOM_JPEG, DICOM_LOSSLESS, DICOM_JP2 };

enum dicom_colours {
	DICOM_AS_STORED, /* MONOCHROME2, indices of a palette, what is RGB once JPEG 2000 decoded it */
	DICOM_WHITE_LEAST,
	DICOM_RGB,
	DICOM_YBR,
	DICOM_YBR_HALVES, /* with half of the chroma samples */
};

struct dicom_head {
	/* of its transfer syntax */
	enum dicom_coding coding;
	bool is_big, is_implicit, is_deflated;
	/* of its data set */
	enum dicom_colours colours;
	uint32_t height, width, frames;
	unsigned samples;   /* of a pixel: 1 or 3 */
	bool is_planar;     /* samples of all pixels, one after the other */
	unsigned allocated; /* bits of a stored number; of those which are it */
	unsigned stored, high;
	bool is_signed, is_floating;
	double slope, intercept;
	/* its pixels: borrowed, of native ones at least as many as said above */
	const uint8_t *pixels;
	size_t size;
	bool is_encapsulated;
	bool is_words; /* of big-endian bytes: two of them are one stored word */
};

bool dicom_head_probe(const uint8_t *data, size_t size);
/* Its meta information: transfer syntax, and where the data set begins. 0, or PIPELINE_E_BAD with *ret_error. */
int dicom_head_meta(const uint8_t *data, size_t size, struct dicom_head *ret, size_t *ret_at,
		    struct pipeline_error *ret_error);
/* Its data set, after that. As above. */
int dicom_head_read(const uint8_t *data, size_t size, struct dicom_head *head,
		    struct pipeline_error *ret_error);
/* Bytes of a frame that is native, or once it is. */
static inline uint64_t dicom_head_frame(const struct dicom_head *head)
{
	return (uint64_t)head->height * head->width * head->samples * (head->allocated / 8);
}
