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
 * (group_keep.c), and each rank still has it mapped; with its writer dead all that it had have the same
 * one, so whoever comes first brings enough for all, also for ranks that are behind it or ahead of it.
 *
 * But a rank that works on what it holds may have missed an accessd, and what that one has dealt; so the file, which has it,
 * is gone on with before what a rank brings, and stays as long as such a rank may be left. Where it is gone all the same
 * nobody can say whether what the first one brings is the whole log. Then the group is another version of the plan, and
 * knows where the one before it ended (plan_log_go_on()): a rank that had more of that one has had samples which are dealt once
 * more, and is refused: beside that group, and also where it has nobody left, or only its file is there, as who went on with it may come back.
 *
 * A group without ranks is kept for a while: rank 0 of a short job may be through before rank 1
 * has come, or all are started again. Where its stream ends before, its log is. A rank that has been
 * here and begins anew, without a token, is another run, if nobody of this one is left: of a group that goes on with a log,
 * others may still run that have not come back, until all ranks have been here.
 *
 * A log that a client brings is hostile (group_brought.c). What a forger can spoil is the plan of his
 * own job.
 */
#include "daemon/serve/group.h"

#include "base/bits.h"
#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/group_brought.h"
#include "daemon/serve/group_pay.h"
#include "daemon/serve/stream.h"
#include "libaccess/libaccess.h"
#include "sched/carousel.h"
#include "plan/token.h"

#define KEPT_NS (UINT64_C(60) * 1000000000) /* a group without ranks */

/* ---- founding ---- */

/* What ranks see is kept. */
static void show(struct group *group)
{
	keep_save(&group->keep, &group->plan_log);
	plan_log_publish(&group->plan_log);
}

/* is_over: nobody will come back to it. */
static void group_free(struct group *group, bool is_over)
{
	struct stream *stream = group->stream;

	LIST_REMOVE(group, link);
	if (stream->carousel)
		group_end_log(&stream->node->endings,
			      carousel_disband(stream->carousel, group->number, base_now_ns()));
	keep_end(&group->keep, is_over);
	if (group->payer)
		group_pay_back(stream, group->payer);
	group_end_plan_log(&stream->node->endings, &group->plan_log);
	porter_close(&stream->node->porters, PORTER_OWN, &group->plan_log_fd);
	free(group->begun);
	free(group->job);
	free(group);
}

/* In the carousel, with the log (taken). 0, CAROUSEL_E_BAD, ... */
static int found_in_carousel(struct group *group, const struct carousel_join *join,
			     struct brought *log)
{
	struct carousel *carousel = group->stream->carousel;
	int r = carousel_found(carousel, join, carousel_log_bytes(carousel), base_now_ns(),
			       &group->number);

	if (r)
		return r;
	carousel_adopt(carousel, group->number, log->log);
	log->log = NULL;
	show(group);
	keep_publish(&group->keep, &group->plan_log);
	return 0;
}

/* Without its log. NULL: no memory. */
static struct group *group_new(const struct conn *conn)
{
	const struct request *request = &conn->request;
	struct group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->plan_log_fd = -1;
	group->keep.fd = -1;
	group->number = UINT32_MAX; /* the carousel knows nothing of it yet */
	group->stream = conn->stream;
	group->variant = conn->variant;
	group->uid = conn->uid;
	group->ranks = request->ranks;
	group->batch = request->batch;
	group->epochs = request->epochs;
	group->part = conn->request.part.sum;
	group->job = strdup(request->job);
	group->begun = calloc(bits_words(request->ranks), sizeof(*group->begun));
	LIST_INSERT_HEAD(&group->stream->users.groups, group, link);
	if (group->job && group->begun)
		return group;
	group_free(group, true);
	return NULL;
}

/* With the log that was prepared (taken; NULL: there was no memory for it), a new one from what the token leaves.
 * join: where the rank begins. */
static int group_found(struct conn *conn, struct brought *log, struct carousel_join *join,
		       struct group **ret)
{
	struct carousel_join from = *join;
	struct group *group = log ? group_new(conn) : NULL;
	int r;

