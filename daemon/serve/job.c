/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs. A job's shared words are hostile: grant_poll() turns them into fates of grants that were
 * really posted, everything else is counted as nonsense and has no effect.
 *
 * The inbox's ring holds fewer grants than a stream may have slots, so a grant that finds it full
 * waits in job->later, in order; to the carousel it is granted all the same, and taking it back is
 * free.
 */
#include "daemon/serve/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/net/opening.h"
#include "daemon/net/porter.h"
#include "daemon/net/prepare.h"
#include "daemon/node.h"
#include "daemon/serve/group.h"
#include "daemon/serve/pump.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "sched/mix/batch_mix.h"
#include "sched/plan.h"
#include "sched/ranks/spread.h"
#include "shmring/inbox.h"

#define GRANT_LATER UINT64_MAX /* granted[]: it waits in job->later */

struct job_later {
	uint32_t slot, first;
	uint64_t epoch;
	bool last;
};

/* ---- opening ---- */

static int make_memory(struct job *job, uint32_t max_slots, int *inbox_fd, int *outbox_fd)
{
	job->granted = calloc(max_slots, sizeof(*job->granted));
	job->held = calloc(max_slots, sizeof(*job->held));
	job->later = calloc(max_slots, sizeof(*job->later));
	if (!job->granted || !job->held || !job->later)
		return -ENOMEM;
	return grant_memory_new(&job->inbox, inbox_fd, &job->outbox, outbox_fd);
}

static void job_destroy(struct job *job)
{
	if (job->inbox)
		grant_memory_free(job->inbox, job->outbox);
	free(job->granted);
	free(job->held);
	free(job->later);
	free(job->name);
	lists_fini(job);
	free(job);
}

#define MOST_WORK 32768 /* some 4 ms of the loop */

/* A spread is computed step by step, for each chunk anew. */
static int check_spread(const struct job *job, const struct slice *slice, uint64_t *code,
			struct diag *diag)
{
	uint32_t chunk = job->stream->geometry.chunk;

	if (!slice->is_spread || spread_work(slice, chunk) <= MOST_WORK)
		return 0;
	*code = OA_E_INVALID;
	diag_set(diag,
		 "chunks of %u samples, as the stream has, are too large for a spread of so many "
		 "small steps: "
		 "leave the spread out, or the chunk's size where the stream is opened",
		 chunk);
	return OA_E_INVALID;
}

/* *ret: where the job begins, need and token left out. */
static int enter_carousel(struct job *job, const struct request *request, struct carousel_join *ret,
			  uint64_t *code, struct diag *diag)
{
	const struct slice *slice = &request->slice;
	struct carousel_join join = {
	    .variant = job->conn->variant->number,
	    .batch = request->batch,
	    .ranks = slice_is_whole(slice) ? request->ranks : slice->count,
	    .slice = *slice,
	    .epochs = request->epochs,
	    .order = plan_is_fixed(request->order) ? request->order : 0,
	    .seed = request->seed,
	    .reuse = request->reuse,
	    .is_exact = request->is_exact,
	};
	int r = check_spread(job, slice, code, diag);

	if (!r)
		r = prepare_join(job->conn, &join, &job->group, code, diag);
	if (r)
		return r;
	r = carousel_join(job->stream->carousel, &join, base_now_ns(), &job->number);
	if (r) {
		*code = r == CAROUSEL_E_BAD ? OA_E_TOKEN : OA_E_MEMORY;
		diag_set(diag, "%s",
			 r == CAROUSEL_E_BAD    ? "the token contradicts itself"
			 : r == CAROUSEL_E_FULL ? "the stream serves its most jobs (256) already"
						: "out of memory");
		return r;
	}
	if (job->group)
		group_joined(job->group, request->rank);
	*ret = (struct carousel_join){.epoch = join.epoch, .place = join.place};
	return 0;
}

