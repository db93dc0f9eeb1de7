/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DECODE_FORMAT_H
#define PIPELINE_DECODE_FORMAT_H

/*
 * The seam between decode.c and the formats. A format is told by what the file begins with, never by
 * its name. Each has one file, which alone knows its library. All calls are as in decode.h, on a
 * state of the format's own: one a handle, all zero before the first open.
 */

#include "pipeline/decode.h"

struct decode_format {
	const char *name;
	size_t state_size;
	bool (*probe)(const uint8_t *data, size_t size);
	/* Reads the head, data borrowed; may be called again for the same data, to begin again.
	 * Refuses more than OP_MAX_PIXELS, and no pixels. */
	int (*open)(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
		    uint32_t *ret_width, struct pipeline_error *ret_error);
	int (*whole)(void *state, struct picture_buffer *buffer, struct picture *ret,
		     struct pipeline_error *ret_error);
	/* As decode_part; NULL: cut from the whole picture. */
	int (*part)(void *state, const struct picture_box *box, struct picture_buffer *buffer,
		    struct picture *ret, struct pipeline_error *ret_error);
	/* As decode_band_start and decode_band_next, but rows of pixels; NULL: cut from what part
	 * or whole give. DECODE_E_AGAIN from either: not by rows, take part or whole. */
	int (*rows_start)(void *state, const struct picture_box *box,
			  struct pipeline_error *ret_error);
	int (*rows_next)(void *state, struct picture *ret, struct pipeline_error *ret_error);
	/* Gives back what the last picture needed; also without an open before. */
	void (*close)(void *state);
	/* close, and all else that the state holds. */
	void (*fini)(void *state);
};

extern const struct decode_format decode_jpeg;

#endif