	if (!group)
		return -ENOMEM;
	if (log->is_new) {
		from.place = join->place = 0;
	} else {
		join->epoch = log->epoch;
		join->place = log->place;
		from.need = log->rest.need;
		from.need_samples = log->rest.samples;
		from.is_counted = true;
		from.tail = log->rest.tail;
		from.n_tail = log->rest.n_tail;
		from.epoch = log->rest.epoch;
		from.place = log->rest.place;
	}
	/* What was brought: it is accounted already. */
	group->plan_log = log->plan_log;
	group->keep = log->keep;
	group->payer = base_take_ptr(log->payer);
	group->plan_log_fd = base_take_fd(&log->plan_log_fd);
	group->is_resumed = !log->is_new;
	log->plan_log = (struct plan_log){.map = NULL};
	r = found_in_carousel(group, &from, log);
	if (r)
		group_free(group, true);
	else
		*ret = group;
	return r;
}

/* ---- finding ---- */

static bool is_of_job(const struct group *group, const struct conn *conn)
{
	const struct request *request = &conn->request;

	return group->variant == conn->variant && group->uid == conn->uid &&
	       group->ranks == request->ranks && group->batch == request->batch &&
	       group->epochs == request->epochs && group->part == request->part.sum &&
	       strcmp(group->job, request->job) == 0;
}

uint64_t group_origin(const struct request *request)
{
	struct hash_id id;
	uint64_t origin;

	if (!request->token.data)
		return 0;
	hash_of(request->token.data, request->token.size, &id);
	memcpy(&origin, id.bytes, sizeof(origin));
	return origin;
}

enum refusal { REFUSED_OTHER, REFUSED_LATE };

int group_refuse_parted(const struct conn *conn, struct diag *diag)
{
	return diag_fail(
	    diag, OA_E_TOKEN,
	    "rank %u of job \"%s\": other ranks of this job went on by a plan that lacks what "
	    "accessd gave this one since they were with it, and accessd's own log of it is "
	    "gone; end all ranks, and start them again with one token (rank 0's)",
	    conn->request.rank, conn->request.job);
}

/* Why the rank cannot be let in beside the others. */
static int refuse(const struct group *group, const struct conn *conn, enum refusal why,
		  uint64_t *code, struct diag *diag)
{
	static const char *const texts[] = {
	    [REFUSED_OTHER] =
		"from another token; give all ranks the same one (rank 0's), end those "
		"that still run, or give this run another job name",
	    [REFUSED_LATE] = "ahead by more of the plan than is kept (two epochs), and this one "
			     "comes too late; give it rank 0's token",
	};

	*code = conn->request.token.data ? OA_E_TOKEN : OA_E_REFUSED;
	diag_set(diag, "rank %u of job \"%s\": %u ranks of this job run %s", conn->request.rank,
		 group->job, group->present, texts[why]);
	return 1;
}

static bool is_of_plan(const struct group *group, const struct token *token)
{
	return token->has_log && memcmp(group->plan_log.id, token->log, PLAN_LOG_PLAN) == 0;
}

/* Who brings a log of another version of its plan, and has had what this one lacks, may not found one more while those of this
 * one may come back. A token alone may be the first one of all that are started again with it. */
static bool has_parted(const struct group *group, const struct conn *conn,
		       const struct token *token)
{
	return conn->request.log_fd >= 0 && is_of_plan(group, token);
}

/* May it have ranks that have not been here? */
static bool may_have_others(const struct group *group)
{
	return group->is_resumed && bits_count(group->begun, group->ranks) < group->ranks;
}

/* The rank has been here, and begins anew when nobody is left. */
static bool is_another_run(const struct group *group, const struct conn *conn)
{
	if (conn->request.token.data || group->present ||
	    !bits_test(group->begun, conn->request.rank))
		return false;
	return !may_have_others(group) || !carousel_has_place(conn->stream->carousel, group->number,
							      group->plan_log.first_epoch, 0);
}

/* The group that the token, or its lack, means. *ret_place: where in it. */
static struct group *find(struct conn *conn, const struct token *token, uint64_t origin,
			  struct carousel_join *join, struct group **ret_other)
{
	struct group *group, *next, *found = NULL;

	*ret_other = NULL;
	for (group = LIST_FIRST(&conn->stream->users.groups); group && !found; group = next) {
		next = LIST_NEXT(group, link);
		if (!is_of_job(group, conn))
			continue;
		if (token->has_log &&
		    plan_log_has(&group->plan_log, token->log, token->epoch, token->place)) {
			join->place = token->place;
			found = group;
		} else if (group->plan_log.origin == origin && !is_another_run(group, conn)) {
			join->epoch = group->plan_log.first_epoch;
			join->place = 0;
			found = group;
		} else if (group->present || has_parted(group, conn, token)) {
			*ret_other = group;
		} else {
			group_free(group, true); /* of a run that is over */
		}
	}
	return found;
}

