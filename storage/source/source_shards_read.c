/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading a sample that lies in a shard: pread, then fstat.
 *
 * Shards stay open, SHARDS_OPEN of a data set beside those that are in use; of more, the one goes that was used longest
 * ago, as where there are no more descriptors. The lock covers the table and is held over no system call. A shard that others read is not
 * closed; where all are read, one more is opened for the sample alone.
 *
 * A shard is checked behind each sample, by size and time, as a file is (source_folder.c). One that is open and has
 * no name any more, or that its server knows no more (ESTALE), was replaced or removed: it is opened anew by its name, and what has that name is checked. A
 * shard that differs is not one bad sample: the data set has changed.
 *
 * Samples of shards in an object store come by source_sample_read(), which asks here where they are.
 */

#include "storage/reader_parts.h"
#include "storage/source/source_bucket.h"
#include "storage/source/source_shards.h"
#include "storage/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHARDS_OPEN 128 /* beside those that threads have in use */
#define SHARDS_SHARE 4  /* one of so many descriptors of the process, at most */

struct shard_file {
	uint64_t shard;
	bool is_direct; /* the descriptor reads past the page cache */
	int fd;         /* owned; -1: none */
	unsigned users;
	uint64_t used;           /* when, by the count of uses */
	struct shard_file *next; /* of those with the same remainder */
};

struct shard_files {
	pthread_mutex_t lock;
	uint64_t uses;
	size_t n;
	struct shard_file **first; /* [n]: by the remainder of a shard's number */
	struct shard_file *file;   /* [n] */
};

static unsigned threads = 1; /* written before any data set is opened */

void source_shards_threads(unsigned n)
{
	threads = n;
}

static size_t most_open(size_t wanted)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return SHARDS_OPEN;
	return BASE_MAX((size_t)BASE_MIN(files.rlim_cur / SHARDS_SHARE, (rlim_t)wanted), 1);
}

struct shard_files *source_shard_files_new(bool is_direct)
{
	const size_t n = most_open(SHARDS_OPEN + (size_t)threads * (is_direct ? DIRECT_DEEP : 1));
	struct shard_files *files =
	    calloc(1, sizeof(*files) + n * (sizeof(*files->file) + sizeof(*files->first)));

	if (!files)
		return NULL;
	pthread_mutex_init(&files->lock, NULL);
	files->n = n;
	files->file = (struct shard_file *)(files + 1);
	files->first = (struct shard_file **)(files->file + n);
	for (size_t i = 0; i < n; i++)
		files->file[i].fd = -1;
	return files;
}

void source_shard_files_free(struct shard_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->n; i++)
		base_close(&files->file[i].fd);
	pthread_mutex_destroy(&files->lock);
	free(files);
}

/* ---- the table ---- */

static void use_locked(struct shard_files *files, struct shard_file *file)
{
	file->users++;
	file->used = ++files->uses;
}

static struct shard_file *find_locked(const struct shard_files *files, uint64_t shard,
				      bool is_direct)
{
	struct shard_file *file = files->first[shard % files->n];

	while (file && (file->shard != shard || file->is_direct != is_direct))
		file = file->next;
	return file;
}

/* Nobody finds it any more. */
static void unlink_locked(struct shard_files *files, const struct shard_file *file)
{
	struct shard_file **at = &files->first[file->shard % files->n];

	while (*at && *at != file)
		at = &(*at)->next;
	if (*at)
		*at = file->next;
}

static void link_locked(struct shard_files *files, struct shard_file *file)
{
	struct shard_file **first = &files->first[file->shard % files->n];

	file->next = *first;
	*first = file;
}

/* An open one, which is in use then; NULL: it is to be opened. */
static struct shard_file *take_open(struct shard_files *files, uint64_t shard, bool is_direct)
{
	struct shard_file *file;

	BASE_HOLD(&files->lock);
	file = find_locked(files, shard, is_direct);
	if (file)
		use_locked(files, file);
	return file;
}

/* That nobody uses, and that is open if such a one is asked for; NULL: there is none. */
static struct shard_file *oldest_locked(struct shard_files *files, bool is_open)
{
	struct shard_file *oldest = NULL;

