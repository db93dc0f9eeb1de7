/* SPDX-License-Identifier: Apache-2.0 */

/*
 * MosaicML's MDS. What is in a shard says scan_mds.c; all else is that of any kind of shards, but that a folder has an
 * index.json of theirs. It is checked, not used: that the shards are those which it names, in the sizes which it
 * says, so that a copy that was broken off is told as such. A folder without one is taken as its shards are.
 *
 * This text is a stranger's, and is parsed here, not in a sandbox as shards are: it is JSON, which the daemon takes from any
 * client by the same parser. What it may cost is bounded before it is parsed: its size by MDS_MOST_TEXT, what comes of
 * it by the room that the data set has (mds_index_weight()). Names in it are only compared, and looked for in the folder.
 */

#include "storage/index.h"
#include "storage/reader_parts.h"
#include "storage/source/scan/mds.h"
#include "storage/source/scan/scan_tfrecord.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const struct reader_dataset *dataset, const char *what, struct diag *diag)
{
	char path[256];

	diag_set(diag, "dataset \"%s\" is refused: %s",
		 base_quote(dataset->path, path, sizeof(path)), what);
	return DATASET_E_REFUSED;
}

static int refuse_shard(const struct reader_dataset *dataset, const char *name, const char *what,
			struct diag *diag)
{
	char path[256], quoted[128];

	diag_set(diag, "dataset \"%s\" is refused: shard \"%s\" %s; copy the data set anew",
		 base_quote(dataset->path, path, sizeof(path)),
		 base_quote(name, quoted, sizeof(quoted)), what);
	return DATASET_E_REFUSED;
}

/* ---- index.json ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct mds_shard *)a)->name, ((const struct mds_shard *)b)->name);
}

static int check_shard(const struct reader_dataset *dataset, const struct mds_shard *shard,
		       struct diag *diag)
{
	struct stat st;

	if (fstatat(dataset->root_fd, shard->name, &st, 0) < 0)
		return refuse_shard(dataset, shard->name,
				    "is not there, but " MDS_INDEX " names it", diag);
	if ((uint64_t)st.st_size != shard->bytes)
		return refuse_shard(dataset, shard->name,
				    "has not the size that " MDS_INDEX " says", diag);
	return 0;
}

/* Names are sorted in both. */
static int check_shards(const struct reader_dataset *dataset, const struct mds_index *index,
			struct diag *diag)
{
	const struct shard_names *names = &((const struct shards *)dataset->source)->names;
	int r = 0;

	for (size_t i = 0; i < index->n && !r; i++)
		r = check_shard(dataset, &index->shard[i], diag);
	for (size_t i = 0; i < names->n && !r; i++)
		if (i >= index->n || strcmp(names->name[i], index->shard[i].name) != 0)
			r = refuse_shard(dataset, names->name[i],
					 "is there, but " MDS_INDEX " does not name it (once)",
					 diag);
	return r;
}

/* May so much be taken beside the shards' names? */
static bool takes(const struct reader_dataset *dataset, const struct scan_progress *progress,
		  uint64_t bytes)
{
	return scan_takes(progress, ((const struct shards *)dataset->source)->names.bytes + bytes);
}

/* Its text; 0 and NULL where there is none. */
static int read_index(const struct reader_dataset *dataset, const struct scan_progress *progress,
		      char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd =
	    openat(dataset->root_fd, MDS_INDEX, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	if ((uint64_t)st.st_size > MDS_MOST_TEXT)
		return -EFBIG;
	if (!takes(dataset, progress, (uint64_t)st.st_size))
		return DATASET_E_ROOM;
	text = malloc((size_t)st.st_size);
	if (!text)
		return -ENOMEM;
	r = base_read_at(fd, text, (uint64_t)st.st_size, 0);
	if (r)
		return r;
	*ret = base_take_ptr(text);
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* Of one that is MDS' own; another one has nothing to say. ret->n 0: there is none. */
static int load_index(const struct reader_dataset *dataset, const struct scan_progress *progress,
		      struct mds_index *ret, struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	struct diag why = {.text = ""};
	size_t size = 0;
	int r = read_index(dataset, progress, &text, &size);

	*ret = (struct mds_index){.n = 0};
	if (r == DATASET_E_ROOM)
		return r;
	if (!r && text && !takes(dataset, progress, mds_index_weight(text, size)))
		return DATASET_E_ROOM;
	if (!r && text)
		r = mds_index_parse(text, size, ret, &why);
	if (r == MDS_E_BAD)
		return refuse(dataset, why.text, diag);
	if (r < 0)
		diag_set(diag, "cannot read " MDS_INDEX " of the dataset: %s", strerror(-r));
	else if (ret->n)
		qsort(ret->shard, ret->n, sizeof(*ret->shard), compare);
	return r == MDS_E_NONE ? 0 : r;
}

/* ---- the kind ---- */

static int mds_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct diag *diag)
{
	struct mds_index index = {.n = 0};
	int r = source_shards_probe(dataset, progress, diag);

	if (r || !dataset->is_folder || dataset->pattern)
		return r;
	r = load_index(dataset, progress, &index, diag);
	if (!r && index.n)
		r = check_shards(dataset, &index, diag);
	mds_index_fini(&index);
	return r;
}

/* Its name tells it: what it begins with might be anything's. */
static bool mds_is_shard(const uint8_t *head, size_t size)
{
	(void)head;
	(void)size;
	return false;
}

static const struct source_shards mds_shards = {
    .what = "MDS shards",
    .suffixes = ".mds\0",
    .compressed = ".mds.zstd\0.mds.zst\0.mds.gz\0.mds.br\0.mds.bz2\0.mds.snappy\0",
    .is_shard = mds_is_shard,
    .scan = &scan_mds,
    .empty = "they have no sample",
};

const struct source_ops source_mds = {
    .name = "mds",
    .kind = INDEX_OF_MDS,
    .shards = &mds_shards,
    .options = "image\0label\0columns\0",
    .probe = mds_probe,
    .index = source_shards_index,
    .read = source_shards_read,
    .most = source_direct_most,
    .many = source_direct_many,
    .close = source_shards_close,
};
