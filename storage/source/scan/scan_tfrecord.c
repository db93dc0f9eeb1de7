/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of a TFRecord file with tf.Example: the file is read from its begin to its end, in windows, and each
 * byte is part of a checksum. A record's windows are looked at by two who need not be at the same place:
 * the checksum, which wants each byte once and in order, and the walk through the example, which may be far ahead, or a
 * few bytes behind, where a window has cut what it looks at. The next window begins with what the one behind wants.
 */

#include "storage/source/scan/scan_shard.h"

#include <stdio.h>

#include "base/base.h"
#include "base/little.h"
#include "storage/source/scan/crc32c.h"
#include "storage/source/scan/scan_example.h"
#include "storage/source/scan/tfrecord.h"

struct tfrecord {
	struct example_names names;
	uint64_t file_bytes;
	uint64_t records; /* before this one */
	uint64_t begin;   /* of this one's head */
	bool has_head;
	uint64_t bytes;  /* of the example */
	uint64_t summed; /* bytes of it that are in the sum */
	uint32_t sum;
	struct example_walk walk;
};

struct window {
	uint64_t at, end;
	const uint8_t *data;
};

static int tfrecord_bad(const struct tfrecord *file, struct scan_sink *sink, uint64_t at,
			const char *why)
{
	return scan_bad(sink, at, "record %llu: %s", (unsigned long long)file->records, why);
}

static uint64_t example_at(const struct tfrecord *file)
{
	return file->begin + TFRECORD_HEAD;
}

/* NULL: the window has not so many bytes there. */
static const uint8_t *window_has(const struct window *window, uint64_t at, uint64_t bytes)
{
	if (at < window->at || at > window->end || bytes > window->end - at)
		return NULL;
	return window->data + (at - window->at);
}

static int wants(const struct tfrecord *file, uint64_t at, struct scan_want *ret)
{
	return scan_wants(at, BASE_MIN((uint64_t)SCAN_MOST_WANT, file->file_bytes - at), ret);
}

static int cut_off(const struct tfrecord *file, struct scan_sink *sink)
{
	return tfrecord_bad(file, sink, file->begin,
			    "the file is cut off within it; copy or write it anew");
}

static int step_head(struct tfrecord *file, const struct window *window, struct scan_sink *sink,
		     struct scan_want *ret)
{
	const uint8_t *head = window_has(window, file->begin, TFRECORD_HEAD);
	const uint64_t left = file->file_bytes - file->begin;

	if (left == 0)
		return SCAN_E_END;
	if (left < TFRECORD_HEAD + TFRECORD_FOOT)
		return cut_off(file, sink);
	if (!head)
		return wants(file, file->begin, ret);
	if (!tfrecord_head(head, &file->bytes))
		return tfrecord_bad(
		    file, sink, file->begin,
		    "the checksum of its length is wrong; the file is damaged, or no "
		    "TFRecord file (compressed ones are not read)");
	if (file->bytes > left - TFRECORD_HEAD - TFRECORD_FOOT)
		return cut_off(file, sink);
	file->has_head = true;
	file->summed = 0;
	file->sum = 0;
	example_begin(&file->walk, &file->names, file->bytes);
	return 0;
}

/* Of a damaged file the checksum says more than the walk, so it is computed to its end. */
static bool has_walked(const struct tfrecord *file)
{
	return file->walk.why || file->walk.at >= file->bytes;
}

/* What the window has of the example, to both. */
static void step_both(struct tfrecord *file, const struct window *window)
{
	const uint64_t at = example_at(file);
	const uint64_t first = BASE_MAX(window->at, at);
	const uint64_t end = BASE_MIN(window->end, at + file->bytes);
	const uint64_t from = at + file->summed;

	if (from >= first && from < end) {
		file->sum = crc32c_add(file->sum, window->data + (from - window->at), end - from);
		file->summed = end - at;
	}
	if (!has_walked(file) && first < end)
		example_feed(&file->walk, first - at, window->data + (first - window->at),
			     end - first);
}

static int give_record(struct tfrecord *file, struct scan_sink *sink)
{
	struct scan_record record;
	char key[32];
	uint64_t bad_at;
	const char *why = scan_example_record(&file->walk, example_at(file), &record, &bad_at);

	if (why)
		return tfrecord_bad(file, sink, bad_at, why);
	snprintf(key, sizeof(key), "[%llu]", (unsigned long long)file->records);
	record.key = key;
	return sink->record(sink->arg, &record);
}

static int step_body(struct tfrecord *file, const struct window *window, struct scan_sink *sink,
		     struct scan_want *ret)
{
	const uint64_t foot_at = example_at(file) + file->bytes;
	const uint8_t *foot = window_has(window, foot_at, TFRECORD_FOOT);
	int r;

	step_both(file, window);
	if (!has_walked(file) && file->walk.at < file->summed)
		return wants(file, example_at(file) + file->walk.at, ret);
	if (file->summed < file->bytes)
		return wants(file, example_at(file) + file->summed, ret);
	if (!foot)
		return wants(file, foot_at, ret);
	if (little_32(foot) != crc32c_masked(file->sum))
		return tfrecord_bad(file, sink, example_at(file),
				    "its checksum is wrong; the file is damaged: copy it anew");
	r = give_record(file, sink);
	file->begin = foot_at + TFRECORD_FOOT;
	file->has_head = false;
	file->records++;
	return r;
}

/* ---- the scan ---- */

static int tfrecord_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
			 struct scan_sink *sink, struct scan_want *ret)
{
	const struct window window = {at, at + size, bytes};
	struct tfrecord *file = state;
	struct scan_want want = {.bytes = 0};
	int r = 0;

	while (r == 0 && want.bytes == 0)
		r = file->has_head ? step_body(file, &window, sink, &want)
				   : step_head(file, &window, sink, &want);
	if (r == 0)
		*ret = want;
	return r;
}

static int tfrecord_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
			  struct scan_want *ret)
{
	struct tfrecord *file = state;
	const char *why;

	*file = (struct tfrecord){.file_bytes = shard->bytes};
	why = scan_example_options(shard->options, &file->names);
	if (why)
		return scan_bad(sink, 0, "%s", why);
	return tfrecord_feed(state, 0, NULL, 0, sink, ret);
}

/* A file that only happens to be one has a chance of 2^-32. */
static bool tfrecord_is_shard(const uint8_t *head, size_t size)
{
	uint64_t bytes;

	return size >= TFRECORD_HEAD && tfrecord_head(head, &bytes);
}

const struct source_scan scan_tfrecord = {
    .name = "tfrecord",
    .state_bytes = sizeof(struct tfrecord),
    .begin = tfrecord_begin,
    .feed = tfrecord_feed,
    .is_shard = tfrecord_is_shard,
};
