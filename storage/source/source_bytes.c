/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes of files, and samples that are one range of one file, where these are in an object store: as questions to access-bucket
 * (source_fetch.c), several at once. What is larger than a question may be is several.
 *
 * An object is asked for in the size and with the tag that the index has, or the placeholder that is open: so what comes is
 * what was listed, and nothing is compared behind it.
 */

#include "storage/source/source_bytes.h"

#include "storage/source/source_kind.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUCKET_THREADS 8
#define READ_CHANGED "was written to or removed since it was listed"

/* ---- pieces of a file ---- */

struct pieces {
	const struct source_piece *piece;
	unsigned n;
	uint64_t done;          /* bytes of the first one that were asked for */
	struct source_range of; /* its object */
	int result;
	char why[SOURCE_WHY];
};

static bool next_piece(void *arg, unsigned number, struct source_range *ret)
{
	struct pieces *all = arg;

	(void)number;
	while (all->n && all->done == all->piece->bytes) {
		all->piece++;
		all->n--;
		all->done = 0;
	}
	if (!all->n || all->result)
		return false;
	*ret = all->of;
	ret->at = all->piece->at + all->done;
	ret->to = (uint8_t *)all->piece->to + all->done;
	ret->bytes = (uint32_t)BASE_MIN(all->piece->bytes - all->done, (uint64_t)SOURCE_SLOT);
	all->done += ret->bytes;
	return true;
}

static void piece_came(void *arg, unsigned number, int result, const char *why)
{
	struct pieces *all = arg;

	(void)number;
	if (!result || all->result)
		return;
	all->result = result;
	snprintf(all->why, sizeof(all->why), "%s", why);
}

/* All of one object. */
static int fetch_pieces(struct bucket *bucket, struct pieces *all)
{
	const struct source_fetch fetch = {.next = next_piece, .came = piece_came, .arg = all};

	for (unsigned i = 0; i < all->n; i++)
		if (all->piece[i].at > all->of.size ||
		    all->piece[i].bytes > all->of.size - all->piece[i].at)
			return -ENODATA;
	source_fetch(bucket, &fetch);
	return all->result;
}

int source_bytes_fetch(struct source_from *from, const struct source_piece *piece, unsigned n)
{
	struct pieces all = {.piece = piece, .n = n};
	struct stat st;
	int r;

	if (fstat(from->fd, &st) < 0)
		return -errno;
	all.of = (struct source_range){
	    .name = from->name, .size = (uint64_t)st.st_size, .mtime_ns = walk_mtime_ns(&st)};
	r = fetch_pieces(from->dataset->bucket, &all);
	memcpy(from->why, all.why, sizeof(from->why));
	return r == SOURCE_E_CHANGED ? -ESTALE : r;
}

ssize_t source_read_begin(struct source_from *from, void *to, size_t size)
{
	struct stat st;
	ssize_t got;
	int r;

	if (!from->dataset->bucket) {
		do
			got = pread(from->fd, to, size, 0);
		while (got < 0 && errno == EINTR);
		return got < 0 ? -errno : got;
	}
	if (fstat(from->fd, &st) < 0)
		return -errno;
	size = (size_t)BASE_MIN((uint64_t)st.st_size, (uint64_t)size);
	r = source_read(from, to, size, 0);
	return r ? r : (ssize_t)size;
}

int source_read_all(struct source_from *from)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	void *map;
	int r;

	if (fstat(from->fd, &st) < 0)
		return -errno;
	fd = base_memfd("access-copy", (uint64_t)st.st_size);
	if (fd < 0 || st.st_size == 0)
		return base_take_fd(&fd);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r = source_read(from, map, (uint64_t)st.st_size, 0);
	munmap(map, (size_t)st.st_size);
	if (!r && futimens(fd, (struct timespec[2]){st.st_mtim, st.st_mtim}) < 0)
		r = -errno;
	return r ? r : base_take_fd(&fd);
}

const char *source_why(const struct source_from *from, int result)
{
	if (*from->why)
		return from->why;
	return result == -ESTALE && from->dataset->bucket ? READ_CHANGED : strerror(-result);
}

int source_read_failed(const struct source_from *from, int result, struct diag *diag)
{
	return diag_fail(diag, result, "cannot read \"%s\" of dataset \"%s\": %s",
			 BASE_QUOTED(from->name ? from->name : from->dataset->name, 200),
			 BASE_QUOTED(from->dataset->shown, 300), source_why(from, result));
}

/* ---- samples ---- */

