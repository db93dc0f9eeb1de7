/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Archives: ustar, GNU's long names, pax headers with a path or a size. What tar programs take
 * for the end is the end: a block of zeros, or the end of the file where a header would be. Of two headers that say a
 * name the first one holds, as for Python's tarfile.
 *
 * A size is believed as far as the archive reaches, so each step takes it nearer to its end, and none needs more
 * memory than the state.
 */

#include "base/tar.h"

#include "base/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static int bad(struct tar *tar, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(tar->why, sizeof(tar->why), fmt, args);
	va_end(args);
	return TAR_E_BAD;
}

/* ---- headers ---- */

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Octal digits, with blanks before and a blank or NUL behind them, or GNU's base 256. */
static bool parse_number(const char *field, size_t size, uint64_t *ret)
{
	const uint8_t *digits = (const uint8_t *)field;
	uint64_t value = 0;
	size_t i = 0;

	if (digits[0] == 0x80) {
		for (i = 1; i < size; i++) {
			if (value >> 55)
				return false;
			value = value << 8 | digits[i];
		}
		*ret = value;
		return true;
	}
	while (i < size && digits[i] == ' ')
		i++;
	for (; i < size && digits[i] >= '0' && digits[i] <= '7'; i++)
		value = value << 3 | (uint64_t)(digits[i] - '0');
	if (i < size && digits[i] != ' ' && digits[i] != '\0')
		return false;
	*ret = value;
	return true;
}

unsigned tar_header_sum(const struct tar_header *header)
{
	uint8_t bytes[TAR_BLOCK];
	unsigned sum = 0;

	memcpy(bytes, header, sizeof(bytes));
	memset(bytes + offsetof(struct tar_header, checksum), ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(bytes); i++)
		sum += bytes[i];
	return sum;
}

/* Of old, some added signed bytes: less by 256 for each that is negative. */
static bool checksum_is_right(const uint8_t *block)
{
	struct tar_header header;
	unsigned sum, negative = 0;
	uint64_t said;

	memcpy(&header, block, sizeof(header));
	sum = tar_header_sum(&header);
	memset(header.checksum, 0, sizeof(header.checksum));
	for (size_t i = 0; i < sizeof(header); i++)
		negative += ((const uint8_t *)&header)[i] >> 7;
	return parse_number((const char *)block + offsetof(struct tar_header, checksum), 8,
			    &said) &&
	       (said == sum || (256 * negative < sum && said == sum - 256 * negative));
}

bool tar_is_archive(const uint8_t *head, size_t size)
{
	return size >= TAR_BLOCK && checksum_is_right(head);
}

/* A field of text, which has a NUL only if there is room. */
static size_t text_length(const char *field, size_t size)
{
	return strnlen(field, size);
}

/* The path of a file in ret. */
static void path_of_header(const struct tar_header *header, char ret[TAR_MOST_PATH])
{
	const size_t name = text_length(header->name, sizeof(header->name));
	const size_t prefix = memcmp(header->magic, "ustar", sizeof(header->magic)) == 0
				  ? text_length(header->prefix, sizeof(header->prefix))
				  : 0;
	char *end = ret;

	memcpy(end, header->prefix, prefix);
	end += prefix;
	if (prefix)
		*end++ = '/';
	memcpy(end, header->name, name);
	end[name] = '\0';
}

/* ---- steps ---- */

static uint64_t padded(uint64_t size)
{
	return base_align_up(size, TAR_BLOCK);
}

static int want_payload(struct tar *tar, int stage, uint64_t size)
{
	tar->stage = stage;
	tar->want = (uint32_t)size;
	return 0;
}

/* ---- headers of headers ---- */

static int on_long_name(struct tar *tar, const uint8_t *bytes, uint32_t size)
{
	const size_t length = strnlen((const char *)bytes, size);

	if (length >= sizeof(tar->path))
		return bad(tar, "a file's path is longer than 4095 bytes");
	if (!tar->has_path) {
		memcpy(tar->path, bytes, length);
		tar->path[length] = '\0';
		tar->has_path = true;
	}
	return 0;
}

struct pax_word { /* "LENGTH key=value\n" */
	const char *key, *value;
	size_t key_length, value_length;
	size_t length; /* of all of it */
};

static bool pax_parse(const char *text, size_t size, struct pax_word *ret)
{
	const char *end, *equals;
	size_t length = 0, digits = 0;

	while (digits < size && digits < 8 && isdigit((unsigned char)text[digits]))
		length = length * 10 + (size_t)(text[digits++] - '0');
	if (!digits || length > size || length < digits + 4 || text[digits] != ' ' ||
	    text[length - 1] != '\n')
		return false;
	end = text + length - 1;
	ret->key = text + digits + 1;
	equals = memchr(ret->key, '=', (size_t)(end - ret->key));
	if (!equals)
		return false;
	ret->key_length = (size_t)(equals - ret->key);
	ret->value = equals + 1;
	ret->value_length = (size_t)(end - ret->value);
	ret->length = length;
	return true;
}

static bool word_is(const struct pax_word *word, const char *key)
{
	return word->key_length == strlen(key) && memcmp(word->key, key, word->key_length) == 0;
}

static bool pax_size(const struct pax_word *word, uint64_t *ret)
{
	char text[24];
	const char *end = text;

	if (word->value_length >= sizeof(text))
		return false;
	memcpy(text, word->value, word->value_length);
	text[word->value_length] = '\0';
	return base_parse_number(&end, UINT64_MAX >> 1, ret) && !*end;
}

