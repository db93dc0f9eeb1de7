/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading a converted data set.
 *
 * Everything is read with pread(), nothing is mapped: a file that is cut while it is mapped ends the
 * process that looks at it, and the reader serves all of a user's data. The head's numbers make up
 * exactly the file's length. The starts are in memory (a byte for eight samples), rise, and end before
 * the index; the index goes to a memfd, as that of a folder that was just listed, and is checked there by
 * the same code. So a place is only ever within the samples, whoever wrote the numbers, and whether it is
 * the right one the checksum of the sample says.
 *
 * A length is a claim, too: a file with holes has any, and takes no disk. So no memory is taken for what was
 * not read yet, and reading ends at the first piece that nobody stored. Starts are never 0. An index has no
 * OADS_DENSE zeros in a row: a sample has its checksum and its name in it, starts of names rise, and what
 * may be 0 lies between. A hole is larger than that on any file system, so memory is taken for bytes that are
 * there, once each. Rejected: to ask the file system (st_blocks, SEEK_HOLE), which says less than is there where it
 * compresses, and what it likes on a network; sums of the index, which a forger computes for zeros, too.
 *
 * A sample's bytes are checked after they were read, against the checksum in the index; then the file's size
 * and time of change against those that it had when it was opened, as a folder's file is. Both have
 * their use: a file that is touched or written to has changed, as a folder would have, and a disk that
 * gives other bytes than were written changes no time.
 *
 * The descriptor keeps the file that was opened: another one that takes its name later is another data
 * set, and harms nobody who reads this one.
 *
 * Rejected: a place and a checksum of its own for each sample beside the index (16 bytes a sample that
 * nobody needs, and two things that may disagree).
 */

#include "storage/oads.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/index.h"

#define OADS_STEP (UINT64_C(8) << 20) /* bytes that are read between two looks at progress */
#define OADS_DENSE 512                /* bytes of an index, not all of them 0 */
#define OADS_TRIES 3
#define OADS_MOST_BYTES (UINT64_C(1) << 56)

struct oads {
	int fd;                    /* borrowed */
	struct oads_reader reader; /* or zeros */
	struct oads_head head;
	uint64_t *start; /* owned; [groups + 1], the last is the end of the samples */
	int64_t mtime_ns;
};

/* 0, OADS_E_CHANGED at the end of the file, or negative errno. */
static int read_at(const struct oads *oads, void *to, uint64_t bytes, uint64_t at)
{
	const struct oads_reader *reader = &oads->reader;
	int r = reader->read ? reader->read(reader->arg, to, bytes, at)
			     : base_read_at(oads->fd, to, bytes, at);

	return r == -ENODATA ? OADS_E_CHANGED : r;
}

/* As read_at(), and again after a pause where a network file system may have failed in passing. */
static int read_again(const struct oads *oads, void *to, uint64_t bytes, uint64_t at)
{
	int r = read_at(oads, to, bytes, at);

	for (int i = 0; (r == -EIO || r == -ESTALE) && i < OADS_TRIES; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		r = read_at(oads, to, bytes, at);
	}
	return r;
}

/* ---- opening ---- */

static int refuse(const char *name, const char *what, struct diag *diag)
{
	return diag_fail(
	    diag, OADS_E_BAD,
	    "\"%s\" is no whole converted data set: %s; access-ctl convert --check says what "
	    "is damaged, access-ctl convert makes it anew from the folder",
	    BASE_QUOTED(name, 256), what);
}

static int refuse_errno(const char *name, int error, struct diag *diag)
{
	return diag_fail(diag, -error, "cannot read the converted data set \"%s\": %s",
			 BASE_QUOTED(name, 256), strerror(error));
}

static uint64_t head_groups(const struct oads_head *head)
{
	return (head->n_samples + OADS_GROUP - 1) / OADS_GROUP;
}

/* Where the starts begin; the head's numbers have been seen to be small. */
static uint64_t head_starts(const struct oads_head *head)
{
	return base_align_up(head->index_at + head->index_bytes, OADS_ALIGN);
}

static bool head_is_whole(const struct oads_head *head)
{
	struct oads_head copy = *head;

	copy.head_checksum = 0;
	return hash_checksum(&copy, sizeof(copy)) == head->head_checksum;
}

