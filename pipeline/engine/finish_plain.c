/* SPDX-License-Identifier: Apache-2.0 */
/* The last step's kernels in plain C: by table, for any machine, any mean and any spread. */

#include "pipeline/engine/finish.h"

static void finish_plain_plane(const struct finish *finish, unsigned c, const uint8_t *from,
			       size_t n, void *out)
{
	if (finish->dtype == PIPELINE_U8) {
		memcpy(out, from, n);
	} else if (finish->dtype == PIPELINE_F32) {
		for (size_t i = 0; i < n; i++)
			((float *)out)[i] = finish->table.f32[c][from[i]];
	} else {
		for (size_t i = 0; i < n; i++)
			((uint16_t *)out)[i] = finish->table.half[c][from[i]];
	}
}

static void finish_plain_pixels(const struct finish *finish, const uint8_t *from, size_t n,
				void *out)
{
	if (finish->dtype == PIPELINE_U8) {
		memcpy(out, from, n);
	} else if (finish->dtype == PIPELINE_F32) {
		for (size_t i = 0; i < n; i++)
			((float *)out)[i] = finish->table.f32[i % 3][from[i]];
	} else {
		for (size_t i = 0; i < n; i++)
			((uint16_t *)out)[i] = finish->table.half[i % 3][from[i]];
	}
}

static void finish_plain_zip(const uint8_t *const from[3], size_t n, uint8_t *to)
{
	for (size_t i = 0; i < n; i++, to += 3) {
		to[0] = from[0][i];
		to[1] = from[1][i];
		to[2] = from[2][i];
	}
}

static void finish_plain_join(const uint8_t *const from[3], size_t n, uint8_t *to)
{
	for (size_t i = 0; i < n; i++, to += 4) {
		to[0] = from[0][i];
		to[1] = from[1][i];
		to[2] = from[2][i];
		to[3] = 255;
	}
}

static void finish_plain_fence(void)
{
}

const struct finish_kernels finish_plain = {
    .plane = finish_plain_plane,
    .pixels = finish_plain_pixels,
    .zip = finish_plain_zip,
    .join = finish_plain_join,
    .fence = finish_plain_fence,
};
