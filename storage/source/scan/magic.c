/* SPDX-License-Identifier: Apache-2.0 */

/* First bytes of the formats that pipeline/formats decodes. */

#include "storage/source/scan/magic.h"

#include "base/base.h"

#define MAGIC_LEAST 12 /* no picture is shorter */

static const struct {
	const char *bytes;
	size_t n, at;
	const char *suffix;
} magic_known[] = {
    {"\xff\xd8\xff", 3, 0, "jpg"},
    {"\x89PNG\r\n\x1a\n", 8, 0, "png"},
    {"WEBP", 4, 8, "webp"},
    {"II*\0", 4, 0, "tif"},
    {"\0\0\0\x0cjP  ", 8, 0, "jp2"},
    {"\xff\x4f\xff\x51", 4, 0, "j2k"},
    {"ftypavif", 8, 4, "avif"},
    {"ftypavis", 8, 4, "avif"},
    {"\0\0\0\x0cJXL ", 8, 0, "jxl"},
    {"\xff\x0a", 2, 0, "jxl"},
    {"ftyphei", 7, 4, "heic"},
    {"ftypmif1", 8, 4, "heif"},
    {"MM\0*", 4, 0, "tif"},
    {"GIF8", 4, 0, "gif"},
    {"BM", 2, 0, "bmp"},
    {"P5", 2, 0, "pgm"},
    {"P6", 2, 0, "ppm"},
};

const char *magic_suffix(const uint8_t *data, size_t size)
{
	if (size < MAGIC_LEAST)
		return NULL;
	for (size_t i = 0; i < BASE_ARRAY_LEN(magic_known); i++)
		if (memcmp(data + magic_known[i].at, magic_known[i].bytes, magic_known[i].n) == 0)
			return magic_known[i].suffix;
	return NULL;
}

bool magic_is_picture(const uint8_t *data, size_t size)
{
	return magic_suffix(data, size) != NULL;
}
