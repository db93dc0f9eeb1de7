/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups. A rank that opens says, by its token, which plan it is a part of:
 *
 *   its token names a log that is here            it goes on at its place of that log
 *   a group began with the very same token        it begins where that one began
 *   neither, but an accessd before us kept the    the group is founded anew and goes on with the log
 *   log, or the rank brings it
 *   neither                                       a group is founded from what the token leaves
 *
 * The third is how a job outlives an accessd that was killed. The log is kept in a file
 * (group_keep.c), and each rank still has it mapped; with its writer dead all of them have the same
 * one, so whoever comes first brings enough for all, also for ranks that are behind it or ahead of it.
 *
 * A group without ranks is kept for a while: rank 0 of a short job may be through before rank 1
 * has come. A rank that has been here and begins anew, without a token, is another run.
 *
 * A log that a client brings is hostile (group_brought.c). What a forger can spoil is the plan of his
 * own job.
 */
#include "daemon/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"
#include "daemon/conn.h"
#include "daemon/group_brought.h"
#include "daemon/job.h"
#include "daemon/node.h"
#include "daemon/stream.h"
#include "libaccess/libaccess.h"
#include "sched/carousel.h"
#include "sched/token.h"

#define KEPT_NS (UINT64_C(60) * 1000000000) /* a group without ranks */

/* ---- founding ---- */

static void append(struct group *group, const struct entry *entry)
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

/* What ranks see is kept. */
static void show(struct group *group)
{
	keep_save(&group->keep, &group->scroll);
	scroll_publish(&group->scroll);
}

/* Ranks may come back to it, if they get the chance. */
static bool is_over(const struct group *group)
{
	return !group->present && group->stream->state == STREAM_RUNS &&
	       !group->stream->node->draining;
}

static void group_free(struct group *group)
{
	struct stream *stream = group->stream;

	LIST_REMOVE(group, link);
	if (stream->carousel)
		carousel_leave(stream->carousel, group->number, base_now_ns());
	keep_end(&group->keep, is_over(group));
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
			     const struct brought *log)
{
	struct carousel *carousel = group->stream->carousel;
	int r = carousel_found(carousel, join, carousel_log_bytes(carousel), base_now_ns(),
			       &group->number);

	if (r)
		return r;
	for (size_t i = 0; i < log->n && !r; i++) {
		r = carousel_recall(carousel, group->number, &log->entries[i]);
		if (!r)
			append(group, &log->entries[i]);
	}
	if (r) {
		carousel_leave(carousel, group->number, base_now_ns());
		return r;
	}
	show(group);
	keep_publish(&group->keep);
	return 0;
}

static struct group *group_new(const struct conn *conn, const struct brought *log)
{
	const struct request *request = &conn->request;
	struct stream *stream = conn->stream;
	struct group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->scroll_fd = -1;
	group->keep.fd = -1;
	group->stream = stream;
	group->variant = conn->variant;
	group->uid = conn->uid;
	group->ranks = request->ranks;
	group->batch = request->batch;
	group->epochs = request->epochs;
	group->part = conn->request.part_sum;
	group->job = strdup(request->job);
	group->begun = calloc(bits_words(request->ranks), sizeof(*group->begun));
	if (!group->job || !group->begun ||
	    scroll_new(carousel_log_bytes(stream->carousel), stream->geometry.n_samples, log->id,
		       &group->scroll, &group->scroll_fd)) {
		free(group->job);
		free(group->begun);
		free(group);
		return NULL;
	}
	stream->memory += group->scroll.bytes;
	stream->node->memory_used += group->scroll.bytes;
	scroll_set_origin(&group->scroll, log->origin, log->first_epoch);
	keep_begin(&group->keep, conn, &group->scroll);
	LIST_INSERT_HEAD(&stream->groups, group, link);
	return group;
}

static struct entry_set set_of(const struct conn *conn, const struct carousel_join *join)
{
	return (struct entry_set){.deal = carousel_deal(conn->stream->carousel),
				  .bits = join->population};
}

/*
 * The log of an accessd before us: the one that the token names, as it was kept or as the client brings
 * it, or one that began with the same token. Kept it is as long as any that a rank has.
 */
static bool find_log(const struct conn *conn, const struct token *token, uint64_t origin,
		     const struct entry_set *set, struct brought *ret)
{
	uint32_t most = conn->stream->geometry.hand;
	_cleanup_close_ int kept = keep_find(conn, token->has_log ? token->log : NULL, origin);

	*ret = (struct brought){.entries = NULL};
	if (kept >= 0 && token->has_log && brought_read(kept, token, true, set, most, ret))
		return true;
	brought_fini(ret);
	if (conn->request.log_fd >= 0 && token->has_log &&
	    brought_read(conn->request.log_fd, token, true, set, most, ret))
		return true;
	brought_fini(ret);
	if (kept >= 0 && brought_read(kept, token, false, set, most, ret) && ret->origin == origin)
		return true;
	brought_fini(ret);
	return false;
}

/* With a log that is there already, or, if there is none, from what the token leaves. join: where the
 * rank begins. */
static int group_found(struct conn *conn, const struct token *token, uint64_t origin,
		       struct carousel_join *join, struct group **ret)
{
	const struct entry_set set = set_of(conn, join);
	struct carousel_join from = *join;
	struct brought log;
	struct group *group;
	int r = -ENOMEM;

	if (find_log(conn, token, origin, &set, &log)) {
		join->epoch = log.epoch;
		join->place = log.place;
		from.need = log.rest.need;
		from.tail = log.rest.tail;
		from.n_tail = log.rest.n_tail;
		from.epoch = log.rest.epoch;
		from.place = log.rest.place;
	} else {
		base_random(log.id, sizeof(log.id));
		log.origin = origin;
		log.first_epoch = join->epoch;
		from.place = join->place = 0;
	}
	group = group_new(conn, &log);
	if (group)
		r = found_in_carousel(group, &from, &log);
	brought_fini(&log);
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

	return group->variant == conn->variant && group->uid == conn->uid &&
	       group->ranks == request->ranks && group->batch == request->batch &&
	       group->epochs == request->epochs && group->part == request->part_sum &&
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
static void skip_end_of_epoch(const struct entry_set *set, const struct token *token,
			      struct carousel_join *join)
{
	struct entry_rest rest = {.epoch = 0};

	if (!join->need || entry_rest_init(set, token->need, token->tail, token->n_tail, &rest))
		return;
	if (!entry_rest_count(set, &rest)) {
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
	const struct entry_set set = set_of(conn, join);
	int r;

	conn->request.part_sum =
	    join->population
		? hash_checksum(join->population, bits_words(set.deal->n) * sizeof(uint64_t))
		: 0;
	group = find(conn, token, origin, join, &other);
	if (!group && other)
		return refuse(other, conn, false, code, diag);
	if (!group) {
		r = group_found(conn, token, origin, join, &group);
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
	skip_end_of_epoch(&set, token, join);
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
	append(group, &entry);
	show(group);
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
