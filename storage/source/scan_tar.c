/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples of a tar shard: its files, which scan_group.c groups.
 *
 * Archives: ustar, GNU's long names, pax headers with a path or a size. What tar programs take
 * for the end is the end: a block of zeros, or the end of the file where a header would be. Of two headers that say a
 * name the first one holds, as for Python's tarfile.
 *
 * Headers are all that is looked at, and the text of a label. A size is believed as far as the shard reaches, so
 * each step takes it nearer to its end, and none needs more memory than the state.
 */

#include "storage/source/scan_tar.h"

#include "base/base.h"
#include "storage/source/scan_group.h"
#include "storage/source/tar_header.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define TAR_MOST_PATH SCAN_MOST_KEY

enum tar_stage { TAR_AT_HEADER, TAR_AT_LONG_NAME, TAR_AT_PAX, TAR_AT_CLS };

struct tar {
	enum tar_stage stage;
	uint64_t bytes;  /* of the shard */
	uint64_t header; /* where the header begins that was looked at last */
	uint64_t next;   /* where the next one does */

	/* what headers before a file's own say of it */
	bool has_path, has_size;
	char path[TAR_MOST_PATH];
	uint64_t size;

	struct scan_group group;
};

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

bool scan_tar_is_shard(const uint8_t *head, size_t size)
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

/* The next header, or the end. */
static int go_on(struct tar *tar, struct scan_sink *sink, struct scan_want *ret)
{
	int r;

	tar->stage = TAR_AT_HEADER;
	if (tar->next >= tar->bytes) {
		r = scan_group_end(&tar->group, sink);
		return r ? r : SCAN_E_END;
	}
	*ret = (struct scan_want){tar->next, TAR_BLOCK};
	return 0;
}

/* Behind a file: what was said before it was about it. */
static int go_on_behind(struct tar *tar, struct scan_sink *sink, struct scan_want *ret)
{
	tar->has_path = tar->has_size = false;
	return go_on(tar, sink, ret);
}

static int want_payload(struct tar *tar, enum tar_stage stage, uint64_t size, struct scan_want *ret)
{
	tar->stage = stage;
	*ret = (struct scan_want){tar->header + TAR_BLOCK, (uint32_t)size};
	return 0;
}

/* ---- headers of headers ---- */

static int on_long_name(struct tar *tar, const uint8_t *bytes, uint32_t size,
			struct scan_sink *sink, struct scan_want *ret)
{
	const size_t length = strnlen((const char *)bytes, size);

	if (length >= sizeof(tar->path))
		return scan_bad(sink, tar->header, "a file's path is longer than 4095 bytes");
	if (!tar->has_path) {
		memcpy(tar->path, bytes, length);
		tar->path[length] = '\0';
		tar->has_path = true;
	}
	return go_on(tar, sink, ret);
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

static int pax_take(struct tar *tar, const struct pax_word *word, struct scan_sink *sink)
{
	if (word->key_length >= 10 && memcmp(word->key, "GNU.sparse", 10) == 0)
		return scan_bad(sink, tar->header,
				"a sparse file: pack the shard anew, without --sparse");
	if (word_is(word, "path") && !tar->has_path) {
		if (word->value_length >= sizeof(tar->path))
			return scan_bad(sink, tar->header,
					"a file's path is longer than 4095 bytes");
		if (memchr(word->value, 0, word->value_length))
			return scan_bad(sink, tar->header, "a file's path has a NUL in it");
		memcpy(tar->path, word->value, word->value_length);
		tar->path[word->value_length] = '\0';
		tar->has_path = true;
	} else if (word_is(word, "size") && !tar->has_size) {
		if (!pax_size(word, &tar->size))
			return scan_bad(sink, tar->header, "its extended header has no size");
		tar->has_size = true;
	}
	return 0;
}

static int on_pax(struct tar *tar, const uint8_t *bytes, uint32_t size, struct scan_sink *sink,
		  struct scan_want *ret)
{
	const char *text = (const char *)bytes;
	struct pax_word word;
	int r = 0;

	/* some writers fill up with zeros */
	for (size_t at = 0; at < size && text[at] && !r; at += word.length) {
		if (!pax_parse(text + at, size - at, &word))
			return scan_bad(sink, tar->header, "its extended header is damaged");
		r = pax_take(tar, &word, sink);
	}
	return r ? r : go_on(tar, sink, ret);
}

/* ---- a header ---- */

static int on_file(struct tar *tar, const struct tar_header *header, uint64_t size,
		   struct scan_sink *sink, struct scan_want *ret)
{
	char path[TAR_MOST_PATH];
	const struct scan_member member = {
	    .path = tar->has_path ? tar->path : path,
	    .header = tar->header,
	    .at = tar->header + TAR_BLOCK,
	    .size = size,
	};
	int r;

