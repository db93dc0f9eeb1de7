/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A folder of pictures: a sample is a file. Opening is a listing (scan.c), reading is open, pread, fstat, close.
 *
 * The file is checked after the bytes were read, not before. Whoever writes to it moves its mtime
 * first, so bytes that are followed by the mtime of the index are bytes of the version that was
 * listed; a check before the read would let a file through that is rewritten in between. Nothing
 * but the announced number of bytes is read meanwhile, and a FIFO that took the
 * file's place does not hold the thread (source_open_file()).
 */

#include "storage/openness.h"
#include "storage/reader_parts.h"
#include "storage/source/source_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

static int folder_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct diag *diag)
{
	(void)progress;
	(void)diag;
	return dataset->is_folder && !dataset->pattern ? 0 : SOURCE_E_NONE;
}

/* true: the stored index is good and its folders have not changed. */
static bool folder_use_stored(struct reader_dataset *dataset)
{
	struct diag diag;

	if (!source_map_stored(dataset))
		return false;
	if (!scan_verify(dataset->root_fd, dataset->path, dataset->index, &diag) &&
	    (dataset->how != READER_HOW_OPEN_ONLY ||
	     openness_of_index(dataset->root_fd, dataset->index)))
		return true;
	source_unmap(dataset);
	return false;
}

static int folder_index(struct reader_dataset *dataset, unsigned threads,
			const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	int r;

	if (folder_use_stored(dataset))
		return 0;
	r = scan_build(dataset->root_fd, dataset->path, threads, progress, ret_fd, diag);
	return r ? r : source_map_new(dataset, *ret_fd, diag);
}

/* ---- reading ---- */

static bool file_is_same(const struct stat *st, uint32_t size, int64_t mtime_ns,
			 struct reader_outcome *ret)
{
	char text[sizeof(ret->text)];

	if (!S_ISREG(st->st_mode)) {
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, 0, "is no regular file any more");
		return false;
	}
	if (st->st_size != (off_t)size) {
		snprintf(text, sizeof(text), "had %u bytes when listed, has %lld", size,
			 (long long)st->st_size);
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, 0, text);
		return false;
	}
	if ((int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec != mtime_ns) {
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, 0,
				   "was written to since it was listed");
		return false;
	}
	return true;
}

static void judge_open(int error, struct reader_outcome *ret)
{
	if (error == ENOENT || error == ENOTDIR)
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, error,
				   "was removed since it was listed");
	else
		reader_outcome_set(ret, LAYOUT_FAIL_OPEN, error, strerror(error));
}

/* The check alone. */
static void check_below(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			struct reader_outcome *ret)
{
	struct stat st;
	int r;

	do
		r = fstatat(root_fd, dataset_name_of(dataset->index, sample), &st, 0);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		judge_open(errno, ret);
	else if (file_is_same(&st, dataset_size_of(dataset->index, sample),
			      dataset_mtime_of(dataset->index, sample), ret))
		ret->stage = LAYOUT_FAIL_NONE;
}

static void read_below(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
		       uint8_t *buffer, struct reader_outcome *ret)
{
	const uint32_t size = dataset_size_of(dataset->index, sample);
	const int fd =
	    source_open_file(root_fd, dataset_name_of(dataset->index, sample), dataset->no_atime);
	struct stat st;
	int r;

	if (fd < 0) {
		judge_open(-fd, ret);
		return;
	}
	r = base_read_at(fd, buffer, size, 0);
	if (fstat(fd, &st) < 0)
		reader_outcome_set(ret, LAYOUT_FAIL_READ, errno, strerror(errno));
	else if (!file_is_same(&st, size, dataset_mtime_of(dataset->index, sample), ret))
		; /* said there, and why reading failed no longer matters */
	else if (r == -ENODATA)
		reader_outcome_set(ret, LAYOUT_FAIL_READ, EIO, "gave fewer bytes than its size");
	else if (r)
		reader_outcome_set(ret, LAYOUT_FAIL_READ, -r, strerror(-r));
	else
		ret->stage = LAYOUT_FAIL_NONE;
	close(fd);
}

static void folder_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *ret)
{
	if (buffer)
		read_below(dataset, root_fd, sample, buffer, ret);
	else
		check_below(dataset, root_fd, sample, ret);
}

const struct source_ops source_folder = {
    .name = "folder",
    .probe = folder_probe,
    .index = folder_index,
    .read = folder_read,
};
