/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recording. On the path of a batch it is a copy of its ids into the buffer, and of its keys, of
 * which there is one a chunk as a rule: no system call, but for one each 64 KiB, which is each
 * 15,000 samples or so.
 *
 * A token that is saved says "all before me is recorded", so saving one writes the buffer out. It is
 * left to the kernel when that comes to the disk: after a loss of power the recording may end before
 * the token, and then it is refused to go on with it, in words.
 *
 * Resuming cuts the file back to the token's place. The block in which that lies goes back into the
 * buffer as far as it stays.
 *
 * A recording that cannot be written (a full disk) is given up, and oa_next() says so once; the
 * job goes on if it wants.
 */

#include "libaccess/record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "libaccess/error.h"
#include "libaccess/progress_token.h"

#define RECORD_BLOCK 65536

void record_init(struct record *record)
{
	*record = (struct record){.fd = -1};
}

void record_fini(struct record *record)
{
	base_close(&record->fd);
	free(record->path);
	free(record->buffer);
	free(record->keys);
	record_init(record);
}

/* ---- writing ---- */

void record_flush(struct record *record)
{
	int r;

	if (record->fd < 0 || record->used == RECORDING_BLOCK_HEAD)
		return;
	recording_seal_block(record->buffer, record->number++,
			     (uint32_t)(record->used - RECORDING_BLOCK_HEAD));
	r = base_write_at(record->fd, record->buffer, record->used, record->at);
	record->at += record->used;
	record->used = RECORDING_BLOCK_HEAD;
	if (r) {
		record->failed = r;
		base_close(&record->fd);
	}
}

int record_report(struct record *record, struct diag *error)
{
	int r = record->failed;

	record->failed = 0;
	return diag_fail(error, r, "recording to %s failed and has ended there: %s", record->path,
			 oa_error_name(r));
}

/* ---- batches ---- */

void record_batch(struct record *record, const struct progress *progress,
		  const struct oa_batch *batch)
{
	const struct listing_key *keys = batch->carry ? batch->carry->keys : record->keys;
	const struct course *course = progress->course;
	struct recording_batch head = {
	    .epoch = batch->epoch,
	    .step = batch->step,
	    .after = progress_after(progress),
	    .rank = course->ask->rank,
	    .ranks = course->ask->ranks,
	    .count = batch->count,
	    .flags = batch->is_last ? RECORDING_LAST : 0,
	};

	if (record->fd < 0)
		return;
	if (batch->held)
		progress_keys(progress, batch->held, batch->first, batch->count, record->keys);
	record->used += recording_write_batch(&head, course->permutation.n, batch->ids, keys,
					      record->buffer + record->used);
	if (record->used >= RECORD_BLOCK)
		record_flush(record);
}

/* ---- the file ---- */

static struct recording_head record_head(const struct course *course)
{
	struct recording_head head = {
	    .n = course->permutation.n,
	    .block = course->permutation.block,
	    .order = course->order,
	    .seed = course->is_fixed ? course->seed : 0,
	    .batch = course->ask->batch,
	};

	memcpy(head.dataset, course->dataset, sizeof(head.dataset));
	memcpy(head.pipeline, course->pipeline, sizeof(head.pipeline));
	return head;
}

static int record_bad(const struct record *record, struct diag *diag, const char *why)
{
	return error_open(diag, "options.record: %s: %s", record->path, why);
}

static int record_make(struct record *record, const struct course *course, struct diag *diag)
{
	struct recording_head head = record_head(course);
	uint8_t bytes[RECORDING_HEAD];
	int r = ftruncate(record->fd, 0) < 0 ? -errno : 0;

	recording_write_head(&head, bytes);
	r = r ? r : base_write_at(record->fd, bytes, sizeof(bytes), 0);
	record->at = sizeof(bytes);
	return r ? error_of_errno(diag, r, record->path) : 0;
}

struct record_cut {
	uint64_t offset, number; /* of the first block that does not stay as it is */
	uint64_t begin;          /* of the block that the last batch that stays is in */
	uint32_t kept;           /* bytes of that one's batches */
	uint64_t epoch, after;   /* of that batch */
	bool any, is_last;
};

/* Does what stays end where the token goes on? */
static bool record_ends_at(const struct record_cut *cut, const struct token *token)
{
	if (!cut->any)
		return true;
	if (token->delivered == 0)
		return cut->is_last && cut->epoch + 1 == token->epoch;
	return cut->epoch == token->epoch && cut->after == token->delivered;
}

