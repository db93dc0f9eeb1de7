/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Documents of tokens, packed into sequences (packing.h): a .bin with the .idx that says where its documents are. A group of
 * PACKING_GROUP neighbours is packed by itself; of each only the number of its first sequence is kept, and the rest
 * is computed again when one of its sequences is read, of which PACKED_KEEPS are remembered.
 *
 * A sample is four rows of numbers: the tokens; the next token of the same document, LOSS_IGNORED where there is none or it does
 * not count (source_loss.c); the place in the part of the document; the document's number. What no document fills has the
 * padding, LOSS_IGNORED, 0 and NO_DOCUMENT.
 *
 * The .idx is a stranger's: that its documents lie one behind the other and fill the .bin is checked when it is opened,
 * group by group, and of each group again when it is read. The lock covers the groups that are remembered; a thread that
 * computes one does so without it.
 */

#include "storage/source/source_rows.h"

#include "base/little.h"
#include "storage/source/source_bytes.h"
#include "storage/source/scan/packing.h"
#include "storage/walk.h"

#include <sys/stat.h>

#define PACKED_KEEPS 64
#define NO_DOCUMENT INT64_C(-1)

struct group { /* packed, and where it is */
	struct packing packing;
	uint64_t number;
	uint64_t begin[PACKING_GROUP]; /* of each document, in the .bin */
	unsigned users;
	uint64_t used; /* when, by the count of uses */
};

struct packed {
	int fd; /* owned: the .idx */
	uint64_t idx_bytes;
	int64_t idx_mtime_ns;
	struct megatron megatron;
	uint64_t bin_bytes;
	uint32_t length;
	int64_t pad;
	uint64_t groups, *first; /* owned: of each group its first sequence, and of all the end */

	pthread_mutex_t lock;
	/* under the lock */
	struct group *keep[PACKED_KEEPS]; /* owned */
	uint64_t uses;
};

/* ---- a group ---- */

/* 0, -EBADMSG (its numbers are wrong), or negative errno. */
static int group_load(const struct packed *packed, uint64_t number, struct group *ret)
{
	const uint64_t from = number * PACKING_GROUP, token = number_bytes(packed->megatron.number);
	const unsigned n =
	    (unsigned)BASE_MIN((uint64_t)PACKING_GROUP, packed->megatron.sequences - from);
	_cleanup_free_ uint8_t *bytes = malloc(12 * (size_t)PACKING_GROUP);
	uint32_t size[PACKING_GROUP];
	uint8_t *starts;
	int r = bytes ? base_read_at(packed->fd, bytes, 4 * (uint64_t)n,
				     packed->megatron.sizes_at + 4 * from)
		      : -ENOMEM;

	if (r)
		return r;
	starts = bytes + 4 * (size_t)PACKING_GROUP;
	r = base_read_at(packed->fd, starts, 8 * (uint64_t)n,
			 packed->megatron.starts_at + 8 * from);
	for (unsigned i = 0; i < n && !r; i++) {
		size[i] = little_32(bytes + 4 * i);
		ret->begin[i] = little_64(starts + 8 * i);
		if (size[i] > INT32_MAX || ret->begin[i] > packed->bin_bytes ||
		    size[i] * token > packed->bin_bytes - ret->begin[i] ||
		    (i && ret->begin[i] != ret->begin[i - 1] + size[i - 1] * token))
			r = -EBADMSG;
	}
	if (r)
		return r;
	ret->number = number;
	return packing_make(size, n, packed->length, &ret->packing);
}

static struct group *find_locked(struct packed *packed, uint64_t number)
{
	for (size_t i = 0; i < PACKED_KEEPS; i++) {
		struct group *group = packed->keep[i];

		if (!group || group->number != number)
			continue;
		group->users++;
		group->used = ++packed->uses;
		return group;
	}
	return NULL;
}

/* In the place of the one that was used longest ago, if that is not in use. false: there is no place. */
static bool put_locked(struct packed *packed, struct group *group)
{
	size_t at = PACKED_KEEPS;

	for (size_t i = 0; i < PACKED_KEEPS; i++) {
		const struct group *kept = packed->keep[i];

		if (!kept ||
		    (!kept->users && (at == PACKED_KEEPS ||
				      (packed->keep[at] && kept->used < packed->keep[at]->used))))
			at = i;
		if (!kept)
			break;
	}
	if (at == PACKED_KEEPS)
		return false;
	free(packed->keep[at]);
	packed->keep[at] = group;
	group->users = 1;
	group->used = ++packed->uses;
	return true;
}

/* In use until it is given back; *ret_is_own: not remembered. 0, or as group_load(). */
static int group_take(struct packed *packed, uint64_t number, struct group **ret, bool *ret_is_own)
{
	struct group *group, *other;
	int r;

	*ret_is_own = false;
	pthread_mutex_lock(&packed->lock);
	*ret = find_locked(packed, number);
	pthread_mutex_unlock(&packed->lock);
	if (*ret)
		return 0;
	group = calloc(1, sizeof(*group));
	r = group ? group_load(packed, number, group) : -ENOMEM;
	if (r) {
		free(group);
		return r;
	}
	pthread_mutex_lock(&packed->lock);
	other = find_locked(packed, number); /* another thread was quicker */
	*ret_is_own = !other && !put_locked(packed, group);
	pthread_mutex_unlock(&packed->lock);
	if (other)
		free(group);
	*ret = other ? other : group;
	return 0;
}

