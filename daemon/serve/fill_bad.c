/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong while a slot is filled: bad samples and their policies, lies, deaths; and what is
 * left out by the pipeline's filter, with which nothing is wrong.
 *
 * That a file could not be read, or has changed, is the reader's to say: it says so on its socket before
 * it says so in the task's word, and a word alone is a worker's lie, which spoils its sample and nothing
 * else. A death says nothing about a sample the first time.
 *
 * A file that has changed since it was listed is a bad sample where those are skipped or substituted; a
 * job that wants none learns that there is a new version to open. Where the dataset as a whole is not what
 * it was (a converted file was written to, its folder is out of reach), no policy goes on.
 */
#include "daemon/serve/fill_parts.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/philox.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/stream_fail.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "storage/index.h"

#define MOST_KILLS 10             /* of workers, after each of which their sample is tried again */
#define KILLS_WITH_ROOM 5         /* for so many counts one that left much memory free */
#define SUBSTITUTE_STREAM 0x5355u /* philox stream of the draw of substitutes */
#define DOUBT_TICKS 8             /* the reader's message is there long before */

void fill_release_extent(struct stream *stream, struct fill_task *task)
{
	if (task->has_extent)
		arena_release(&stream->shared.arena, task->extent);
	task->has_extent = false;
}

uint64_t fill_substitute_of(const struct stream *stream, const struct carousel_chunk *chunk,
			    uint32_t i, unsigned attempt)
{
	uint64_t seed = chunk->keys ? chunk->keys[i].seed : chunk->seed;
	uint64_t nonce = chunk->keys ? chunk->keys[i].nonce : chunk->nonce;
	struct philox_seq seq;

	philox_seq_init(&seq, seed ^ nonce, (uint64_t)chunk->ids[i], SUBSTITUTE_STREAM + attempt);
	return philox_below(&seq, stream->geometry.n_samples);
}

/* The dataset is not what it was, all of it. */
static bool is_gone(enum layout_fail stage, int code)
{
	int error = code < 0 ? -code : code;

	return (stage == LAYOUT_FAIL_CHANGED && error == LAYOUT_CHANGED_ALL) ||
	       (stage == LAYOUT_FAIL_OPEN && (error == ESTALE || error == ENODEV));
}

/* What is known of bad samples is of the stream's memory. */
static void keep_bad(struct stream *stream, uint64_t id, enum layout_fail stage, int code,
		     const char *detail)
{
	uint64_t bytes;

	bad_keep(&stream->bad, id, stage, code, detail, tenant_free_bytes(stream->payer));
	bytes = bad_bytes(&stream->bad) - stream->bytes.bad;
	if (!bytes)
		return;
	stream->bytes.bad += bytes;
	stream->bytes.fixed += bytes;
	stream_account(stream, stream->payer, (int64_t)bytes);
}

/* Tells jobs about a bad sample once, and ends those whose budget it exceeds: also when it was
 * known before they came. */
static void count_bad(struct stream *stream, bool is_new, const char *text)
{
	if (is_new) {
		stream->node->counters.bad_samples++;
		log_line(LOG_LEVEL_WARN, "bad-sample", "queue=%u what=\"%s\"",
			 stream->shared.queue.number, text);
	}
	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++) {
		struct job *job = stream->users.job[i];
		char spent[800];

		if (!job || !job->active)
			continue;
		if (stream->asked.policy == PROTO_POLICY_ERROR ||
		    stream->bad.count <= job->budget) {
			if (is_new)
				conn_send_text(job->conn, PROTO_NOTICE, 0, text);
			continue;
		}
		snprintf(
		    spent, sizeof(spent),
		    "%llu bad samples, more than the budget of %llu (all of them: "
		    "Loader.bad_samples, oa_bad_samples(3), access-ctl bad %llu); the last: %s",
		    (unsigned long long)stream->bad.count, (unsigned long long)job->budget,
		    (unsigned long long)job->id, text);
		job_fail(job, OA_E_SAMPLE, spent);
	}
}

/* All variants of a stream have one outcome, so any may be asked. */
static bool filters(const struct stream *stream)
{
	VARIANT_EACH(variant, stream)
		if (variant->pipeline) /* one that is gone has none any more */
			return pipeline_filters(variant->pipeline);
	return false;
}

/* The next substitute; false: there were enough. */
static bool substitute(struct stream *stream, struct fill *fill, uint32_t i)
{
	struct fill_task *task = &fill->task[i];

	if (task->attempt >= FILL_SUBSTITUTES)
		return false;
	task->attempt++;
	task->died = task->is_plain = false;
	task->kills = 0;
	task->source = fill_substitute_of(stream, fill_chunk_of(stream, fill), i, task->attempt);
	fill->again++;
	return true;
}