_Static_assert((int)PIPELINE_MIXUP == (int)BATCH_MIX_MIXUP &&
		   (int)PIPELINE_CUTMIX == (int)BATCH_MIX_CUTMIX,
	       "one numbering of ops on batches");

static void put_batch_mix(struct wire_out *out, const struct pipeline_batch *batch)
{
	struct proto_batch_mix item[BASE_ARRAY_LEN(batch->op)] = {{0}};

	for (unsigned i = 0; i < batch->n; i++)
		item[i] = (struct proto_batch_mix){
		    .kind = batch->op[i].kind,
		    .is_planar = batch->is_planar,
		    .classes = batch->classes,
		    .alpha = batch->op[i].alpha,
		    .p = batch->op[i].p,
		};
	if (batch->n)
		wire_put_bytes(out, PROTO_KEY_BATCH_MIX, item, batch->n * sizeof(item[0]));
}

static void send_opened(struct job *job, const struct carousel_join *join, int inbox_fd,
			int outbox_fd)
{
	const struct request *request = &job->conn->request;
	struct stream *stream = job->stream;
	const struct variant *variant = job->conn->variant;
	struct wire_out out;
	char text[1024];

	variant_tell_shared(job->conn, text, sizeof(text));
	wire_out_init(&out, PROTO_OPENED);
	wire_put_u64(&out, PROTO_KEY_JOB_ID, job->id);
	wire_put_u64(&out, PROTO_KEY_EPOCH, join->epoch);
	wire_put_u64(&out, PROTO_KEY_SHARED, stream->n_jobs - 1);
	wire_put_string(&out, PROTO_KEY_TEXT, text);
	wire_put_bytes(&out, PROTO_KEY_PIPELINE_ID, request->asked.bytes,
		       sizeof(request->asked.bytes));
	put_batch_mix(&out, &request->batch_mix);
	if (pipeline_filters(variant->pipeline))
		wire_put_u64(&out, PROTO_KEY_HOLES, 1);
	wire_put_fd(&out, variant->slots_read_fd);
	wire_put_fd(&out, variant->board_fd);
	wire_put_fd(&out, inbox_fd);
	wire_put_fd(&out, outbox_fd);
	if (!slice_is_whole(&request->slice))
		wire_put_u64(&out, PROTO_KEY_LOCAL_RANKS, request->slice.count);
	if (job->group) {
		wire_put_u64(&out, PROTO_KEY_PLACE, join->place);
		wire_put_fd(&out, job->group->plan_log_fd);
	}
	conn_send(job->conn, &out);
}

static struct job *job_make(struct conn *conn, int *inbox_fd, int *outbox_fd)
{
	const struct request *request = &conn->request;
	struct stream *stream = conn->stream;
	uint64_t n = stream->geometry.n_samples;
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
	job->started_ns = job->rate_ns = job->moved_ns = base_now_ns();
	job->name = strdup(request->job);
	if (!job->name || make_memory(job, stream->geometry.max_slots, inbox_fd, outbox_fd)) {
		job_destroy(job);
		return NULL;
	}
	waits_init(&job->waits, job->started_ns);
	grant_server_init(&job->grants, job->inbox, job->outbox);
	return job;
}

