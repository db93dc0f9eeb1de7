/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of a file of FFCV's, version 2. All numbers are little endian:
 *
 *   u16 2 | u16 fields | u32 bytes of a page | u64 samples | u64 where the table begins
 *   fields times: u8 type | name, 16 bytes, zeros behind it | 1024 bytes that some types have
 *   samples times a row: what the fields' types say, aligned as C does it
 *   pages | the table, to the file's end: u64 sample | u64 place | u64 bytes
 *
 * In a row is a number, or where the field's bytes are. How many those are says only the table, whose order is that of each
 * process of the writer's, one process behind the other: so it is runs, in each of which samples ascend. It is gone through once,
 * to find where runs begin; then samples are taken in their order, each from the run whose next one it is. Of each run a window of the
 * table is in memory.
 */

#include "storage/source/scan/scan_shard.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/little.h"
#include "storage/source/scan/chosen.h"
#include "storage/source/scan/scan_option.h"

#define BETON_VERSION 2
#define BETON_HEAD 24
#define BETON_FIELD 1041
#define BETON_NAME 17 /* with a NUL */
#define BETON_MOST_FIELDS 64
#define BETON_LEAST_PAGE (UINT32_C(1) << 21)
#define BETON_ENTRY 24
#define BETON_MOST_RUNS 1024
#define BETON_ENTRIES 65536 /* of the table, that are in memory, of all runs */
#define BETON_WINDOW 16384  /* of one run, at most */
#define BETON_ROWS (UINT32_C(256) << 10)
#define BETON_PASS (SCAN_MOST_WANT / BETON_ENTRY)

#define DAMAGED "the file is damaged: copy or write it anew"

enum beton_type {
	BETON_FLOAT = 0,
	BETON_INT = 1,
	BETON_PICTURE = 2,
	BETON_TYPES = 7,
	BETON_OTHER = 255
};
static const struct {
	uint8_t bytes, align; /* in a row */
} types[BETON_TYPES] = {
    [BETON_FLOAT] = {8, 8},
    [BETON_INT] = {8, 8},
    [BETON_PICTURE] = {13, 1}, /* u8 mode | u16 width | u16 height | u64 place */
    [3] = {16, 1},             /* bytes */
    [4] = {8, 8},              /* an array */
    [5] = {16, 1},             /* JSON */
    [6] = {8, 8},              /* a tensor */
};
enum { BETON_JPEG = 0, BETON_RAW = 1 }; /* modes */

struct run { /* of the table's entries */
	uint64_t next, end;
	uint64_t sample; /* of the next one; UINT64_MAX: there is none */
	uint64_t first;  /* that is in memory */
	uint32_t n;
};

struct wish { /* names of fields; "": the usual ones */
	char picture[BETON_NAME], label[BETON_NAME];
	bool is_unlabelled;
};

struct layout { /* of a row */
	uint32_t bytes, picture_at, label_at;
	bool has_label, is_float;
};

struct table {
	uint64_t at, entries;
	uint64_t passed; /* entries, when runs are looked for */
	uint64_t before; /* the sample of the entry before */
	unsigned n, now; /* runs, and which of them the sample is in */
	uint32_t window; /* entries of each run */
	struct run run[BETON_MOST_RUNS];
};

struct beton {
	enum { BETON_IN_HEAD, BETON_IN_FIELDS, BETON_IN_TABLE, BETON_IN_ROWS, BETON_IN_RUN } phase;
	uint64_t file_bytes;
	struct wish wish;
	unsigned fields;
	uint64_t samples, rows_at, data_at;
	struct layout layout;
	uint64_t number;    /* of the sample */
	uint64_t bytes;     /* of its picture, as far as the table was looked at; 0: not found */
	uint64_t first_row; /* that is in memory */
	uint32_t n_rows;
	struct table table;
	uint8_t row[BETON_ROWS]; /* these two begin with any bytes */
	uint8_t entry[BETON_ENTRIES * BETON_ENTRY];
};

/* Of the sample. */
static int sample_bad(const struct beton *file, struct scan_sink *sink, const char *why)
{
	return scan_bad(sink, file->rows_at + file->number * file->layout.bytes, "sample %llu: %s",
			(unsigned long long)file->number, why);
}

/* ---- samples ---- */

static const uint8_t *row_of(const struct beton *file)
{
	return file->row + (file->number - file->first_row) * file->layout.bytes;
}

/* false: it is no class. */
static bool label_of(const struct beton *file, uint32_t *ret)
{
	const uint64_t bits =
	    file->layout.has_label ? little_64(row_of(file) + file->layout.label_at) : (uint64_t)-1;
	int64_t value = (int64_t)bits;
	double number;

	if (file->layout.has_label && file->layout.is_float) {
		memcpy(&number, &bits, sizeof(number));
		if (!(number >= -1 && number <= SCAN_MOST_LABEL))
			return false;
		value = (int64_t)number;
		if ((double)value != number)
			return false;
	}
	*ret = value < 0 ? SCAN_NO_LABEL : (uint32_t)value;
	return value >= -1 && value <= SCAN_MOST_LABEL;
}

