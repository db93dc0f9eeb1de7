/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample that is a file: open, pread, fstat, close.
 *
 * The file is checked after the bytes were read, not before. Whoever writes to it moves its mtime
 * first, so bytes that are followed by the mtime of the index are bytes of the version that was
 * listed; a check before the read would let a file through that is rewritten in between. Nothing
 * but the announced number of bytes is read meanwhile, and a FIFO that took the
 * file's place does not hold the thread (source_open_file()).
 *
 * A sample that is an object of a store comes by source_sample_read(), and only whether it has changed is asked here.
 */

#include "storage/reader_parts.h"
#include "storage/source/source_bucket.h"
#include "storage/source/source_kind.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

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
	if (walk_mtime_ns(st) != mtime_ns) {
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
	const int fd = source_open_file(dataset, root_fd, dataset_name_of(dataset->index, sample));
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

int source_file_place(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		      struct source_range *ret)
{
	const uint32_t size = dataset_size_of(dataset->index, sample);

	*ret = (struct source_range){.name = dataset_name_of(dataset->index, sample),
				     .size = size,
				     .mtime_ns = dataset_mtime_of(dataset->index, sample),
				     .bytes = size,
				     .to = buffer};
	return *ret->name ? 0 : DATASET_E_BAD;
}

void source_file_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
		      uint8_t *buffer, struct reader_outcome *ret)
{
	if (buffer)
		read_below(dataset, root_fd, sample, buffer, ret);
	else
		check_below(dataset, root_fd, sample, ret);
}
