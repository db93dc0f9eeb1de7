/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Manifests: CSV, TSV, JSON lines or pairs of JSON whose rows name files of pictures and their labels. What the rows say is found in a
 * sandbox (scan_manifest.c); then each file is looked at, several at a time, for its size and time of change, and from there
 * on a sample is a file as in a folder. A path is below its manifest's folder, or whole: it may lead wherever the user
 * may read, so a data set of these is his own, never everybody's.
 *
 * The lock covers which rows are next, and the first row that is wrong; under it no file is touched.
 */

#include "storage/index.h"
#include "storage/source/scan/scan_manifest.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define MANIFEST_ROWS 256 /* that a thread takes at a time */
#define MANIFEST_MOST_THREADS 64
#define MANIFEST_STEP (UINT32_C(1) << 20) /* bytes that are read at a time, to count lines */

/* ---- lines, for messages ---- */

uint64_t source_manifest_line(const struct reader_dataset *dataset, const char *name, uint64_t at)
{
	_cleanup_close_ int fd = source_open_shard(dataset, name);
	struct source_from from = {
	    .dataset = dataset, .name = dataset->is_folder ? name : NULL, .fd = fd};
	_cleanup_free_ char *bytes = malloc(MANIFEST_STEP);
	uint64_t line = 1;

	for (uint64_t done = 0, step; done < at; done += step) {
		step = BASE_MIN(at - done, (uint64_t)MANIFEST_STEP);
		if (fd < 0 || !bytes || source_read(&from, bytes, step, done))
			return 0;
		for (uint64_t i = 0; i < step; i++)
			line += bytes[i] == '\n';
	}
	return line;
}

/* ---- the files ---- */

struct rows { /* some of one manifest */
	struct indexer_shard *shard;
	size_t first, n;
	const char *key; /* of the first */
};

struct resolving {
	const struct reader_dataset *dataset;
	const struct scan_progress *progress;
	int base_fd; /* that paths are below */

	pthread_mutex_t lock;
	/* under the lock */
	struct indexer_shard *shard;
	size_t left, row; /* manifests, this one too; its next row */
	const char *key;  /* of that; NULL: the first one's */
	uint64_t done;
	int error;
	const struct indexer_shard *bad_shard; /* DATASET_E_REFUSED: the first row that is wrong */
	size_t bad_row;
	struct diag *diag; /* of the error */
};

static bool take_rows(struct resolving *all, struct rows *ret)
{
	bool is_there;

	BASE_HOLD(&all->lock);
	while (all->left && all->row == all->shard->n_records) {
		all->left--;
		all->shard++;
		all->row = 0;
		all->key = NULL;
	}
	is_there = all->left && !all->error;
	if (is_there) {
		*ret = (struct rows){
		    .shard = all->shard,
		    .first = all->row,
		    .n = BASE_MIN((size_t)MANIFEST_ROWS, all->shard->n_records - all->row),
		    .key = all->key ? all->key : all->shard->keys};
		all->row += ret->n;
		all->key = ret->key;
		for (size_t i = 0; i < ret->n; i++)
			all->key += strlen(all->key) + 1;
		all->done += ret->n;
	}
	return is_there;
}

/* Of the rows that are wrong, as far as is known: several threads look at them, but all that are before it are looked at. */
static bool is_first(const struct resolving *all, const struct indexer_shard *shard, size_t row)
{
	if (!all->error)
		return true;
	return all->error == DATASET_E_REFUSED &&
	       (shard < all->bad_shard || (shard == all->bad_shard && row < all->bad_row));
}

static void stop(struct resolving *all, const struct rows *rows, size_t i, const char *path,
		 const char *what)
{
	const struct reader_dataset *dataset = all->dataset;
	const struct indexer_shard *shard = rows->shard;
	const uint64_t line =
	    source_manifest_line(dataset, shard->name, shard->record[rows->first + i].at);

	BASE_HOLD(&all->lock);
	if (is_first(all, shard, rows->first + i)) {
		all->error = DATASET_E_REFUSED;
		all->bad_shard = shard;
		all->bad_row = rows->first + i;
		diag_set(all->diag, "dataset \"%s\" is refused: %s:%llu: \"%s\" %s",
			 BASE_QUOTED(dataset->shown, 200), BASE_QUOTED(shard->name, 120),
			 (unsigned long long)line, BASE_QUOTED(path, 200), what);
	}
}

static const char *why_not(int error, char *ret, size_t size)
{
	if (error == ENOENT || error == ENOTDIR)
		return "is not there: paths are below the manifest's folder, or whole";
	snprintf(ret, size, "cannot be looked at: %s", strerror(error));
	return ret;
}

