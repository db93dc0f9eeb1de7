/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples of a zip archive: its end says where the directory is, that what files there are, and each file's header where its
 * bytes begin. All of the directory is read, in pieces, and of files that are samples the headers; nothing is unpacked here.
 *
 * A file that is stored is a sample as it is. One that is deflated, or empty, is one from its header on: workers unpack it
 * (pipeline/forms/zipped.h).
 *
 * That files do not overlap is not checked: each is within the archive, and costs what one that lies alone does.
 */

#include "storage/source/scan/scan_zip.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/zip.h"
#include "storage/source/scan/scan_option.h"
#include "storage/walk.h"

#define ZIP_WINDOW (UINT32_C(1) << 18) /* bytes of the directory that are in memory */
#define ZIP_LAST (ZIP_LOCATOR + ZIP_END + ZIP_MOST_TEXT) /* bytes in which the end is */
#define ZIP_OF_MACOS "__MACOSX/" /* what macOS puts beside files: named as these, and no pictures */

_Static_assert(ZIP_WINDOW >= ZIP_MOST_ENTRY && ZIP_WINDOW <= SCAN_MOST_WANT, "an entry fits");

struct zip {
	enum { ZIP_AT_END, ZIP_AT_END_64, ZIP_IN_DIRECTORY, ZIP_AT_HEADER } phase;
	uint64_t bytes;
	uint64_t end;       /* where the end begins, or the one of Zip64 */
	bool is_before_end; /* the directory ends before that: the archive may have been moved */
	struct zip_end directory; /* where that is, and how many bytes of it are left */
	struct zip_entry entry;  /* of the file whose header is wanted; its name is in the window */
	char key[SCAN_MOST_KEY]; /* of it */
	char folder[SCAN_ZIP_FOLDER]; /* keys begin so */
	uint32_t wanted;
	size_t used, size; /* of the window */
	uint8_t window[ZIP_WINDOW];
};

static int wants(struct zip *zip, uint64_t at, uint64_t bytes, struct scan_want *ret)
{
	zip->wanted = (uint32_t)bytes;
	return scan_wants(at, bytes, ret);
}

/* ---- names ---- */

/* Of one from Windows \ is / where it has no /, as for unzip, and where its bytes are no half of a letter of Japan's or China's. */
static bool has_backslashes(const struct zip_entry *entry)
{
	if (!entry->is_dos || memchr(entry->name, '/', entry->name_bytes))
		return false;
	for (size_t i = 0; i < entry->name_bytes && !(entry->flags & ZIP_FLAG_UTF8); i++)
		if (entry->name[i] >= 0x80)
			return false;
	return true;
}

/* The path without what changes nothing in it. NULL, or what is wrong. */
static const char *key_of(const struct zip_entry *entry, char ret[SCAN_MOST_KEY])
{
	const char *from = (const char *)entry->name, *end = from + entry->name_bytes;
	char *to = ret;
	const char between = has_backslashes(entry) ? '\\' : '/';

	if (memchr(from, 0, entry->name_bytes))
		return "a file's name has a zero byte";
	if (entry->name_bytes >= SCAN_MOST_KEY)
		return "a file's path has more than 4095 bytes";
	while (from < end) {
		const char *slash = memchr(from, between, (size_t)(end - from));
		const size_t length = (size_t)((slash ? slash : end) - from);

		if (length == 2 && memcmp(from, "..", 2) == 0)
			return "a file's path leads upwards (\"..\")";
		if (length > 0 && !(length == 1 && *from == '.')) {
			memcpy(to, from, length);
			to += length;
			if (slash)
				*to++ = '/';
		}
		from += length + (slash != NULL);
	}
	*to = '\0';
	return NULL;
}

static bool is_sample(const struct zip *zip)
{
	return walk_kind_of(zip->key) < WALK_KINDS &&
	       strncmp(zip->key, ZIP_OF_MACOS, strlen(ZIP_OF_MACOS)) != 0 &&
	       strncmp(zip->key, zip->folder, strlen(zip->folder)) == 0;
}

static int zip_bad(const struct zip *zip, struct scan_sink *sink, uint64_t at, const char *what)
{
	return scan_bad(sink, at, "file %s %s", BASE_QUOTED(zip->key, 90), what);
}

/* ---- the end ---- */

