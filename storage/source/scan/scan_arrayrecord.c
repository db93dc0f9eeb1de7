/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of an ArrayRecord file (riegeli.h). The chunks say all that the index at its end does, and that may be compressed, so it is
 * not read. Each chunk with records is read whole, for its hash. A record that is a frame of Zstandard, as all are by default, is a
 * sample as it is: workers unpack it (pipeline/forms/zstandard.h), and nothing is unpacked here.
 */

#include "storage/source/scan/scan_shard.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/little.h"
#include "base/varint.h"
#include "storage/source/scan/highway.h"
#include "storage/source/scan/magic.h"
#include "storage/source/scan/riegeli.h"
#include "storage/source/scan/scan_example.h"

#define POSTSCRIPT 256 /* bytes of the last block that are looked at */
#define MOST_SIZES 64  /* bytes that the size of one record may take, compressed */
#define DATA_LOOK \
	256 /* bytes of a chunk's data that are looked at: what stands before the record, and how that begins */
#define EXAMPLE_BEGIN 0x0a
#define FRAME_BEGIN UINT32_C(0xfd2fb528)

struct arrayrecord {
	struct example_names names;
	uint64_t file_bytes;
	uint64_t footer; /* its place */
	uint64_t number; /* of the record */
	uint64_t begin;  /* place of the chunk */
	enum { ARRAY_AT_END, ARRAY_IN_HEAD, ARRAY_IN_DATA, ARRAY_IN_RECORD } phase;
	struct riegeli_chunk chunk;
	uint64_t record, bytes; /* place of it, and how many */
	bool is_example;
	uint64_t summed; /* bytes of the data that are in the sum */
	struct highway sum;
	struct example_walk walk;
	uint64_t window_at, window_end; /* places that are in memory */
	uint8_t window[SCAN_MOST_WANT];
};

static void arrayrecord_join(uint8_t *bytes, size_t size, uint64_t at)
{
	size_t from = 0, to = 0;

	while (from < size) {
		const uint64_t within = (at + from) % RIEGELI_BLOCK;
		const uint64_t left =
		    (within < RIEGELI_BLOCK_HEAD ? RIEGELI_BLOCK_HEAD : RIEGELI_BLOCK) - within;
		const size_t part = (size_t)BASE_MIN(left, (uint64_t)(size - from));

		if (within >= RIEGELI_BLOCK_HEAD) {
			if (to < from)
				memmove(bytes + to, bytes + from, part);
			to += part;
		}
		from += part;
	}
	memset(bytes + to, 0, size - to);
}

/* ---- the window ---- */

/* NULL: it has not so many bytes there. */
static const uint8_t *window_has(const struct arrayrecord *file, uint64_t place, uint64_t bytes)
{
	if (place < file->window_at || place > file->window_end || bytes > file->window_end - place)
		return NULL;
	return file->window + (place - file->window_at);
}

static void window_fill(struct arrayrecord *file, uint64_t at, const uint8_t *bytes, uint32_t size)
{
	memcpy(file->window, bytes, size);
	arrayrecord_join(file->window, size, at);
	file->window_at = riegeli_place(at);
	file->window_end = riegeli_place(at + size);
}

static int wants(struct arrayrecord *file, uint64_t place, struct scan_want *ret)
{
	const uint64_t at = riegeli_at(place);

	return scan_wants(at, BASE_MIN((uint64_t)SCAN_MOST_WANT, file->file_bytes - at), ret);
}

static int array_bad(const struct arrayrecord *file, struct scan_sink *sink, uint64_t place,
		     const char *why)
{
	return scan_bad(sink, riegeli_at(place), "record %llu: %s",
			(unsigned long long)file->number, why);
}

/* ---- the last block ---- */

static int want_head(struct arrayrecord *file, struct scan_sink *sink);

static int took_postscript(struct arrayrecord *file, struct scan_sink *sink)
{
	const uint64_t at = file->file_bytes - RIEGELI_BLOCK;
	const uint8_t *head = window_has(file, riegeli_place(at), RIEGELI_HEAD), *data;
	uint64_t footer;

	if (!head || !riegeli_head(head, &file->chunk) || file->chunk.bytes == 0)
		head = NULL;
	data = head ? window_has(file, riegeli_place(at) + RIEGELI_HEAD, file->chunk.bytes) : NULL;
	if (!data || highway(data, file->chunk.bytes) != file->chunk.hash ||
	    !riegeli_footer(data, file->chunk.bytes, &footer) || footer > at)
		return scan_bad(sink, at,
				"it does not end as ArrayRecord files do; it is cut off, was not "
				"closed, or is another file of Riegeli's: copy it anew, or write "
				"it with ArrayRecordWriter");
	file->footer = riegeli_place(footer);
	return want_head(file, sink);
}

/* ---- records ---- */

static int next_chunk(struct arrayrecord *file, struct scan_sink *sink)
{
	file->begin += RIEGELI_HEAD + file->chunk.bytes;
	return want_head(file, sink);
}