void job_open(struct conn *conn)
{
	_cleanup_close_ int inbox_fd = -1, outbox_fd = -1;
	struct stream *stream = conn->stream;
	struct carousel_join begin = {.epoch = 0};
	uint64_t code = OA_E_MEMORY;
	struct diag diag = {"out of memory or descriptors for the job's inbox and outbox"};
	struct job *job;

	if (cache_check(stream, &diag)) {
		conn_refuse(conn, OA_E_REFUSED, diag.text);
		return;
	}
	switch (stream_make_room(stream, &diag)) {
	case STREAM_E_LATER:
		return;
	case STREAM_E_MEMORY:
		if (!opening_falls_back(conn))
			conn_refuse(conn, OA_E_MEMORY, diag.text);
		return;
	}
	job = job_make(conn, &inbox_fd, &outbox_fd);
	if (!job || enter_carousel(job, &conn->request, &begin, &code, &diag)) {
		if (job)
			job_destroy(job);
		prepare_free(conn);
		conn_refuse(conn, code, diag.text);
		return;
	}
	prepare_free(conn);
	job->id = ++stream->node->next_id;
	job->active = true;
	stream->job[job->number] = job;
	stream->n_jobs++;
	conn->variant->n_jobs++;
	conn->job = job;
	conn->state = CONN_RUNS;
	inbox_set_end(job->inbox, job->epochs);
	log_line(LOG_LEVEL_INFO, "job-open",
		 "job=%llu name=\"%s\" pid=%ld lane=%u variant=%u batch=%u order=%s epoch=%llu",
		 (unsigned long long)job->id, job->name, (long)conn->pid, stream->lane.number,
		 conn->variant->number, job->batch, plan_name(job->order),
		 (unsigned long long)begin.epoch);
	porter_close(&stream->node->porters, conn->uid, &conn->request.log_fd);
	send_opened(job, &begin, inbox_fd, outbox_fd);
	node_need_tick(stream->node);
	pump_soon(stream);
}

/* ---- ending ---- */

/* The process lives on and may take what was granted at any moment, also before it has read that
 * its job has ended: each grant is withdrawn by the handshake, and what it has taken, or may have,
 * is its pin. */
