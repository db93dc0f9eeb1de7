/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures: their buffers, and the ops that only move pixels.
 *
 * A buffer belongs to one run and serves sample after sample, so that the steady state allocates
 * nothing. It keeps what ordinary pictures need (PICTURE_KEEP) and gives back more than that after
 * the sample that needed it: one picture of a hundred megapixels must not stay for a whole epoch.
 */

#include "pipeline/picture.h"
#include "pipeline/spec/op.h"

#define PICTURE_ALIGN 32
#define PICTURE_LINE 64   /* of the cache: where memory begins */
#define PICTURE_OFFSET 16 /* of rows within PICTURE_ALIGN, see picture.h */
#define PICTURE_KEEP ((size_t)64 << 20)

void *picture_bytes(struct picture_buffer *buffer, uint64_t size)
{
	if (size <= buffer->size)
		return buffer->memory;
	picture_buffer_fini(buffer);
	size = base_align_up(size + size / 8, PICTURE_LINE);
	buffer->memory = aligned_alloc(PICTURE_LINE, size);
	if (buffer->memory)
		buffer->size = size;
	return buffer->memory;
}

int picture_make(struct picture_buffer *buffer, uint64_t height, uint64_t width,
		 struct picture *ret)
{
	uint64_t stride, size;

	if (height > OP_MAX_PIXELS || width > OP_MAX_PIXELS || height * width > OP_MAX_PIXELS)
		return PIPELINE_FAIL_REFUSED;
	stride = base_align_up(width * 4, PICTURE_ALIGN);
	size = height * stride + 2 * PICTURE_ALIGN;
	if (!picture_bytes(buffer, size))
		return PIPELINE_FAIL_MEMORY;
	ret->data = buffer->memory + PICTURE_OFFSET;
	ret->stride = stride;
	ret->height = (uint32_t)height;
	ret->width = (uint32_t)width;
	return 0;
}

void picture_buffer_trim(struct picture_buffer *buffer)
{
	if (buffer->size > PICTURE_KEEP)
		picture_buffer_fini(buffer);
}

void picture_buffer_fini(struct picture_buffer *buffer)
{
	free(buffer->memory);
	buffer->memory = NULL;
	buffer->size = 0;
}

struct picture picture_part(const struct picture *picture, const struct picture_box *box)
{
	struct picture part = *picture;

	part.data = picture_row(picture, box->top) + (size_t)box->left * 4;
	part.height = box->height;
	part.width = box->width;
	return part;
}

struct picture_box picture_around(const struct picture_box *a, const struct picture_box *b)
{
	uint32_t bottom = BASE_MAX(a->top + a->height, b->top + b->height);
	uint32_t right = BASE_MAX(a->left + a->width, b->left + b->width);
	struct picture_box around = {BASE_MIN(a->top, b->top), BASE_MIN(a->left, b->left), 0, 0};

	around.height = bottom - around.top;
	around.width = right - around.left;
	return around;
}

int picture_copy(const struct picture *from, struct picture_buffer *buffer, struct picture *ret)
{
	int r = picture_make(buffer, from->height, from->width, ret);

	for (uint32_t y = 0; r == 0 && y < from->height; y++)
		memcpy(picture_row(ret, y), picture_row(from, y), (size_t)from->width * 4);
	return r;
}

void picture_mirror(const struct picture *picture)
{
	for (uint32_t y = 0; y < picture->height; y++) {
		uint8_t *left = picture_row(picture, y);
		uint8_t *right = left + (size_t)(picture->width - 1) * 4;

		for (; left < right; left += 4, right -= 4) {
			uint32_t a, b;

			memcpy(&a, left, 4);
			memcpy(&b, right, 4);
			memcpy(left, &b, 4);
			memcpy(right, &a, 4);
		}
	}
}

void picture_turn_over(const struct picture *picture)
{
	uint8_t *above = picture->data;
	uint8_t *below = picture_row(picture, picture->height - 1);

	for (; above < below; above += picture->stride, below -= picture->stride) {
		for (size_t x = 0; x < (size_t)picture->width * 4; x += 4) {
			uint32_t a, b;

			memcpy(&a, above + x, 4);
			memcpy(&b, below + x, 4);
			memcpy(above + x, &b, 4);
			memcpy(below + x, &a, 4);
		}
	}
}