static int pax_take(struct tar *tar, const struct pax_word *word)
{
	if (word->key_length >= 10 && memcmp(word->key, "GNU.sparse", 10) == 0)
		return bad(tar, "a sparse file: pack the shard anew, without --sparse");
	if (word_is(word, "path") && !tar->has_path) {
		if (word->value_length >= sizeof(tar->path))
			return bad(tar, "a file's path is longer than 4095 bytes");
		if (memchr(word->value, 0, word->value_length))
			return bad(tar, "a file's path has a NUL in it");
		memcpy(tar->path, word->value, word->value_length);
		tar->path[word->value_length] = '\0';
		tar->has_path = true;
	} else if (word_is(word, "size") && !tar->has_size) {
		if (!pax_size(word, &tar->size))
			return bad(tar, "its extended header has no size");
		tar->has_size = true;
	}
	return 0;
}

static int on_pax(struct tar *tar, const uint8_t *bytes, uint32_t size)
{
	const char *text = (const char *)bytes;
	struct pax_word word;
	int r = 0;

	/* some writers fill up with zeros */
	for (size_t at = 0; at < size && text[at] && !r; at += word.length) {
		if (!pax_parse(text + at, size - at, &word))
			return bad(tar, "its extended header is damaged");
		r = pax_take(tar, &word);
	}
	return r;
}

/* ---- a header ---- */

/* Behind a file: what was said before it was about it. */
static int on_file(struct tar *tar, const struct tar_header *header, uint64_t size,
		   struct tar_file *ret)
{
	size_t length;

	if (!tar->has_path)
		path_of_header(header, tar->path);
	length = strlen(tar->path);
	*ret = (struct tar_file){tar->path, tar->begin, tar->header, tar->header + TAR_BLOCK, size};
	tar->has_path = tar->has_size = false;
	tar->begin = tar->next;
	if (header->type == '\0' && length > 0 && tar->path[length - 1] == '/')
		return 0; /* of old, a folder */
	return TAR_E_FILE;
}

static int on_type(struct tar *tar, const struct tar_header *header, uint64_t size,
		   struct tar_file *ret)
{
	switch (header->type) {
	case 'L':
	case 'x':
	case 'X':
		if (size > TAR_MOST_WANT)
			return bad(tar, "an extended header larger than 1 MiB");
		if (size == 0)
			return 0;
		return want_payload(tar, header->type == 'L' ? TAR_AT_LONG_NAME : TAR_AT_PAX, size);
	case 'K': /* the long name of a link's target */
	case 'g': /* comments; what it may say of each file, no writer of shards says */
		return 0;
	case 'S':
		return bad(tar, "a sparse file: pack the shard anew, without --sparse");
	case '0':
	case '7':
	case '\0':
		return on_file(tar, header, size, ret);
	default:
		tar->has_path = tar->has_size = false;
		tar->begin = tar->next;
		return 0;
	}
}

/* Links, devices and folders have no bytes, whatever their header says. */
static bool has_payload(char type)
{
	return type < '1' || type > '6';
}

static bool says_of_next(char type)
{
	return type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g';
}

static int on_header(struct tar *tar, const uint8_t *bytes, uint32_t size, struct tar_file *ret)
{
	struct tar_header header;
	uint64_t payload;

	tar->header = tar->next;
	if (size < TAR_BLOCK)
		return bad(tar, "it ends within a header: it is cut");
	if (is_zero(bytes, TAR_BLOCK))
		return TAR_E_END;
	memcpy(&header, bytes, sizeof(header));
	if (!checksum_is_right(bytes) || !parse_number(header.size, sizeof(header.size), &payload))
		return bad(tar, "no header of a tar archive is here: it is damaged");
	if (tar->has_size && !says_of_next(header.type))
		payload = tar->size;
	if (!has_payload(header.type))
		payload = 0;
	if (payload > tar->bytes || tar->header + TAR_BLOCK > tar->bytes - payload)
		return bad(tar, "a file of %llu bytes reaches beyond its end: it is cut",
			   (unsigned long long)payload);
	tar->next = tar->header + TAR_BLOCK + padded(payload);
	return on_type(tar, &header, payload, ret);
}

/* ---- the walk ---- */

void tar_begin(struct tar *tar, uint64_t bytes)
{
	memset(tar, 0, sizeof(*tar));
	tar->bytes = bytes;
}

int tar_next(const struct tar *tar, uint64_t *ret_at, uint32_t *ret_bytes)
{
	const bool is_header = tar->stage == TAR_AT_HEADER;

	if (is_header && tar->next >= tar->bytes)
		return TAR_E_END;
	*ret_at = is_header ? tar->next : tar->header + TAR_BLOCK;
	*ret_bytes = is_header ? TAR_BLOCK : tar->want;
	return 0;
}

int tar_feed(struct tar *tar, const uint8_t *bytes, uint32_t size, struct tar_file *ret)
{
	const int stage = tar->stage;

	tar->stage = TAR_AT_HEADER;
	if (stage == TAR_AT_LONG_NAME)
		return on_long_name(tar, bytes, size);
	return stage == TAR_AT_PAX ? on_pax(tar, bytes, size) : on_header(tar, bytes, size, ret);
}

/* ---- what files are to samples ---- */

/* Does it begin with __NAME__, whole or as a folder? */
static bool is_meta(const char *path)
{
	const char *end;

	if (strncmp(path, "__", 2) != 0)
		return false;
	for (end = path + 2; (end = strstr(end, "__")); end++)
		if (memchr(path, '/', (size_t)(end - path)))
			return false;
		else if (end[2] == '\0' || end[2] == '/')
			return true;
	return false;
}

const char *tar_field(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const char *dot = strchr(base, '.');

	return dot && dot > base && !is_meta(path) ? dot + 1 : NULL;
}
