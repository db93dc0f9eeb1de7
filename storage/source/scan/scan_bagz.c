/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of a Bagz file, whose records lie one behind the other:
 *
 *   records | limits: of each record a u64, little endian, where it ends
 *
 * The last limit is where the limits begin, so that the last eight bytes say all; a file without a record is empty. There are no
 * checksums. Limits are taken BAGZ_LIMITS at a time, and then their records are looked at: of a picture the first bytes, of
 * a tf.Example what stands before and between its values. A record's limit lies between that of the one before it and the limits, so
 * whatever the file says, as many records are looked at as it has room for limits.
 *
 * A record that is a frame of Zstandard, as all are in a .bagz, is a sample as it is: workers unpack it
 * (pipeline/forms/zstandard.h), and nothing is unpacked here.
 */

#include "storage/source/scan/scan_shard.h"

#include <stdio.h>

#include "base/base.h"
#include "base/little.h"
#include "storage/source/scan/magic.h"
#include "storage/source/scan/scan_example.h"

#define LIMIT_BYTES 8
#define BAGZ_LIMITS 512
#define BAGZ_LOOK 4096 /* bytes of a record that are looked at together */
#define EXAMPLE_BEGIN 0x0a
#define FRAME_BEGIN UINT32_C(0xfd2fb528)
#define FRAME_LEAST 4

_Static_assert(BAGZ_LOOK > 2 * EXAMPLE_AHEAD, "a walk goes on");

struct bagz {
	struct example_names names;
	enum { BAGZ_AT_END, BAGZ_IN_LIMITS, BAGZ_IN_RECORD, BAGZ_IN_EXAMPLE } phase;
	uint64_t file_bytes;
	uint64_t limits_at, n; /* records */
	uint64_t number;       /* of the record that is next, or looked at */
	uint64_t begin, end;   /* of it */
	uint64_t limit[BAGZ_LIMITS];
	unsigned n_limits, taken; /* of those in memory */
	struct example_walk walk;
};

static int bagz_bad(const struct bagz *file, struct scan_sink *sink, uint64_t at, const char *why)
{
	return scan_bad(sink, at, "record %llu: %s", (unsigned long long)file->number, why);
}

/* ---- what comes next ---- */

static int want_limits(struct bagz *file, struct scan_want *ret)
{
	const uint64_t left = file->n - file->number;

	file->phase = BAGZ_IN_LIMITS;
	return scan_wants(file->limits_at + LIMIT_BYTES * file->number,
			  LIMIT_BYTES * BASE_MIN(left, (uint64_t)BAGZ_LIMITS), ret);
}

static int want_record(struct bagz *file, struct scan_sink *sink, struct scan_want *ret)
{
	if (file->number == file->n)
		return SCAN_E_END;
	if (file->taken == file->n_limits)
		return want_limits(file, ret);
	file->end = file->limit[file->taken++];
	if (file->end < file->begin || file->end > file->limits_at)
		return bagz_bad(file, sink, file->limits_at + LIMIT_BYTES * file->number,
				"it ends before it begins, or behind all records; the file is "
				"damaged: copy it anew");
	if (file->end == file->begin)
		return bagz_bad(file, sink, file->begin, "it is empty");
	file->phase = BAGZ_IN_RECORD;
	return scan_wants(file->begin, BASE_MIN(file->end - file->begin, (uint64_t)BAGZ_LOOK), ret);
}

static int give_record(struct bagz *file, struct scan_record *record, struct scan_sink *sink,
		       struct scan_want *ret)
{
	char key[32];
	int r;

	snprintf(key, sizeof(key), "[%llu]", (unsigned long long)file->number);
	record->key = key;
	r = sink->record(sink->arg, record);
	file->number++;
	file->begin = file->end;
	return r ? r : want_record(file, sink, ret);
}

/* ---- what came ---- */

static int took_end(struct bagz *file, const uint8_t *bytes, struct scan_sink *sink,
		    struct scan_want *ret)
{
	const uint64_t at = little_64(bytes);

	if (at > file->file_bytes - LIMIT_BYTES || (file->file_bytes - at) % LIMIT_BYTES != 0)
		return scan_bad(
		    sink, file->file_bytes - LIMIT_BYTES,
		    "it does not end in the limits of its records; it is cut off, was not "
		    "closed, is no Bagz file (such as a bag of ROS), or has its limits "
		    "in another file: write it anew, with LimitsPlacement.TAIL");
	file->limits_at = at;
	file->n = (file->file_bytes - at) / LIMIT_BYTES;
	return want_record(file, sink, ret);
}