static void judge(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		  int result, const char *why, struct reader_outcome *ret)
{
	const struct source_ops *ops = dataset->ops;

	if (result == SOURCE_E_CHANGED)
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, ops->files ? 0 : LAYOUT_CHANGED_ALL,
				   READ_CHANGED);
	else if (result)
		reader_outcome_set(ret, LAYOUT_FAIL_READ, -result, *why ? why : strerror(-result));
	else if (ops->settle)
		ops->settle(dataset, sample, buffer, ret);
	else
		ret->stage = LAYOUT_FAIL_NONE;
}

static void say_damaged(struct reader_outcome *ret)
{
	reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL, READ_INDEX_DAMAGED);
}

static void fetch_sample(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			 uint8_t *buffer, struct reader_outcome *ret)
{
	struct pieces all = {.n = 1};
	struct source_piece piece;
	int r = dataset->ops->place(dataset, sample, buffer, &all.of);

	if (r == SOURCE_E_NONE) {
		dataset->ops->read(dataset, root_fd, sample, buffer, ret);
	} else if (r) {
		say_damaged(ret);
	} else {
		piece = (struct source_piece){all.of.to, all.of.bytes, all.of.at};
		all.piece = &piece;
		r = fetch_pieces(dataset->bucket, &all);
		judge(dataset, sample, buffer, r, all.why, ret);
	}
}

void source_sample_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *ret)
{
	if (dataset->bucket && buffer && dataset->ops->place)
		fetch_sample(dataset, root_fd, sample, buffer, ret);
	else
		dataset->ops->read(dataset, root_fd, sample, buffer, ret);
}

/* ---- several ---- */

unsigned source_sample_threads(const struct reader_dataset *dataset)
{
	if (dataset->bucket)
		return BUCKET_THREADS;
	return dataset->ops->threads ? dataset->ops->threads(dataset) : 0;
}

unsigned source_sample_most(const struct reader_dataset *dataset, const struct reader_link *link)
{
	const struct source_ops *ops = dataset->ops;
	struct source_range range;

	if (!dataset->bucket)
		return ops->most ? ops->most(dataset, link) : 1;
	return ops->place && ops->place(dataset, 0, NULL, &range) != SOURCE_E_NONE
		   ? SOURCE_MOST_MADE
		   : 1;
}

struct several {
	const struct reader_dataset *dataset;
	struct reader_many *many;
	unsigned n, next; /* of those that it had at first */
	bool is_closed;   /* no more are taken on than it has */
	struct reader_wanted *asked[SOURCE_SLOTS];
};

static void settle_at_once(const struct several *all, struct reader_wanted *wanted, int result)
{
	if (result)
		say_damaged(&wanted->outcome);
	else
		judge(all->dataset, wanted->task->sample, wanted->buffer, 0, "", &wanted->outcome);
	wanted->is_settled = true;
}

static struct reader_wanted *next_wanted(struct several *all)
{
	if (all->next < all->n)
		return &all->many->wanted[all->next++];
	return all->is_closed ? NULL : all->many->more(all->many);
}

/* Those that need more than one question are left. */
static bool next_sample(void *arg, unsigned number, struct source_range *ret)
{
	struct several *all = arg;
	struct reader_wanted *wanted;

	while ((wanted = next_wanted(all))) {
		const int r = all->dataset->ops->place(all->dataset, wanted->task->sample,
						       wanted->buffer, ret);

		if (r || !ret->bytes) {
			settle_at_once(all, wanted, r);
		} else if (ret->bytes > SOURCE_SLOT) {
			wanted->is_left = true;
		} else {
			all->asked[number] = wanted;
			return true;
		}
	}
	return false;
}

static void sample_came(void *arg, unsigned number, int result, const char *why)
{
	struct several *all = arg;
	struct reader_wanted *wanted = all->asked[number];

	judge(all->dataset, wanted->task->sample, wanted->buffer, result, why, &wanted->outcome);
	wanted->is_settled = true;
	all->is_closed |= result == -EREMOTEIO || result == -ETIMEDOUT || result == -ECANCELED;
}

static void tell(void *arg)
{
	struct several *all = arg;

	all->many->tell(all->many);
}

void source_sample_many(const struct reader_dataset *dataset, struct reader_many *many)
{
	struct several all = {.dataset = dataset, .many = many, .n = many->n};
	const struct source_fetch fetch = {
	    .next = next_sample, .came = sample_came, .pause = tell, .arg = &all};

	if (dataset->bucket)
		source_fetch(dataset->bucket, &fetch);
	else
		dataset->ops->many(dataset, many);
}
