/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXIF's orientation.
 *
 * EXIF is a TIFF file within the picture's file: in segments APP1 of a JPEG, which Pillow joins, in
 * the chunk eXIf of a PNG, EXIF of a WebP. Only its first directory is looked at, for one tag. What
 * Pillow finds there is found here: the first entry whose type is known and that has a value counts;
 * a whole number turns the picture, anything else does not. An entry before it whose value would lie
 * behind the end ends the directory; one whose value is longer than the file does not.
 *
 * Where EXIF cannot be read, the picture stays as it is. Other places from which Pillow takes an
 * orientation (XMP, texts of a PNG, BigTIFF, fractions) are not looked at.
 *
 * Each read says where, and is checked against the end; every step goes forward.
 */

#include <string.h>
#include "pipeline/exif.h"

#define EXIF_MOST_PIECES 16
#define EXIF_ENTRY 12 /* bytes */
#define EXIF_TAG 0x0112
#define EXIF_PREFIX "Exif\0" /* and the zero that ends it */

struct exif_piece {
	const uint8_t *data;
	size_t size;
};

struct exif { /* pieces that follow each other */
	unsigned n;
	struct exif_piece piece[EXIF_MOST_PIECES];
	bool is_big; /* the first of a number's bytes is the highest */
};

static void exif_add(struct exif *exif, const uint8_t *data, size_t size)
{
	if (exif->n < EXIF_MOST_PIECES)
		exif->piece[exif->n++] = (struct exif_piece){data, size};
}

/* size bytes from `at` on. False: they are not all there. */
static bool exif_read(const struct exif *exif, uint64_t at, uint8_t *to, size_t size)
{
	for (unsigned i = 0; i < exif->n && size > 0; i++) {
		const struct exif_piece *piece = &exif->piece[i];
		size_t count;

		if (at >= piece->size) {
			at -= piece->size;
			continue;
		}
		count = BASE_MIN(size, piece->size - (size_t)at);
		memcpy(to, piece->data + at, count);
		to += count;
		size -= count;
		at = 0;
	}
	return size == 0;
}

static uint64_t exif_size(const struct exif *exif)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < exif->n; i++)
		size += exif->piece[i].size;
	return size;
}

static uint32_t exif_number(const struct exif *exif, const uint8_t *at, unsigned size)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < size; i++)
		number = number << 8 | at[exif->is_big ? i : size - 1 - i];
	return number;
}

/* ---- the directory ---- */

static const struct exif_type {
	uint8_t size; /* 0: not known */
	bool is_whole;
} exif_types[] = {
    [1] = {1, false},  [2] = {1, false},  [3] = {2, true},  [4] = {4, true},   [5] = {8, false},
    [6] = {1, true},   [7] = {1, false},  [8] = {2, true},  [9] = {4, true},   [10] = {8, false},
    [11] = {4, false}, [12] = {8, false}, [13] = {4, true}, [16] = {8, false},
};

struct exif_directory {
	const struct exif *exif;
	uint64_t start, size; /* of the TIFF file */
	uint64_t outside;     /* bytes of values outside of the directory so far */
	unsigned orientation; /* 0: not found yet */
};

static unsigned exif_value(const struct exif *exif, const struct exif_type *type,
			   const uint8_t *value)
{
	uint32_t number = type->is_whole ? exif_number(exif, value, type->size) : 0;

	return number >= 1 && number <= 8 ? number : EXIF_UPRIGHT;
}

/* False: that was the last one that can be read, or the tag. */
static bool exif_entry(struct exif_directory *directory, const uint8_t *entry)
{
	const struct exif *exif = directory->exif;
	const uint32_t number = exif_number(exif, entry + 2, 2);
	const struct exif_type *type;
	uint64_t size, at;
	uint8_t value[4];

	if (number >= BASE_ARRAY_LEN(exif_types) || exif_types[number].size == 0)
		return true;
	type = &exif_types[number];
	size = (uint64_t)type->size * exif_number(exif, entry + 4, 4);
	at = exif_number(exif, entry + 8, 4);
	memcpy(value, entry + 8, sizeof(value));
	if (size > sizeof(value)) {
		directory->outside += size;
		if (directory->outside > directory->size)
			return true;
		if (at + size > directory->size ||
		    !exif_read(exif, directory->start + at, value, sizeof(value)))
			return false;
	}
	if (size > 0 && exif_number(exif, entry, 2) == EXIF_TAG)
		directory->orientation = exif_value(exif, type, value);
	return directory->orientation == 0;
}

