/* SPDX-License-Identifier: Apache-2.0 */

/*
 * DALI's index files beside shards that were scanned just now (dali.h): each is read once, when the shards' own index
 * is made. A shard without one is as good.
 *
 * The text is a stranger's, and is looked at here, not in a sandbox as shards are: words and numbers, in one pass without
 * memory of its own (tests/fuzz/scan_fuzz.c); its size is bounded by DALI_MOST_TEXT and by the data set's room.
 */

#include "storage/reader_parts.h"
#include "storage/source/scan/dali.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_shards.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DALI_MOST_TEXT (UINT64_C(1) << 28)

static struct dali_found found_at(const void *arg, size_t i)
{
	const struct indexer_shard *shard = arg;

	return (struct dali_found){shard->record[i].at, shard->record[i].bytes};
}

/* NAME.idx of NAME.tar, or of a NAME that tells without a suffix what it is. false: it is too long. */
static bool name_of(const struct source_shards *kind, const char *shard, char ret[PATH_MAX])
{
	const char *suffix = source_shards_suffix(shard, kind->suffixes);
	const size_t length = strlen(shard) - (suffix ? strlen(suffix) : 0);

	if (length + sizeof(".idx") > PATH_MAX)
		return false;
	memcpy(ret, shard, length);
	strcpy(ret + length, ".idx");
	return true;
}

/* Its text, which the caller frees, NULL where there is none. 0, DATASET_E_ROOM or negative errno. */
static int read_text(const struct reader_dataset *dataset, const char *name,
		     const struct scan_progress *progress, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = source_open_file(dataset->root_fd, name, dataset->no_atime);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if ((uint64_t)st.st_size > DALI_MOST_TEXT)
		return -EFBIG;
	if (!scan_takes(progress, (uint64_t)st.st_size))
		return DATASET_E_ROOM;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	r = base_read_at(fd, text, (uint64_t)st.st_size, 0);
	if (r)
		return r;
	*ret = base_take_ptr(text);
	*ret_size = (size_t)st.st_size;
	return 0;
}

static int refuse(const struct reader_dataset *dataset, const char *name, const char *shard,
		  uint64_t line, const char *why, struct diag *diag)
{
	char path[256], quoted[128], of[128];

	base_quote(name, quoted, sizeof(quoted));
	base_quote(shard, of, sizeof(of));
	if (line)
		diag_set(
		    diag,
		    "dataset \"%s\" is refused: %s:%llu %s in %s; copy the shard anew, or make "
		    "or remove its index (tfrecord2idx, wds2idx)",
		    base_quote(dataset->path, path, sizeof(path)), quoted, (unsigned long long)line,
		    why, of);
	else
		diag_set(diag,
			 "dataset \"%s\" is refused: %s %s of %s; copy the shard anew, or make or "
			 "remove its index (tfrecord2idx, wds2idx)",
			 base_quote(dataset->path, path, sizeof(path)), quoted, why, of);
	return DATASET_E_REFUSED;
}

static int check_one(const struct reader_dataset *dataset, const struct indexer_shard *shard,
		     const struct scan_progress *progress, struct diag *diag)
{
	const struct dali_shard of = {shard->bytes, shard->n_records, found_at, shard};
	_cleanup_free_ char *text = NULL;
	char name[PATH_MAX];
	const char *why;
	uint64_t line = 0;
	size_t size = 0;
	int r;

	if (!name_of(dataset->ops->shards, shard->name, name))
		return 0;
	r = read_text(dataset, name, progress, &text, &size);
	if (r < 0)
		return refuse(dataset, name, shard->name, 0, strerror(-r), diag);
	if (r || !text)
		return r;
	why = dataset->ops->shards->dali(text, size, &of, &line);
	return why ? refuse(dataset, name, shard->name, line, why, diag) : 0;
}

int source_dali_check(const struct reader_dataset *dataset, const struct indexer_shard *shard,
		      size_t n, const struct scan_progress *progress, struct diag *diag)
{
	int r = 0;

	if (!dataset->ops->shards->dali || !dataset->is_folder)
		return 0;
	for (size_t i = 0; i < n && !r; i++)
		r = check_one(dataset, &shard[i], progress, diag);
	return r;
}
