/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Windows over several series of rows, none of which crosses from one series to another: the .npy files of a folder or of a list,
 * each a series; or parts of one file, as another .npy says where each begins.
 *
 * A series that is shorter than a window has none. Which window is a sample follows from a table of the series that have some, each
 * with the number of its first window. Files are opened for each read, since there may be many, and compared with what they were behind
 * it.
 */

#include "storage/source/source_rows.h"

#include "base/hash.h"
#include "base/little.h"
#include "storage/index.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_npy.h"
#include "storage/source/source_shards.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define SERIES_SUFFIXES ".npy\0"
#define SERIES_AT_ONCE 8192 /* numbers of a .npy of starts */

struct series_file {
	uint64_t bytes;
	int64_t mtime_ns;
};

struct series_part {    /* rows that follow one another */
	uint64_t first; /* the number of its first window, in all */
	uint64_t at;    /* where its first row begins, in the file */
	size_t file;
};

struct series {
	struct shard_names
	    names; /* below the root, which has none itself where it is the one file */
	struct series_file *file; /* owned, of each name */
	struct series_part *part; /* owned, ascending */
	size_t n, room;
	struct hash_id id;
};

void source_series_free(struct series *series)
{
	if (!series)
		return;
	source_shards_names_free(&series->names);
	free(series->file);
	free(series->part);
	free(series);
}

const struct hash_id *source_series_id(const struct series *series)
{
	return &series->id;
}

uint64_t source_series_windows(uint64_t rows, const struct series_windows *windows)
{
	return rows < windows->length ? 0 : (rows - windows->length) / windows->stride + 1;
}

/* ---- opening ---- */

struct opening {
	const struct reader_dataset *dataset;
	const struct scan_progress *progress;
	const struct series_windows *windows;
	struct series *series;
	struct rows *rows; /* n: windows so far */
	uint64_t row_bytes;
	struct diag *why;
};

/* Rows of a file, from that byte on. */
static int add(const struct opening *opening, size_t file, uint64_t at, uint64_t n)
{
	struct series *series = opening->series;
	const uint64_t count = source_series_windows(n, opening->windows);

	if (!count)
		return 0;
	if (series->n == series->room &&
	    !scan_takes(opening->progress,
			series->names.bytes + (2 * series->room + 16) * sizeof(*series->part)))
		return DATASET_E_ROOM;
	if (!base_grow(&series->part, &series->room, series->n + 1, sizeof(*series->part)))
		return -ENOMEM;
	series->part[series->n++] =
	    (struct series_part){.first = opening->rows->n, .at = at, .file = file};
	if (count > INDEX_MAX_SAMPLES - opening->rows->n)
		return diag_fail(opening->why, DATASET_E_REFUSED,
				 "it has more than 2^32 windows: give a larger stride");
	opening->rows->n += count;
	return 0;
}

/* ---- several files ---- */

static bool is_alike(const struct rows *rows, const struct npy *npy)
{
	return rows->number == npy->number && rows->ndim == npy->ndim - 1 &&
	       memcmp(rows->shape, npy->shape + 1, rows->ndim * sizeof(rows->shape[0])) == 0;
}

static int add_file(struct opening *opening, size_t i)
{
	const char *name = opening->series->names.name[i];
	struct series_file *file = &opening->series->file[i];
	_cleanup_(source_npy_close) struct source_npy is;
	const int r = source_npy_open(opening->dataset, opening->progress,
				      opening->dataset->root_fd, name, &is, opening->why);

	if (r)
		return r;
	file->bytes = is.bytes;
	file->mtime_ns = is.mtime_ns;
	if (i == 0) {
		source_rows_of_npy(&is.npy, opening->rows);
		opening->rows->n = 0;
		opening->row_bytes = is.npy.row_values * number_bytes(is.npy.number);
	} else if (!is_alike(opening->rows, &is.npy)) {
		return diag_fail(
		    opening->why, DATASET_E_REFUSED,
		    "the rows of \"%s\" have another type or shape than those of \"%s\"",
		    BASE_QUOTED(name, 200), BASE_QUOTED(opening->series->names.name[0], 200));
	}
	return add(opening, i, is.npy.data_at, is.npy.shape[0]);
}

static int add_files(struct opening *opening)
{
	struct series *series = opening->series;
	int r = 0;

	if (opening->dataset->pattern)
		r = source_shards_expand(opening->dataset, &series->names, opening->why);
	else
		r = source_shards_beside(opening->dataset->root_fd, ".", SERIES_SUFFIXES,
					 &series->names);
	if (!r && !series->names.n)
		return SOURCE_E_NONE;
	if (!r && !scan_takes(opening->progress,
			      series->names.bytes + series->names.n * sizeof(*series->file)))
		return DATASET_E_ROOM;
	if (!r && !(series->file = calloc(series->names.n, sizeof(*series->file))))
		return -ENOMEM;
	for (size_t i = 0; i < series->names.n && !r; i++)
		r = opening->progress->cancelled(opening->progress->arg) ? DATASET_E_CANCELLED
									 : add_file(opening, i);
	return r;
}

/* ---- parts of one file ---- */

struct starts {
	uint64_t rows; /* of the file */
	uint64_t last; /* where the last series began that was seen */
	uint64_t n;    /* that were seen */
};