/* false: it is no sample, and why is said. */
static bool look_at(struct resolving *all, const struct rows *rows, size_t i, const char *key)
{
	struct indexer_record *record = &rows->shard->record[rows->first + i];
	const char *slash = strrchr(rows->shard->name, '/');
	const int folder = slash && *key != '/' ? (int)(slash + 1 - rows->shard->name) : 0;
	char path[PATH_MAX], text[160];
	struct stat st;
	int r = 0;

	if (snprintf(path, sizeof(path), "%.*s%s", folder, rows->shard->name, key) >= PATH_MAX)
		r = ENAMETOOLONG;
	else if (all->dataset->bucket &&
		 !source_bucket_name(all->dataset->bucket, path, (char[BUCKET_NAME_ROOM]){0}))
		r = ENOENT;
	else if (fstatat(all->base_fd, path, &st, 0) < 0)
		r = errno;
	if (r)
		stop(all, rows, i, key, why_not(r, text, sizeof(text)));
	else if (!S_ISREG(st.st_mode))
		stop(all, rows, i, key, "is no regular file");
	else if ((uint64_t)st.st_size > UINT32_MAX)
		stop(all, rows, i, key, "has 4 GiB or more; no sample may have");
	else {
		record->at = (uint64_t)walk_mtime_ns(&st);
		record->bytes = (uint32_t)st.st_size;
		return true;
	}
	return false;
}

static void *resolve_thread(void *arg)
{
	struct resolving *all = arg;
	struct rows rows;

	while (take_rows(all, &rows)) {
		const char *key = rows.key;

		for (size_t i = 0; i < rows.n && look_at(all, &rows, i, key); i++)
			key += strlen(key) + 1;
		if (all->progress && all->progress->cancelled &&
		    all->progress->cancelled(all->progress->arg)) {
			pthread_mutex_lock(&all->lock);
			all->error = all->error ? all->error : DATASET_E_CANCELLED;
			pthread_mutex_unlock(&all->lock);
		}
	}
	return NULL;
}

static int manifest_resolve(const struct reader_dataset *dataset, struct indexer_shard *shard,
			    size_t n, unsigned threads, const struct scan_progress *progress,
			    struct diag *diag)
{
	const struct shards *shards = dataset->source;
	struct resolving all = {
	    .dataset = dataset,
	    .progress = progress,
	    .base_fd = shards->base_fd >= 0 ? shards->base_fd : dataset->root_fd,
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	    .shard = shard,
	    .left = n,
	    .diag = diag,
	};
	pthread_t thread[MANIFEST_MOST_THREADS];
	unsigned started = 0;

	threads = BASE_MIN(threads, (unsigned)MANIFEST_MOST_THREADS);
	while (started + 1 < threads &&
	       !pthread_create(&thread[started], NULL, resolve_thread, &all))
		started++;
	resolve_thread(&all);
	while (started)
		pthread_join(thread[--started], NULL);
	pthread_mutex_destroy(&all.lock);
	return all.error;
}

/* ---- the kind ---- */

/* The folder that the root's name says, which a symbolic link does not lead away from. */
static int open_base(const struct reader_dataset *dataset)
{
	const char *slash = strrchr(dataset->root_path, '/');
	_cleanup_free_ char *folder =
	    strndup(dataset->root_path, BASE_MAX((size_t)(slash - dataset->root_path), (size_t)1));
	int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 ? folder ? -errno : -ENOMEM : fd;
}

static int manifest_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			  struct diag *diag)
{
	struct shards *shards;
	int r = SOURCE_E_NONE;

	if (!dataset->is_folder || dataset->pattern)
		r = source_shards_probe(dataset, progress, diag);
	if (r)
		return r;
	if (dataset->how == READER_HOW_OPEN_ONLY)
		return diag_fail(diag, DATASET_E_CLOSED,
				 "the files that a manifest names may lie anywhere, so each user "
				 "reads them himself");
	shards = dataset->source;
	if (!dataset->is_folder)
		shards->base_fd = open_base(dataset);
	if (!dataset->is_folder && shards->base_fd < 0)
		diag_set(diag, "the manifest's folder cannot be opened: %s",
			 strerror(-shards->base_fd));
	return dataset->is_folder || shards->base_fd >= 0 ? 0 : shards->base_fd;
}

static void manifest_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			  uint8_t *buffer, struct reader_outcome *ret)
{
	const struct shards *shards = dataset->source;

	source_file_read(dataset, shards->base_fd >= 0 ? shards->base_fd : root_fd, sample, buffer,
			 ret);
}

static const struct source_shards manifest_shards = {
    .what = "manifests",
    .suffixes = ".csv\0.tsv\0.jsonl\0.ndjson\0.json\0",
    .compressed = ".csv.gz\0.tsv.gz\0.jsonl.gz\0.csv.zst\0.tsv.zst\0.jsonl.zst\0",
    .scan = &scan_manifest,
    .empty = "they have no row but the columns' names",
    .resolve = manifest_resolve,
};

const struct source_ops source_manifest = {
    .name = "manifest",
    .files = true,
    .kind = INDEX_OF_MANIFEST,
    .shards = &manifest_shards,
    .options = "path\0label\0",
    .probe = manifest_probe,
    .index = source_shards_index,
    .read = manifest_read,
    .place = source_file_place,
    .close = source_shards_close,
};