static bool head_adds_up(const struct oads_head *head, uint64_t bytes)
{
	return head->head_bytes == sizeof(*head) && head->n_samples > 0 &&
	       head->n_samples <= INDEX_MAX_SAMPLES && head->index_at >= OADS_FIRST &&
	       head->index_at % OADS_ALIGN == 0 && head->index_at <= OADS_MOST_BYTES &&
	       head->index_bytes >= sizeof(struct index_head) &&
	       head->index_bytes <= OADS_MOST_BYTES && head->n_formed <= head->n_samples &&
	       head->bytes == bytes && head_starts(head) + 8 * (head_groups(head) + 1) == bytes;
}

static int head_check(const struct oads_head *head, uint64_t bytes, const char *name,
		      struct diag *diag)
{
	char newer[160];

	if (head->magic != OADS_MAGIC)
		return OADS_E_NONE;
	if (!head_is_whole(head))
		return refuse(name, "the checksum of its head is wrong", diag);
	if (head->version != OADS_VERSION || head->forms != OADS_FORMS) {
		snprintf(newer, sizeof(newer),
			 "it has version %u with stored forms of version %u, this is for %u and %u",
			 head->version, head->forms, OADS_VERSION, OADS_FORMS);
		return refuse(name, newer, diag);
	}
	if (head->bytes != bytes)
		return refuse(name, "it is cut, or longer than it was", diag);
	return head_adds_up(head, bytes) ? 0 : refuse(name, "its numbers do not add up", diag);
}

/* Do they rise, from that one to the one before `end`? */
static bool starts_rise(const struct oads *oads, uint64_t from, uint64_t end)
{
	uint64_t last = from ? oads->start[from - 1] : OADS_FIRST;

	for (uint64_t i = from; i < end; i++) {
		if (oads->start[i] < last || oads->start[i] % OADS_ALIGN)
			return false;
		last = oads->start[i];
	}
	return last <= oads->head.index_at;
}

static bool starts_are_whole(const struct oads *oads)
{
	const uint64_t groups = head_groups(&oads->head);

	return hash_checksum(oads->start, 8 * (groups + 1)) == oads->head.starts_checksum &&
	       oads->start[0] == OADS_FIRST && oads->start[groups] == oads->head.index_at;
}

static uint64_t starts_bytes(const struct oads *oads)
{
	return 8 * (head_groups(&oads->head) + 1);
}

static int starts_read(struct oads *oads, const char *name, struct diag *diag)
{
	const uint64_t bytes = starts_bytes(oads);
	bool is_good = true;

	oads->start = malloc(bytes);
	if (!oads->start)
		return refuse_errno(name, ENOMEM, diag);
	for (uint64_t at = 0, step; is_good && at < bytes; at += step) {
		int r;

		step = BASE_MIN(bytes - at, OADS_STEP);
		r = read_again(oads, oads->start + at / 8, step, head_starts(&oads->head) + at);
		if (r < 0)
			return refuse_errno(name, -r, diag);
		is_good = !r && starts_rise(oads, at / 8, (at + step) / 8);
	}
	if (!is_good || !starts_are_whole(oads))
		return refuse(name, "the places of its samples are damaged", diag);
	return 0;
}

static int open_all(struct oads *oads, const char *name, const struct scan_progress *progress,
		    struct diag *diag)
{
	struct stat st;
	int r;

	if (fstat(oads->fd, &st) < 0)
		return refuse_errno(name, errno, diag);
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(oads->head))
		return OADS_E_NONE;
	oads->mtime_ns = base_time_ns(&st.st_mtim);
	r = read_again(oads, &oads->head, sizeof(oads->head), 0);
	if (r < 0)
		return refuse_errno(name, -r, diag);
	r = r ? OADS_E_NONE : head_check(&oads->head, (uint64_t)st.st_size, name, diag);
	if (!r && !scan_takes(progress, starts_bytes(oads)))
		return DATASET_E_ROOM;
	return r ? r : starts_read(oads, name, diag);
}

int oads_open(int fd, const char *name, const struct scan_progress *progress, struct oads **ret,
	      struct diag *diag)
{
	return oads_open_from(fd, NULL, name, progress, ret, diag);
}

int oads_open_from(int fd, const struct oads_reader *reader, const char *name,
		   const struct scan_progress *progress, struct oads **ret, struct diag *diag)
{
	struct oads *oads = calloc(1, sizeof(*oads));
	int r;

	if (!oads)
		return refuse_errno(name, ENOMEM, diag);
	oads->fd = fd;
	if (reader)
		oads->reader = *reader;
	r = open_all(oads, name, progress, diag);
	if (r) {
		oads_close(oads);
		return r;
	}
	*ret = oads;
	return 0;
}

