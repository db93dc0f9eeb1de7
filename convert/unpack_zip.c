/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Zip archives with deflated files: to one in which all are stored, with the same names in the same order. What is in the archive
 * says its scan; where that finds something wrong, or nothing deflated, it stays as it is, and who reads it says what is wrong.
 *
 * Of a folder that the options name only what is in it is looked at. Files that they leave out are empty: so they are not unpacked, and who
 * leaves them out finds them.
 *
 * The sizes of what is unpacked are known behind it, so they stand in the directory alone, with the places of the files as
 * Zip64 has them. The archive is scanned three times: whether it is good, for the files, and for their names once more, of
 * which none is in memory.
 */

#include "convert/convert.h"

#include <stdio.h>

#include "base/little.h"
#include "base/zip.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/scan/scan_zip.h"

#define ZIP_VERSION 45     /* that is needed to read Zip64 */
#define ZIP_EXTRA 12       /* bytes: of an entry, the place of its file */
#define ZIP_AHEAD SIZE_MAX /* of files' bytes: as many as there is room for */
#define ZIP_LEAVE_OUT "leave_out"
#define ZIP_MOST_FILE (UINT32_C(1) << 30) /* as jobs unpack */

enum { ZIP_E_ENDS = 1000 }; /* of a record, beside what scans say: why is in result */

struct unpack_zip {
	struct unpack_pipe *pipe;
	struct unpack_raw raw;
	bool is_deflated; /* some is */
	uint64_t to;      /* place of what is written next */
	size_t filled;    /* bytes of pipe->out */
	uint32_t *size;   /* owned; of each file that is written */
	size_t n, room;
	size_t entries; /* of the directory, as many as are written */
	uint64_t at;    /* place of the next one's file */
	uint64_t sum;   /* bytes of all files in the archive */
	int result;
};

/* ---- bytes ---- */

/* What lies there, as far as it is in memory, where so many are read at once; NULL: nothing does. */
static const uint8_t *look(struct unpack_zip *zip, uint64_t at, size_t wanted, size_t *ret_bytes)
{
	struct unpack_pipe *pipe = zip->pipe;

	if (at < pipe->at - pipe->in_bytes || at >= pipe->at) {
		pipe->at = at;
		pipe->in_bytes = 0;
		pipe->most = BASE_MIN(wanted, sizeof(pipe->in));
		if (!pipe->read(pipe) || pipe->in_bytes == 0)
			return NULL;
	}
	*ret_bytes = (size_t)(pipe->at - at);
	return pipe->in + (at - (pipe->at - pipe->in_bytes));
}

static int take(void *arg, uint64_t at, uint8_t *ret, uint32_t bytes)
{
	for (size_t some; bytes > 0; bytes -= (uint32_t)some) {
		const uint8_t *there = look(arg, at, bytes, &some);

		if (!there)
			return -EIO;
		some = BASE_MIN(some, (size_t)bytes);
		memcpy(ret, there, some);
		ret += some;
		at += some;
	}
	return 0;
}

static bool flush(struct unpack_zip *zip)
{
	const size_t bytes = zip->filled;

	zip->filled = 0;
	return zip->pipe->write(zip->pipe, bytes);
}

static bool put(struct unpack_zip *zip, const void *data, size_t size)
{
	const uint8_t *from = data;

	zip->to += size;
	for (size_t some; size > 0; size -= some) {
		if (zip->filled == sizeof(zip->pipe->out) && !flush(zip))
			return false;
		some = BASE_MIN(size, sizeof(zip->pipe->out) - zip->filled);
		memcpy(zip->pipe->out + zip->filled, from, some);
		zip->filled += some;
		from += some;
	}
	return true;
}

/* ---- a file ---- */

static int copy(struct unpack_zip *zip, uint64_t at, uint64_t end)
{
	for (size_t some; at < end; at += some) {
		const uint8_t *there = look(zip, at, ZIP_AHEAD, &some);

		if (!there)
			return UNPACK_E_READ;
		some = (size_t)BASE_MIN((uint64_t)some, end - at);
		if (!put(zip, there, some))
			return UNPACK_E_WRITE;
	}
	return 0;
}

/* What comes of the bytes that are there. 0 or UNPACK_E_.... */
static int inflate_some(struct unpack_zip *zip, const uint8_t *from, size_t bytes, uint64_t *size)
{
	uint8_t plain[16384];
	struct unpack_piece piece = {
	    .from = from, .size = bytes, .to = plain, .room = sizeof(plain)};
	int r;

	do {
		r = unpack_raw_step(&zip->raw, &piece);
		*size += piece.made;
		if (r)
			return r;
		if (*size > ZIP_MOST_FILE)
			return UNPACK_E_LARGE_FILE;
		if (!put(zip, plain, piece.made))
			return UNPACK_E_WRITE;
		piece.from += piece.taken;
		piece.size -= piece.taken;
	} while (!zip->raw.has_ended && piece.made == piece.room);
	return piece.size > 0 ? UNPACK_E_DAMAGED : 0;
}

