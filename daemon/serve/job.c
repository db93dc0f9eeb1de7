/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs. A job's shared words are hostile: grant_poll() turns them into fates of grants that were
 * really posted, everything else is counted as nonsense and has no effect.
 *
 * The inbox's ring holds fewer grants than a stream may have slots, so a grant that finds it full
 * waits in job->later, in order; to the carousel it is granted all the same, and taking it back is
 * free. So does one whose files are to be looked at first (revisit.h).
 */
#include "daemon/serve/job.h"

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/group.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"
#include "shmring/inbox.h"

#define GRANT_LATER UINT64_MAX /* granted: it waits in job->later */

struct job_later {
	uint32_t slot, first;
	uint64_t epoch;
	bool last;
};

/* ---- making ---- */

static int make_memory(struct job *job, uint32_t max_slots, int *inbox_fd, int *outbox_fd)
{
	struct layout_inbox *inbox;
	const struct layout_outbox *outbox;
	int r;

	job->slot = calloc(max_slots, sizeof(*job->slot));
	job->later = calloc(max_slots, sizeof(*job->later));
	if (!job->slot || !job->later)
		return -ENOMEM;
	r = grant_memory_new(&inbox, inbox_fd, &outbox, outbox_fd);
	if (!r)
		grant_server_init(&job->grants, inbox, outbox);
	return r;
}

void job_destroy(struct job *job)
{
	if (job->grants.inbox)
		grant_memory_free(job->grants.inbox, job->grants.outbox);
	free(job->slot);
	free(job->later);
	free(job->name);
	lists_fini(&job->lists);
	free(job);
}

struct job *job_new(struct conn *conn, int *inbox_fd, int *outbox_fd)
{
	const struct request *request = &conn->request;
	struct stream *stream = conn->stream;
	const uint64_t n = stream->geometry.n_samples, now_ns = base_now_ns();
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->conn = conn;
	job->stream = stream;
	job->batch = request->batch;
	job->epochs = request->epochs;
	job->order = request->order;
	if (!job->order)
		job->order = pipeline_is_random(conn->variant->pipeline) ? PLAN_CAROUSEL : PLAN_ANY;
	job->stride = plan_is_fixed(job->order) || request->ranks > 1 ? 1 : job->batch;
	job->budget = request_budget(request, n);
	pace_begin(&job->pace, now_ns);
	job->name = strdup(request->job);
	if (!job->name || make_memory(job, stream->geometry.max_slots, inbox_fd, outbox_fd)) {
		job_destroy(job);
		return NULL;
	}
	lists_init(&job->lists, &stream->node->porters, &stream->node->endings, conn->uid);
	waits_init(&job->waits, now_ns);
	return job;
}

/* ---- ending ---- */

/* The process lives on and may take what was granted at any moment, also before it has read that
 * its job has ended: each grant is withdrawn by the handshake, and what it has taken, or may have,
 * is its pin. */
static void withdraw_all(struct job *job, uint64_t now_ns)
{
	for (uint32_t slot = 0; slot < job->stream->geometry.max_slots; slot++) {
		if (!job->slot[slot].granted || job->slot[slot].held ||
		    job->slot[slot].granted == GRANT_LATER)
			continue;
		if (grant_revoke(&job->grants, job->slot[slot].granted) == 0)
			continue;
		job->slot[slot].held = true;
		carousel_taken(job->stream->carousel, job->number, slot, now_ns);
	}
}

uint64_t job_taken(const struct job *job)
{
	struct carousel_job_view view = {.taken = 0};

	if (job->active)
		carousel_job(job->stream->carousel, job->number, base_now_ns(), &view);
	return view.taken;
}

/* What a job took since it was accounted for last would have been made for it alone. */
static void add_taken(struct job *job, struct fair_account *more)
{
	const struct stream *stream = job->stream;
	const uint64_t taken = job_taken(job);
	const double samples = taken > job->had.samples ? (double)(taken - job->had.samples) : 0;

	job->had.samples = BASE_MAX(job->had.samples, taken);
	more->alone_cpu_ns = samples * stream->share.fair.cost;
	if (stream->figures.samples_read)
		more->alone_bytes = samples * (double)stream->figures.bytes_read /
				    (double)stream->figures.samples_read;
}