static void group_give_back(struct packed *packed, struct group *group, bool is_own)
{
	if (is_own) {
		free(group);
		return;
	}
	BASE_HOLD(&packed->lock);
	group->users--;
}

/* ---- opening ---- */

/* All groups: how many sequences each has. 0, or as group_load(). */
static int count_all(struct packed *packed, const struct scan_progress *progress)
{
	_cleanup_free_ struct group *group = calloc(1, sizeof(*group));
	uint64_t end = 0;
	int r = group ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < packed->groups && !r; i++) {
		r = group_load(packed, i, group);
		if (r)
			break;
		if (group->begin[0] != end)
			return -EBADMSG;
		end = group->begin[group->packing.n - 1] +
		      group->packing.size[group->packing.n - 1] *
			  (uint64_t)number_bytes(packed->megatron.number);
		packed->first[i + 1] = packed->first[i] + group->packing.sequences;
		if (progress && progress->cancelled && progress->cancelled(progress->arg))
			return -ECANCELED;
	}
	return r ? r : end == packed->bin_bytes ? 0 : -EBADMSG;
}

int source_packed_open(int idx_fd, const struct megatron *megatron, uint64_t bin_bytes,
		       uint32_t length, int64_t pad, const struct scan_progress *progress,
		       struct packed **ret)
{
	struct packed *packed = calloc(1, sizeof(*packed));
	struct stat st;
	int r;

	if (!packed || fstat(idx_fd, &st) < 0) {
		r = packed ? -errno : -ENOMEM;
		free(packed);
		base_close(&idx_fd);
		return r;
	}
	*packed = (struct packed){
	    .fd = idx_fd,
	    .idx_bytes = (uint64_t)st.st_size,
	    .idx_mtime_ns = walk_mtime_ns(&st),
	    .megatron = *megatron,
	    .bin_bytes = bin_bytes,
	    .length = length,
	    .pad = pad,
	    .groups = (megatron->sequences + PACKING_GROUP - 1) / PACKING_GROUP,
	};
	pthread_mutex_init(&packed->lock, NULL);
	packed->first = calloc(packed->groups + 1, sizeof(*packed->first));
	r = packed->first ? count_all(packed, progress) : -ENOMEM;
	if (r)
		source_packed_free(packed);
	else
		*ret = packed;
	return r;
}

void source_packed_free(struct packed *packed)
{
	if (!packed)
		return;
	for (size_t i = 0; i < PACKED_KEEPS; i++)
		free(packed->keep[i]);
	pthread_mutex_destroy(&packed->lock);
	free(packed->first);
	base_close(&packed->fd);
	free(packed);
}

uint64_t source_packed_count(const struct packed *packed)
{
	return packed->first[packed->groups];
}

int64_t source_packed_stamp(const struct packed *packed)
{
	return packed->idx_mtime_ns;
}

/* ---- a sample ---- */

static uint64_t group_of(const struct packed *packed, uint64_t sample)
{
	return BASE_LAST(at, packed->groups, packed->first[at] <= sample);
}

struct row4 { /* of a sample's record */
	uint8_t *tokens, *labels, *places, *documents;
};

static void put(uint8_t *row, uint64_t at, int64_t value)
{
	little_put_64(row + 8 * at, (uint64_t)value);
}

static bool has_more(const struct group *group, const struct packing_part *part)
{
	return part->at + part->tokens < group->packing.size[part->document];
}

/* Where the tokens of a part of a document are, and the next one of that document, if there is one. */
static struct source_piece piece_of(const struct packed *packed, const struct group *group,
				    const struct packing_part *part, uint8_t *raw)
{
	const uint64_t bytes = number_bytes(packed->megatron.number);

	return (struct source_piece){.to = raw,
				     .bytes =
					 (part->tokens + (uint64_t)has_more(group, part)) * bytes,
				     .at = group->begin[part->document] + part->at * bytes};
}

/* A part of a document, whose tokens are in raw, from place `at` of the sequence on. */
static void put_part(const struct packed *packed, const struct group *group,
		     const struct packing_part *part, uint64_t at, const uint8_t *raw,
		     const struct row4 *row)
{
	const unsigned bytes = number_bytes(packed->megatron.number);
	const uint64_t number = group->number * PACKING_GROUP + part->document;
	uint8_t last[8];

	number_widen(packed->megatron.number, raw, part->tokens, row->tokens + 8 * at);
	for (uint32_t i = 0; i < part->tokens; i++) {
		if (i)
			memcpy(row->labels + 8 * (at + i - 1), row->tokens + 8 * (at + i), 8);
		put(row->places, at + i, i);
		put(row->documents, at + i, (int64_t)number);
	}
	put(last, 0, LOSS_IGNORED);
	if (has_more(group, part))
		number_widen(packed->megatron.number, raw + (uint64_t)part->tokens * bytes, 1,
			     last);
	memcpy(row->labels + 8 * (at + part->tokens - 1), last, 8);
}