/* The pipeline does not want it: a hole, nobody's fault, and the same for all who share. What does not
 * fit cannot stand in for another one either. */
static void leave_out(struct stream *stream, struct fill *fill, uint32_t i)
{
	struct fill_task *task = &fill->task[i];

	fill_release_extent(stream, task);
	task->queued = false;
	if (task->attempt > 0 && substitute(stream, fill, i))
		return;
	stream->figures.samples_filtered++;
	fill_finish(stream, fill, i, LAYOUT_SAMPLE_FILTERED);
}

static void apply_policy(struct stream *stream, struct fill *fill, uint32_t i, const char *text)
{
	const struct carousel_chunk *chunk = fill_chunk_of(stream, fill);
	struct fill_task *task = &fill->task[i];

	fill_release_extent(stream, task);
	task->queued = false;
	if (stream->asked.policy == PROTO_POLICY_SUBSTITUTE && substitute(stream, fill, i))
		return;
	if (stream->asked.policy == PROTO_POLICY_ERROR) {
		bad_explain(&stream->bad, chunk->instance, i, (uint64_t)chunk->ids[i], text);
		fill_finish(stream, fill, i, LAYOUT_SAMPLE_ERROR);
	} else {
		fill_finish(stream, fill, i, LAYOUT_SAMPLE_SKIPPED);
	}
}

static void fail_changed(struct stream *stream, const char *text)
{
	char changed[700];

	snprintf(changed, sizeof(changed), "dataset changed: %s; open it again for the new version",
		 text);
	source_forget(stream->source);
	stream_fail(stream, OA_E_DATASET, changed);
}

void fill_handle_bad(struct stream *stream, struct fill *fill, uint32_t i, enum layout_fail stage,
		     int code, const char *detail)
{
	const struct source *source = stream->source;
	uint64_t sample = fill->task[i].source;
	char folder[PATH_MAX], text[600];
	bool is_new;

	if (stage == LAYOUT_FAIL_FILTERED && filters(stream)) {
		leave_out(stream, fill, i);
		return;
	}
	if (stage == LAYOUT_FAIL_FILTERED) { /* a worker's lie */
		stream->node->counters.nonsense++;
		stage = LAYOUT_FAIL_DECODE;
	}
	bad_folder(folder, sizeof(folder), source_shown(source),
		   dataset_kind(source->dataset) == INDEX_OF_MANIFEST);
	bad_text(text, sizeof(text), folder, dataset_name_of(source->dataset, sample), sample,
		 stage, code, detail);
	if (is_gone(stage, code) ||
	    (stage == LAYOUT_FAIL_CHANGED && stream->asked.policy == PROTO_POLICY_ERROR)) {
		fail_changed(stream, text);
		return;
	}
	stream->bad.has_unread |= stage == LAYOUT_FAIL_OPEN || stage == LAYOUT_FAIL_READ;
	is_new = bad_add(&stream->bad, sample);
	if (is_new)
		keep_bad(stream, sample, stage, code, detail);
	apply_policy(stream, fill, i, text);
	count_bad(stream, is_new, text);
	if (is_new && stage == LAYOUT_FAIL_CHANGED)
		source_forget(source);
}

bool fill_tries_file(struct stream *stream, struct fill *fill, uint32_t i, enum layout_fail stage)
{
	struct fill_task *task = &fill->task[i];
	struct queue_kept kept;

	queue_task_kept(&stream->shared.queue, fill->row, i, &kept);
	if (task->is_plain || !kept.form || !task->keep.want || fill_is_of_reader(stage) ||
	    stage == LAYOUT_FAIL_FILTERED)
		return false;
	stream->cache.figures.wrong++;
	fill_release_extent(stream, task);
	task->is_plain = true;
	task->queued = task->died = false;
	task->kills = 0;
	fill->again++;
	return true;
}

/* ---- whom to believe ---- */

bool fill_is_of_reader(enum layout_fail stage)
{
	return stage == LAYOUT_FAIL_OPEN || stage == LAYOUT_FAIL_READ ||
	       stage == LAYOUT_FAIL_CHANGED;
}

bool fill_is_settled(struct stream *stream, struct fill *fill, uint32_t i, enum layout_fail *stage)
{
	struct fill_task *task = &fill->task[i];
	struct node *node = stream->node;

	if (!fill_is_of_reader(*stage) || task->told)
		return true;
	if (!task->doubt)
		task->doubt = node->counters.ticks;
	if (node->counters.ticks - task->doubt < DOUBT_TICKS) {
		fill->has_doubts = true;
		return false;
	}
	node->counters.nonsense++;
	*stage = LAYOUT_FAIL_DECODE;
	return true;
}

