/* SPDX-License-Identifier: Apache-2.0 */

/* Scans over bytes in memory. The bytes that a scan gets end where what it wanted does, so that a sanitizer sees
 * each one that it reads past that. */

#include "tests/storage/scan_run.h"

#include "base/base.h"
#include "base/little.h"
#include "storage/source/scan/crc32c.h"
#include "storage/source/scan/highway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void demand(bool truth)
{
	if (!truth)
		abort();
}

struct sunk {
	struct scan_run *run;
	uint64_t bytes;
};

static int take_record(void *arg, const struct scan_record *record)
{
	const struct sunk *sunk = arg;
	struct scan_run *run = sunk->run;

	demand(record->bytes > 0 && record->at < sunk->bytes &&
	       record->bytes <= sunk->bytes - record->at);
	demand(!record->width || (record->bytes - SCAN_PIXELS_HEAD) % (3 * record->width) == 0);
	demand(record->label <= SCAN_MOST_LABEL || record->label == SCAN_NO_LABEL);
	demand(record->key && strlen(record->key) < SCAN_MOST_KEY);
	demand(!record->word || (*record->word && strlen(record->word) < SCAN_MOST_WORD &&
				 record->label == SCAN_NO_LABEL));
	demand(run->n == 0 || run->any_order ||
	       record->at >= run->record[BASE_MIN(run->n, SCAN_RUN_MOST) - 1].at +
				 run->record[BASE_MIN(run->n, SCAN_RUN_MOST) - 1].bytes ||
	       run->n > SCAN_RUN_MOST);
	if (run->n < SCAN_RUN_MOST) {
		run->record[run->n] = *record;
		run->record[run->n].key = run->record[run->n].word = NULL;
	}
	run->n++;
	return 0;
}

static int feed(const struct source_scan *scan, void *state, const uint8_t *bytes, size_t size,
		struct scan_sink *sink, struct scan_want *want)
{
	uint8_t *exact;
	int r;

	demand(want->bytes >= 1 && want->bytes <= SCAN_MOST_WANT);
	demand(want->at < size && want->bytes <= size - want->at);
	exact = malloc(want->bytes);
	demand(exact != NULL);
	memcpy(exact, bytes + want->at, want->bytes);
	r = scan->feed(state, want->at, exact, want->bytes, sink, want);
	free(exact);
	return r;
}

int scan_run(const struct source_scan *scan, const uint8_t *bytes, size_t size, const char *options,
	     struct scan_run *ret)
{
	const struct scan_shard shard = {ret->name ? ret->name : "shard", size, options};
	struct sunk sunk = {ret, size};
	struct scan_sink sink = {.record = take_record, .arg = &sunk};
	struct scan_want want = {.bytes = 0};
	void *state = malloc(scan->state_bytes);
	int r;

	demand(state != NULL);
	memset(state, 0xa5, scan->state_bytes);
	ret->n = ret->wants = 0;
	r = scan->begin(state, &shard, &sink, &want);
	for (; r == 0; ret->wants++)
		r = feed(scan, state, bytes, size, &sink, &want);
	demand(r == SCAN_E_END || r == SCAN_E_BAD);
	if (r == SCAN_E_BAD) {
		demand(sink.bad_at <= size && sink.why[0]);
		ret->bad_at = sink.bad_at;
		memcpy(ret->why, sink.why, sizeof(ret->why));
	}
	free(state);
	return r;
}

/* ---- bytes ---- */

void shard_bytes_init(struct shard_bytes *bytes, size_t room)
{
	*bytes = (struct shard_bytes){.data = malloc(room), .room = room};
	demand(bytes->data != NULL);
}

void shard_bytes_fini(struct shard_bytes *bytes)
{
	free(bytes->data);
}

void shard_put(struct shard_bytes *bytes, const void *data, size_t size)
{
	demand(size <= bytes->room - bytes->size);
	memcpy(bytes->data + bytes->size, data, size);
	bytes->size += size;
}

void shard_put_fill(struct shard_bytes *bytes, int value, size_t size)
{
	demand(size <= bytes->room - bytes->size);
	memset(bytes->data + bytes->size, value, size);
	bytes->size += size;
}

void shard_put_32(struct shard_bytes *bytes, uint32_t value)
{
	uint8_t little[4];

	little_put_32(little, value);
	shard_put(bytes, little, sizeof(little));
}

void shard_put_64(struct shard_bytes *bytes, uint64_t value)
{
	uint8_t little[8];

	little_put_64(little, value);
	shard_put(bytes, little, sizeof(little));
}

void shard_put_varint(struct shard_bytes *bytes, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		shard_put_fill(bytes, (int)(value & 127) | 128, 1);
	shard_put_fill(bytes, (int)value, 1);
}

/* ---- ArrayRecord ---- */

enum { ARRAY_BLOCK = 65536, ARRAY_ROOM = ARRAY_BLOCK - 24 };

void shard_put_chunk(struct shard_bytes *stream, char type, uint64_t records, uint64_t written,
		     const void *data, size_t size)
{
	uint8_t head[40];

	little_put_64(head + 8, size);
	little_put_64(head + 16, highway(data, size));
	little_put_64(head + 24, records << 8 | (uint8_t)type);
	little_put_64(head + 32, written);
	little_put_64(head, highway(head + 8, 32));
	shard_put(stream, head, sizeof(head));
	if (size > 0)
		shard_put(stream, data, size);
}

void shard_chunks_of(struct shard_bytes *ret, const uint8_t *data, size_t size)
{
	shard_bytes_init(ret, 40 * size + 64);
	shard_put_chunk(ret, 's', 0, 0, NULL, 0);
	while (size >= 6) {
		const size_t bytes = BASE_MIN((size_t)little_16(data + 4), size - 6);

		shard_put_chunk(ret, (char)data[0], data[1], little_16(data + 2), data + 6, bytes);
		data += 6 + bytes;
		size -= 6 + bytes;
	}
}