static int want_head(struct arrayrecord *file, struct scan_sink *sink)
{
	if (file->begin == file->footer)
		return SCAN_E_END;
	if (file->footer - file->begin < RIEGELI_HEAD)
		return array_bad(file, sink, file->begin,
				 "chunks do not end where the index begins; the file is damaged: "
				 "copy it anew");
	file->phase = ARRAY_IN_HEAD;
	return 0;
}

static int took_head(struct arrayrecord *file, const uint8_t *head, struct scan_sink *sink)
{
	const struct riegeli_chunk *chunk = &file->chunk;
	char why[160];

	if (!riegeli_head(head, &file->chunk))
		return array_bad(file, sink, file->begin,
				 "the checksum of its head is wrong; the file is damaged: copy it "
				 "anew");
	if (chunk->bytes > file->footer - file->begin - RIEGELI_HEAD)
		return array_bad(file, sink, file->begin,
				 "it ends behind all records; the file is damaged: copy it anew");
	if (chunk->type != 'r' && chunk->type != 't') /* signature, metadata, padding */
		return next_chunk(file, sink);
	if (chunk->type == 't')
		return array_bad(file, sink, file->begin,
				 "it is transposed, so that no record can be read alone: write the "
				 "file anew, with transpose:false");
	if (chunk->records == 0)
		return next_chunk(file, sink);
	if (chunk->records > 1) {
		snprintf(why, sizeof(why),
			 "%llu records are in one chunk, so that none can be read alone: write the "
			 "file anew, with group_size:1, or use access-ctl convert",
			 (unsigned long long)chunk->records);
		return array_bad(file, sink, file->begin, why);
	}
	file->phase = ARRAY_IN_DATA;
	return 0;
}

/* What stands before the record says where that lies. NULL, or what is wrong. */
static const char *find_record(struct arrayrecord *file, const uint8_t *data, size_t size)
{
	static const char damaged[] = "its chunk is damaged; copy or write the file anew";
	const struct riegeli_chunk *chunk = &file->chunk;
	uint64_t sizes, written = 0;
	size_t at = 1, n;

	if (size > 0 && data[0] != 0 && data[0] != 'z')
		return "its compression is not read: write the file anew, with zstd, as is the "
		       "default, or uncompressed";
	n = size > 0 ? varint_read(data + at, size - at, &sizes) : 0;
	at += n;
	if (n == 0 || sizes > MOST_SIZES || sizes > size - at)
		return damaged;
	if (data[0] == 0 && varint_read(data + at, sizes, &written) != sizes)
		return damaged;
	at += sizes;
	n = data[0] == 'z' ? varint_read(data + at, size - at, &written) : 0;
	at += n;
	if ((data[0] == 'z' && n == 0) || written != chunk->written)
		return damaged;
	file->record = file->begin + RIEGELI_HEAD + at;
	file->bytes = chunk->bytes - at;
	if (data[0] == 0 && file->bytes != written)
		return damaged;
	if (written == 0)
		return "it is empty";
	if (file->bytes > UINT32_MAX - UINT32_MAX / RIEGELI_ROOM * RIEGELI_BLOCK_HEAD)
		return "it has more than 4 GiB";
	if (data[0] == 'z' && (size - at < 4 || little_32(data + at) != FRAME_BEGIN))
		return damaged;
	return NULL;
}

/* Which of its features are picture and label cannot be seen of one that is compressed. */
static const char *begin_record(struct arrayrecord *file, const uint8_t *data, size_t size)
{
	const char *why = find_record(file, data, size);
	size_t before;

	file->is_example = false;
	if (why)
		return why;
	if (data[0] == 'z')
		return *file->names.label || *file->names.picture
			   ? "it is compressed, so that the options image and label cannot be had "
			     "of it: use oneaccess.from_array_record(), or write it uncompressed"
			   : NULL;
	before = (size_t)(file->record - file->begin - RIEGELI_HEAD);
	file->is_example = data[before] == EXAMPLE_BEGIN;
	if (!file->is_example && !magic_is_picture(data + before, size - before))
		return "it is neither a picture nor a tf.Example; use oneaccess.wrap() of an "
		       "ArrayRecordDataSource for others";
	if (file->is_example)
		example_begin(&file->walk, &file->names, file->bytes);
	return NULL;
}

static int took_data(struct arrayrecord *file, const uint8_t *data, uint64_t size,
		     struct scan_sink *sink)
{
	const char *why = begin_record(file, data, (size_t)size);

	if (why)
		return array_bad(file, sink, file->begin + RIEGELI_HEAD, why);
	file->summed = 0;
	highway_begin(&file->sum);
	file->phase = ARRAY_IN_RECORD;
	return 0;
}