/* One after the other, all through one part's room. */
static int put_parts(const struct packed *packed, int bin_fd, const struct group *group,
		     const struct packing_part *part, unsigned n, const struct row4 *row,
		     uint64_t *at)
{
	_cleanup_free_ uint8_t *raw = malloc(8 * (uint64_t)packed->length + 8);
	int r = raw ? 0 : -ENOMEM;

	for (unsigned i = 0; i < n && !r; *at += part[i++].tokens) {
		const struct source_piece piece = piece_of(packed, group, &part[i], raw);

		r = base_read_at(bin_fd, piece.to, piece.bytes, piece.at);
		if (!r)
			put_part(packed, group, &part[i], *at, raw, row);
	}
	return r;
}

/* Of an object: all at once. */
static int fetch_parts(const struct packed *packed, const struct reader_dataset *dataset,
		       const struct group *group, const struct packing_part *part, unsigned n,
		       const struct row4 *row, uint64_t *at)
{
	struct source_from from = {.dataset = dataset, .fd = dataset->root_fd};
	_cleanup_free_ uint8_t *raw = malloc(8 * ((uint64_t)packed->length + n));
	_cleanup_free_ struct source_piece *piece = calloc(n + 1, sizeof(*piece));
	uint8_t *to = raw;
	int r;

	if (!raw || !piece)
		return -ENOMEM;
	for (unsigned i = 0; i < n; to += piece[i++].bytes)
		piece[i] = piece_of(packed, group, &part[i], to);
	r = source_bytes_fetch(&from, piece, n);
	for (unsigned i = 0; i < n && !r; *at += part[i++].tokens)
		put_part(packed, group, &part[i], *at, piece[i].to, row);
	return r;
}

/* Of labels those of tokens that do not count. */
static int mark_parts(const struct packed *packed, const struct loss *loss,
		      const struct reader_dataset *dataset, const struct group *group,
		      const struct packing_part *part, unsigned n, uint8_t *labels)
{
	const unsigned bytes = number_bytes(packed->megatron.number);
	_cleanup_free_ uint8_t *counts = malloc((uint64_t)packed->length + n);
	_cleanup_free_ struct source_piece *piece = calloc(n + 1, sizeof(*piece));
	uint8_t *to = counts;
	int r;

	if (!counts || !piece)
		return -ENOMEM;
	for (unsigned i = 0; i < n; to += piece[i++].bytes) {
		piece[i] = piece_of(packed, group, &part[i], to);
		piece[i].bytes /= bytes;
		piece[i].at /= bytes;
	}
	r = source_loss_fetch(loss, dataset, piece, n);
	for (unsigned i = 0; i < n && !r; labels += 8 * (uint64_t)part[i++].tokens)
		source_loss_mark(piece[i].to, piece[i].bytes - 1, labels);
	return r;
}

static int put_sequence(const struct packed *packed, const struct loss *loss,
			const struct reader_dataset *dataset, const struct group *group,
			uint64_t sequence, uint8_t *ret)
{
	const uint64_t bytes = 8 * (uint64_t)packed->length;
	const struct row4 row = {ret, ret + bytes, ret + 2 * bytes, ret + 3 * bytes};
	_cleanup_free_ struct packing_part *part = calloc(PACKING_GROUP, sizeof(*part));
	uint64_t at = 0;
	unsigned n;
	int r;

	if (!part)
		return -ENOMEM;
	n = packing_parts(&group->packing, sequence, part);
	r = dataset->bucket ? fetch_parts(packed, dataset, group, part, n, &row, &at)
			    : put_parts(packed, dataset->root_fd, group, part, n, &row, &at);
	if (!r && loss)
		r = mark_parts(packed, loss, dataset, group, part, n, row.labels);
	for (; at < packed->length; at++) {
		put(row.tokens, at, packed->pad);
		put(row.labels, at, LOSS_IGNORED);
		put(row.places, at, 0);
		put(row.documents, at, NO_DOCUMENT);
	}
	return r;
}

int source_packed_read(struct packed *packed, const struct loss *loss,
		       const struct reader_dataset *dataset, uint64_t sample, uint8_t *ret)
{
	const uint64_t number = group_of(packed, sample);
	struct group *group;
	bool is_own;
	int r = group_take(packed, number, &group, &is_own);

	if (r)
		return r;
	r = sample - packed->first[number] < group->packing.sequences
		? put_sequence(packed, loss, dataset, group, sample - packed->first[number], ret)
		: -EBADMSG;
	group_give_back(packed, group, is_own);
	return r;
}

bool source_packed_is_same(const struct packed *packed)
{
	struct stat st;

	return fstat(packed->fd, &st) == 0 &&
	       walk_is_same(&st, packed->idx_bytes, packed->idx_mtime_ns);
}
