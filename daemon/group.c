/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups. A rank that opens says, by its token, which plan it is a part of:
 *
 *   its token names a log that is here            it goes on at its place of that log
 *   a group began with the very same token        it begins where that one began
 *   neither, and it brings the log itself         the group is founded anew and goes on with the log
 *   neither                                       a group is founded from what the token leaves
 *
 * The third is how a job outlives an accessd that was killed. Each rank still has the old log mapped,
 * and with its writer dead all of them have the same one; so whoever comes first brings enough for
 * all, also for ranks that are behind it or ahead of it.
 *
 * A group without ranks is kept for a while: rank 0 of a short job may be through before rank 1
 * has come. A rank that has been here and begins anew, without a token, is another run.
 *
 * A log that a client brings is hostile. It is copied once, each entry is checked against the deal and
 * against what the token leaves, and a log that does not fit is left aside. What a forger can spoil is
 * the plan of his own job.
 */
#include "daemon/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"
#include "daemon/conn.h"
#include "daemon/job.h"
#include "daemon/node.h"
#include "daemon/stream.h"
#include "libaccess/libaccess.h"
#include "sched/carousel.h"
#include "sched/token.h"

#define KEPT_NS (UINT64_C(60) * 1000000000) /* a group without ranks */
#define MOST_ENTRIES (UINT32_C(1) << 22)    /* of a log that a client brings */

/* ---- a log that a client brings ---- */

struct log {
	struct entry *entries; /* owned, and their arrays */
	size_t n, room;
	uint64_t origin, first_epoch;
};

static void log_fini(struct log *log)
{
	for (size_t i = 0; i < log->n; i++) {
		free((void *)log->entries[i].grains);
		free((void *)log->entries[i].ids);
	}
	free(log->entries);
}

static void *copy_of(const void *from, size_t bytes)
{
	void *to = from ? malloc(bytes) : NULL;

	return to ? memcpy(to, from, bytes) : NULL;
}

static struct entry entry_of(const struct scroll_entry *from)
{
	return (struct entry){
	    .epoch = from->epoch,
	    .place = from->place,
	    .seed = from->seed,
	    .lap = from->lap,
	    .count = from->count,
	    .n_grains = from->n_grains,
	    .grains = from->grains,
	    .ids = from->ids,
	};
}

static bool log_add(struct log *log, const struct scroll_entry *from)
{
	struct entry *entry;

	if (log->n == log->room) {
		size_t room = 2 * log->room + 64;
		struct entry *more = realloc(log->entries, room * sizeof(*more));

		if (!more || log->n >= MOST_ENTRIES) {
			log->entries = more ? more : log->entries;
			return false;
		}
		log->entries = more;
		log->room = room;
	}
	entry = &log->entries[log->n++];
	*entry = entry_of(from);
	entry->grains = copy_of(from->grains, from->n_grains * sizeof(*from->grains));
	entry->ids = copy_of(from->ids, from->count * sizeof(*from->ids));
	return entry->grains || entry->ids;
}

/* Hands of this stream may be smaller than they were: parts of one, which list their samples, are the
 * same samples at the same places, made by the same seed and lap. */
static bool log_add_parts(struct log *log, const struct deal *deal, uint32_t most,
			  const struct scroll_entry *whole)
{
	const struct entry entry = entry_of(whole);
	_cleanup_free_ int64_t *ids = NULL;
	struct scroll_entry part = *whole;

	if (whole->count <= most)
		return log_add(log, whole);
	ids = malloc(whole->count * sizeof(*ids));
	if (!ids)
		return false;
	entry_samples(deal, &entry, ids);
	part.n_grains = 0;
	part.grains = NULL;
	for (uint32_t at = 0; at < whole->count; at += part.count) {
		part.place = whole->place + at;
		part.count = BASE_MIN(whole->count - at, most);
		part.ids = ids + at;
		if (!log_add(log, &part))
			return false;
	}
	return true;
}