	for (size_t i = 0; i < files->n; i++) {
		struct shard_file *file = &files->file[i];

		if (!file->users && (!is_open || file->fd >= 0) &&
		    (!oldest || file->used < oldest->used))
			oldest = file;
	}
	return oldest;
}

/* The descriptor is the table's from now on, if there is room in it and no other thread
 * has put the shard there meanwhile; else it stays the caller's. */
static struct shard_file *put_open(struct shard_files *files, uint64_t shard, bool is_direct,
				   int *fd)
{
	struct shard_file *oldest = NULL;
	int old_fd = -1;

	pthread_mutex_lock(&files->lock);
	if (!find_locked(files, shard, is_direct))
		oldest = oldest_locked(files, false);
	if (oldest) {
		unlink_locked(files, oldest);
		old_fd = oldest->fd;
		oldest->fd = base_take_fd(fd);
		oldest->shard = shard;
		oldest->is_direct = is_direct;
		link_locked(files, oldest);
		use_locked(files, oldest);
	}
	pthread_mutex_unlock(&files->lock);
	base_close(&old_fd);
	return oldest;
}

/* Who used a stale one last closes it, so that its bytes on the disk are free. */
void source_shard_release(struct shard_files *files, struct shard_file *file, bool is_stale)
{
	int fd = -1;

	pthread_mutex_lock(&files->lock);
	file->users--;
	if (is_stale) {
		unlink_locked(files, file);
		file->shard = UINT64_MAX;
	}
	if (!file->users && file->shard == UINT64_MAX)
		fd = base_take_fd(&file->fd);
	pthread_mutex_unlock(&files->lock);
	base_close(&fd);
}

/* ---- a sample ---- */

static void say_changed(const struct shard_read *read, const char *text)
{
	reader_outcome_set(read->outcome, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL, text);
}

static void say_errno(const struct shard_read *read, enum layout_fail stage, int error)
{
	reader_outcome_set(read->outcome, stage, error, strerror(error));
}

static void settle(const struct shard_read *read)
{
	const struct source_shards *kind = read->dataset->ops->shards;

	if (kind->scan->join && read->buffer)
		kind->scan->join(read->buffer, read->bytes, read->place);
	read->outcome->stage = LAYOUT_FAIL_NONE;
}

bool source_shard_judge(const struct shard_read *read, int fd, int r)
{
	struct stat st;
	const int error = fstat(fd, &st) < 0 ? errno : 0;

	if ((r == -ESTALE || error == ESTALE) && read->has_name)
		return false;
	if (error)
		say_errno(read, LAYOUT_FAIL_READ, error);
	else if (st.st_nlink == 0 && read->has_name)
		return false;
	else if (!walk_is_same(&st, read->is.bytes, read->is.mtime_ns))
		say_changed(read, "its shard was written to since it was listed");
	else if (r == -ENODATA)
		reader_outcome_set(read->outcome, LAYOUT_FAIL_READ, EIO,
				   "its shard gave fewer bytes than its size");
	else if (r)
		say_errno(read, LAYOUT_FAIL_READ, -r);
	else
		settle(read);
	return true;
}

static bool read_from(const struct shard_read *read, int fd)
{
	const int r = read->buffer ? base_read_at(fd, read->buffer, read->bytes, read->at) : 0;

	return source_shard_judge(read, fd, r);
}

/* The one that was used longest ago goes. false: none is open that nobody uses. */
static bool close_oldest(struct shard_files *files)
{
	struct shard_file *oldest;
	int fd = -1;

	pthread_mutex_lock(&files->lock);
	oldest = oldest_locked(files, true);
	if (oldest) {
		unlink_locked(files, oldest);
		oldest->shard = UINT64_MAX;
		fd = base_take_fd(&oldest->fd);
	}
	pthread_mutex_unlock(&files->lock);
	base_close(&fd);
	return oldest;
}

/* Where the process, or the node, has no descriptor left, those of shards that nobody uses are given up for it: more than one
 * where other threads are quicker. */
static int open_by_name(const struct shard_read *read, struct shard_files *files)
{
	int fd;

	do
		fd = source_open_file(read->dataset, read->root_fd, read->is.name);
	while ((fd == -EMFILE || fd == -ENFILE) && close_oldest(files));
	return fd;
}