static unsigned exif_read_directory(struct exif_directory *directory, uint64_t at)
{
	const struct exif *exif = directory->exif;
	uint8_t entry[EXIF_ENTRY];
	uint32_t count;

	if (!exif_read(exif, at, entry, 2))
		return EXIF_UPRIGHT;
	count = exif_number(exif, entry, 2);
	at += 2;
	for (uint32_t i = 0; i < count; i++, at += EXIF_ENTRY) {
		if (!exif_read(exif, at, entry, EXIF_ENTRY) || !exif_entry(directory, entry))
			break;
	}
	return directory->orientation ? directory->orientation : EXIF_UPRIGHT;
}

/* The TIFF file, behind at most two prefixes. */
static unsigned exif_find(struct exif *exif)
{
	static const char *const magic[] = {"MM\0*", "II*\0", "MM*\0", "II\0*"};
	struct exif_directory directory = {.exif = exif};
	uint64_t start = 0;
	uint8_t head[8];

	for (unsigned i = 0; i < 2; i++) {
		if (exif_read(exif, start, head, sizeof(EXIF_PREFIX)) &&
		    memcmp(head, EXIF_PREFIX, sizeof(EXIF_PREFIX)) == 0)
			start += sizeof(EXIF_PREFIX);
	}
	if (!exif_read(exif, start, head, sizeof(head)))
		return EXIF_UPRIGHT;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(magic); i++) {
		if (memcmp(head, magic[i], 4) != 0)
			continue;
		exif->is_big = head[0] == 'M';
		directory.start = start;
		directory.size = exif_size(exif) - start;
		return exif_read_directory(&directory, start + exif_number(exif, head + 4, 4));
	}
	return EXIF_UPRIGHT;
}

/* ---- files ---- */

/* Has the marker a length behind it? */
static bool exif_has_length(uint8_t marker)
{
	return marker >= 0xc0 && marker != 0xc8 && !(marker >= 0xd0 && marker <= 0xd9) &&
	       !(marker >= 0xf0 && marker <= 0xfd);
}

/* The segments up to the first scan; as Pillow finds them, bytes between them are passed over. */
static void exif_in_jpeg(struct exif *exif, const uint8_t *data, size_t size)
{
	size_t at = 2;

	while (size - at >= 4) {
		const uint8_t marker = data[at + 1];
		const uint8_t *segment = data + at + 4;
		size_t length;

		if (data[at] != 0xff || !exif_has_length(marker) || marker == 0xff) {
			at += data[at] != 0xff || marker == 0xff ? 1 : 2;
			continue;
		}
		length = (size_t)data[at + 2] << 8 | data[at + 3];
		if (marker == 0xda || length < 2 || length > size - at - 2)
			return;
		length -= 2;
		if (marker == 0xe1 && length >= sizeof(EXIF_PREFIX) &&
		    memcmp(segment, EXIF_PREFIX, sizeof(EXIF_PREFIX)) == 0) {
			size_t skip = exif->n > 0 ? sizeof(EXIF_PREFIX) : 0;

			exif_add(exif, segment + skip, length - skip);
		}
		at += 4 + length;
	}
}

/* The last chunk eXIf; it may stand behind the pixels. */
static void exif_in_png(struct exif *exif, const uint8_t *data, size_t size)
{
	size_t at = 8;

	while (size - at >= 12) {
		const uint8_t *chunk = data + at;
		const size_t length = (size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 |
				      (size_t)chunk[2] << 8 | chunk[3];

		if (length > size - at - 12 || memcmp(chunk + 4, "IEND", 4) == 0)
			return;
		if (memcmp(chunk + 4, "eXIf", 4) == 0) {
			exif->n = 0;
			exif_add(exif, chunk + 8, length);
		}
		at += 12 + length;
	}
}

/* The first chunk EXIF, where the head says that there is one. */
static void exif_in_webp(struct exif *exif, const uint8_t *data, size_t size)
{
	size_t at = 12;

	if (size < 21 || memcmp(data + 12, "VP8X", 4) != 0 || !(data[20] & 0x08))
		return;
	while (size - at >= 8 && exif->n == 0) {
		const uint8_t *chunk = data + at;
		const size_t length = (size_t)chunk[7] << 24 | (size_t)chunk[6] << 16 |
				      (size_t)chunk[5] << 8 | chunk[4];

		if (length > size - at - 8)
			return;
		if (memcmp(chunk, "EXIF", 4) == 0)
			exif_add(exif, chunk + 8, length);
		at += BASE_MIN(8 + length + length % 2, size - at);
	}
}

unsigned exif_orientation(const uint8_t *data, size_t size)
{
	struct exif exif = {.n = 0};

	if (size >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
		exif_in_jpeg(&exif, data, size);
	else if (size >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
		exif_in_png(&exif, data, size);
	else if (size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
		exif_in_webp(&exif, data, size);
	return exif_find(&exif);
}