/* The next series begins there: the one before it ends. */
static int add_start(struct opening *opening, struct starts *starts, uint64_t start)
{
	const uint64_t at = opening->rows->at + starts->last * opening->row_bytes;

	if (start > starts->rows || start < starts->last || (!starts->n && start))
		return diag_fail(
		    opening->why, DATASET_E_REFUSED,
		    "number %llu of its starts is %lld: they are the rows with which series begin, "
		    "the first one 0, ascending, and it has %llu rows",
		    (unsigned long long)starts->n, (long long)start,
		    (unsigned long long)starts->rows);
	if (starts->n++ && start > starts->last) {
		const int r = add(opening, 0, at, start - starts->last);

		if (r)
			return r;
	}
	starts->last = start;
	return 0;
}

static int add_numbers(struct opening *opening, struct source_from *from, const struct npy *npy)
{
	const unsigned bytes = number_bytes(npy->number);
	_cleanup_free_ uint8_t *raw = malloc((size_t)SERIES_AT_ONCE * bytes);
	_cleanup_free_ uint8_t *wide = malloc((size_t)SERIES_AT_ONCE * 8);
	struct starts starts = {.rows = opening->rows->n};
	int r = raw && wide ? 0 : -ENOMEM;

	opening->rows->n = 0;
	for (uint64_t done = 0; done < npy->shape[0] && !r;) {
		const uint64_t n = BASE_MIN(npy->shape[0] - done, (uint64_t)SERIES_AT_ONCE);

		if (opening->progress->cancelled(opening->progress->arg))
			return DATASET_E_CANCELLED;
		r = source_read(from, raw, n * bytes, npy->data_at + done * bytes);
		if (r)
			return source_read_failed(from, r, opening->why);
		number_widen(npy->number, raw, n, wide);
		for (uint64_t i = 0; i < n && !r; i++)
			r = add_start(opening, &starts, little_64(wide + 8 * i));
		done += n;
	}
	return r ? r : add_start(opening, &starts, starts.rows);
}

static int add_starts(struct opening *opening)
{
	const char *path = opening->dataset->name, *name = opening->windows->starts;
	_cleanup_close_ int folder_fd = -1;
	_cleanup_(source_npy_close) struct source_npy is = {.from.fd = -1};
	char folder[PATH_MAX];
	int r;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path + 1), path);
	folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return -errno;
	r = source_npy_open(opening->dataset, opening->progress, folder_fd, name, &is,
			    opening->why);
	if (r)
		return r;
	if (is.npy.ndim != 1 || !is.npy.shape[0] ||
	    number_batch_dtype(is.npy.number) != number_batch_dtype(NUMBER_I64))
		return diag_fail(
		    opening->why, DATASET_E_REFUSED,
		    "\"%s\" is no array of one dimension of whole numbers, as int64: the "
		    "rows with which series begin",
		    BASE_QUOTED(name, 200));
	return add_numbers(opening, &is.from, &is.npy);
}

/* ---- both ---- */

static int name_it(struct series *series)
{
	struct hash *hash;
	int r = hash_new(&hash);

	if (r)
		return r;
	for (size_t i = 0; i < series->names.n; i++) {
		hash_add(hash, series->names.name[i], strlen(series->names.name[i]) + 1);
		hash_add_u64(hash, series->file[i].bytes);
		hash_add_u64(hash, (uint64_t)series->file[i].mtime_ns);
	}
	for (size_t i = 0; i < series->n; i++) {
		hash_add_u64(hash, series->part[i].first);
		hash_add_u64(hash, series->part[i].at);
		hash_add_u64(hash, series->part[i].file);
	}
	hash_finish(hash, &series->id);
	hash_free(hash);
	return 0;
}

int source_series_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		       const struct series_windows *windows, struct rows *rows, struct diag *why)
{
	struct opening opening = {.dataset = dataset,
				  .progress = progress,
				  .windows = windows,
				  .series = calloc(1, sizeof(struct series)),
				  .rows = rows,
				  .row_bytes = rows->stride,
				  .why = why};
	int r;

	rows->series = opening.series;
	if (!rows->series)
		return -ENOMEM;
	if (dataset->is_folder)
		r = add_files(&opening);
	else
		r = add_starts(&opening);
	return r ? r : name_it(rows->series);
}

/* ---- reading ---- */

void source_series_place(const struct rows *rows, uint64_t sample, struct series_place *ret)
{
	const struct series *series = rows->series;
	size_t from = 0, to = series->n; /* of those the last one that begins with it or before */

	while (to - from > 1) {
		const size_t middle = from + (to - from) / 2;

		if (series->part[middle].first <= sample)
			from = middle;
		else
			to = middle;
	}
	*ret = (struct series_place){.at = series->part[from].at +
					   (sample - series->part[from].first) * rows->stride,
				     .size = rows->file_bytes,
				     .mtime_ns = rows->mtime_ns};
	if (!series->names.n)
		return;
	ret->name = series->names.name[series->part[from].file];
	ret->size = series->file[series->part[from].file].bytes;
	ret->mtime_ns = series->file[series->part[from].file].mtime_ns;
}

int source_series_read(const struct reader_dataset *dataset, int root_fd,
		       const struct series_place *place, uint8_t *to, uint64_t bytes)
{
	_cleanup_close_ int fd = source_open_file(dataset, root_fd, place->name);
	struct stat st;
	int r = 0;

	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	if (to)
		r = base_read_at(fd, to, bytes, place->at);
	if (fstat(fd, &st) < 0)
		return -errno;
	return walk_is_same(&st, place->size, place->mtime_ns) ? r : -ESTALE;
}