/* What its picture is, of that many bytes at that place. NULL, or what is wrong. */
static const char *picture_of(const struct beton *file, struct scan_record *ret)
{
	const uint8_t *picture = row_of(file) + file->layout.picture_at;
	const uint64_t at = little_64(picture + 5), bytes = file->bytes;
	const uint32_t width = little_16(picture + 1), height = little_16(picture + 3);

	if (bytes == 0)
		return "the table of places at the file's end has none of its picture; " DAMAGED;
	if (at < file->data_at || at > file->table.at || bytes > file->table.at - at)
		return "its picture is not where pictures are; " DAMAGED;
	if (bytes > UINT32_MAX - SCAN_PIXELS_HEAD || at >> SCAN_PLACE_BITS)
		return "it has more than 4 GiB, or lies 256 TiB behind the file's begin";
	*ret = (struct scan_record){.at = at, .bytes = (uint32_t)bytes};
	if (picture[0] == BETON_JPEG)
		return NULL;
	if (picture[0] != BETON_RAW || bytes != (uint64_t)width * height * 3)
		return "its picture is no JPEG, nor as many pixels as its size says; " DAMAGED;
	ret->at -= SCAN_PIXELS_HEAD;
	ret->bytes += SCAN_PIXELS_HEAD;
	ret->width = (uint16_t)width;
	return NULL;
}

static int give_record(struct beton *file, struct scan_sink *sink)
{
	struct scan_record record;
	const char *why = picture_of(file, &record);
	char key[32];

	if (!why && !label_of(file, &record.label))
		why = "its label is no class, 0 to 16777215, or -1: none; the option label names "
		      "another field, label=none none";
	if (why)
		return sample_bad(file, sink, why);
	snprintf(key, sizeof(key), "[%llu]", (unsigned long long)file->number);
	record.key = key;
	file->number++;
	file->bytes = 0;
	return sink->record(sink->arg, &record);
}

/* The run whose next one is the sample, mostly the one that the last was in; or any, if there is none. */
static struct run *find_run(struct table *table, uint64_t sample)
{
	unsigned i = 0;

	if (table->run[table->now].sample == sample)
		return &table->run[table->now];
	while (i + 1 < table->n && table->run[i].sample != sample)
		i++;
	table->now = i;
	return &table->run[i];
}

static uint8_t *window_of(struct beton *file)
{
	return file->entry + (size_t)file->table.now * file->table.window * BETON_ENTRY;
}

/* What the table says of the sample. false: the run's window is to go on. */
static bool take_entries(struct beton *file)
{
	const uint64_t place = little_64(row_of(file) + file->layout.picture_at + 5);
	struct run *run = find_run(&file->table, file->number);

	for (; run->sample == file->number; run->next++) {
		const uint8_t *entry = window_of(file) + (run->next - run->first) * BETON_ENTRY;

		if (run->next < run->end && run->next - run->first >= run->n)
			return false;
		run->sample = run->next < run->end ? little_64(entry) : UINT64_MAX;
		if (run->sample != file->number)
			return true;
		if (little_64(entry + 8) == place)
			file->bytes = little_64(entry + 16);
	}
	return true;
}

static int want_rows(struct beton *file, struct scan_want *ret)
{
	file->first_row = file->number;
	file->n_rows = (uint32_t)BASE_MIN(file->samples - file->number,
					  (uint64_t)BETON_ROWS / file->layout.bytes);
	file->phase = BETON_IN_ROWS;
	return scan_wants(file->rows_at + file->number * file->layout.bytes,
			  (uint64_t)file->n_rows * file->layout.bytes, ret);
}

static int want_run(struct beton *file, struct scan_want *ret)
{
	struct run *run = &file->table.run[file->table.now];

	run->first = run->next;
	run->n = (uint32_t)BASE_MIN(run->end - run->next, (uint64_t)file->table.window);
	file->phase = BETON_IN_RUN;
	return scan_wants(file->table.at + run->next * BETON_ENTRY, (uint64_t)run->n * BETON_ENTRY,
			  ret);
}

/* As many samples as there is in memory. */
static int go_on(struct beton *file, struct scan_sink *sink, struct scan_want *ret)
{
	int r = 0;

	while (!r) {
		if (file->number == file->samples)
			return SCAN_E_END;
		if (file->number - file->first_row == file->n_rows)
			return want_rows(file, ret);
		if (!take_entries(file))
			return want_run(file, ret);
		r = give_record(file, sink);
	}
	return r;
}

/* ---- the table's runs ---- */