/* ---- deaths ---- */

/* A worker says itself that it could not make what was to be kept; who is dead does not, and others may wait for that. */
static void tell_unmade(struct stream *stream, const struct fill_task *task)
{
	if (task->keep.make && stream->domain->reading.peers > 0)
		reading_unmade(&stream->domain->reading, stream->shared.queue.number,
			       task->keep.make, task->source);
}

static bool is_killed(const struct fill_death *death)
{
	return WIFSIGNALED(death->status) && WTERMSIG(death->status) == SIGKILL;
}

/* One more try: the bytes are still in the arena. A second death, or a hang, is the sample's. SIGKILL is the user's, or a
 * kernel's that was short of memory. Who is killed because others fill the memory frees little, and that may go on for a while;
 * where much is free as soon as he is gone, it was he who had filled it, and each further try costs the node one more
 * out-of-memory event. */
static bool is_tried_again(const struct fill_task *task, const struct fill_death *death)
{
	if (death->stage != LAYOUT_FAIL_CRASH)
		return false;
	return is_killed(death) ? task->kills < MOST_KILLS : !task->died;
}

/* What it used on it is its stream's (fill_fair.c):
 * who is dead cannot say that. */
static void take_from_worker(struct stream *stream, struct fill *fill,
			     const struct fill_death *death)
{
	for (uint32_t i = 0; i < fill->fed; i++) {
		bool again = is_tried_again(&fill->task[i], death);
		enum layout_task_state to = again ? LAYOUT_TASK_READY : LAYOUT_TASK_FAILED;

		if (!queue_task_take_over(&stream->shared.queue, fill->row, i, death->owner,
					  LAYOUT_TASK_RUNNING, to, death->stage, death->status))
			continue;
		fill->task[i].kills += !is_killed(death)  ? 0
				       : death->left_room ? KILLS_WITH_ROOM
							  : 1;
		fill->task[i].died |= !is_killed(death);
		if (!again)
			tell_unmade(stream, &fill->task[i]);
		stream->share.work_us += death->work_us;
	}
	queue_recount(&stream->shared.queue, fill->row);
	fill->has_doubts = true;
}

void fill_worker_died(struct stream *stream, const struct fill_death *death)
{
	for (unsigned b = 0; b < LAYOUT_MAX_ROWS; b++)
		if (stream->fill[b].used)
			take_from_worker(stream, &stream->fill[b], death);
}

void fill_read_failed(struct stream *stream, uint64_t row, uint64_t task, uint64_t sample)
{
	for (unsigned b = 0; b < LAYOUT_MAX_ROWS; b++) {
		struct fill *fill = &stream->fill[b];

		if (fill->used && fill->row == row && task < fill->fed && fill->task[task].queued &&
		    fill->task[task].source == sample)
			fill->task[task].told = true;
	}
}

/* The reader's word, but its message may have died with it: read again. */
static void ask_again(struct stream *stream, struct fill *fill, uint32_t i)
{
	struct fill_task *task = &fill->task[i];
	enum layout_fail stage;
	uint32_t work_us;
	char text[48];
	int code;

	if (!task->queued || task->told || task->status != LAYOUT_SAMPLE_PENDING)
		return;
	queue_task_outcome(&stream->shared.queue, fill->row, i, &stage, &code, text, &work_us);
	if (!fill_is_of_reader(stage))
		return;
	fill_release_extent(stream, task);
	task->queued = false;
	fill->again++;
}

static void take_from_reader(struct stream *stream, struct fill *fill)
{
	for (uint32_t i = 0; i < fill->fed; i++) {
		uint32_t owner;

		switch (queue_task_state(&stream->shared.queue, fill->row, i, &owner)) {
		case LAYOUT_TASK_READING:
			queue_task_take_over(&stream->shared.queue, fill->row, i, owner,
					     LAYOUT_TASK_READING, LAYOUT_TASK_QUEUED,
					     LAYOUT_FAIL_NONE, 0);
			fill->task[i].told = false;
			break;
		case LAYOUT_TASK_FAILED:
			ask_again(stream, fill, i);
			break;
		default:
			break;
		}
	}
	queue_recount(&stream->shared.queue, fill->row);
	fill->has_doubts = true;
}

void fill_reader_died(struct stream *stream)
{
	for (unsigned b = 0; b < LAYOUT_MAX_ROWS; b++)
		if (stream->fill[b].used)
			take_from_reader(stream, &stream->fill[b]);
}
