/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of a RecordIO file. A record is, all numbers little endian, at a multiple of four:
 *
 *   u32 RECORDIO_MAGIC | u32 cut and bytes | so many bytes | zeros to the next multiple of four
 *
 * of which the upper three bits of the second number are the cut: 0 for a record that is whole. One that has the magic at a
 * multiple of four of its bytes is cut up there: 1 the first part, 2 those between, 3 the last one. The magic that a part
 * begins with is then the one of the bytes, so that a cut leaves but one number too many among them.
 *
 * Within a record with a picture are: u32 flag | f32 label | u64 id | u64 id2 | flag times f32, which are the label if there
 * are any | the picture.
 */

#include "storage/source/scan/scan_shard.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/little.h"
#include "storage/source/scan/scan_option.h"

#define RECORDIO_MAGIC UINT32_C(0xced7230a)
#define RECORDIO_MOST ((UINT32_C(1) << 29) - 1) /* bytes of a part */
#define PART_HEAD 8
#define IMAGE_HEAD 24
#define RECORDIO_LOOK \
	64 /* bytes of a record that are looked at first: its heads, and some labels */

struct recordio {
	enum { RECORDIO_IN_HEAD, RECORDIO_IN_LABEL, RECORDIO_IN_PART } phase;
	uint64_t file_bytes;
	bool has_label;   /* samples have one */
	uint64_t chosen;  /* which of several */
	uint64_t number;  /* of the record */
	uint64_t begin;   /* of the record, or of the part that is looked at */
	uint64_t at, end; /* of the picture; end: as far as parts are known */
	bool is_cut;      /* a part follows */
	uint32_t label;
};

static int recordio_bad(const struct recordio *file, struct scan_sink *sink, uint64_t at,
			const char *why)
{
	return scan_bad(sink, at, "record %llu: %s", (unsigned long long)file->number, why);
}

static uint64_t padded(uint64_t at)
{
	return (at + 3) & ~UINT64_C(3);
}

/* ---- heads of records and parts ---- */

/* Of the part at begin, which shall be one of these cuts; its end, and whether another one follows. NULL, or what is wrong. */
static const char *part_head(const struct recordio *file, const uint8_t *head, unsigned cut,
			     unsigned other, uint64_t *ret_end, bool *ret_is_cut)
{
	const uint32_t what = little_32(head + 4), bytes = what & RECORDIO_MOST;
	const unsigned is = what >> 29;

	if (little_32(head) != RECORDIO_MAGIC)
		return "it does not begin as records do; the file is damaged, or no RecordIO file";
	if (is != cut && is != other)
		return "its parts do not follow each other; the file is damaged: copy it anew";
	*ret_is_cut = is == 1 || is == 2;
	if (*ret_is_cut && bytes % 4 != 0)
		return "its parts do not follow each other; the file is damaged: copy it anew";
	if (bytes > file->file_bytes - file->begin - PART_HEAD)
		return "the file is cut off within it; copy or write it anew";
	*ret_end = file->begin + PART_HEAD + bytes;
	return NULL;
}

/* Of a picture's head, where the number is that is the label. NULL, or what is wrong. */
static const char *label_place(const struct recordio *file, const uint8_t *head, uint64_t *ret)
{
	const uint32_t labels = little_32(head);

	if (file->chosen >= BASE_MAX(labels, 1U))
		return "it has not so many labels as the option label says";
	*ret = labels ? IMAGE_HEAD + 4 * file->chosen : 4;
	return NULL;
}

/* ---- what comes next ---- */

static int want_record(struct recordio *file, struct scan_sink *sink, struct scan_want *ret)
{
	const uint64_t left = file->file_bytes - BASE_MIN(file->begin, file->file_bytes);

	if (left == 0)
		return SCAN_E_END;
	if (left < PART_HEAD)
		return recordio_bad(file, sink, file->begin,
				    "the file is cut off within it; copy or write it anew");
	file->phase = RECORDIO_IN_HEAD;
	return scan_wants(file->begin, BASE_MIN(left, (uint64_t)RECORDIO_LOOK), ret);
}

static int next_record(struct recordio *file, struct scan_sink *sink, struct scan_want *ret)
{
	file->begin = padded(file->end);
	file->number++;
	return want_record(file, sink, ret);
}

static int give_record(struct recordio *file, struct scan_sink *sink, struct scan_want *ret)
{
	struct scan_record record = {.at = file->at, .label = file->label};
	char key[32];
	int r;

	if (file->end - file->at > UINT32_MAX)
		return recordio_bad(file, sink, file->at, "it has more than 4 GiB");
	snprintf(key, sizeof(key), "[%llu]", (unsigned long long)file->number);
	record.bytes = (uint32_t)(file->end - file->at);
	record.key = key;
	r = sink->record(sink->arg, &record);
	return r ? r : next_record(file, sink, ret);
}

/* All of it is known but the parts that follow. */
static int want_parts(struct recordio *file, struct scan_sink *sink, struct scan_want *ret)
{
	if (!file->is_cut)
		return give_record(file, sink, ret);
	file->begin = file->end;
	if (file->file_bytes - file->begin < PART_HEAD)
		return recordio_bad(file, sink, file->begin,
				    "the file is cut off within it; copy or write it anew");
	file->phase = RECORDIO_IN_PART;
	return scan_wants(file->begin, PART_HEAD, ret);
}

/* ---- what came ---- */