static int want_table(struct beton *file, struct scan_sink *sink, struct scan_want *ret)
{
	const uint64_t left = file->table.entries - file->table.passed;

	if (left == 0) {
		file->table.window =
		    BASE_MIN(BETON_ENTRIES / BASE_MAX(file->table.n, 1U), (uint32_t)BETON_WINDOW);
		return go_on(file, sink, ret);
	}
	file->phase = BETON_IN_TABLE;
	return scan_wants(file->table.at + file->table.passed * BETON_ENTRY,
			  BASE_MIN(left, (uint64_t)BETON_PASS) * BETON_ENTRY, ret);
}

static int took_table(struct beton *file, const uint8_t *bytes, uint32_t size,
		      struct scan_sink *sink, struct scan_want *ret)
{
	for (const uint8_t *entry = bytes; entry < bytes + size; entry += BETON_ENTRY) {
		const uint64_t sample = little_64(entry);

		if (sample >= file->samples)
			return scan_bad(
			    sink, file->table.at + file->table.passed * BETON_ENTRY,
			    "the table of places names a sample that is not there; " DAMAGED);
		if (file->table.n == 0 || sample < file->table.before) {
			if (file->table.n == BETON_MOST_RUNS)
				return scan_bad(sink,
						file->table.at + file->table.passed * BETON_ENTRY,
						"its samples lie in more than %d runs; write it "
						"anew, with fewer processes (num_workers)",
						BETON_MOST_RUNS);
			file->table.run[file->table.n++] = (struct run){.next = file->table.passed,
									.first = file->table.passed,
									.sample = sample};
		}
		file->table.before = sample;
		file->table.run[file->table.n - 1].end = ++file->table.passed;
	}
	return want_table(file, sink, ret);
}

/* ---- head and fields ---- */

static unsigned picture_rank(unsigned type, const char *name, const char *named)
{
	return type == BETON_PICTURE && (!*named || strcmp(name, named) == 0);
}

static unsigned label_rank(const struct beton *file, unsigned type, const char *name)
{
	if (file->wish.is_unlabelled)
		return 0;
	if (*file->wish.label)
		return (type == BETON_INT || type == BETON_FLOAT) &&
		       strcmp(name, file->wish.label) == 0;
	return type == BETON_INT ? chosen_label_rank(name, NULL) : 0;
}

static const char *judge(const struct beton *file, const struct chosen *picture,
			 const struct chosen *label)
{
	if (picture->n > 1)
		return "it has several fields of pictures; the option image names one";
	if (picture->n == 0)
		return *file->wish.picture
			   ? "it has no field of pictures (RGBImageField) of the name "
			     "that the option image gives"
			   : "it has no field of pictures (RGBImageField); "
			     "oa.from_beton() reads its fields";
	if (*file->wish.label && label->n != 1)
		return "it has no field of numbers (IntField, FloatField) of the name that the "
		       "option label gives";
	return NULL;
}

/* Where picture and label are in a row, and what lies behind the rows. */
static int took_fields(struct beton *file, const uint8_t *bytes, struct scan_sink *sink,
		       struct scan_want *ret)
{
	uint32_t place[BETON_MOST_FIELDS], at = 0, align = 1;
	struct chosen picture = {.n = 0}, label = {.n = 0};
	const char *why;

	for (unsigned i = 0; i < file->fields; i++) {
		const uint8_t *field = bytes + (size_t)i * BETON_FIELD;
		unsigned type = field[0];
		char name[BETON_NAME] = "";

		memcpy(name, field + 1, BETON_NAME - 1);
		if (type == BETON_OTHER && *file->wish.picture &&
		    strcmp(name, file->wish.picture) == 0)
			type = BETON_PICTURE;
		if (type >= BETON_TYPES)
			return scan_bad(
			    sink, BETON_HEAD + (uint64_t)i * BETON_FIELD,
			    "field %u is of a class of its own, whose size nobody knows; "
			    "if that is derived from RGBImageField, name it by the option "
			    "image, else write the file without it",
			    i);
		at = (at + types[type].align - 1) / types[type].align * types[type].align;
		align = BASE_MAX(align, (uint32_t)types[type].align);
		place[i] = at;
		at += types[type].bytes;
		chosen_add(&picture, picture_rank(type, name, file->wish.picture), i);
		chosen_add(&label, label_rank(file, type, name), i);
	}
	why = judge(file, &picture, &label);
	if (why)
		return scan_bad(sink, BETON_HEAD, "%s", why);
	file->layout.bytes = (at + align - 1) / align * align;
	file->layout.picture_at = place[picture.column];
	file->layout.has_label = label.n == 1;
	file->layout.label_at = place[label.column];
	file->layout.is_float = bytes[(size_t)label.column * BETON_FIELD] == BETON_FLOAT;
	if (file->samples > (file->table.at - file->rows_at) / file->layout.bytes)
		return scan_bad(sink, 8, "its head tells of more samples than there are; " DAMAGED);
	file->data_at = file->rows_at + file->samples * file->layout.bytes;
	return want_table(file, sink, ret);
}

