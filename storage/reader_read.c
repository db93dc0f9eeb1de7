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
 *
 * Names are looked up below the root that was opened. Where a data set was made anew (removed and copied back), that
 * folder is empty for ever, and who has the path now is another one. So what differs or is gone is
 * looked for once more below the folder that has the path now. Where the sample there is the one
 * of the index, that folder takes the root's place, in one step for all threads: dup3() exchanges what the descriptor
 * means. Names, sizes and times are a data set's version, and each sample is compared with them when it is read, so the
 * job goes on with what it asked for; what differs there has changed.
 *
 * Not so where users share: whoever joined has seen by a reader of his own that he may open the root, that root.
 * Who opens the path then gets another stream (daemon/serve/source.c). A wrapped data set has no files, a converted one keeps
 * its file.
 */

#include "storage/reader_parts.h"

#include "base/log.h"

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

#define READ_INDEX_DAMAGED "its entry in the index is damaged"

static int open_once(int root_fd, const char *name, int more)
{
	int fd;

	do
		fd = openat(root_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | more);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

static int open_file(int root_fd, const char *name, bool no_atime)
{
	int fd = open_once(root_fd, name, O_NONBLOCK | (no_atime ? O_NOATIME : 0));

	if (fd == -EPERM && no_atime) /* a file of another owner */
		fd = open_once(root_fd, name, O_NONBLOCK);
	if (fd == -EAGAIN) /* a lease is being broken: wait for it */
		fd = open_once(root_fd, name, 0);
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

/* Why it differs from the index: damaged entries read as nothing, and stand for more than one file. */
static void judge_changed(const struct reader_dataset *dataset, uint64_t sample,
			  struct reader_outcome *ret)
{
	if (ret->stage == LAYOUT_FAIL_CHANGED && !dataset_has(dataset->index, sample))
		outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL, READ_INDEX_DAMAGED);
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
	    open_file(root_fd, dataset_name_of(dataset->index, sample), dataset->no_atime);
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

/* ---- a root that was made anew ---- */

/* May what is not below the root be below the path? */
static bool may_be_anew(const struct reader_dataset *dataset, const struct reader_outcome *outcome)
{
	return !dataset->is_wrapped && dataset->how == READER_HOW_ALL &&
	       (outcome->stage == LAYOUT_FAIL_CHANGED ||
		(outcome->stage == LAYOUT_FAIL_OPEN && outcome->code == ESTALE));
}

/* Any thread may be using the root meanwhile: it finds the one or the other. */
static void take_root(const struct reader_dataset *dataset, int fd)
{
	struct stat now, root;
	char path[512];

	if (fstat(fd, &now) == 0 && fstat(dataset->root_fd, &root) == 0 &&
	    root.st_dev == now.st_dev && root.st_ino == now.st_ino)
		return; /* another thread was here */
	if (dup3(fd, dataset->root_fd, O_CLOEXEC) >= 0)
		log_line(LOG_LEVEL_INFO, "root-made-anew", "path=\"%s\"",
			 base_quote(dataset->path, path, sizeof(path)));
}

/* buffer: NULL for the check alone. */
static void look_below(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
		       uint8_t *buffer, struct reader_outcome *ret)
{
	if (buffer)
		read_below(dataset, root_fd, sample, buffer, ret);
	else
		check_below(dataset, root_fd, sample, ret);
}

/* Whether path and root are the same is not asked before the second look: another thread may have exchanged
 * the root since the first one. */
static void look_once(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		      struct reader_outcome *ret)
{
	_cleanup_close_ int fd = -1;

	look_below(dataset, dataset->root_fd, sample, buffer, ret);
	if (may_be_anew(dataset, ret))
		fd = open(dataset->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	look_below(dataset, fd, sample, buffer, ret);
	if (ret->stage == LAYOUT_FAIL_NONE)
		take_root(dataset, fd);
}

/* ---- samples ---- */

static void judge_stored(int r, struct reader_outcome *ret)
{
	if (r < 0)
		outcome_set(ret, LAYOUT_FAIL_READ, -r, strerror(-r));
	else if (r == OADS_E_DAMAGED)
		outcome_set(ret, LAYOUT_FAIL_READ, EBADMSG,
			    "its checksum is wrong: damaged on the disk");
	else if (r == OADS_E_INDEX)
		outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL, READ_INDEX_DAMAGED);
	else if (r)
		outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL,
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
			look_once(dataset, sample, buffer, ret);
		judge_changed(dataset, sample, ret);
		if (ret->stage == LAYOUT_FAIL_NONE || (ret->code != EIO && ret->code != ESTALE) ||
		    i == BASE_ARRAY_LEN(pause_ns))
			return;
		nanosleep(&(struct timespec){.tv_nsec = pause_ns[i]}, NULL);
	}
}

void reader_check_sample(const struct reader_dataset *dataset, uint64_t sample,
			 struct reader_outcome *ret)
{
	if (dataset->oads) {
		judge_stored(oads_check(dataset->oads), ret);
		return;
	}
	look_once(dataset, sample, NULL, ret);
	judge_changed(dataset, sample, ret);
}