void shard_put_array_record(struct shard_bytes *stream, const void *record, size_t size)
{
	struct shard_bytes sizes, data;

	shard_bytes_init(&sizes, 16);
	shard_bytes_init(&data, size + 32);
	shard_put_varint(&sizes, size);
	shard_put_fill(&data, 0, 1);
	shard_put_varint(&data, sizes.size);
	shard_put(&data, sizes.data, sizes.size);
	if (size > 0)
		shard_put(&data, record, size);
	shard_put_chunk(stream, 'r', 1, size, data.data, data.size);
	shard_bytes_fini(&data);
	shard_bytes_fini(&sizes);
}

/* The last block's: thrice where the index begins. */
static void put_array_end(struct shard_bytes *stream, uint64_t footer)
{
	struct shard_bytes end, data;

	shard_bytes_init(&end, 64);
	shard_bytes_init(&data, 256);
	shard_put_varint(&end, 1 << 3);
	shard_put_varint(&end, footer);
	shard_put_varint(&end, 2 << 3);
	shard_put_varint(&end, UINT64_C(0x71930e704fdae05e));
	shard_put_fill(&data, 0, 1);
	shard_put_fill(&data, 3, 1);
	shard_put_fill(&data, (int)end.size, 3);
	for (unsigned i = 0; i < 3; i++)
		shard_put(&data, end.data, end.size);
	shard_put_chunk(stream, 'r', 3, 3 * end.size, data.data, data.size);
	shard_bytes_fini(&data);
	shard_bytes_fini(&end);
}

/* To the end of a block. */
static void put_array_rest(struct shard_bytes *stream, char type, uint64_t records)
{
	size_t left = ARRAY_ROOM - stream->size % ARRAY_ROOM;
	struct shard_bytes data;

	if (left <= 40)
		left += ARRAY_ROOM;
	shard_bytes_init(&data, left);
	shard_put_fill(&data, 0xee, left - 40);
	shard_put_chunk(stream, type, records, 0, data.data, data.size);
	shard_bytes_fini(&data);
}

void shard_put_array_file(struct shard_bytes *file, const struct shard_bytes *stream)
{
	const size_t within = stream->size % ARRAY_ROOM;
	struct shard_bytes all;

	shard_bytes_init(&all, stream->size + (size_t)4 * ARRAY_ROOM);
	shard_put(&all, stream->data, stream->size);
	put_array_rest(&all, 'r', 1); /* the index */
	put_array_end(&all,
		      stream->size / ARRAY_ROOM * ARRAY_BLOCK + within + (within > 0 ? 24 : 0));
	put_array_rest(&all, 'p', 0);
	for (size_t at = 0; at < all.size; at += ARRAY_ROOM) {
		shard_put_fill(file, 0xdd, ARRAY_BLOCK - ARRAY_ROOM);
		shard_put(file, all.data + at, ARRAY_ROOM);
	}
	shard_bytes_fini(&all);
}

/* ---- TFRecord ---- */

void shard_put_tfrecord(struct shard_bytes *bytes, const void *record, size_t size)
{
	const size_t head = bytes->size;

	shard_put_64(bytes, size);
	shard_put_32(bytes, crc32c_masked(crc32c_plain(0, bytes->data + head, 8)));
	shard_put(bytes, record, size);
	shard_put_32(bytes, crc32c_masked(crc32c_plain(0, record, size)));
}

static void put_field(struct shard_bytes *bytes, unsigned number, const void *body, size_t size)
{
	shard_put_varint(bytes, number << 3 | 2);
	shard_put_varint(bytes, size);
	shard_put(bytes, body, size);
}

/* The feature whose list of that kind is the body, as an entry of the map. */
static void put_feature(struct shard_bytes *bytes, const char *name, unsigned list,
			const struct shard_bytes *body)
{
	struct shard_bytes value, entry;

	shard_bytes_init(&value, body->size + 64);
	shard_bytes_init(&entry, body->size + strlen(name) + 64);
	put_field(&value, list, body->data, body->size);
	put_field(&entry, 1, name, strlen(name));
	put_field(&entry, 2, value.data, value.size);
	put_field(bytes, 1, entry.data, entry.size);
	shard_bytes_fini(&entry);
	shard_bytes_fini(&value);
}

void shard_put_bytes(struct shard_bytes *bytes, const char *name, const void *value, size_t size)
{
	struct shard_bytes list;

	shard_bytes_init(&list, size + 16);
	put_field(&list, 1, value, size);
	put_feature(bytes, name, 1, &list);
	shard_bytes_fini(&list);
}

void shard_put_ints(struct shard_bytes *bytes, const char *name, const int64_t *value, size_t n,
		    int packed)
{
	struct shard_bytes list, numbers;

	shard_bytes_init(&list, 12 * n + 16);
	shard_bytes_init(&numbers, 12 * n + 16);
	for (size_t i = 0; i < n; i++) {
		if (!packed)
			shard_put_varint(&numbers, 1 << 3);
		shard_put_varint(&numbers, (uint64_t)value[i]);
	}
	if (packed)
		put_field(&list, 1, numbers.data, numbers.size);
	else
		shard_put(&list, numbers.data, numbers.size);
	put_feature(bytes, name, 3, &list);
	shard_bytes_fini(&numbers);
	shard_bytes_fini(&list);
}

void shard_put_example(struct shard_bytes *bytes, const struct shard_bytes *features)
{
	put_field(bytes, 1, features->data, features->size);
}