static int took_head(struct beton *file, const uint8_t *head, struct scan_sink *sink,
		     struct scan_want *ret)
{
	const unsigned version = little_16(head);

	file->fields = little_16(head + 2);
	file->samples = little_64(head + 8);
	file->table.at = little_64(head + 16);
	file->rows_at = BETON_HEAD + (uint64_t)file->fields * BETON_FIELD;
	if (version != BETON_VERSION)
		return scan_bad(sink, 0, "it is no file of FFCV's of version 2");
	if (file->fields < 1 || file->fields > BETON_MOST_FIELDS)
		return scan_bad(sink, 2, "its samples have no field, or more than 64");
	if (file->table.at == 0)
		return scan_bad(sink, 16, "it was not written to its end; write it anew");
	if (file->table.at > file->file_bytes || (file->file_bytes - file->table.at) % BETON_ENTRY)
		return scan_bad(sink, file->file_bytes, "the file is cut off; copy it anew");
	if (file->table.at < file->rows_at)
		return scan_bad(sink, 16, "its head is damaged; copy or write it anew");
	file->table.entries = (file->file_bytes - file->table.at) / BETON_ENTRY;
	file->phase = BETON_IN_FIELDS;
	return scan_wants(BETON_HEAD, (uint64_t)file->fields * BETON_FIELD, ret);
}

/* ---- the scan ---- */

static int beton_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
		      struct scan_sink *sink, struct scan_want *ret)
{
	struct beton *file = state;

	(void)at;
	switch (file->phase) {
	case BETON_IN_HEAD:
		return took_head(file, bytes, sink, ret);
	case BETON_IN_FIELDS:
		return took_fields(file, bytes, sink, ret);
	case BETON_IN_TABLE:
		return took_table(file, bytes, size, sink, ret);
	case BETON_IN_ROWS:
		memcpy(file->row, bytes, size);
		return go_on(file, sink, ret);
	case BETON_IN_RUN:
		memcpy(window_of(file), bytes, size);
		return go_on(file, sink, ret);
	}
	return SCAN_E_BAD;
}

/* Names have at most 16 bytes there: the writer leaves off what is behind them. */
static bool take_name(const char *options, const char *key, char ret[BETON_NAME])
{
	char name[256];

	if (!scan_option(options, key, name, sizeof(name)))
		return false;
	snprintf(ret, BETON_NAME, "%.*s", BETON_NAME - 1, name);
	return true;
}

static int beton_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
		       struct scan_want *ret)
{
	struct beton *file = state;

	memset(file, 0, offsetof(struct beton, row));
	file->file_bytes = shard->bytes;
	if (!take_name(shard->options, "image", file->wish.picture) ||
	    !take_name(shard->options, "label", file->wish.label))
		return scan_bad(sink, 0, "the name of a field has more than 255 bytes");
	file->wish.is_unlabelled = strcmp(file->wish.label, "none") == 0;
	if (file->wish.is_unlabelled)
		*file->wish.label = '\0';
	if (shard->bytes < BETON_HEAD + BETON_FIELD)
		return scan_bad(sink, 0, "it is too short to be a file of FFCV's");
	file->phase = BETON_IN_HEAD;
	return scan_wants(0, BETON_HEAD, ret);
}

static bool beton_is_shard(const uint8_t *head, size_t size)
{
	uint32_t page;

	if (size < BETON_HEAD + BETON_FIELD)
		return false;
	page = little_32(head + 4);
	return little_16(head) == BETON_VERSION && little_16(head + 2) >= 1 &&
	       little_16(head + 2) <= BETON_MOST_FIELDS && page >= BETON_LEAST_PAGE &&
	       (page & (page - 1)) == 0 &&
	       (head[BETON_HEAD] < BETON_TYPES || head[BETON_HEAD] == BETON_OTHER);
}

static void beton_join(uint8_t *bytes, size_t size, uint64_t place)
{
	const uint64_t width = place >> SCAN_PLACE_BITS;
	char head[SCAN_PIXELS_HEAD + 1];

	if (width == 0 || size < SCAN_PIXELS_HEAD)
		return;
	snprintf(head, sizeof(head), "P6 %5u %10u 255\n", (unsigned)width,
		 (unsigned)((size - SCAN_PIXELS_HEAD) / 3 / width));
	memcpy(bytes, head, SCAN_PIXELS_HEAD);
}

const struct source_scan scan_beton = {
    .name = "beton",
    .state_bytes = sizeof(struct beton),
    .begin = beton_begin,
    .feed = beton_feed,
    .is_shard = beton_is_shard,
    .join = beton_join,
};