void job_account(struct job *job, struct fair_account more)
{
	add_taken(job, &more);
	fair_account_add(&job->had.account, &more);
	fair_account_add(&job->conn->domain->had.account, &more);
}

/* Out of the carousel. pinned: its process still holds what it took, until its connection ends. */
static void leave(struct job *job, bool pinned)
{
	struct stream *stream = job->stream;
	uint64_t now_ns = base_now_ns();

	if (!job->active)
		return;
	job_poll(job, now_ns);
	if (job->conn->domain)
		job_account(job, (struct fair_account){.cpu_ns = 0});
	stream->node->counters.samples_delivered += job_taken(job);
	if (job->conn->domain)
		job->conn->domain->had.samples += job_taken(job);
	job->active = false;
	if (pinned) {
		withdraw_all(job, now_ns);
		carousel_leave_pinned(stream->carousel, job->number, now_ns);
	} else {
		carousel_leave(stream->carousel, job->number, now_ns);
	}
	stream->users.job[job->number] = NULL;
	stream->users.n_jobs--;
	job->conn->variant->n_jobs--;
	if (job->group)
		group_left(job->group);
	job->group = NULL;
	stream_turn_soon(stream);
}

/* The pins that leave() kept. */
static void unpin_all(struct job *job)
{
	struct stream *stream = job->stream;

	for (uint32_t slot = 0; slot < stream->geometry.max_slots; slot++)
		if (job->slot[slot].held)
			carousel_unpin(stream->carousel, slot);
	stream_turn_soon(stream);
}

void job_free(struct job *job)
{
	log_line(LOG_LEVEL_INFO, "job-end", "job=%llu name=\"%s\" pid=%ld",
		 (unsigned long long)job->id, job->name, (long)job->conn->pid);
	if (job->active)
		leave(job, false);
	else
		unpin_all(job);
	job_destroy(job);
}

void job_fail(struct job *job, uint64_t code, const char *text)
{
	log_line(LOG_LEVEL_WARN, "job-failed", "job=%llu name=\"%s\" reason=\"%.400s\"",
		 (unsigned long long)job->id, job->name, text);
	leave(job, true);
	conn_send_text(job->conn, PROTO_FAILED, code, text);
}

void job_lost(struct job *job, const char *text)
{
	leave(job, true);
	conn_send_text(job->conn, PROTO_LOST, 0, text);
}

/* ---- grants ---- */

static void apply_fate(struct job *job, const struct grant *grant, enum grant_fate fate,
		       uint64_t now_ns)
{
	struct carousel *carousel = job->stream->carousel;

	pace_moved(&job->pace, fate == GRANT_DONE ? grant->count : 0, now_ns);
	if (fate == GRANT_TAKEN) {
		job->slot[grant->slot].held = true;
		carousel_taken(carousel, job->number, grant->slot, now_ns);
		return;
	}
	job->slot[grant->slot].granted = 0;
	job->slot[grant->slot].held = false;
	if (fate == GRANT_DONE) {
		carousel_done(carousel, job->number, grant->slot, now_ns);
	} else {
		carousel_reclaimed(carousel, job->number, grant->slot, now_ns);
	}
}

bool job_poll(struct job *job, uint64_t now_ns)
{
	struct grant grant;
	const struct lists_job of = {job->stream->carousel, job->number};
	enum grant_fate fate;
	bool any = false;

	while (grant_poll(&job->grants, &grant, &fate, &job->stream->node->counters.nonsense) ==
	       0) {
		apply_fate(job, &grant, fate, now_ns);
		any = true;
	}
	carousel_waiting(job->stream->carousel, job->number, grant_is_waiting(&job->grants));
	job->is_asleep = grant_is_asleep(&job->grants);
	if (any)
		lists_let_go(&job->lists, &of);
	return any;
}