/* Is it what the header says, as far as that does? */
static bool is_as_said(const struct unpack_zip *zip, const struct zip_header *header, uint64_t size)
{
	return header->flags & ZIP_FLAG_LATER ||
	       (zip->raw.crc == header->crc &&
		(header->size == UINT32_MAX || header->size == size));
}

static int inflate_file(struct unpack_zip *zip, uint64_t at, uint64_t end,
			const struct zip_header *header)
{
	uint64_t size = 0;
	int r = 0;

	unpack_raw_begin(&zip->raw);
	for (size_t some; at < end && !zip->raw.has_ended && !r; at += some) {
		const uint8_t *there = look(zip, at, ZIP_AHEAD, &some);

		if (!there)
			return UNPACK_E_READ;
		some = (size_t)BASE_MIN((uint64_t)some, end - at);
		r = inflate_some(zip, there, some, &size);
	}
	if (r)
		return r;
	return zip->raw.has_ended && at == end && is_as_said(zip, header, size) ? 0
										: UNPACK_E_DAMAGED;
}

static bool put_header(struct unpack_zip *zip, const char *name)
{
	uint8_t header[ZIP_HEADER] = {'P', 'K', 3, 4, ZIP_VERSION, 0, ZIP_FLAG_LATER};
	const size_t size = strlen(name);

	little_put(header + 26, size, 2);
	return put(zip, header, sizeof(header)) && put(zip, name, size);
}

static bool remember(struct unpack_zip *zip, uint32_t size)
{
	if (!base_grow(&zip->size, &zip->room, zip->n + 1, sizeof(*zip->size)))
		return false;
	zip->size[zip->n++] = size;
	return true;
}

/* Is it one from its header on: deflated, or empty? */
static bool has_header(struct unpack_zip *zip, const struct scan_record *record,
		       struct zip_header *ret)
{
	uint8_t bytes[ZIP_HEADER];

	return record->bytes >= ZIP_HEADER && take(zip, record->at, bytes, ZIP_HEADER) == 0 &&
	       zip_header(bytes, ret) && ret->bytes <= record->bytes &&
	       (ret->method == ZIP_DEFLATED || ret->bytes == record->bytes);
}

/* Is it SHARD:KEY, and that its key? */
static bool is_named(const struct unpack_zip *zip, const char *name, size_t bytes, const char *key)
{
	const size_t shard = strlen(zip->pipe->name);

	return bytes == shard + 1 + strlen(key) && memcmp(name, zip->pipe->name, shard) == 0 &&
	       name[shard] == ':' && memcmp(name + shard + 1, key, strlen(key)) == 0;
}

static bool is_left_out(const struct unpack_zip *zip, const char *key)
{
	const char *at = zip->pipe->options;
	struct scan_option option;

	while (scan_option_next(&at, &option)) {
		if (option.key_bytes != strlen(ZIP_LEAVE_OUT) ||
		    memcmp(option.key, ZIP_LEAVE_OUT, option.key_bytes) != 0)
			continue;
		for (size_t from = 0, bytes; from < option.value_bytes; from += bytes + 1) {
			bytes = strcspn(option.value + from, ";,");
			if (is_named(zip, option.value + from, bytes, key))
				return true;
		}
	}
	return false;
}

static int on_look(void *arg, const struct scan_record *record)
{
	struct unpack_zip *zip = arg;
	struct zip_header header;

	if (is_left_out(zip, record->key))
		return 0;
	zip->sum += record->bytes;
	zip->is_deflated =
	    zip->is_deflated || (has_header(zip, record, &header) && header.method == ZIP_DEFLATED);
	return 0;
}

static int on_file(void *arg, const struct scan_record *record)
{
	struct unpack_zip *zip = arg;
	const uint64_t at = record->at, end = at + record->bytes;
	struct zip_header header;
	uint64_t data;

	if (!put_header(zip, record->key)) {
		zip->result = UNPACK_E_WRITE;
		return ZIP_E_ENDS;
	}
	data = zip->to;
	if (is_left_out(zip, record->key))
		zip->result = 0;
	else if (!has_header(zip, record, &header))
		zip->result = copy(zip, at, end);
	else if (header.method == ZIP_DEFLATED)
		zip->result = inflate_file(zip, at + header.bytes, end, &header);
	if (zip->result == UNPACK_E_DAMAGED || zip->result == UNPACK_E_LARGE_FILE)
		snprintf(zip->pipe->file, sizeof(zip->pipe->file), "%s", record->key);
	if (!zip->result && !remember(zip, (uint32_t)(zip->to - data)))
		zip->result = UNPACK_E_MEMORY;
	return zip->result ? ZIP_E_ENDS : 0;
}