static void withdraw_all(struct job *job, uint64_t now_ns)
{
	for (uint32_t slot = 0; slot < job->stream->geometry.max_slots; slot++) {
		if (!job->granted[slot] || job->held[slot] || job->granted[slot] == GRANT_LATER)
			continue;
		if (grant_revoke(&job->grants, job->granted[slot]) == 0)
			continue;
		job->held[slot] = true;
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

/* Out of the carousel. pinned: its process still holds what it took, until its connection ends. */
static void leave(struct job *job, bool pinned)
{
	struct stream *stream = job->stream;
	uint64_t now_ns = base_now_ns();

	if (!job->active)
		return;
	job_poll(job, now_ns);
	fill_leave(job);
	stream->node->counters.samples_delivered += job_taken(job);
	if (job->conn->domain)
		job->conn->domain->samples_delivered += job_taken(job);
	job->active = false;
	if (pinned) {
		withdraw_all(job, now_ns);
		carousel_leave_pinned(stream->carousel, job->number, now_ns);
	} else {
		carousel_leave(stream->carousel, job->number, now_ns);
	}
	stream->job[job->number] = NULL;
	stream->n_jobs--;
	job->conn->variant->n_jobs--;
	if (job->group)
		group_left(job->group);
	job->group = NULL;
	pump_soon(stream);
}

/* The pins that leave() kept. */
static void unpin_all(struct job *job)
{
	struct stream *stream = job->stream;

	for (uint32_t slot = 0; slot < stream->geometry.max_slots; slot++)
		if (job->held[slot])
			carousel_unpin(stream->carousel, slot);
	pump_soon(stream);
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

static void note_rate(struct job *job, uint32_t samples, uint64_t now_ns)
{
	job->rate_samples += samples;
	if (now_ns - job->rate_ns < UINT64_C(1000000000))
		return;
	job->rate = (double)job->rate_samples * 1e9 / (double)(now_ns - job->rate_ns);
	job->rate_samples = 0;
	job->rate_ns = now_ns;
}

/* Had it given back one more chunk just now, it would be as fast as this: no faster is it. Until it gave back its first
 * one, which a slow job holds for long, by what it says that it delivered. */
double job_rate(const struct job *job, uint64_t now_ns)
{
	uint64_t most = job->rate_samples + job->stream->geometry.chunk;
	double elapsed_ns = (double)(now_ns - BASE_MIN(job->rate_ns, now_ns));
	struct inbox_figures figures;

	if (job->rate == 0 && elapsed_ns > 0) {
		inbox_read_figures(job->outbox, &figures);
		return (double)BASE_MIN(figures.samples, most) * 1e9 / elapsed_ns;
	}
	return elapsed_ns < 1e9 ? job->rate : BASE_MIN(job->rate, (double)most * 1e9 / elapsed_ns);
}

uint64_t job_idle_ns(const struct job *job, uint64_t now_ns)
{
	return now_ns - BASE_MIN(job->moved_ns, now_ns);
}

/* Within a chunk its own word, which is for people alone, says that it goes on. */
static void note_delivery(struct job *job, uint64_t now_ns)
{
	struct inbox_figures figures;

	inbox_read_figures(job->outbox, &figures);
	if (figures.samples != job->delivered)
		job->moved_ns = now_ns;
	job->delivered = figures.samples;
}

static void apply_fate(struct job *job, const struct grant *grant, enum grant_fate fate,
		       uint64_t now_ns)
{
	struct carousel *carousel = job->stream->carousel;

	job->moved_ns = now_ns;
	if (fate == GRANT_TAKEN) {
		job->held[grant->slot] = true;
		carousel_taken(carousel, job->number, grant->slot, now_ns);
		return;
	}
	job->granted[grant->slot] = 0;
	job->held[grant->slot] = false;
	if (fate == GRANT_DONE) {
		note_rate(job, grant->count, now_ns);
		carousel_done(carousel, job->number, grant->slot, now_ns);
	} else {
		carousel_reclaimed(carousel, job->number, grant->slot, now_ns);
	}
}

bool job_poll(struct job *job, uint64_t now_ns)
{
	struct grant grant;
	enum grant_fate fate;
	bool any = false;

	while (grant_poll(&job->grants, &grant, &fate, &job->stream->node->counters.nonsense) ==
	       0) {
		apply_fate(job, &grant, fate, now_ns);
		any = true;
	}
	carousel_waiting(job->stream->carousel, job->number, grant_is_waiting(&job->grants));
	if (any)
		lists_let_go(job);
	return any;
}

/* false: the ring is full. */
static bool post(struct job *job, const struct job_later *later)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(job->stream->carousel, later->slot);
	struct grant grant = {.instance = chunk->instance,
			      .epoch = later->epoch,
			      .slot = later->slot,
			      .first = later->first,
			      .count = chunk->count - later->first,
			      .flags = later->last ? LAYOUT_GRANT_LAST : 0};

	if (grant_post(&job->grants, &grant, &job->granted[later->slot]))
		return false;
	job->news |= fill_is_of_use(job->stream, later->slot, job->stride);
	return true;
}

void job_grant(struct job *job, const struct carousel_action *action)
{
	struct job_later later = {.slot = action->slot,
				  .first = action->first,
				  .epoch = action->epoch,
				  .last = action->last};

	if (job->n_later == 0 && post(job, &later))
		return;
	job->granted[later.slot] = GRANT_LATER;
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
	if (job->granted[slot] == GRANT_LATER)
		forget_later(job, slot);
	else if (grant_revoke(&job->grants, job->granted[slot])) {
		job->held[slot] = true; /* taken, or about to be: its end comes by grant_poll() */
		return;
	}
	job->granted[slot] = 0;
	carousel_reclaimed(job->stream->carousel, job->number, slot, now_ns);
}

void job_wake(struct job *job, uint64_t now_ns)
{
	if (job->news && grant_wants_wake(&job->grants)) {
		job->news = false;
		waits_note(&job->waits, LAYOUT_STAGE_NONE, now_ns);
		conn_wake(job->conn);
	}
}

void job_show(struct job *job, enum layout_stage stage, bool wants_kick, uint64_t now_ns)
{
	note_delivery(job, now_ns);
	waits_note(&job->waits, grant_is_waiting(&job->grants) ? stage : LAYOUT_STAGE_NONE, now_ns);
	inbox_show(job->inbox, stage, wants_kick, now_ns);
}