static int took_label(struct recordio *file, const uint8_t *bytes, uint64_t at,
		      struct scan_sink *sink, struct scan_want *ret)
{
	const uint32_t bits = little_32(bytes);
	float value;

	memcpy(&value, &bits, sizeof(value));
	if (!(value >= -1 && value <= (float)SCAN_MOST_LABEL) || value != (float)(int32_t)value)
		return recordio_bad(file, sink, at,
				    "its label is no class, 0 to 16777215, or -1: none; the option "
				    "label=1 takes the second number of it, label=none none");
	file->label = value < 0 ? SCAN_NO_LABEL : (uint32_t)value;
	return want_parts(file, sink, ret);
}

/* Of a record with a picture, all of whose heads are in its first part. */
static int took_image(struct recordio *file, const uint8_t *head, uint32_t size,
		      struct scan_sink *sink, struct scan_want *ret)
{
	const uint64_t at = file->begin + PART_HEAD;
	const char *why;
	uint64_t place;

	file->label = SCAN_NO_LABEL;
	if (!file->has_label)
		return want_parts(file, sink, ret);
	why = label_place(file, head, &place);
	if (why)
		return recordio_bad(file, sink, at, why);
	if (place + 4 <= size)
		return took_label(file, head + place, at + place, sink, ret);
	file->phase = RECORDIO_IN_LABEL;
	return scan_wants(at + place, 4, ret);
}

static int took_head(struct recordio *file, const uint8_t *head, uint32_t size,
		     struct scan_sink *sink, struct scan_want *ret)
{
	const uint64_t at = file->begin + PART_HEAD;
	const char *why = part_head(file, head, 0, 1, &file->end, &file->is_cut);

	if (why)
		return recordio_bad(file, sink, file->begin, why);
	if (file->end - at < IMAGE_HEAD)
		return recordio_bad(file, sink, at,
				    "it has not the head of a picture's record, as im2rec and "
				    "pack_img() write it");
	file->at = at + IMAGE_HEAD + 4 * (uint64_t)little_32(head + PART_HEAD);
	if (file->at > file->end)
		return recordio_bad(file, sink, at, "it has not all labels that its head says");
	if (file->at == file->end && !file->is_cut) /* as the first one of face data sets */
		return next_record(file, sink, ret);
	return took_image(file, head + PART_HEAD, size - PART_HEAD, sink, ret);
}

static int took_part(struct recordio *file, const uint8_t *head, struct scan_sink *sink,
		     struct scan_want *ret)
{
	const char *why = part_head(file, head, 2, 3, &file->end, &file->is_cut);

	return why ? recordio_bad(file, sink, file->begin, why) : want_parts(file, sink, ret);
}

/* ---- the scan ---- */

static int recordio_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
			 struct scan_sink *sink, struct scan_want *ret)
{
	struct recordio *file = state;

	switch (file->phase) {
	case RECORDIO_IN_HEAD:
		return took_head(file, bytes, size, sink, ret);
	case RECORDIO_IN_LABEL:
		return took_label(file, bytes, at, sink, ret);
	case RECORDIO_IN_PART:
		return took_part(file, bytes, sink, ret);
	}
	return SCAN_E_BAD;
}

static int recordio_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
			  struct scan_want *ret)
{
	struct recordio *file = state;
	char label[16];
	const char *at = label;

	*file = (struct recordio){.file_bytes = shard->bytes, .has_label = true};
	if (!scan_option(shard->options, "label", label, sizeof(label)))
		at = "?";
	else if (strcmp(label, "none") == 0)
		file->has_label = false;
	if (file->has_label && *at && (!base_parse_number(&at, UINT32_MAX, &file->chosen) || *at))
		return scan_bad(sink, 0,
				"the option label is none, or which number of a label of several "
				"is the class: 0, 1, ...");
	return want_record(file, sink, ret);
}

static bool recordio_is_shard(const uint8_t *head, size_t size)
{
	return size >= PART_HEAD && little_32(head) == RECORDIO_MAGIC &&
	       little_32(head + 4) >> 29 <= 1;
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Of the first magic, or behind the last whole word: pictures are whole but for a few in a million, so a block is looked at at
 * once. */
static size_t first_magic(const uint8_t *bytes, size_t size)
{
	enum { BLOCK = 256 };
	const uint32_t magic = htole32(RECORDIO_MAGIC);
	size_t at = 0;

	for (; size - at >= BLOCK; at += BLOCK) {
		uint32_t is_there = 0;

		for (size_t i = 0; i < BLOCK; i += 4)
			is_there |= word_at(bytes + at + i) == magic;
		if (is_there)
			break;
	}
	while (size - at >= 4 && word_at(bytes + at) != magic)
		at += 4;
	return at;
}

static void recordio_join(uint8_t *bytes, size_t size, uint64_t place)
{
	size_t to = 0, at = 0;

	(void)place;
	while (size - at >= 4) {
		const size_t whole = first_magic(bytes + at, size - at);
		const size_t taken = BASE_MIN(whole + 4, size - at); /* with the magic */

		memmove(bytes + to, bytes + at, taken);
		to += taken;
		at += BASE_MIN(whole + 8, size - at);
	}
	memmove(bytes + to, bytes + at, size - at);
	to += size - at;
	memset(bytes + to, 0, size - to);
}

const struct source_scan scan_recordio = {
    .name = "recordio",
    .state_bytes = sizeof(struct recordio),
    .begin = recordio_begin,
    .feed = recordio_feed,
    .is_shard = recordio_is_shard,
    .join = recordio_join,
};