/* All of the token's epoch is delivered. */
static void skip_end_of_epoch(const struct token *token, struct carousel_join *join)
{
	if (!join->need || token->n_tail || join->need_samples)
		return;
	join->epoch++;
	join->place = 0;
}

bool group_is_there(struct conn *conn, const struct token *token, uint64_t origin)
{
	struct carousel_join unused = {.epoch = 0};
	struct group *other;

	return find(conn, token, origin, &unused, &other) || other;
}

int group_enter(struct conn *conn, const struct token *token, uint64_t origin, struct brought *log,
		struct carousel_join *join, struct group **ret, uint64_t *code, struct diag *diag)
{
	struct carousel *carousel = conn->stream->carousel;
	struct group *other, *group = find(conn, token, origin, join, &other);
	int r;

	if (!group && other && is_of_plan(other, token)) {
		*code = (uint64_t)group_refuse_parted(conn, diag);
		return 1;
	}
	if (!group && other)
		return refuse(other, conn, REFUSED_OTHER, code, diag);
	if (!group) {
		r = group_found(conn, log, join, &group);
		if (r) {
			*code = r == CAROUSEL_E_BAD ? OA_E_TOKEN : OA_E_MEMORY;
			diag_set(diag, "%s",
				 r == CAROUSEL_E_BAD ? "the token contradicts itself"
				 : r == CAROUSEL_E_FULL
				     ? "the stream serves its most jobs already"
				     : "no memory is left for the job's plan log: close "
				       "other streams, or raise `memory` or "
				       "`tenant_memory` of accessd");
			return r;
		}
		log_line(LOG_LEVEL_INFO, "group-open",
			 "job=\"%s\" ranks=%u batch=%u epoch=%llu place=%llu", group->job,
			 group->ranks, group->batch, (unsigned long long)join->epoch,
			 (unsigned long long)join->place);
	}
	skip_end_of_epoch(token, join);
	join->group = group->number + 1;
	*ret = group;
	if (carousel_has_place(carousel, group->number, join->epoch, join->place))
		return 0;
	return refuse(group, conn, REFUSED_LATE, code, diag);
}

/* ---- life ---- */

/* Has nobody come back to it for so long? */
static bool is_over(const struct group *group, uint64_t now_ns)
{
	return !group->present && now_ns - BASE_MIN(group->left_ns, now_ns) > KEPT_NS;
}

void group_joined(struct group *group, uint32_t rank)
{
	bits_set(group->begun, rank);
	if (group->present++ == 0) /* also a run that goes on: a file may be another one now */
		group->since = revisit_opened(&group->stream->users.revisit);
}

void group_left(struct group *group)
{
	if (--group->present == 0)
		group->left_ns = base_now_ns();
}

struct group *group_log(struct stream *stream, const struct carousel_action *action)
{
	struct entry entry;
	struct group *group;

	LIST_FOREACH(group, &stream->users.groups, link)
		if (group->number == action->job)
			break;
	if (!group)
		return NULL;
	carousel_newest(stream->carousel, group->number, &entry);
	plan_log_append(&group->plan_log, &entry);
	show(group);
	return group;
}

void group_sweep(struct stream *stream, uint64_t now_ns)
{
	BASE_EACH_LEAVING(group, &stream->users.groups, link)
		if (is_over(group, now_ns))
			group_free(group, !may_have_others(group));
}

void group_leave_all(struct stream *stream)
{
	BASE_EACH(group, &stream->users.groups, link)
		keep_lend(&group->keep);
}

/* The stream ends where it may before the groups do that nobody is in: their logs stay for who comes back. */
void group_free_all(struct stream *stream)
{
	const bool is_running = stream->state == STREAM_RUNS && !stream->node->draining;

	BASE_EACH_LEAVING(group, &stream->users.groups, link) {
		const bool is_over_now =
		    is_running && is_over(group, base_now_ns()) && !may_have_others(group);

		if (is_running && !group->present && !is_over_now)
			keep_leave(&group->keep,
				   may_have_others(group) ? NULL : base_take_ptr(group->begun),
				   group->ranks);
		group_free(group, is_over_now);
	}
}
