/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A tar shard from anywhere. Each input is tried as it is and once more with the checksum of each block made right, so
 * that mutations get past it. Whatever the bytes are: a scan ends, each record lies within the shard and behind the one
 * before, and has a key that is a path below.
 */

#include "storage/source/scan/scan_shard.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

struct found {
	uint64_t size, end, reads;
	const uint8_t *data;
};

static bool is_below(const char *key)
{
	for (const char *from = key;; from = strchr(from, '/') + 1) {
		const size_t length = strcspn(from, "/");

		if (length == 0 || (from[0] == '.' && (length == 1 || !strncmp(from, "../", 3))))
			return false;
		if (!from[length])
			return true;
	}
}

static int on_record(void *arg, const struct scan_record *record)
{
	struct found *found = arg;

	demand(record->at >= found->end && record->at <= found->size &&
	       record->bytes <= found->size - record->at);
	demand(record->label <= SCAN_MOST_LABEL || record->label == SCAN_NO_LABEL);
	demand(strlen(record->key) < SCAN_MOST_KEY && is_below(record->key));
	found->end = record->at + record->bytes;
	return 0;
}

static int read_from(void *arg, uint64_t at, uint8_t *ret, uint32_t bytes)
{
	struct found *found = arg;

	demand(at < found->size && bytes <= found->size - at);
	demand(found->reads++ <= found->size / BLOCK + 1);
	memcpy(ret, found->data + at, bytes);
	return 0;
}

static void try_scan(const uint8_t *data, size_t size, const char *options)
{
	struct found found = {.size = size, .data = data};
	const struct scan_shard shard = {.name = "x.tar", .bytes = size, .options = options};
	const struct scan_reader reader = {read_from, &found};
	struct scan_sink sink = {.record = on_record, .arg = &found};
	const int r = scan_shard_run(&scan_tar, &shard, &reader, &sink);

	demand(r == 0 || r == SCAN_E_BAD);
	demand(r == 0 || (sink.bad_at <= size && *sink.why));
}

static void make_sum_right(uint8_t *block)
{
	unsigned sum = 0;
	char text[8];

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += block[i];
	if (sum == 8 * ' ')
		memset(block + 148, 0, 8);
	else
		memcpy(block + 148, text, (size_t)snprintf(text, sizeof(text), "%06o", sum) + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	demand(copy != NULL);
	memcpy(copy, data, size);
	try_scan(copy, size, "");
	for (size_t at = 0; at + BLOCK <= size; at += BLOCK)
		make_sum_right(copy + at);
	try_scan(copy, size, "");
	try_scan(copy, size, "members=all");
	free(copy);
	return 0;
}
