/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files whose samples are rows of numbers, all of one size: a .npy, windows of its rows, fixed-size records, windows over
 * tokens (source_rows_open.c). Where a sample is follows from its number, so nothing is scanned.
 *
 * Workers take such samples as those of a wrapped data set: a record (pipeline/forms/packed.h) with one field,
 * the row. The reader writes the record's head, and behind it the numbers, widened where batches have no type for
 * them (number.h). The row is read to the end of the record's place and widened from there to its begin: a number is written
 * before or where it was read, never past the next one. Nothing is believed of the numbers.
 *
 * The file stays open, and is compared with its size and time behind each read. Where there are several, each is opened for
 * a read (source_series.c).
 */

#include "base/hash.h"
#include "base/little.h"
#include "storage/source/numbered.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_rows.h"
#include "storage/walk.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS_AT_ONCE \
	65536 /* bytes that are read, so that what each of them costs is little beside them */
#define RECORD_MAGIC UINT64_C(0x3144524352214f41) /* PACKED_MAGIC */
#define RECORD_HEAD 256
#define RECORD_FIELD 32 /* where the first field's place is described */

static uint64_t record_bytes(const struct rows *rows)
{
	return RECORD_HEAD + rows->values * number_batch_bytes(rows->number);
}

/* ---- opening ---- */

static void rows_fini(struct rows *rows)
{
	source_packed_free(rows->packed);
	source_loss_free(rows->loss);
	source_series_free(rows->series);
}

static int rows_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
		      struct diag *diag)
{
	_cleanup_free_ struct rows *rows = calloc(1, sizeof(*rows));
	struct stat st;
	int r;

	if (!rows)
		return -ENOMEM;
	if (fstat(dataset->root_fd, &st) < 0)
		return -errno;
	rows->file_bytes = (uint64_t)st.st_size;
	rows->mtime_ns = walk_mtime_ns(&st);
	r = source_rows_open(dataset, progress, rows, diag);
	if (!r && (rows->n > INDEX_MAX_SAMPLES || record_bytes(rows) > UINT32_MAX))
		r = diag_fail(
		    diag, DATASET_E_REFUSED,
		    "the dataset has more than 2^32 samples, or samples of more than 4 GiB");
	if (!r)
		dataset->source = base_take_ptr(rows);
	else
		rows_fini(rows);
	return r;
}

static int rows_index(struct reader_dataset *dataset, unsigned threads,
		      const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	const struct rows *rows = dataset->source;
	const struct index_record record = {.mtime_ns = rows->mtime_ns,
					    .size = (uint32_t)record_bytes(rows)};
	_cleanup_free_ char *options = NULL;
	char idx[32] = "", counts[32] = "", series[80] = "", id[65];
	int r;

	(void)threads;
	/* what the files beside it say is part of what the data set is, so their times are */
	if (rows->packed)
		snprintf(idx, sizeof(idx), ",idx=%lld",
			 (long long)source_packed_stamp(rows->packed));
	if (rows->loss)
		snprintf(counts, sizeof(counts), ",counts=%lld",
			 (long long)source_loss_stamp(rows->loss));
	if (rows->series)
		snprintf(series, sizeof(series), ",series=%s",
			 hash_hex(source_series_id(rows->series), id));
	if (asprintf(&options, "%s%s%s%s", dataset->options, idx, counts, series) < 0)
		return -ENOMEM;
	r = numbered_index(rows->n, &record, options, progress, ret_fd);
	if (r < 0)
		diag_set(diag, "cannot make the index of %llu samples: %s",
			 (unsigned long long)rows->n, strerror(-r));
	return r ? r : source_map_new(dataset, ret_fd, diag);
}

/* ---- reading ---- */

static void put_head(const struct rows *rows, uint8_t *record)
{
	uint8_t *field = record + RECORD_FIELD;

	memset(record, 0, RECORD_HEAD);
	little_put_64(record, RECORD_MAGIC);
	little_put_64(record + 8, record_bytes(rows));
	little_put_32(record + 16, 1);
	little_put_32(field, number_batch_dtype(rows->number));
	little_put_32(field + 4, rows->ndim);
	for (unsigned i = 0; i < rows->ndim; i++)
		little_put_64(field + 8 + 8 * i, rows->shape[i]);
	little_put_64(field + 40, RECORD_HEAD);
	little_put_64(field + 48, record_bytes(rows) - RECORD_HEAD);
}

static void say_changed(struct reader_outcome *ret)
{
	reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL,
			   "the file was written to since it was opened");
}

/* Where a sample is; below rows->n. */
static struct series_place place_of(const struct rows *rows, uint64_t sample)
{
	struct series_place place = {.size = rows->file_bytes,
				     .mtime_ns = rows->mtime_ns,
				     .at = rows->at + sample * rows->stride};

	if (rows->series)
		source_series_place(rows, sample, &place);
	return place;
}

/* The root; of several files each is compared where it is read. */
static bool is_same(const struct reader_dataset *dataset, const struct rows *rows,
		    struct reader_outcome *ret)
{
	struct stat st;

