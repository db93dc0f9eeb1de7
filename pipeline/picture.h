/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An 8-bit RGB picture in memory, and the buffers that pictures stand in.
 *
 * A pixel has four bytes: red, green, blue, and one that nobody reads. Rows start at 16 mod 32 and
 * are a multiple of 32 bytes apart: on rows aligned to 32 libjpeg-turbo stores past the cache, and
 * the next op, which reads them at once, would wait for memory.
 */

#include "pipeline/types.h"

struct picture { /* a view; the buffer owns the bytes */
	uint8_t *data;
	size_t stride; /* bytes from row to row */
	uint32_t height, width;
};

struct picture_box {
	uint32_t top, left, height, width;
};

struct picture_buffer { /* grows on demand, all zero at the start */
	uint8_t *memory;
	size_t size;
};

static inline uint8_t *picture_row(const struct picture *picture, uint32_t y)
{
	return picture->data + (size_t)y * picture->stride;
}

/* picture.c */
/* The smallest box around two. */
struct picture_box picture_around(const struct picture_box *a, const struct picture_box *b);
/* A picture of that size in buffer, contents undefined; valid until the next make or fini on it.
 * 0; PIPELINE_FAIL_REFUSED above OP_MAX_PIXELS; PIPELINE_FAIL_MEMORY. */
int picture_make(struct picture_buffer *buffer, uint64_t height, uint64_t width,
		 struct picture *ret);
/* size bytes of buffer for anything, aligned to 64, contents undefined; NULL: no memory. */
void *picture_bytes(struct picture_buffer *buffer, uint64_t size);
/* Gives memory back that only an unusually large picture needed. The pictures in it are gone. */
void picture_buffer_trim(struct picture_buffer *buffer);
void picture_buffer_fini(struct picture_buffer *buffer);
/* The part of a picture; shares its bytes. box lies within it. */
struct picture picture_part(const struct picture *picture, const struct picture_box *box);
/* A copy in buffer. As picture_make. */
int picture_copy(const struct picture *from, struct picture_buffer *buffer, struct picture *ret);
/* Left and right exchanged, in place. */
void picture_mirror(const struct picture *picture);
/* Top and bottom exchanged, in place. */
void picture_turn_over(const struct picture *picture);
