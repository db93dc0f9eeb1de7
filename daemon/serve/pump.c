/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pump. Its order matters: first everything that happened (outboxes, finished tasks), then the
 * carousel's decisions until it has none, then reading ahead, then what jobs see of it, last the
 * wakes, so that a job that wakes finds all that was decided in this turn. A turn that has used up its
 * budget ends all the same in this order, and the next one goes on.
 */
#include "daemon/serve/pump.h"

#include "daemon/budget.h"
#include "daemon/cache/cache.h"
#include "daemon/node.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/group.h"
#include "daemon/serve/job.h"
#include "daemon/serve/revisit.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/serve/variant_life.h"
#include "daemon/tenant/domain.h"
#include "libaccess/libaccess.h"

/* Before anything else is looked at: who sleeps without having said so has waited for what it was to wait for. */
static void poll_jobs(struct stream *stream, uint64_t now_ns)
{
	for (unsigned i = 0; i < carousel_jobs_end(stream->carousel); i++) {
		struct job *job = stream->users.job[i];

		if (!job || !job->active)
			continue;
		job_poll(job, now_ns);
		if (job->is_asleep && job->front)
			job_slept(job, job->stage, now_ns);
	}
}

/* Its log has an entry more. */
static void tell_group(struct stream *stream, const struct group *group)
{
	for (uint32_t i = 0; group && i < carousel_jobs_end(stream->carousel); i++) {
		struct job *job = stream->users.job[i];

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

static void apply(struct stream *stream, const struct carousel_action *action, uint64_t now_ns)
{
	switch (action->kind) {
	case CAROUSEL_GRANT:
		job_grant(stream->users.job[action->job], action);
		break;
	case CAROUSEL_REVOKE:
		job_revoke(stream->users.job[action->job], action->slot, now_ns);
		break;
	case CAROUSEL_EMPTY:
		variant_show_empty(stream, action->slot);
		break;
	case CAROUSEL_PRODUCE:
		fill_begin(stream, action->slot, now_ns);
		break;
	case CAROUSEL_FAIL:
		job_fail(stream->users.job[action->job], OA_E_INVALID,
			 "the list of an epoch: it names a sample or a key that there is not");
		break;
	case CAROUSEL_LOG:
		tell_group(stream, group_log(stream, action));
		break;
	case CAROUSEL_NONE:
		break;
	}
}

/* Returns when the carousel wants to be asked again, 0: after the next event. Its decisions are as many as a
 * client makes them: ranks that must know an epoch ahead have all of its chunks dealt. So the turn ends with
 * its budget, and the carousel is asked again in the next one. */
static uint64_t decide(struct stream *stream, uint64_t now_ns, const struct budget *budget)
{
	struct carousel_action action;

	for (;;) {
		carousel_step(stream->carousel, now_ns, &action);
		if (action.kind == CAROUSEL_NONE || stream->state != STREAM_RUNS)
			return action.wake_ns;
		apply(stream, &action, now_ns);
		if (budget_is_spent(budget))
			return now_ns;
	}
}

/* ---- what jobs see ---- */

/* The chunk in production that the job comes to first; NULL: none. */
static struct fill *front_of(const struct job *job)
{
	struct fill *fills = job->stream->fill;
	uint64_t next = 0;

	while ((next = grant_next_open(&job->grants, next))) {
		const uint32_t slot = job->grants.ledger[next % LAYOUT_GRANT_RING].slot;
		const struct fill *fill = fill_of_slot(fills, slot);

		if (fill)
			return &fills[fill - fills];
	}
	return NULL;
}

/* front: front_of(). */
static enum layout_stage stage_of(const struct job *job, const struct fill *front)
{
	const struct stream *stream = job->stream;
	uint32_t slot;

	if (stream->node->draining)
		return LAYOUT_STAGE_DRAIN;
	if (front)
		return fill_stage(stream, front);
	if (job_awaits_look(job, &slot))
		return LAYOUT_STAGE_READ;
	if (!stream->domain->workers.alive)
		return LAYOUT_STAGE_WORKERS;
	if (carousel_may_begin(stream->carousel))
		return LAYOUT_STAGE_SLOT;
	return LAYOUT_STAGE_SCHEDULE;
}

/* Who takes chunks in their order waits for the first unfinished one; others wait for a late sample only where nothing
 * else is made for them. */
bool pump_is_late(const struct stream *stream, const struct job *job, uint64_t *ret_sample)
{
	const bool has_order = plan_is_fixed(job->order) || job->group;
	bool is_late = false;
	uint64_t next = 0;

	while ((next = grant_next_open(&job->grants, next))) {
		const uint32_t slot = job->grants.ledger[next % LAYOUT_GRANT_RING].slot;
		const struct fill *fill = fill_of_slot(stream->fill, slot);

		if (!fill)
			continue;
		if (!carousel_is_late(stream->carousel, slot))
			return has_order && is_late;
		if (!is_late)
			*ret_sample = fill_awaits(stream, fill);
		is_late = true;
	}
	return is_late;
}

enum layout_stage pump_stage_of(const struct job *job)
{
	return stage_of(job, front_of(job));
}

/* Wakes whom there is news for. */
static void wake_jobs(struct stream *stream, uint64_t now_ns)
{
	for (unsigned i = 0; i < carousel_jobs_end(stream->carousel); i++) {
		struct job *job = stream->users.job[i];

		if (!job || !job->active)
			continue;
		job_post_later(job);
		job_wake(job, now_ns);
		job->front = front_of(job);
		job->stage = stage_of(job, job->front);
	}
}

/* What the job is to tell. Where the chunk that it comes to next is in production, and no further one can be begun, nothing
 * would come of its sleep: it is seen when that chunk gets on. Where that chunk was overtaken something would: what
 * is finished may be granted; and of a rank's: its log may be too short for its next step. */
static uint32_t kicks_of(const struct stream *stream, const struct job *job)
{
	if (carousel_may_begin(stream->carousel))
		return LAYOUT_KICK_ENDS;
	return job->front && !job->group && !carousel_is_overtaken(stream->carousel)
		   ? LAYOUT_KICK_NO_SLEEP
		   : 0;
}

/* Shows, then looks once more: what a rank gave back, or that it went to sleep, before it could see the wish for a kick
 * must not wait for the next turn by chance, where it wished to know. */
static void show_jobs(struct stream *stream, uint64_t now_ns)
{
	bool again = false;

	for (unsigned i = 0; i < carousel_jobs_end(stream->carousel); i++) {
		struct job *job = stream->users.job[i];
		uint64_t sample;
		uint32_t kicks;
		bool was_asleep;

		if (!job || !job->active)
			continue;
		was_asleep = job->is_asleep;
		kicks = kicks_of(stream, job);
		job_show(job, job->is_asleep && pump_is_late(stream, job, &sample), kicks, now_ns);
		again |= job_poll(job, now_ns) && kicks & LAYOUT_KICK_ENDS;
		if (job->is_asleep && !was_asleep)
			again |= !(kicks & LAYOUT_KICK_NO_SLEEP);
	}
	if (again)
		stream_turn_soon(stream);
}

void pump_turn(struct stream *stream)
{
	uint64_t now_ns = base_now_ns(), wake_ns, feed_ns;
	const struct budget budget = budget_begin();
	struct budget feeding; /* its own: what was decided is begun in any case */

	if (stream->state != STREAM_RUNS)
		return;
	poll_jobs(stream, now_ns);
	group_sweep(stream, now_ns);
	fill_collect(stream);
	cache_tick(stream, now_ns);
	variant_sweep(stream);
	wake_ns = decide(stream, now_ns, &budget);
	feeding = budget_begin();
	feed_ns = fill_feed(stream, &feeding);
	if (fill_collect(stream)) {
		cache_tick(stream, now_ns);
		wake_ns = decide(stream, now_ns, &budget);
		feed_ns = fill_feed(stream, &feeding);
	}
	if (stream->state != STREAM_RUNS)
		return;
	revisit_turn(stream);
	fill_ahead(stream, now_ns);
	if (feed_ns && (!wake_ns || feed_ns < wake_ns))
		wake_ns = feed_ns;
	if (wake_ns)
		loop_timer_set(stream->pump_timer, wake_ns > now_ns ? wake_ns - now_ns : 0);
	doorbell_arm_event(stream->domain->doorbell);
	if (fill_arm(stream))
		stream_turn_soon(stream);
	wake_jobs(stream, now_ns);
	show_jobs(stream, now_ns);
}

bool pump_tick(struct stream *stream)
{
	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++)
		if (variant_is_open(stream->variant[i]))
			reserve_gather(stream->variant[i]);
	stream_turn_soon(stream);
	cache_tick(stream, base_now_ns());
	return stream->state == STREAM_RUNS && (stream->users.n_jobs || fill_active(stream->fill));
}