	path_of_header(header, path);
	if (header->type == '\0' && *member.path && member.path[strlen(member.path) - 1] == '/')
		return go_on_behind(tar, sink, ret); /* of old, a folder */
	r = scan_group_add(&tar->group, &member, sink);
	if (r == GROUP_E_LABEL)
		return want_payload(tar, TAR_AT_CLS, size, ret);
	return r ? r : go_on_behind(tar, sink, ret);
}

static int on_cls(struct tar *tar, uint64_t at, const uint8_t *bytes, uint32_t size,
		  struct scan_sink *sink, struct scan_want *ret)
{
	const int r = scan_group_label(&tar->group, at, bytes, size, sink);

	return r ? r : go_on_behind(tar, sink, ret);
}

static int on_type(struct tar *tar, const struct tar_header *header, uint64_t size,
		   struct scan_sink *sink, struct scan_want *ret)
{
	switch (header->type) {
	case 'L':
	case 'x':
	case 'X':
		if (size > SCAN_MOST_WANT)
			return scan_bad(sink, tar->header, "an extended header larger than 1 MiB");
		if (size == 0)
			return go_on(tar, sink, ret);
		return want_payload(tar, header->type == 'L' ? TAR_AT_LONG_NAME : TAR_AT_PAX, size,
				    ret);
	case 'K': /* the long name of a link's target */
	case 'g': /* comments; what it may say of each file, no writer of shards says */
		return go_on(tar, sink, ret);
	case 'S':
		return scan_bad(sink, tar->header,
				"a sparse file: pack the shard anew, without --sparse");
	case '0':
	case '7':
	case '\0':
		return on_file(tar, header, size, sink, ret);
	default:
		return go_on_behind(tar, sink, ret);
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

static int on_header(struct tar *tar, uint64_t at, const uint8_t *bytes, uint32_t size,
		     struct scan_sink *sink, struct scan_want *ret)
{
	struct tar_header header;
	uint64_t payload;

	tar->header = at;
	if (size < TAR_BLOCK)
		return scan_bad(sink, at, "it ends within a header: it is cut");
	if (is_zero(bytes, TAR_BLOCK)) {
		const int r = scan_group_end(&tar->group, sink);

		return r ? r : SCAN_E_END;
	}
	memcpy(&header, bytes, sizeof(header));
	if (!checksum_is_right(bytes) || !parse_number(header.size, sizeof(header.size), &payload))
		return scan_bad(sink, at, "no header of a tar archive is here: it is damaged");
	if (tar->has_size && !says_of_next(header.type))
		payload = tar->size;
	if (!has_payload(header.type))
		payload = 0;
	if (payload > tar->bytes || at + TAR_BLOCK > tar->bytes - payload)
		return scan_bad(sink, at, "a file of %llu bytes reaches beyond its end: it is cut",
				(unsigned long long)payload);
	tar->next = at + TAR_BLOCK + padded(payload);
	return on_type(tar, &header, payload, sink, ret);
}

/* ---- the scan ---- */

static int tar_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
		     struct scan_want *ret)
{
	struct tar *tar = state;

	memset(tar, 0, sizeof(*tar));
	tar->bytes = shard->bytes;
	if (shard->bytes == 0)
		return scan_bad(sink, 0, "it is empty");
	if (shard->bytes > UINT64_MAX >> 1)
		return scan_bad(sink, 0, "it is too large");
	return go_on(tar, sink, ret);
}

static int tar_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
		    struct scan_sink *sink, struct scan_want *ret)
{
	struct tar *tar = state;

	switch (tar->stage) {
	case TAR_AT_LONG_NAME:
		return on_long_name(tar, bytes, size, sink, ret);
	case TAR_AT_PAX:
		return on_pax(tar, bytes, size, sink, ret);
	case TAR_AT_CLS:
		return on_cls(tar, at, bytes, size, sink, ret);
	default:
		return on_header(tar, at, bytes, size, sink, ret);
	}
}

const struct source_scan scan_tar = {
    .name = "tar",
    .state_bytes = sizeof(struct tar),
    .begin = tar_begin,
    .feed = tar_feed,
};