/* Passes the entry; at the log's end the rest is where it ends. */
static bool follow(const struct deal *deal, struct entry_rest *rest, const struct entry *entry)
{
	return entry_is_good(deal, entry) &&
	       entry_rest_pass(deal, rest, entry, entry->place + entry->count) == 0;
}

/* Reads the scroll behind fd, which must be the token's log and fit it. *rest: what it leaves. */
static bool log_read(int fd, const struct token *token, const struct deal *deal, uint32_t most,
		     struct log *ret, struct entry_rest *rest)
{
	struct scroll scroll;
	struct scroll_entry read;
	struct entry last = {.count = 0};
	uint64_t offset;
	int r;

	if (scroll_attach(fd, &scroll))
		return false;
	ret->origin = scroll.origin;
	ret->first_epoch = scroll.first_epoch;
	offset = scroll_first(&scroll);
	r = memcmp(scroll.id, token->log, sizeof(scroll.id)) || scroll.n_samples != deal->n;
	while (!r && (r = scroll_read(&scroll, &offset, &read)) == 0) {
		last = entry_of(&read);
		r = !follow(deal, rest, &last) || !log_add_parts(ret, deal, most, &read);
	}
	scroll_detach(&scroll);
	return r == SCROLL_E_NONE && last.count && last.epoch == rest->epoch &&
	       last.place + last.count == rest->place;
}

/* ---- founding ---- */

static void show(struct group *group, const struct entry *entry)
{
	const struct scroll_entry shown = {
	    .epoch = entry->epoch,
	    .place = entry->place,
	    .seed = entry->seed,
	    .lap = entry->lap,
	    .count = entry->count,
	    .n_grains = entry->n_grains,
	    .grains = entry->grains,
	    .ids = entry->ids,
	};

	scroll_append(&group->scroll, &shown);
}

static void group_free(struct group *group)
{
	struct stream *stream = group->stream;

	LIST_REMOVE(group, link);
	if (stream->carousel)
		carousel_leave(stream->carousel, group->number, base_now_ns());
	stream->memory -= group->scroll.bytes;
	stream->node->memory_used -= group->scroll.bytes;
	scroll_detach(&group->scroll);
	base_close(&group->scroll_fd);
	free(group->begun);
	free(group->job);
	free(group);
}

/* In the carousel, with a log or without. 0, CAROUSEL_E_BAD, ... */
static int found_in_carousel(struct group *group, const struct carousel_join *join,
			     const struct log *log)
{
	struct carousel *carousel = group->stream->carousel;
	int r = carousel_found(carousel, join, carousel_log_bytes(carousel), base_now_ns(),
			       &group->number);

	if (r)
		return r;
	for (size_t i = 0; i < log->n && !r; i++) {
		r = carousel_recall(carousel, group->number, &log->entries[i]);
		if (!r)
			show(group, &log->entries[i]);
	}
	if (r)
		carousel_leave(carousel, group->number, base_now_ns());
	return r;
}

static struct group *group_new(const struct conn *conn, const uint8_t id[SCROLL_ID])
{
	const struct request *request = &conn->request;
	struct stream *stream = conn->stream;
	struct group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->scroll_fd = -1;
	group->stream = stream;
	group->uid = conn->uid;
	group->ranks = request->ranks;
	group->batch = request->batch;
	group->epochs = request->epochs;
	group->job = strdup(request->job);
	group->begun = calloc(bits_words(request->ranks), sizeof(*group->begun));
	if (!group->job || !group->begun ||
	    scroll_new(carousel_log_bytes(stream->carousel), stream->board.geometry.n_samples, id,
		       &group->scroll, &group->scroll_fd)) {
		free(group->job);
		free(group->begun);
		free(group);
		return NULL;
	}
	stream->memory += group->scroll.bytes;
	stream->node->memory_used += group->scroll.bytes;
	LIST_INSERT_HEAD(&stream->groups, group, link);
	return group;
}