static int begin_directory(struct zip *zip, struct scan_sink *sink)
{
	if (zip->directory.is_split)
		return scan_bad(
		    sink, zip->end,
		    "it is one part of a split archive: write a whole one, with zip -s 0 "
		    "SPLIT.zip --out WHOLE.zip");
	if (zip->directory.directory > zip->end ||
	    zip->directory.bytes > zip->end - zip->directory.directory)
		return scan_bad(
		    sink, zip->end,
		    "its directory is not where its end says; it is cut off or damaged: "
		    "copy it anew");
	zip->is_before_end = zip->directory.directory + zip->directory.bytes < zip->end;
	zip->phase = ZIP_IN_DIRECTORY;
	return 0;
}

static int took_end(struct zip *zip, uint64_t at, const uint8_t *bytes, uint32_t size,
		    struct scan_sink *sink, struct scan_want *ret)
{
	const size_t end = zip_end(bytes, size, &zip->directory);
	uint64_t end_64;

	if (end == SIZE_MAX)
		return scan_bad(
		    sink, zip->bytes,
		    "it does not end as zip archives do; it is cut off, or is a part of a "
		    "split one: copy it anew");
	zip->end = at + end;
	if (end < ZIP_LOCATOR || !zip_locator(bytes + end - ZIP_LOCATOR, &end_64))
		return begin_directory(zip, sink);
	if (zip->end < ZIP_LOCATOR + ZIP_END_64 || end_64 > zip->end - ZIP_LOCATOR - ZIP_END_64)
		return scan_bad(sink, zip->end,
				"the end of Zip64 is not where it should be; it is "
				"damaged: copy it anew");
	zip->end = end_64;
	zip->phase = ZIP_AT_END_64;
	return wants(zip, end_64, ZIP_END_64, ret);
}

static int took_end_64(struct zip *zip, const uint8_t *bytes, struct scan_sink *sink)
{
	if (!zip_end_64(bytes, &zip->directory))
		return scan_bad(sink, zip->end,
				"the end of Zip64 is not where it should be; it is "
				"damaged: copy it anew, or, if it extracts itself, "
				"try zip -A");
	return begin_directory(zip, sink);
}

/* ---- files ---- */

static const char *refuse_method(unsigned method)
{
	switch (method) {
	case 9:
		return "is compressed by Deflate64, which is not read: write the archive with zip "
		       "-0";
	case 12:
		return "is compressed by bzip2, which is not read: write the archive with zip -0";
	case 14:
		return "is compressed by LZMA, which is not read: write the archive with zip -0";
	case 93:
		return "is compressed by Zstandard, which is not read in a zip: write the archive "
		       "with "
		       "zip -0";
	case 95:
		return "is compressed by XZ, which is not read: write the archive with zip -0";
	default:
		return "is compressed in a way that is not read: write the archive with zip -0";
	}
}

/* NULL: it can be read. */
static const char *refuse_entry(const struct zip_entry *entry)
{
	if (entry->flags & ZIP_FLAGS_ENCRYPTED)
		return "is encrypted: write the archive without a password";
	if (entry->is_split)
		return "is in another part of a split archive: write a whole one, with zip -s 0 "
		       "SPLIT.zip --out WHOLE.zip";
	if (entry->is_link)
		return "is a symbolic link: write the archive with what it leads to (zip without "
		       "-y)";
	if (entry->method != ZIP_STORED && entry->method != ZIP_DEFLATED)
		return refuse_method(entry->method);
	if (entry->method == ZIP_STORED && entry->packed != entry->size)
		return "is stored, and has two sizes; the archive is damaged: copy it anew";
	if (entry->packed > UINT32_MAX - ZIP_HEADER - 2 * ZIP_MOST_TEXT)
		return "has 4 GiB or more; no sample may have";
	return NULL;
}

static int on_entry(struct zip *zip, uint64_t at, struct scan_sink *sink, struct scan_want *ret)
{
	const struct zip_entry *entry = &zip->entry;
	const uint64_t head = ZIP_HEADER + entry->name_bytes;
	const char *why = refuse_entry(entry);

	if (why)
		return zip_bad(zip, sink, at, why);
	if (entry->header > zip->end || head > zip->end - entry->header)
		return zip_bad(zip, sink, at,
			       "is not in the archive; that is damaged: copy it anew");
	zip->phase = ZIP_AT_HEADER;
	return wants(zip, entry->header, head, ret);
}