static int open_shard(const struct shard_read *read, struct shard_files *files)
{
	const int fd = open_by_name(read, files);

	if (fd >= 0)
		return fd;
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ESTALE)
		say_changed(read, "its shard was removed since it was listed");
	else
		say_errno(read, LAYOUT_FAIL_OPEN, -fd);
	return -1;
}

/* By its name; if it is of the root that is in use, it stays open. false: it went meanwhile. */
static bool read_anew(const struct shard_read *read, struct shard_files *files)
{
	_cleanup_close_ int fd = open_shard(read, files);
	struct shard_file *file = NULL;

	if (fd < 0)
		return true; /* why is said */
	if (!read_from(read, fd))
		return false;
	if (read->outcome->stage == LAYOUT_FAIL_NONE && read->root_fd == read->dataset->root_fd)
		file = put_open(files, read->shard, false, &fd);
	if (file)
		source_shard_release(files, file, false);
	return true;
}

static void read_below(const struct shard_read *read, struct shard_files *files)
{
	struct shard_file *file =
	    read->root_fd == read->dataset->root_fd ? take_open(files, read->shard, false) : NULL;
	bool is_read = false;

	if (file) {
		is_read = read_from(read, file->fd);
		source_shard_release(files, file, !is_read);
	}
	for (unsigned i = 0; i < 2 && !is_read; i++)
		is_read = read_anew(read, files);
	if (!is_read)
		say_changed(read, "its shard was removed since it was listed");
}

bool source_shard_place(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *outcome, struct shard_read *ret)
{
	const struct dataset *index = dataset->index;
	struct shard_read read = {
	    .dataset = dataset,
	    .root_fd = root_fd,
	    .has_name = dataset->is_folder,
	    .shard = dataset_shard_with(index, sample),
	    .place = dataset_at_of(index, sample),
	    .bytes = dataset_size_of(index, sample),
	    .buffer = buffer,
	    .outcome = outcome,
	};

	dataset_shard_of(index, read.shard, &read.is);
	read.at = source_shards_at(dataset->ops->shards, read.place);
	*ret = read;
	if (*read.is.name && read.at <= read.is.bytes && read.bytes <= read.is.bytes - read.at)
		return true;
	say_changed(&read, READ_INDEX_DAMAGED);
	return false;
}

int source_shards_place(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			struct source_range *ret)
{
	struct reader_outcome outcome;
	struct shard_read read;

	if (!source_shard_place(dataset, dataset->root_fd, sample, buffer, &outcome, &read))
		return DATASET_E_BAD;
	*ret = (struct source_range){.name = read.has_name ? read.is.name : NULL,
				     .size = read.is.bytes,
				     .mtime_ns = read.is.mtime_ns,
				     .at = read.at,
				     .bytes = read.bytes,
				     .to = buffer};
	return 0;
}

void source_shards_settle(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			  struct reader_outcome *ret)
{
	const struct source_shards *kind = dataset->ops->shards;

	if (kind->scan->join)
		kind->scan->join(buffer, dataset_size_of(dataset->index, sample),
				 dataset_at_of(dataset->index, sample));
	ret->stage = LAYOUT_FAIL_NONE;
}

/* It stays the table's own: where that has no place, nobody has it. */
struct shard_file *source_shard_take_direct(const struct shard_read *read, int *ret_fd)
{
	const struct shards *shards = read->dataset->source;
	struct shard_file *file = take_open(shards->files, read->shard, true);
	_cleanup_close_ int fd = -1;

	if (!file) {
		fd = open_by_name(read, shards->files);
		if (fd >= 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT) == 0)
			file = put_open(shards->files, read->shard, true, &fd);
		if (!file) /* another thread may have opened it meanwhile */
			file = take_open(shards->files, read->shard, true);
	}
	if (file)
		*ret_fd = file->fd;
	return file;
}

void source_shards_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *ret)
{
	const struct shards *shards = dataset->source;
	struct direct_meter meter;
	struct shard_read read;
	bool is_measured;

	if (!source_shard_place(dataset, root_fd, sample, buffer, ret, &read))
		return;
	is_measured = buffer && source_direct_begin(shards->direct, &meter);
	if (read.has_name)
		read_below(&read, shards->files);
	else
		read_from(&read, root_fd);
	if (is_measured)
		source_direct_end(shards->direct, &meter,
				  ret->stage == LAYOUT_FAIL_NONE ? read.bytes : 0);
}