/* The log that the client brings, if it is the token's: join goes on at its end. */
static bool go_on(const struct conn *conn, const struct token *token, struct log *ret_log,
		  struct entry_rest *rest, struct carousel_join *join)
{
	const struct deal *deal = carousel_deal(conn->stream->carousel);

	rest->epoch = token->epoch;
	rest->place = token->place;
	if (conn->request.log_fd < 0 || !token->has_log ||
	    entry_rest_init(deal, token->need, token->tail, token->n_tail, rest) ||
	    !log_read(conn->request.log_fd, token, deal, conn->stream->board.geometry.hand, ret_log,
		      rest))
		return false;
	join->need = rest->need;
	join->tail = rest->tail;
	join->n_tail = rest->n_tail;
	join->epoch = rest->epoch;
	join->place = rest->place;
	return true;
}

/* With the log that the client brings, or, if that cannot be, from what the token leaves. *ret_place:
 * where the token is in the group's log. */
static int group_found(struct conn *conn, const struct token *token, uint64_t origin,
		       const struct carousel_join *from, struct group **ret, uint64_t *ret_place)
{
	struct carousel_join join = *from;
	struct entry_rest rest = {.epoch = 0};
	struct log log = {.entries = NULL};
	uint8_t id[SCROLL_ID];
	struct group *group;
	int r = -ENOMEM;

	base_random(id, sizeof(id));
	join.place = *ret_place = 0;
	if (go_on(conn, token, &log, &rest, &join)) {
		memcpy(id, token->log, sizeof(id));
		*ret_place = token->place;
	} else {
		log_fini(&log);
		log = (struct log){.origin = origin, .first_epoch = from->epoch};
	}
	group = group_new(conn, id);
	if (group) {
		scroll_set_origin(&group->scroll, log.origin, log.first_epoch);
		r = found_in_carousel(group, &join, &log);
	}
	log_fini(&log);
	entry_rest_fini(&rest);
	if (r && group) {
		group->number = UINT32_MAX; /* the carousel knows nothing of it */
		group_free(group);
	}
	if (!r)
		*ret = group;
	return r;
}

/* ---- finding ---- */

static bool is_of_job(const struct group *group, const struct conn *conn)
{
	const struct request *request = &conn->request;

	return group->uid == conn->uid && group->ranks == request->ranks &&
	       group->batch == request->batch && group->epochs == request->epochs &&
	       strcmp(group->job, request->job) == 0;
}

/* 0: it begins without a token. */
static uint64_t origin_of(const struct request *request)
{
	struct hash_id id;
	struct hash *hash;
	uint64_t origin;

	if (!request->token || hash_new(&hash))
		return 0;
	hash_add(hash, request->token, request->token_size);
	hash_finish(hash, &id);
	hash_free(hash);
	memcpy(&origin, id.bytes, sizeof(origin));
	return origin;
}

/* Why the rank cannot be let in beside the others. */
static int refuse(const struct group *group, const struct conn *conn, bool is_late, uint64_t *code,
		  struct diag *diag)
{
	*code = conn->request.token ? OA_E_TOKEN : OA_E_REFUSED;
	diag_set(
	    diag,
	    is_late ? "rank %u of job \"%s\" comes too late: the other %u ranks that run have gone "
		      "on by more of the plan than is kept (two epochs); give it rank 0's token"
		    : "rank %u of job \"%s\": %u ranks of this job run from another token; give "
		      "all ranks the same one (rank 0's), end those that still run, or give this "
		      "run another job name",
	    conn->request.rank, group->job, group->present);
	return 1;
}

/* The group that the token, or its lack, means. *ret_place: where in it. */
static struct group *find(struct conn *conn, const struct token *token, uint64_t origin,
			  struct carousel_join *join, struct group **ret_other)
{
	struct group *group, *next, *found = NULL;