static int record_find_cut(struct recording_reader *reader, const struct token *token,
			   struct record_cut *cut, struct diag *diag)
{
	struct recording_batch batch;
	int r;

	*cut = (struct record_cut){.offset = RECORDING_HEAD};
	while ((r = recording_next(reader, &batch, diag)) == 0) {
		if (batch.epoch > token->epoch ||
		    (batch.epoch == token->epoch && batch.after > token->delivered))
			return 0;
		cut->any = true;
		cut->epoch = batch.epoch;
		cut->after = batch.after;
		cut->is_last = batch.flags & RECORDING_LAST;
		cut->begin = reader->begin;
		cut->kept = reader->at;
		cut->offset = reader->offset;
		cut->number = reader->number;
	}
	return r == RECORDING_E_END || r == RECORDING_E_CUT ? 0 : r;
}

/* More than a buffer holds when it is written out. */
static size_t record_room(const struct course *course)
{
	return RECORD_BLOCK + 2 * recording_batch_bytes(course->ask->batch);
}

/* Cuts the file back, and what stays of the last block goes into the buffer. */
static int record_cut(struct record *record, const struct course *course,
		      const struct recording_reader *reader, const struct record_cut *cut)
{
	record->at = cut->offset;
	record->number = cut->number;
	if (cut->any && cut->begin == reader->begin && cut->kept < reader->bytes) {
		record->at = cut->begin;
		record->number--;
		record->used += cut->kept;
		record->buffer = realloc(record->buffer, record->used + record_room(course));
		if (!record->buffer)
			return -ENOMEM;
		memcpy(record->buffer + RECORDING_BLOCK_HEAD, reader->block, cut->kept);
	}
	return ftruncate(record->fd, (off_t)record->at) < 0 ? -errno : 0;
}

static int record_go_on(struct record *record, const struct course *course,
			struct recording_reader *reader, const struct token *token,
			struct diag *diag)
{
	struct record_cut cut;
	int r = record_find_cut(reader, token, &cut, diag);

	if (r > 0)
		return OA_E_INVALID;
	if (!r && !record_ends_at(&cut, token))
		return record_bad(record, diag,
				  "it does not hold all that was delivered before the token was "
				  "saved; record into another file, or start without a token");
	r = r ? r : record_cut(record, course, reader, &cut);
	return r ? error_of_errno(diag, r, record->path) : 0;
}

/* A file that is there: of the same job, or at least a recorded plan. */
static int record_reopen(struct record *record, const struct course *course, uint64_t size,
			 const struct token *token, struct diag *diag)
{
	struct recording_reader reader = {.read = base_read_at, .file = record->fd, .size = size};
	const struct recording_head head = record_head(course);
	int r = recording_open(&reader, diag);

	if (r > 0)
		r = record_bad(record, diag, "there is a file that is no recorded plan: remove it");
	else if (r < 0)
		r = error_of_errno(diag, r, record->path);
	else if (!token)
		r = record_make(record, course, diag);
	else if (!recording_is_same(&reader.head, &head))
		r = record_bad(record, diag,
			       "it is of another dataset version, pipeline, order or seed");
	else
		r = record_go_on(record, course, &reader, token, diag);
	recording_fini(&reader);
	return r;
}

static int record_open_file(struct record *record, uint64_t *ret_size, struct diag *diag)
{
	struct stat st;

	record->fd = open(record->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (record->fd < 0 || fstat(record->fd, &st) < 0)
		return error_of_errno(diag, -errno, record->path);
	if (!S_ISREG(st.st_mode))
		return record_bad(record, diag, "it is no regular file");
	if (flock(record->fd, LOCK_EX | LOCK_NB) < 0)
		return record_bad(record, diag,
				  "another job records into it: each job, and each rank, needs a "
				  "file of its own");
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

int record_open(struct record *record, const struct course *course, const struct token *token,
		struct diag *diag)
{
	uint64_t size = 0;
	int r = 0;

	if (!record->path || record->fd >= 0)
		return 0;
	record->used = RECORDING_BLOCK_HEAD;
	record->keys = malloc(course->ask->batch * sizeof(*record->keys));
	record->buffer = malloc(record_room(course));
	if (!record->keys || !record->buffer)
		return -ENOMEM;
	r = record_open_file(record, &size, diag);
	if (r)
		return r;
	return size ? record_reopen(record, course, size, token, diag)
		    : record_make(record, course, diag);
}
