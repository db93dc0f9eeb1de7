/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The note of a wrapped data set, and the index that is made of it.
 *
 * Whoever may write to the folder decides what the samples are, so folder and note must belong to the
 * user who reads, and to nobody else: a wrapped data set is private to its user. That also keeps one
 * user's jobs from being led to another's pool.
 *
 * The index has no file to take sizes and times from. All samples have the size of the room that a
 * record may take, and the time is the first part of the data set's name: so another data set is another
 * version, and the same one is the same version wherever and whenever it is wrapped.
 *
 * A note is 64 bytes, and claims as many samples as it likes: how much memory their index takes is computed and
 * asked for before anything is made.
 */

#include "storage/wrapped.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/source/numbered.h"

bool wrapped_note_is_good(const struct wrapped_note *note)
{
	return note->magic == WRAPPED_MAGIC && note->count >= 1 &&
	       note->count <= INDEX_MAX_SAMPLES && note->room >= 1 &&
	       note->room <= WRAPPED_MAX_ROOM && note->workers >= 1 &&
	       note->workers <= WRAPPED_MAX_WORKERS && note->seconds >= 1 &&
	       note->seconds <= WRAPPED_MAX_SECONDS && note->reserved == 0;
}

/* ---- the note ---- */

static int wrapped_refuse(const char *root_name, const char *what, struct diag *diag)
{
	return diag_fail(
	    diag, WRAPPED_E_BAD,
	    "\"%s\" is no wrapped data set of this user's: %s; remove the folder, oneaccess.wrap() "
	    "makes it anew",
	    BASE_QUOTED(root_name, 256), what);
}

bool wrapped_is_own(int fd, mode_t kind)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind && st.st_uid == geteuid() &&
	       (st.st_mode & 022) == 0;
}

int wrapped_open(int root_fd, const char *root_name, struct wrapped_note *ret, struct diag *diag)
{
	_cleanup_close_ int fd =
	    openat(root_fd, WRAPPED_NOTE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct wrapped_note note;

	if (fd < 0 && errno == ENOENT)
		return WRAPPED_E_NONE;
	if (fd < 0)
		return wrapped_refuse(root_name, strerror(errno), diag);
	if (!wrapped_is_own(root_fd, S_IFDIR) || !wrapped_is_own(fd, S_IFREG))
		return wrapped_refuse(root_name, "others may write to it", diag);
	if (base_read_at(fd, &note, sizeof(note), 0) || !wrapped_note_is_good(&note))
		return wrapped_refuse(root_name, "its " WRAPPED_NOTE " is damaged", diag);
	*ret = note;
	return 0;
}

unsigned wrapped_batch(int root_fd)
{
	_cleanup_close_ int fd =
	    openat(root_fd, WRAPPED_NOTE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct wrapped_more more;

	if (fd < 0 || !wrapped_is_own(fd, S_IFREG))
		return 1;
	if (base_read_at(fd, &more, sizeof(more), sizeof(struct wrapped_note)) ||
	    more.magic != WRAPPED_MORE_MAGIC || more.reserved || more.batch < 1 ||
	    more.batch > WRAPPED_MAX_BATCH)
		return 1;
	return more.batch;
}

/* ---- several at a time ---- */

uint64_t wrapped_memory(const struct wrapped_note *note, unsigned batch)
{
	const uint64_t all = batch * base_align_up(note->room, WRAPPED_ALIGN);

	return batch < 2 ? note->room : BASE_MAX(note->room, BASE_MIN(all, WRAPPED_BATCH_BYTES));
}

bool wrapped_place(const struct wrapped_answer *answer, const struct wrapped_note *note,
		   uint64_t memory, uint64_t *at, uint64_t *ret_place)
{
	if (*at > memory || answer->bytes > memory - *at || answer->bytes > note->room) {
		*at = UINT64_MAX;
		return false;
	}
	*ret_place = *at;
	*at = base_align_up(*at + answer->bytes, WRAPPED_ALIGN);
	return true;
}

/* ---- the index ---- */

static int64_t wrapped_time(const struct wrapped_note *note)
{
	int64_t time;

	memcpy(&time, &note->id, sizeof(time));
	return time;
}

int wrapped_index(const struct wrapped_note *note, const struct scan_progress *progress,
		  int *ret_fd)
{
	const struct index_record record = {.mtime_ns = wrapped_time(note), .size = note->room};

	return numbered_index(note->count, &record, "", progress, ret_fd);
}

bool wrapped_is_index(const struct wrapped_note *note, const struct dataset *index)
{
	const int64_t time = wrapped_time(note);

	return dataset_count(index) == note->count && dataset_classes(index) == 0 &&
	       dataset_size_of(index, note->count - 1) == note->room &&
	       dataset_mtime_of(index, note->count - 1) == time;
}
