/* SPDX-License-Identifier: Apache-2.0 */
/* In place of decode_png.c where configure was told --without-png: says so of each PNG. */

#include <string.h>
#include "pipeline/decode_format.h"

static bool decode_png_none_probe(const uint8_t *data, size_t size)
{
	return size >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static int decode_png_none_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
				uint32_t *ret_width, struct pipeline_error *ret_error)
{
	(void)state;
	(void)data;
	(void)size;
	(void)ret_height;
	(void)ret_width;
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "OneAccess was built without PNG");
}

static int decode_png_none_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
				 struct pipeline_error *ret_error)
{
	(void)buffer;
	(void)ret;
	return decode_png_none_open(state, NULL, 0, NULL, NULL, ret_error);
}

static void decode_png_none_close(void *state)
{
	(void)state;
}

const struct decode_format decode_png = {
    .name = "PNG",
    .state_size = 1,
    .probe = decode_png_none_probe,
    .open = decode_png_none_open,
    .whole = decode_png_none_whole,
    .close = decode_png_none_close,
    .fini = decode_png_none_close,
};