	if (dataset->is_folder)
		return true;
	if (fstat(dataset->root_fd, &st) < 0) {
		reader_outcome_set(ret, LAYOUT_FAIL_READ, errno, strerror(errno));
		return false;
	}
	if (walk_is_same(&st, rows->file_bytes, rows->mtime_ns) &&
	    (!rows->packed || source_packed_is_same(rows->packed)) &&
	    (!rows->loss || source_loss_is_same(rows->loss)))
		return true;
	say_changed(ret);
	return false;
}

/* From the end of the record's place to its begin. */
static void widen(const struct rows *rows, uint8_t *buffer)
{
	const uint8_t *raw =
	    buffer + record_bytes(rows) - rows->values * number_bytes(rows->number);

	if (raw > buffer + RECORD_HEAD)
		number_widen(rows->number, raw, rows->values, buffer + RECORD_HEAD);
}

static int read_row(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
		    uint8_t *buffer)
{
	const struct rows *rows = dataset->source;
	const struct series_place place = place_of(rows, sample);
	const uint64_t bytes = rows->values * number_bytes(rows->number);
	uint8_t *raw = buffer + record_bytes(rows) - bytes;
	int r;

	if (rows->packed)
		return source_packed_read(rows->packed, rows->loss, dataset, sample,
					  buffer + RECORD_HEAD);
	if (rows->loss)
		return source_loss_read(rows, dataset, sample, buffer + RECORD_HEAD);
	if (place.name)
		r = source_series_read(dataset, root_fd, &place, raw, bytes);
	else
		r = base_read_at(dataset->root_fd, raw, bytes, place.at);
	if (!r)
		widen(rows, buffer);
	return r;
}

static void rows_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
		      uint8_t *buffer, struct reader_outcome *ret)
{
	const struct rows *rows = dataset->source;
	struct series_place place;
	int r = 0;

	if (buffer && sample < rows->n) {
		r = read_row(dataset, root_fd, sample, buffer);
		put_head(rows, buffer);
	} else if (dataset->is_folder && sample < rows->n) {
		place = place_of(rows, sample);
		r = source_series_read(dataset, root_fd, &place, NULL, 0);
	}
	if (!is_same(dataset, rows, ret))
		return;
	if (r == -ESTALE && (dataset->bucket || dataset->is_folder))
		say_changed(ret);
	else if (r)
		reader_outcome_set(ret, LAYOUT_FAIL_READ, -r, strerror(-r));
	else
		ret->stage = LAYOUT_FAIL_NONE;
}

static int rows_place(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		      struct source_range *ret)
{
	const struct rows *rows = dataset->source;
	const uint64_t bytes = rows->values * number_bytes(rows->number);
	struct series_place place;

	if (rows->packed || rows->loss)
		return SOURCE_E_NONE;
	if (sample >= rows->n)
		return DATASET_E_BAD;
	place = place_of(rows, sample);
	*ret = (struct source_range){.name = place.name,
				     .size = place.size,
				     .mtime_ns = place.mtime_ns,
				     .at = place.at,
				     .bytes = (uint32_t)bytes};
	if (buffer)
		ret->to = buffer + record_bytes(rows) - bytes;
	return 0;
}

static void rows_settle(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			struct reader_outcome *ret)
{
	const struct rows *rows = dataset->source;

	(void)sample;
	widen(rows, buffer);
	put_head(rows, buffer);
	ret->stage = LAYOUT_FAIL_NONE;
}

static unsigned rows_most(const struct reader_dataset *dataset, const struct reader_link *link)
{
	const struct rows *rows = dataset->source;
	const uint64_t bytes = rows->values * number_bytes(rows->number);

	(void)link;
	return (unsigned)BASE_MAX(BASE_MIN(ROWS_AT_ONCE / bytes, (uint64_t)SOURCE_MOST_MADE), 1);
}

/* The file is compared once behind all of them. What is not good is read once more by itself. */
static void rows_many(const struct reader_dataset *dataset, struct reader_many *many)
{
	const struct rows *rows = dataset->source;
	struct reader_outcome outcome;
	int r[SOURCE_MOST_MADE];

	for (unsigned i = 0; i < many->n; i++) {
		struct reader_wanted *wanted = &many->wanted[i];

		r[i] = read_row(dataset, dataset->root_fd, wanted->task->sample, wanted->buffer);
		put_head(rows, wanted->buffer);
	}
	if (!is_same(dataset, rows, &outcome))
		return;
	for (unsigned i = 0; i < many->n; i++) {
		many->wanted[i].outcome.stage = LAYOUT_FAIL_NONE;
		many->wanted[i].is_settled = r[i] == 0;
	}
}

static void rows_close(struct reader_dataset *dataset)
{
	struct rows *rows = dataset->source;

	if (rows)
		rows_fini(rows);
	free(rows);
}

const struct source_ops source_rows = {
    .name = "rows",
    .is_fleeting = true,
    .unconverted = "has rows of numbers, no pictures: each is read where it lies, and there is "
		   "nothing to convert",
    .options = "record\0seq_len\0dtype\0pack\0pad\0loss\0window\0stride\0starts\0",
    .probe = rows_probe,
    .index = rows_index,
    .read = rows_read,
    .place = rows_place,
    .settle = rows_settle,
    .most = rows_most,
    .many = rows_many,
    .close = rows_close,
};
