/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXIF's orientation, and XMP's where EXIF has none.
 *
 * EXIF is a TIFF file within the picture's file: in segments APP1 of a JPEG, which Pillow joins, in
 * the chunk eXIf of a PNG, EXIF of a WebP. Only its first directory is looked at, for one tag. What
 * Pillow finds there is found here: the first entry whose type is known and that has a value counts;
 * a whole number turns the picture, anything else does not. An entry before it whose value would lie
 * behind the end ends the directory; one whose value is longer than the file does not.
 *
 * Where EXIF cannot be read, the picture stays as it is. Where it can and has no such entry, or is not there,
 * XMP counts: the last packet of the file (a segment APP1 of a JPEG, a text of a PNG, the chunk XMP of
 * a WebP), in which a digit is looked for by its name alone, as Pillow does. Other places from which Pillow
 * takes an orientation (compressed texts of a PNG, BigTIFF, fractions) are not looked at.
 *
 * Each read says where, and is checked against the end; every step goes forward.
 */

#include "pipeline/formats/exif.h"

#define EXIF_MOST_PIECES 16
#define EXIF_ENTRY 12 /* bytes */
#define EXIF_TAG 0x0112
#define EXIF_PREFIX "Exif\0" /* and the zero that ends it */
#define EXIF_XMP_PREFIX "http://ns.adobe.com/xap/1.0/"
#define EXIF_XMP_TEXT "XML:com.adobe.xmp"
#define EXIF_XMP_TAG "tiff:Orientation"

struct exif_piece {
	const uint8_t *data;
	size_t size;
};

struct exif { /* pieces that follow each other */
	unsigned n;
	struct exif_piece piece[EXIF_MOST_PIECES];
	struct exif_piece xmp;
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

/* 0: it says none. */
static unsigned exif_read_directory(struct exif_directory *directory, uint64_t at)
{
	const struct exif *exif = directory->exif;
	uint8_t entry[EXIF_ENTRY];
	uint32_t count;

	if (!exif_read(exif, at, entry, 2))
		return 0;
	count = exif_number(exif, entry, 2);
	at += 2;
	for (uint32_t i = 0; i < count; i++, at += EXIF_ENTRY) {
		if (!exif_read(exif, at, entry, EXIF_ENTRY) || !exif_entry(directory, entry))
			break;
	}
	return directory->orientation;
}

/* The TIFF file, behind at most two prefixes. 0: it says none, or there is none. */
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
	if (exif_size(exif) == start)
		return 0;
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

/* ---- XMP ---- */

unsigned exif_of_xmp(const uint8_t *data, size_t size)
{
	const size_t name = sizeof(EXIF_XMP_TAG) - 1;
	const uint8_t *at = data, *end = size ? data + size : data; /* NULL: there is none */

	while (at < end && (at = memmem(at, (size_t)(end - at), EXIF_XMP_TAG, name))) {
		at += name;
		if (end - at >= 3 && at[0] == '=' && at[1] == '"')
			at += 2;
		else if (end - at >= 2 && at[0] == '>')
			at++;
		else
			continue;
		if (*at >= '0' && *at <= '9')
			return *at >= '1' && *at <= '8' ? *at - (unsigned)'0' : EXIF_UPRIGHT;
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

static bool exif_begins(const uint8_t *data, size_t size, const char *prefix, size_t length)
{
	return size >= length && memcmp(data, prefix, length) == 0;
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
		if (marker == 0xe1 &&
		    exif_begins(segment, length, EXIF_XMP_PREFIX, sizeof(EXIF_XMP_PREFIX)))
			exif->xmp = (struct exif_piece){segment + sizeof(EXIF_XMP_PREFIX),
							length - sizeof(EXIF_XMP_PREFIX)};
		if (marker == 0xe1 &&
		    exif_begins(segment, length, EXIF_PREFIX, sizeof(EXIF_PREFIX))) {
			size_t skip = exif->n > 0 ? sizeof(EXIF_PREFIX) : 0;

			exif_add(exif, segment + skip, length - skip);
		}
		at += 4 + length;
	}
}

/* A text of a PNG that is XMP. international: chunk iTXt, in which a flag, a method, a language and another name of
 * it come before the text. */
static void exif_text_in_png(struct exif *exif, const uint8_t *data, size_t size,
			     bool is_international)
{
	const uint8_t *end = data + size;

	if (!exif_begins(data, size, EXIF_XMP_TEXT, sizeof(EXIF_XMP_TEXT)))
		return;
	data += sizeof(EXIF_XMP_TEXT);
	if (is_international && (end - data < 2 || data[0] != 0))
		return;
	data += is_international ? 2 : 0;
	for (unsigned i = 0; i < 2 && is_international; i++) {
		data = memchr(data, 0, (size_t)(end - data));
		if (!data)
			return;
		data++;
	}
	exif->xmp = (struct exif_piece){data, (size_t)(end - data)};
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
		if (memcmp(chunk + 4, "iTXt", 4) == 0 || memcmp(chunk + 4, "tEXt", 4) == 0)
			exif_text_in_png(exif, chunk + 8, length, chunk[4] == 'i');
		at += 12 + length;
	}
}

/* The first chunk EXIF and the first XMP, where the head says that there are any. */
static void exif_in_webp(struct exif *exif, const uint8_t *data, size_t size)
{
	size_t at = 12;

	if (size < 21 || memcmp(data + 12, "VP8X", 4) != 0)
		return;
	while (size - at >= 8) {
		const uint8_t *chunk = data + at;
		const size_t length = (size_t)chunk[7] << 24 | (size_t)chunk[6] << 16 |
				      (size_t)chunk[5] << 8 | chunk[4];

		if (length > size - at - 8)
			return;
		if (memcmp(chunk, "EXIF", 4) == 0 && (data[20] & 0x08) && exif->n == 0)
			exif_add(exif, chunk + 8, length);
		if (memcmp(chunk, "XMP ", 4) == 0 && (data[20] & 0x04) && !exif->xmp.data)
			exif->xmp = (struct exif_piece){chunk + 8, length};
		at += BASE_MIN(8 + length + length % 2, size - at);
	}
}

unsigned exif_orientation(const uint8_t *data, size_t size)
{
	struct exif exif = {.n = 0};
	unsigned orientation;

	if (size >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
		exif_in_jpeg(&exif, data, size);
	else if (size >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
		exif_in_png(&exif, data, size);
	else if (size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
		exif_in_webp(&exif, data, size);
	orientation = exif_find(&exif);
	return orientation ? orientation : exif_of_xmp(exif.xmp.data, exif.xmp.size);
}