/* 0, and nothing is wanted: the next one. */
static int next_entry(struct zip *zip, struct scan_sink *sink, struct scan_want *ret)
{
	const uint64_t at = zip->directory.directory;
	const size_t left = zip->size - zip->used;
	const size_t bytes = zip_entry(zip->window + zip->used, left, &zip->entry);
	const char *why;

	if (zip->directory.bytes == 0)
		return SCAN_E_END;
	if (bytes == 0 && left < zip->directory.bytes)
		return wants(zip, at, BASE_MIN(zip->directory.bytes, (uint64_t)ZIP_WINDOW), ret);
	if ((bytes == 0 || bytes == SIZE_MAX) && zip->is_before_end)
		return scan_bad(
		    sink, at,
		    "its directory is not where its end says; there are other bytes before "
		    "the archive, as where it extracts itself: zip -A mends that");
	if (bytes == 0 || bytes == SIZE_MAX)
		return scan_bad(sink, at, "its directory is damaged: copy it anew, or try zip -FF");
	zip->used += bytes;
	zip->directory.directory += bytes;
	zip->directory.bytes -= bytes;
	if (zip->entry.name_bytes == 0 || zip->entry.name[zip->entry.name_bytes - 1] == '/')
		return 0;
	why = key_of(&zip->entry, zip->key);
	if (why)
		return scan_bad(sink, at, "%s", why);
	return is_sample(zip) ? on_entry(zip, at, sink, ret) : 0;
}

static int took_header(struct zip *zip, const uint8_t *bytes, struct scan_sink *sink)
{
	const struct zip_entry *entry = &zip->entry;
	const bool is_plain = entry->method == ZIP_STORED && entry->size > 0;
	struct scan_record record = {.at = entry->header, .label = SCAN_NO_LABEL, .key = zip->key};
	struct zip_header header;

	if (!zip_header(bytes, &header) || header.method != entry->method ||
	    header.name_bytes != entry->name_bytes ||
	    memcmp(bytes + ZIP_HEADER, entry->name, entry->name_bytes) != 0)
		return zip_bad(
		    zip, sink, entry->header,
		    "has another header than the directory says; the archive is damaged: "
		    "copy it anew");
	if (header.flags & ZIP_FLAGS_ENCRYPTED)
		return zip_bad(zip, sink, entry->header,
			       "is encrypted: write the archive without a password");
	if (header.bytes + entry->packed > zip->end - entry->header)
		return zip_bad(zip, sink, entry->header,
			       "ends behind the archive; that is damaged: copy it anew");
	record.bytes = (uint32_t)(is_plain ? entry->packed : header.bytes + entry->packed);
	record.at += is_plain ? header.bytes : 0;
	zip->phase = ZIP_IN_DIRECTORY;
	return sink->record(sink->arg, &record);
}

/* ---- the scan ---- */

static int zip_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
		    struct scan_sink *sink, struct scan_want *ret)
{
	struct zip *zip = state;
	int r = 0;

	zip->wanted = 0;
	switch (zip->phase) {
	case ZIP_AT_END:
		r = took_end(zip, at, bytes, size, sink, ret);
		break;
	case ZIP_AT_END_64:
		r = took_end_64(zip, bytes, sink);
		break;
	case ZIP_IN_DIRECTORY:
		memcpy(zip->window, bytes, size);
		zip->used = 0;
		zip->size = size;
		break;
	case ZIP_AT_HEADER:
		r = took_header(zip, bytes, sink);
		break;
	}
	while (r == 0 && zip->wanted == 0)
		r = next_entry(zip, sink, ret);
	return r;
}

bool scan_zip_folder(const char *options, char ret[SCAN_ZIP_FOLDER])
{
	char text[SCAN_ZIP_FOLDER - 1], key[SCAN_MOST_KEY];
	struct zip_entry entry = {.name = (const uint8_t *)text};
	size_t bytes;

	if (!scan_option(options, "folder", text, sizeof(text)))
		return false;
	entry.name_bytes = strlen(text);
	if (key_of(&entry, key))
		return false;
	bytes = strlen(key);
	memcpy(ret, key, bytes + 1);
	if (bytes > 0 && ret[bytes - 1] != '/')
		memcpy(ret + bytes, "/", 2);
	return true;
}

static int zip_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
		     struct scan_want *ret)
{
	struct zip *zip = state;
	const uint64_t last = BASE_MIN(shard->bytes, (uint64_t)ZIP_LAST);

	memset(zip, 0, offsetof(struct zip, window));
	zip->bytes = shard->bytes;
	if (!scan_zip_folder(shard->options, zip->folder))
		return scan_bad(sink, 0,
				"folder is that of a folder in the archive, as train/images");
	if (shard->bytes < ZIP_END || shard->bytes > INT64_MAX)
		return scan_bad(sink, 0, "it is no zip archive: it is cut off; copy it anew");
	return wants(zip, shard->bytes - last, last, ret);
}

const struct source_scan scan_zip = {
    .name = "zip",
    .state_bytes = sizeof(struct zip),
    .begin = zip_begin,
    .feed = zip_feed,
};