	*ret_other = NULL;
	for (group = LIST_FIRST(&conn->stream->groups); group && !found; group = next) {
		next = LIST_NEXT(group, link);
		if (!is_of_job(group, conn))
			continue;
		if (token->has_log && !memcmp(group->scroll.id, token->log, sizeof(token->log))) {
			join->place = token->place;
			found = group;
		} else if (group->scroll.origin == origin &&
			   (conn->request.token || group->present ||
			    !bits_test(group->begun, conn->request.rank))) {
			join->epoch = group->scroll.first_epoch;
			join->place = 0;
			found = group;
		} else if (group->present) {
			*ret_other = group;
		} else {
			group_free(group); /* of a run that is over */
		}
	}
	return found;
}

/* All of the token's epoch is delivered. */
static void skip_end_of_epoch(const struct deal *deal, const struct token *token,
			      struct carousel_join *join)
{
	struct entry_rest rest = {.epoch = 0};

	if (!join->need || entry_rest_init(deal, token->need, token->tail, token->n_tail, &rest))
		return;
	if (!entry_rest_count(deal, &rest)) {
		join->epoch++;
		join->place = 0;
	}
	entry_rest_fini(&rest);
}

int group_enter(struct conn *conn, const struct token *token, struct carousel_join *join,
		struct group **ret, uint64_t *code, struct diag *diag)
{
	struct carousel *carousel = conn->stream->carousel;
	struct group *other, *group;
	const uint64_t origin = origin_of(&conn->request);
	int r;

	group = find(conn, token, origin, join, &other);
	if (!group && other)
		return refuse(other, conn, false, code, diag);
	if (!group) {
		r = group_found(conn, token, origin, join, &group, &join->place);
		if (r) {
			*code = r == CAROUSEL_E_BAD ? OA_E_TOKEN : OA_E_MEMORY;
			diag_set(diag, "%s",
				 r == CAROUSEL_E_BAD    ? "the token contradicts itself"
				 : r == CAROUSEL_E_FULL ? "the stream serves its most jobs already"
							: "out of memory for the job's plan log");
			return r;
		}
		log_line(LOG_LEVEL_INFO, "group-open",
			 "job=\"%s\" ranks=%u batch=%u epoch=%llu place=%llu", group->job,
			 group->ranks, group->batch, (unsigned long long)join->epoch,
			 (unsigned long long)join->place);
	}
	skip_end_of_epoch(carousel_deal(carousel), token, join);
	join->group = group->number + 1;
	*ret = group;
	if (carousel_has_place(carousel, group->number, join->epoch, join->place))
		return 0;
	return refuse(group, conn, true, code, diag);
}

/* ---- life ---- */

void group_joined(struct group *group, uint32_t rank)
{
	bits_set(group->begun, rank);
	group->present++;
}

void group_left(struct group *group)
{
	if (--group->present == 0)
		group->left_ns = base_now_ns();
}

void group_log(struct stream *stream, const struct carousel_action *action)
{
	struct entry entry;
	struct group *group;

	LIST_FOREACH(group, &stream->groups, link)
	if (group->number == action->job)
		break;
	if (!group)
		return;
	carousel_newest(stream->carousel, group->number, &entry);
	show(group, &entry);
	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++) {
		struct job *job = stream->job[i];

		if (!job || job->group != group)
			continue;
		job->news = true;
		if (carousel_is_behind(stream->carousel, i))
			job_fail(
			    job, OA_E_REFUSED,
			    "this rank is two epochs behind the job's other ranks: the plan is "
			    "kept no longer; start it again with rank 0's token");
	}
}

void group_sweep(struct stream *stream, uint64_t now_ns)
{
	struct group *group, *next;

	for (group = LIST_FIRST(&stream->groups); group; group = next) {
		next = LIST_NEXT(group, link);
		if (!group->present && now_ns - BASE_MIN(group->left_ns, now_ns) > KEPT_NS)
			group_free(group);
	}
}

void group_free_all(struct stream *stream)
{
	while (!LIST_EMPTY(&stream->groups))
		group_free(LIST_FIRST(&stream->groups));
}
