/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading one file: open, pread, fstat, close, and no memory of its own; or one sample of a converted data
 * set (oads.c), in which a file is open and a sample has a checksum.
 *
 * The file is checked after the bytes were read, not before. Whoever writes to it moves its mtime
 * first, so bytes that are followed by the mtime of the index are bytes of the version that was
 * listed; a check before the read would let a file through that is rewritten in between. Nothing
 * but the announced number of bytes is read meanwhile, and O_NONBLOCK keeps a FIFO that took the
 * file's place from holding the thread.
 *
 * Errors that network file systems give once and not again (ESTALE after a server's fail-over, EIO)
 * are tried again twice, from the open, after a short pause. All others are the sample's outcome.
 */

#include "storage/reader_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void outcome_set(struct reader_outcome *ret, enum layout_fail stage, int code,
			const char *text)
{
	ret->stage = stage;
	ret->code = code;
	snprintf(ret->text, sizeof(ret->text), "%s", text);
}

static int open_once(const struct reader_dataset *dataset, const char *name, int more)
{
	int fd;

	do
		fd = openat(dataset->root_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | more);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

static int open_file(const struct reader_dataset *dataset, const char *name)
{
	int fd = open_once(dataset, name, O_NONBLOCK | (dataset->no_atime ? O_NOATIME : 0));

	if (fd == -EPERM && dataset->no_atime) /* a file of another owner */
		fd = open_once(dataset, name, O_NONBLOCK);
	if (fd == -EAGAIN) /* a lease is being broken: wait for it */
		fd = open_once(dataset, name, 0);
	return fd;
}

/* Bytes read, fewer than size only at the end of the file; or negative errno. */
static int64_t read_all(int fd, uint8_t *buffer, uint32_t size)
{
	uint32_t got = 0;

	while (got < size) {
		const ssize_t r = pread(fd, buffer + got, size - got, got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (uint32_t)r;
	}
	return got;
}

static bool file_is_same(const struct stat *st, uint32_t size, int64_t mtime_ns,
			 struct reader_outcome *ret)
{
	char text[sizeof(ret->text)];

	if (!S_ISREG(st->st_mode)) {
		outcome_set(ret, LAYOUT_FAIL_CHANGED, 0, "is no regular file any more");
		return false;
	}
	if (st->st_size != (off_t)size) {
		snprintf(text, sizeof(text), "had %u bytes when listed, has %lld", size,
			 (long long)st->st_size);
		outcome_set(ret, LAYOUT_FAIL_CHANGED, 0, text);
		return false;
	}
	if ((int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec != mtime_ns) {
		outcome_set(ret, LAYOUT_FAIL_CHANGED, 0, "was written to since it was listed");
		return false;
	}
	return true;
}

static void judge_open(int error, struct reader_outcome *ret)
{
	if (error == ENOENT || error == ENOTDIR)
		outcome_set(ret, LAYOUT_FAIL_CHANGED, error, "was removed since it was listed");
	else
		outcome_set(ret, LAYOUT_FAIL_OPEN, error, strerror(error));
}

static void read_once(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		      struct reader_outcome *ret)
{
	const uint32_t size = dataset_size_of(dataset->index, sample);
	const int fd = open_file(dataset, dataset_name_of(dataset->index, sample));
	struct stat st;
	int64_t got;

	if (fd < 0) {
		judge_open(-fd, ret);
		return;
	}
	got = read_all(fd, buffer, size);
	if (fstat(fd, &st) < 0)
		outcome_set(ret, LAYOUT_FAIL_READ, errno, strerror(errno));
	else if (!file_is_same(&st, size, dataset_mtime_of(dataset->index, sample), ret))
		; /* said there, and why reading failed no longer matters */
	else if (got < 0)
		outcome_set(ret, LAYOUT_FAIL_READ, (int)-got, strerror((int)-got));
	else if (got < size)
		outcome_set(ret, LAYOUT_FAIL_READ, EIO, "gave fewer bytes than its size");
	else
		ret->stage = LAYOUT_FAIL_NONE;
	close(fd);
}

static void judge_stored(int r, struct reader_outcome *ret)
{
	if (r < 0)
		outcome_set(ret, LAYOUT_FAIL_READ, -r, strerror(-r));
	else if (r == OADS_E_DAMAGED)
		outcome_set(ret, LAYOUT_FAIL_READ, EBADMSG,
			    "its checksum is wrong: damaged on the disk");
	else if (r == OADS_E_INDEX)
		outcome_set(ret, LAYOUT_FAIL_CHANGED, 0, "its entry in the index is damaged");
	else if (r)
		outcome_set(ret, LAYOUT_FAIL_CHANGED, 0,
			    "the file was written to since it was opened");
	else
		ret->stage = LAYOUT_FAIL_NONE;
}

void reader_read_sample(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			struct reader_outcome *ret)
{
	static const long pause_ns[] = {20000000, 200000000};

	for (size_t i = 0;; i++) {
		if (dataset->oads)
			judge_stored(oads_read(dataset->oads, dataset->index, sample, buffer), ret);
		else
			read_once(dataset, sample, buffer, ret);
		if (ret->stage == LAYOUT_FAIL_NONE || (ret->code != EIO && ret->code != ESTALE) ||
		    i == BASE_ARRAY_LEN(pause_ns))
			return;
		nanosleep(&(struct timespec){.tv_nsec = pause_ns[i]}, NULL);
	}
}

void reader_check_sample(const struct reader_dataset *dataset, uint64_t sample,
			 struct reader_outcome *ret)
{
	struct stat st;
	int r;

	if (dataset->oads) {
		judge_stored(oads_check(dataset->oads), ret);
		return;
	}
	do
		r = fstatat(dataset->root_fd, dataset_name_of(dataset->index, sample), &st, 0);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		judge_open(errno, ret);
	else if (file_is_same(&st, dataset_size_of(dataset->index, sample),
			      dataset_mtime_of(dataset->index, sample), ret))
		ret->stage = LAYOUT_FAIL_NONE;
}