void oads_close(struct oads *oads)
{
	if (!oads)
		return;
	free(oads->start);
	free(oads);
}

const struct oads_head *oads_head(const struct oads *oads)
{
	return &oads->head;
}

int oads_check(const struct oads *oads)
{
	struct stat st;

	if (fstat(oads->fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size == oads->head.bytes &&
		       base_time_ns(&st.st_mtim) == oads->mtime_ns
		   ? 0
		   : OADS_E_CHANGED;
}

/* ---- the index ---- */

/* Is there a hole in these bytes of an index, or what only looks like one? */
static bool has_hole(const uint8_t *bytes, uint64_t size)
{
	for (uint64_t at = 0; at + OADS_DENSE <= size; at += OADS_DENSE)
		if (bytes[at] == 0 && memcmp(bytes + at, bytes + at + 1, OADS_DENSE - 1) == 0)
			return true;
	return false;
}

/* One piece of it, by way of `piece`. */
static int index_copy(const struct oads *oads, int to, uint8_t *piece, uint64_t bytes, uint64_t at)
{
	int r = read_again(oads, piece, bytes, oads->head.index_at + at);

	if (r)
		return r;
	return has_hole(piece, bytes) ? OADS_E_BAD : base_write_at(to, piece, bytes, at);
}

static int index_read(const struct oads *oads, const struct scan_progress *progress, int to)
{
	const uint64_t bytes = oads->head.index_bytes, n = oads->head.n_samples;
	_cleanup_free_ uint8_t *piece = malloc(BASE_MIN(bytes, OADS_STEP));

	if (!piece)
		return -ENOMEM;
	for (uint64_t at = 0, step; at < bytes; at += step) {
		int r;

		step = BASE_MIN(bytes - at, OADS_STEP);
		if (progress && progress->cancelled(progress->arg))
			return DATASET_E_CANCELLED;
		r = index_copy(oads, to, piece, step, at);
		if (r)
			return r;
		if (progress && bytes > OADS_STEP)
			progress->tell(progress->arg, 1,
				       (uint64_t)((double)(at + step) / (double)bytes * (double)n));
	}
	return 0;
}

int oads_index(const struct oads *oads, const struct scan_progress *progress, int *ret_fd)
{
	_cleanup_close_ int fd = base_memfd("access-index", 0);
	int r = fd < 0 ? fd : 0;

	if (!scan_takes(progress, starts_bytes(oads) + oads->head.index_bytes))
		return DATASET_E_ROOM;
	r = r ? r : index_read(oads, progress, fd);
	if (r)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	*ret_fd = base_take_fd(&fd);
	return 0;
}

bool oads_is_index(const struct oads *oads, const struct dataset *index)
{
	return dataset_count(index) == oads->head.n_samples &&
	       memcmp(dataset_version(index), &oads->head.dataset, sizeof(struct hash_id)) == 0;
}

/* ---- samples ---- */

bool oads_place(const struct oads *oads, const struct dataset *index, uint64_t sample,
		uint64_t *ret_at)
{
	const uint64_t group = sample / OADS_GROUP, end = oads->start[group + 1];
	uint64_t at = oads->start[group];

	for (uint64_t i = group * OADS_GROUP; i < sample; i++)
		at += base_align_up(dataset_size_of(index, i), OADS_ALIGN);
	if (at > end || dataset_size_of(index, sample) > end - at)
		return false;
	*ret_at = at;
	return true;
}

int oads_read(const struct oads *oads, const struct dataset *index, uint64_t sample,
	      uint8_t *buffer)
{
	const uint32_t size = dataset_size_of(index, sample);
	uint64_t at;
	int r, changed;

	if (!*dataset_name_of(index, sample) || !oads_place(oads, index, sample, &at))
		return OADS_E_INDEX;
	r = read_at(oads, buffer, size, at);
	changed = oads_check(oads);
	if (changed)
		return changed;
	return r ? r : oads_check_bytes(index, sample, buffer);
}

int oads_check_bytes(const struct dataset *index, uint64_t sample, const uint8_t *buffer)
{
	return hash_checksum(buffer, dataset_size_of(index, sample)) ==
		       (uint64_t)dataset_mtime_of(index, sample)
		   ? 0
		   : OADS_E_DAMAGED;
}

int64_t oads_mtime_ns(const struct oads *oads)
{
	return oads->mtime_ns;
}