/* false: not now. */
static bool post(struct job *job, const struct job_later *later)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(job->stream->carousel, later->slot);
	struct grant grant = {.instance = chunk->instance,
			      .epoch = later->epoch,
			      .slot = later->slot,
			      .first = later->first,
			      .count = chunk->count - later->first,
			      .flags = later->last ? LAYOUT_GRANT_LAST : 0};

	if (!revisit_is_known(&job->stream->users.revisit, later->slot, job->since) ||
	    grant_post(&job->grants, &grant, &job->slot[later->slot].granted))
		return false;
	job->news |= fill_is_of_use(job->stream->fill, later->slot,
				    BASE_MIN(job->stride, job->slot[later->slot].end));
	return true;
}

void job_grant(struct job *job, const struct carousel_action *action)
{
	struct job_later later = {.slot = action->slot,
				  .first = action->first,
				  .epoch = action->epoch,
				  .last = action->last};

	job->slot[later.slot].end = action->end;
	if (job->n_later == 0 && post(job, &later))
		return;
	job->slot[later.slot].granted = GRANT_LATER;
	job->later[job->n_later++] = later;
}

void job_post_later(struct job *job)
{
	uint32_t posted = 0;

	while (posted < job->n_later && post(job, &job->later[posted]))
		posted++;
	job->n_later -= posted;
	memmove(job->later, job->later + posted, job->n_later * sizeof(*job->later));
}

bool job_awaits_look(const struct job *job, uint32_t *ret_slot)
{
	const uint32_t n = BASE_MIN(job->n_later, (uint32_t)LAYOUT_GRANT_RING);

	for (uint32_t i = 0; i < n; i++) {
		*ret_slot = job->later[i].slot;
		if (!revisit_is_known(&job->stream->users.revisit, *ret_slot, job->since))
			return true;
	}
	return false;
}

/* The newest one first: so their epochs stay whole. */
void job_take_back(struct job *job, uint32_t slot, uint64_t now_ns)
{
	uint32_t i = 0;

	while (i < job->n_later && job->later[i].slot != slot)
		i++;
	while (job->n_later > i) {
		const uint32_t last = job->later[--job->n_later].slot;

		job->slot[last].granted = 0;
		carousel_reclaimed(job->stream->carousel, job->number, last, now_ns);
	}
}

static void forget_later(struct job *job, uint32_t slot)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < job->n_later; i++)
		if (job->later[i].slot != slot)
			job->later[kept++] = job->later[i];
	job->n_later = kept;
}

void job_revoke(struct job *job, uint32_t slot, uint64_t now_ns)
{
	if (job->slot[slot].granted == GRANT_LATER)
		forget_later(job, slot);
	else if (grant_revoke(&job->grants, job->slot[slot].granted)) {
		job->slot[slot].held = true; /* or about to be: its end comes by grant_poll() */
		return;
	}
	job->slot[slot].granted = 0;
	carousel_reclaimed(job->stream->carousel, job->number, slot, now_ns);
}

/* For people here, and for the job's own statistics. */
static void note_wait(struct job *job, enum layout_stage stage, bool is_late, uint64_t now_ns)
{
	waits_note(&job->waits, stage, is_late, now_ns);
	inbox_show_late(job->grants.inbox, job->waits.late_ns);
}

void job_slept(struct job *job, enum layout_stage stage, uint64_t now_ns)
{
	const uint64_t slept_ns = inbox_slept_ns(job->grants.outbox);

	if (job->waits.stage == LAYOUT_STAGE_NONE)
		note_wait(job, stage, false, slept_ns ? BASE_MIN(slept_ns, now_ns) : now_ns);
}

void job_wake(struct job *job, uint64_t now_ns)
{
	if (job->news && grant_wants_wake(&job->grants)) {
		job->news = false;
		job->is_asleep = false;
		note_wait(job, LAYOUT_STAGE_NONE, false, now_ns);
		conn_wake(job->conn);
	}
}

void job_show(struct job *job, bool is_late, uint32_t kicks, uint64_t now_ns)
{
	struct inbox_figures figures;

	inbox_read_figures(job->grants.outbox, &figures);
	pace_said(&job->pace, figures.samples, now_ns);
	note_wait(job, job->is_asleep ? job->stage : LAYOUT_STAGE_NONE, is_late, now_ns);
	inbox_show(job->grants.inbox, job->stage, kicks, now_ns);
}