/* ---- the archive ---- */

static bool put_entry(struct unpack_zip *zip, uint64_t at, uint32_t size, const char *name)
{
	uint8_t entry[ZIP_ENTRY] = {'P', 'K',           1, 2, ZIP_VERSION, ZIP_OF_UNIX, ZIP_VERSION,
				    0,   ZIP_FLAG_LATER};
	uint8_t extra[ZIP_EXTRA] = {1, 0, 8};

	little_put_32(entry + 20, size);
	little_put_32(entry + 24, size);
	little_put(entry + 28, strlen(name), 2);
	little_put(entry + 30, sizeof(extra), 2);
	little_put_32(entry + 42, UINT32_MAX);
	little_put_64(extra + 4, at);
	return put(zip, entry, sizeof(entry)) && put(zip, name, strlen(name)) &&
	       put(zip, extra, sizeof(extra));
}

static bool put_end(struct unpack_zip *zip, uint64_t directory, uint64_t n)
{
	uint8_t end[ZIP_END_64] = {'P', 'K', 6, 6, ZIP_END_64 - 12};
	uint8_t locator[ZIP_LOCATOR] = {'P', 'K', 6, 7};
	uint8_t last[ZIP_END] = {'P', 'K', 5, 6};

	little_put(end + 12, ZIP_VERSION, 2);
	little_put(end + 14, ZIP_VERSION, 2);
	little_put_64(end + 24, n);
	little_put_64(end + 32, n);
	little_put_64(end + 40, zip->to - directory);
	little_put_64(end + 48, directory);
	little_put_64(locator + 8, zip->to);
	little_put_32(locator + 16, 1);
	memset(last + 8, 0xff, 12);
	return put(zip, end, sizeof(end)) && put(zip, locator, sizeof(locator)) &&
	       put(zip, last, sizeof(last)) && flush(zip);
}

static int on_entry(void *arg, const struct scan_record *record)
{
	struct unpack_zip *zip = arg;

	zip->result = UNPACK_E_READ; /* it has changed */
	if (zip->entries == zip->n)
		return ZIP_E_ENDS;
	zip->result = UNPACK_E_WRITE;
	if (!put_entry(zip, zip->at, zip->size[zip->entries], record->key))
		return ZIP_E_ENDS;
	zip->at += ZIP_HEADER + strlen(record->key) + zip->size[zip->entries++];
	return 0;
}

/* All files that are samples. 0, UNPACK_E_..., or of scans. */
static int scan(struct unpack_zip *zip, int (*record)(void *arg, const struct scan_record *record))
{
	const struct scan_shard shard = {
	    .name = "", .bytes = zip->pipe->bytes, .options = zip->pipe->options};
	const struct scan_reader reader = {.read = take, .arg = zip};
	struct scan_sink sink = {.record = record, .arg = zip};
	const int r = scan_shard_run(&scan_zip, &shard, &reader, &sink);

	if (r < 0)
		return r == -ENOMEM ? UNPACK_E_MEMORY : UNPACK_E_READ;
	if (r == ZIP_E_ENDS)
		return zip->result;
	return r ? UNPACK_E_PLAIN : 0;
}

static int unpack_files(struct unpack_zip *zip)
{
	uint64_t directory;
	int r = scan(zip, on_look);

	if (!r && !zip->is_deflated)
		return UNPACK_E_PLAIN;
	/* Of files that lie over each other more comes than there is. */
	if (!r && zip->sum > zip->pipe->bytes)
		return UNPACK_E_DAMAGED;
	r = r ? r : scan(zip, on_file);
	directory = zip->to;
	r = r ? r : scan(zip, on_entry);
	if (r)
		return r;
	if (zip->entries != zip->n)
		return UNPACK_E_READ;
	return put_end(zip, directory, zip->n) ? 0 : UNPACK_E_WRITE;
}

int unpack_zip(struct unpack_pipe *pipe)
{
	struct unpack_zip zip = {.pipe = pipe};
	int r = UNPACK_E_MEMORY;

	unpack_raw_new(&zip.raw);
	if (zip.raw.stream)
		r = unpack_files(&zip);
	unpack_raw_free(&zip.raw);
	free(zip.size);
	return r;
}