static int give_record(struct arrayrecord *file, struct scan_sink *sink)
{
	struct scan_record record = {.at = file->record, .label = SCAN_NO_LABEL};
	uint64_t bad_at, bytes = file->bytes;
	const char *why;
	char key[32];
	int r;

	if (file->is_example) {
		why = scan_example_record(&file->walk, file->record, &record, &bad_at);
		if (why)
			return array_bad(file, sink, bad_at, why);
		bytes = record.bytes;
	}
	snprintf(key, sizeof(key), "[%llu]", (unsigned long long)file->number);
	record.key = key;
	record.bytes = (uint32_t)(riegeli_at(record.at + bytes - 1) + 1 - riegeli_at(record.at));
	record.at = riegeli_at(record.at);
	r = sink->record(sink->arg, &record);
	file->number++;
	return r ? r : next_chunk(file, sink);
}

/* Of a damaged file the checksum says more than the walk, so it is computed to its end. */
static bool has_walked(const struct arrayrecord *file)
{
	return !file->is_example || file->walk.why || file->walk.at >= file->bytes;
}

/* What the window has of the data, to the sum and to the walk, which may be ahead, or a few bytes behind. */
static void take_window(struct arrayrecord *file)
{
	const uint64_t data = file->begin + RIEGELI_HEAD, end = data + file->chunk.bytes;
	const uint64_t upto = BASE_MIN(file->window_end, end);
	const uint64_t from = data + file->summed;
	const uint64_t first = BASE_MAX(file->window_at, file->record);

	if (from >= file->window_at && from < upto) {
		highway_add(&file->sum, file->window + (from - file->window_at), upto - from);
		file->summed = upto - data;
	}
	if (!has_walked(file) && first < upto)
		example_feed(&file->walk, first - file->record,
			     file->window + (first - file->window_at), upto - first);
}

static int step_record(struct arrayrecord *file, struct scan_sink *sink, struct scan_want *ret)
{
	const uint64_t data = file->begin + RIEGELI_HEAD;

	take_window(file);
	if (!has_walked(file) && file->record + file->walk.at < data + file->summed)
		return wants(file, file->record + file->walk.at, ret);
	if (file->summed < file->chunk.bytes)
		return wants(file, data + file->summed, ret);
	if (highway_end(&file->sum) != file->chunk.hash)
		return array_bad(file, sink, data,
				 "its checksum is wrong; the file is damaged: copy it anew");
	return give_record(file, sink);
}

/* ---- the scan ---- */

static int step(struct arrayrecord *file, struct scan_sink *sink, struct scan_want *ret)
{
	const uint64_t data = file->begin + RIEGELI_HEAD;
	const uint64_t look = BASE_MIN(file->chunk.bytes, (uint64_t)DATA_LOOK);
	const uint8_t *bytes;

	switch (file->phase) {
	case ARRAY_AT_END:
		return took_postscript(file, sink);
	case ARRAY_IN_HEAD:
		bytes = window_has(file, file->begin, RIEGELI_HEAD);
		return bytes ? took_head(file, bytes, sink) : wants(file, file->begin, ret);
	case ARRAY_IN_DATA:
		bytes = window_has(file, data, look);
		return bytes ? took_data(file, bytes, look, sink) : wants(file, data, ret);
	case ARRAY_IN_RECORD:
		return step_record(file, sink, ret);
	}
	return SCAN_E_BAD;
}

static int arrayrecord_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
			    struct scan_sink *sink, struct scan_want *ret)
{
	struct arrayrecord *file = state;
	struct scan_want want = {.bytes = 0};
	int r = 0;

	window_fill(file, at, bytes, size);
	while (r == 0 && want.bytes == 0)
		r = step(file, sink, &want);
	if (r == 0)
		*ret = want;
	return r;
}

static int arrayrecord_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
			     struct scan_want *ret)
{
	struct arrayrecord *file = state;
	const char *why;

	memset(file, 0, offsetof(struct arrayrecord, window));
	file->file_bytes = shard->bytes;
	why = scan_example_options(shard->options, &file->names);
	if (why)
		return scan_bad(sink, 0, "%s", why);
	if (shard->bytes < 2 * RIEGELI_BLOCK || shard->bytes % RIEGELI_BLOCK != 0)
		return scan_bad(sink, shard->bytes,
				"it has not two or more whole blocks of 64 KiB, as ArrayRecord "
				"files have; it is cut off, was not closed, or is another file of "
				"Riegeli's: copy it anew, or write it with ArrayRecordWriter");
	return scan_wants(shard->bytes - RIEGELI_BLOCK, POSTSCRIPT, ret);
}

/* Or another file of Riegeli's. */
static bool arrayrecord_is_shard(const uint8_t *head, size_t size)
{
	return size >= sizeof(riegeli_first) &&
	       memcmp(head, riegeli_first, sizeof(riegeli_first)) == 0;
}

const struct source_scan scan_arrayrecord = {
    .name = "arrayrecord",
    .state_bytes = sizeof(struct arrayrecord),
    .begin = arrayrecord_begin,
    .feed = arrayrecord_feed,
    .is_shard = arrayrecord_is_shard,
    .join = arrayrecord_join,
};