static int took_limits(struct bagz *file, const uint8_t *bytes, uint32_t size,
		       struct scan_sink *sink, struct scan_want *ret)
{
	file->n_limits = size / LIMIT_BYTES;
	file->taken = 0;
	for (unsigned i = 0; i < file->n_limits; i++)
		file->limit[i] = little_64(bytes + (size_t)LIMIT_BYTES * i);
	return want_record(file, sink, ret);
}

static int took_whole(struct bagz *file, struct scan_sink *sink, struct scan_want *ret)
{
	struct scan_record record = {.at = file->begin, .label = SCAN_NO_LABEL};

	if (file->end - file->begin > UINT32_MAX)
		return bagz_bad(file, sink, file->begin, "it has more than 4 GiB");
	record.bytes = (uint32_t)(file->end - file->begin);
	return give_record(file, &record, sink, ret);
}

/* Which of its features are picture and label cannot be seen from without. */
static int took_frame(struct bagz *file, struct scan_sink *sink, struct scan_want *ret)
{
	if (*file->names.label || *file->names.picture)
		return bagz_bad(file, sink, file->begin,
				"it is compressed, so that the options image and label cannot be "
				"had of it: use oneaccess.from_bagz(), or write a .bag");
	return took_whole(file, sink, ret);
}

static int took_example(struct bagz *file, uint64_t at, const uint8_t *bytes, uint32_t size,
			struct scan_sink *sink, struct scan_want *ret)
{
	struct example_walk *walk = &file->walk;
	struct scan_record record;
	uint64_t bad_at;
	const char *why;

	example_feed(walk, at - file->begin, bytes, size);
	if (!walk->why && walk->at < walk->bytes)
		return scan_wants(file->begin + walk->at,
				  BASE_MIN(walk->bytes - walk->at, (uint64_t)BAGZ_LOOK), ret);
	why = scan_example_record(walk, file->begin, &record, &bad_at);
	return why ? bagz_bad(file, sink, bad_at, why) : give_record(file, &record, sink, ret);
}

static int took_record(struct bagz *file, const uint8_t *bytes, uint32_t size,
		       struct scan_sink *sink, struct scan_want *ret)
{
	if (size > FRAME_LEAST && little_32(bytes) == FRAME_BEGIN)
		return took_frame(file, sink, ret);
	if (*bytes != EXAMPLE_BEGIN && magic_is_picture(bytes, size))
		return took_whole(file, sink, ret);
	if (*bytes != EXAMPLE_BEGIN)
		return bagz_bad(
		    file, sink, file->begin,
		    "it is neither a picture nor a tf.Example; use oneaccess.wrap() of a "
		    "bagz.Reader for others");
	file->phase = BAGZ_IN_EXAMPLE;
	example_begin(&file->walk, &file->names, file->end - file->begin);
	return took_example(file, file->begin, bytes, size, sink, ret);
}

/* ---- the scan ---- */

static int bagz_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
		     struct scan_sink *sink, struct scan_want *ret)
{
	struct bagz *file = state;

	switch (file->phase) {
	case BAGZ_AT_END:
		return took_end(file, bytes, sink, ret);
	case BAGZ_IN_LIMITS:
		return took_limits(file, bytes, size, sink, ret);
	case BAGZ_IN_RECORD:
		return took_record(file, bytes, size, sink, ret);
	case BAGZ_IN_EXAMPLE:
		return took_example(file, at, bytes, size, sink, ret);
	}
	return SCAN_E_BAD;
}

static int bagz_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
		      struct scan_want *ret)
{
	struct bagz *file = state;
	const char *why;

	*file = (struct bagz){.file_bytes = shard->bytes};
	why = scan_example_options(shard->options, &file->names);
	if (why)
		return scan_bad(sink, 0, "%s", why);
	if (shard->bytes == 0)
		return SCAN_E_END;
	if (shard->bytes < LIMIT_BYTES)
		return scan_bad(sink, 0, "it is cut off; copy or write it anew");
	return scan_wants(shard->bytes - LIMIT_BYTES, LIMIT_BYTES, ret);
}

const struct source_scan scan_bagz = {
    .name = "bagz",
    .state_bytes = sizeof(struct bagz),
    .begin = bagz_begin,
    .feed = bagz_feed,
};
