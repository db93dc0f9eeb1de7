/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A scan over a shard in memory, held to what scan_shard.h promises, and shards to scan. What breaks a promise aborts, so that
 * tests and fuzz targets can use it. */

#include <stdbool.h>

#include "storage/source/scan/scan_shard.h"

#define SCAN_RUN_MOST 4096 /* samples that are remembered */

struct scan_run {
	const char *name; /* of the shard, for scans that tell by it; NULL: any */
	bool any_order;   /* records may lie before or over each other */
	unsigned n, wants;
	struct scan_record record[SCAN_RUN_MOST];
	uint64_t bad_at;
	char why[256];
};
/* SCAN_E_END or SCAN_E_BAD. */
int scan_run(const struct source_scan *scan, const uint8_t *bytes, size_t size, const char *options,
	     struct scan_run *ret);

/* Bytes under construction: the caller's, of room for all that is put there. */
struct shard_bytes {
	uint8_t *data;
	size_t size, room;
};
void shard_bytes_init(struct shard_bytes *bytes, size_t room);
void shard_bytes_fini(struct shard_bytes *bytes);
void shard_put(struct shard_bytes *bytes, const void *data, size_t size);
void shard_put_fill(struct shard_bytes *bytes, int value, size_t size);
void shard_put_32(struct shard_bytes *bytes, uint32_t value);
void shard_put_64(struct shard_bytes *bytes, uint64_t value);
void shard_put_varint(struct shard_bytes *bytes, uint64_t value);

/* ---- ArrayRecord ---- */

/* A chunk of any type, whose data are these, to a stream of them. */
void shard_put_chunk(struct shard_bytes *stream, char type, uint64_t records, uint64_t written,
		     const void *data, size_t size);
/* What a fuzzer gave, as a new stream. Of each chunk: type, records, u16 bytes as written, u16 bytes, the data. */
void shard_chunks_of(struct shard_bytes *ret, const uint8_t *data, size_t size);
/* The chunk of one record as it is. */
void shard_put_array_record(struct shard_bytes *stream, const void *record, size_t size);
/* The file with these chunks, of 64 KiB times two or more. What is not read is no zeros. */
void shard_put_array_file(struct shard_bytes *file, const struct shard_bytes *stream);

/* ---- TFRecord ---- */

/* A frame around a record. */
void shard_put_tfrecord(struct shard_bytes *bytes, const void *record, size_t size);
/* A feature that is one value of bytes, to the features of an example. */
void shard_put_bytes(struct shard_bytes *bytes, const char *name, const void *value, size_t size);
/* A feature that is n whole numbers, packed or not. */
void shard_put_ints(struct shard_bytes *bytes, const char *name, const int64_t *value, size_t n,
		    int packed);
/* The example of these features. */
void shard_put_example(struct shard_bytes *bytes, const struct shard_bytes *features);
