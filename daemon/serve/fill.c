/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling a slot.
 *
 * A chunk is made in all its variants at once: what ranks are shown goes to the slot table of each.
 *
 * The truth about a task is kept here, not in the queue, which workers can write: a queue's word can
 * end a task, no more, and each task ends once. A sample's status is written to the slot table before the
 * watermark passes it (slot_table_watermark() releases), and the watermark alone tells ranks what they
 * may read.
 *
 * accessd is rung seldom: when all tasks have ended without which the watermark cannot be at the next place where a job
 * that was granted the chunk can go on, or sooner when tasks wait for room in the arena. A ring needs
 * two flags, the doorbell's and the row's; the doorbell's is set first, the row's second, and then it is
 * looked once more whether what the ring would be for has come meanwhile. The node's tick is only
 * the net under that: a worker may be killed between taking a flag and ringing.
 */
#include "daemon/serve/fill.h"

#include "daemon/budget.h"
#include "daemon/cache/cache.h"
#include "daemon/node.h"
#include "daemon/serve/fill_parts.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/stream_fail.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "libaccess/libaccess.h"
#include "plan/plan.h"

#define FIRST_MEDIAN_US 1000
#define RING_STEP 16     /* finished tasks between rings while the arena is full */
#define TRIAL_STEP 16    /* tasks of a worker under way while forms are tried */
#define PROMISE_STEP 128 /* ... while other nodes wait for what is made of them */

int fill_init(struct stream *stream)
{
	stream->share.fair.weight = stream->share.reading.fair.weight = 1;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(stream->made.median_us); i++)
		stream->made.median_us[i] = FIRST_MEDIAN_US;
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++) {
		stream->fill[i].task = calloc(stream->shared.queue.chunk, sizeof(struct fill_task));
		if (!stream->fill[i].task)
			return -ENOMEM;
	}
	return 0;
}

void fill_fini(struct stream *stream)
{
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		free(stream->fill[i].task);
}

uint64_t fill_bytes_of(const struct stream *stream, uint32_t row, uint32_t task)
{
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++) {
		const struct fill *fill = &stream->fill[i];

		if (fill->used && fill->row == row && task < fill->fed)
			return dataset_size_of(stream->source->dataset, fill->task[task].source);
	}
	return 0;
}

const struct carousel_chunk *fill_chunk_of(const struct stream *stream, const struct fill *fill)
{
	return carousel_chunk_of(stream->carousel, fill->slot);
}

void fill_begin(struct stream *stream, uint32_t slot, uint64_t now_ns)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(stream->carousel, slot);
	struct fill *fill = NULL;
	uint64_t latest = 0;

	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++) {
		latest = BASE_MAX(latest, stream->fill[i].used ? stream->fill[i].started_ns : 0);
		if (!stream->fill[i].used && !fill)
			fill = &stream->fill[i];
	}
	if (!fill ||
	    queue_row_begin(&stream->shared.queue, ++stream->made.orders, chunk->nonce, chunk->seed,
			    slot, chunk->variants, chunk->count, &fill->row)) {
		stream_fail(stream, OA_E_REFUSED, "internal error: no row for a chunk");
		return;
	}
	for (uint32_t i = 0; i < chunk->count && chunk->keys; i++)
		queue_task_key(&stream->shared.queue, fill->row, i, chunk->keys[i].seed,
			       chunk->keys[i].nonce);
	variant_show_begin(stream, chunk->variants, slot, chunk);
	memset(fill->task, 0, chunk->count * sizeof(*fill->task));
	for (uint32_t i = 0; i < chunk->count; i++)
		fill->task[i].source = (uint64_t)chunk->ids[i];
	*fill = (struct fill){.used = true,
			      .row = fill->row,
			      .slot = slot,
			      .variants = chunk->variants,
			      .count = chunk->count,
			      .task = fill->task,
			      .started_ns = BASE_MAX(now_ns, latest + 1)};
	stream->made.variants = chunk->variants;
	revisit_begun(&stream->users.revisit, slot);
	stream->node->counters.chunks++;
	cache_begin(stream, fill, chunk);
	if (fill_active(stream->fill) == 1)
		fill_enter(stream);
}

/* ---- outcomes ---- */

void fill_finish(struct stream *stream, struct fill *fill, uint32_t i, uint8_t status)
{
	fill->task[i].status = status;
	fill->finished++;
	variant_show_status(stream, fill, i, status);
	stream->figures.samples_done++;
	stream->node->counters.samples_preprocessed++;
	stream->node->counters.outputs += (uint64_t)__builtin_popcount(fill->variants);
}

/* Follows the median without keeping values: up or down by a small share of itself. Each set of
 * variants has one, as it has costs of its own. */
static void note_time(struct stream *stream, uint32_t variants, uint32_t work_us)
{
	double *median_us = &stream->made.median_us[variants];
	double step = *median_us / 64 + 1;

	*median_us += work_us > *median_us ? step : -step;
}

void fill_count_read(struct stream *stream, uint32_t bytes)
{
	struct node_counters *counters = &stream->node->counters;

	stream->figures.samples_read++;
	stream->figures.bytes_read += bytes;
	counters->samples_read++;
	counters->bytes_read += bytes;
}

static void note_kept(struct stream *stream, const struct fill *fill, uint32_t i)
{
	const struct fill_task *task = &fill->task[i];
	struct queue_kept kept;

	queue_task_kept(&stream->shared.queue, fill->row, i, &kept);
	cache_note(stream, task, &task->keep, &kept, task->bytes);
	if (task->keep.make == LAYOUT_FORM_AUGMENTED && kept.made == LAYOUT_MADE_YES)
		cache_made(stream, task->source, fill_chunk_of(stream, fill)->nonce);
}

/* Not as its file, nor with it. */
static bool came_kept(const struct stream *stream, const struct fill *fill, uint32_t i)
{
	struct queue_kept kept;

	if (!fill->task[i].keep.want)
		return false;
	queue_task_kept(&stream->shared.queue, fill->row, i, &kept);
	return kept.form && kept.form != LAYOUT_FORM_INDEXED;
}

static void collect_ended(struct stream *stream, struct fill *fill, uint32_t i,
			  enum layout_task_state state)
{
	struct fill_task *task = &fill->task[i];
	enum layout_fail stage;
	uint32_t work_us;
	char text[48];
	int code;

	queue_task_outcome(&stream->shared.queue, fill->row, i, &stage, &code, text, &work_us);
	stream->share.work_us += work_us;
	if (state == LAYOUT_TASK_FAILED && !fill_is_settled(stream, fill, i, &stage))
		return;
	if (!came_kept(stream, fill, i) && (state == LAYOUT_TASK_DONE || !fill_is_of_reader(stage)))
		fill_count_read(stream, task->bytes);
	if (state == LAYOUT_TASK_FAILED && fill_tries_file(stream, fill, i, stage))
		return;
	if (state == LAYOUT_TASK_FAILED) {
		fill_handle_bad(stream, fill, i, stage, code, text);
		return;
	}
	note_time(stream, fill->variants, work_us);
	note_kept(stream, fill, i);
	fill_release_extent(stream, task);
	fill_finish(stream, fill, i, task->attempt ? LAYOUT_SAMPLE_SUBSTITUTED : LAYOUT_SAMPLE_OK);
}

/* A rank's windows follow each other from the start of the chunk, and anew after each hole; what is
 * before a hole is carried. */
static uint32_t windows_end(const struct fill *fill, uint32_t batch)
{
	return fill->after_hole + (fill->watermark - fill->after_hole) / batch * batch;
}

/* Is a chunk in production that was granted to the job before this one, whenever it was begun, and more to come of it for the
 * job? It cannot use this one before that, unless it may read what was begun later first, when that is finished
 * (libaccess/overtake.c). */
static bool has_older(struct stream *stream, const struct job *job, const struct fill *fill)
{
	if (fill->watermark == fill->count && !plan_is_fixed(job->order) && !job->group)
		return false;
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++) {
		const struct fill *other = &stream->fill[i];

		if (other->used && !other->is_ahead && job->slot[other->slot].granted &&
		    job->slot[other->slot].granted < job->slot[fill->slot].granted &&
		    other->watermark < job->slot[other->slot].end)
			return true;
	}
	return false;
}

/* Behind its last sample of the chunk, others' may follow. */
static bool has_passed(const struct fill *fill, uint32_t end, uint32_t before)
{
	return before < end && fill->watermark >= end;
}

/* Jobs for whom the chunk's watermark passed a window's end, a hole or their last sample find something when they look. */
static void tell_jobs(struct stream *stream, const struct fill *fill, uint32_t before)
{
	for (unsigned i = 0; i < carousel_jobs_end(stream->carousel); i++) {
		struct job *job = stream->users.job[i];

		if (!job || !job->slot[fill->slot].granted || has_older(stream, job, fill))
			continue;
		if (fill->watermark == fill->count || fill->after_hole > before ||
		    windows_end(fill, job->stride) > before ||
		    has_passed(fill, job->slot[fill->slot].end, before))
			job->news = true;
	}
}

/* false: it has not ended, or was dealt with. */
static bool collect_task(struct stream *stream, struct fill *fill, uint32_t i)
{
	const struct fill_task *task = &fill->task[i];
	enum layout_task_state state;

	if (!task->queued || task->status != LAYOUT_SAMPLE_PENDING)
		return false;
	state = queue_task_state(&stream->shared.queue, fill->row, i, NULL);
	if (!queue_is_end(state))
		return false;
	collect_ended(stream, fill, i, state);
	return true;
}

/* No further than to the last of the tasks that are said to have ended: looking at one that is under way makes its next owner
 * wait for the memory. false: nothing ended since the last look. */
static bool collect_tasks(struct stream *stream, struct fill *fill)
{
	const uint32_t ended = queue_ended(&stream->shared.queue, fill->row);
	uint32_t left = fill->has_doubts ? UINT32_MAX : ended - fill->seen;

	if (!left)
		return false;
	fill->seen = ended;
	fill->has_doubts = false;
	for (uint32_t i = fill->watermark; left && i < fill->fed && stream->state == STREAM_RUNS;
	     i++)
		left -= collect_task(stream, fill, i);
	return true;
}

static bool collect_one(struct stream *stream, struct fill *fill)
{
	uint32_t watermark = fill->watermark;
	bool moved = collect_tasks(stream, fill);

	while (fill->watermark < fill->count &&
	       fill->task[fill->watermark].status != LAYOUT_SAMPLE_PENDING) {
		uint8_t status = fill->task[fill->watermark++].status;

		if (status == LAYOUT_SAMPLE_SKIPPED || status == LAYOUT_SAMPLE_ERROR ||
		    status == LAYOUT_SAMPLE_FILTERED)
			fill->after_hole = fill->watermark;
	}
	if (fill->watermark != watermark) {
		variant_show_watermark(stream, fill);
		tell_jobs(stream, fill, watermark);
	}
	if (fill->finished == fill->count && stream->state == STREAM_RUNS) {
		queue_row_end(&stream->shared.queue, fill->row);
		fill->used = false;
		carousel_produced(stream->carousel, fill->slot);
	}
	return moved || fill->watermark != watermark;
}

bool fill_collect(struct stream *stream)
{
	bool moved = false;

	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++) {
		struct fill *fill = &stream->fill[i];

		if (fill->used && fill->is_ahead)
			fill_ahead_collect(stream, fill);
		else if (fill->used && stream->state == STREAM_RUNS)
			moved |= collect_one(stream, fill);
	}
	return moved;
}

/* ---- feeding ---- */

/* How far behind a multiple of DATASET_PLACE the sample is to lie, unless there is no room for that. */
static uint64_t place_of(const struct stream *stream, uint64_t sample, uint64_t bytes)
{
	const struct dataset *dataset = stream->source->dataset;
	const uint64_t before =
	    dataset_is_placed(dataset) ? dataset_at_of(dataset, sample) % DATASET_PLACE : 0;

	return before + bytes <= stream->shared.arena.bytes ? before : 0;
}

/* false: the arena has no room now. */
static bool feed_task(struct stream *stream, struct fill *fill, uint32_t i)
{
	const struct dataset *dataset = stream->source->dataset;
	struct fill_task *task = &fill->task[i];
	const uint32_t bytes = dataset_size_of(dataset, task->source);
	uint64_t offset, room, before;

	if (bytes > stream->shared.arena.bytes) {
		char text[48];

		snprintf(text, sizeof(text), "%u bytes, the arena has %llu", bytes,
			 (unsigned long long)stream->shared.arena.bytes);
		/* It has ended for who looks what has: it was not queued. */
		queue_task_take_over(&stream->shared.queue, fill->row, i, 0, LAYOUT_TASK_HELD,
				     LAYOUT_TASK_FAILED, LAYOUT_FAIL_REFUSED, -EFBIG);
		fill_handle_bad(stream, fill, i, LAYOUT_FAIL_REFUSED, -EFBIG, text);
		return true;
	}
	room = cache_plan(stream, task, bytes, &task->keep);
	before = place_of(stream, task->source, room);
	if (!arena_reserve(&stream->shared.arena, before + room, &offset, &task->extent))
		return false;
	cache_fed(stream, task);
	task->has_extent = task->queued = true;
	task->told = false;
	task->doubt = 0;
	task->bytes = bytes;
	queue_task_keep(&stream->shared.queue, fill->row, i, &task->keep);
	queue_task_put(&stream->shared.queue, fill->row, i, task->source,
		       (uint64_t)fill_chunk_of(stream, fill)->ids[i], i,
		       dataset_label_of(dataset, task->source), offset + before, bytes,
		       task->attempt);
	return true;
}

/* Tasks that may be queued now. What is queued while forms are tried comes as files, whatever turns out to be
 * best: then only as many are under way as keep the workers busy until this is looked at again. So where other nodes wait
 * for what this one has said that it makes: what would be made late, somebody else had better make. */
static uint32_t room_ahead(const struct stream *stream)
{
	uint32_t most = 2 * RING_STEP + TRIAL_STEP * stream->node->machine.workers;

	if (cache_is_promising(stream))
		most = 2 * RING_STEP + PROMISE_STEP * stream->node->machine.workers;
	else if (!cache_is_learning(stream))
		return UINT32_MAX;
	return most - BASE_MIN(most, fill_under_way(stream->fill));
}

/* Queues what can be queued of one chunk, at most *room tasks, one at least. false: that was all, the arena is full,
 * or the budget is spent. */
static bool feed_one(struct stream *stream, struct fill *fill, uint32_t *room,
		     const struct budget *budget, bool *queued)
{
	for (uint32_t i = fill->watermark; i < fill->count; i++) {
		struct fill_task *task = &fill->task[i];

		if (task->queued || task->status != LAYOUT_SAMPLE_PENDING)
			continue;
		if (*room == 0 || !feed_task(stream, fill, i))
			return false;
		if (stream->state != STREAM_RUNS)
			return false;
		--*room;
		*queued = true;
		fill->again -= i < fill->fed;
		fill->fed = BASE_MAX(fill->fed, i + 1);
		if (budget_is_spent(budget))
			return false;
	}
	return true;
}

/* By all who have a say in it. *ret_until_ns: when the one who leaves least wants to be asked again, 0: it does not. */
static uint32_t room_to_begin(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns)
{
	uint32_t (*const limit[])(struct stream *, uint64_t,
				  uint64_t *) = {fill_share, fill_disk_share, fill_read_room};
	uint32_t room = room_ahead(stream);

	*ret_until_ns = 0;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(limit); i++) {
		uint64_t until_ns = 0;
		const uint32_t may = limit[i](stream, now_ns, &until_ns);

		if (may == FAIR_ALL || may > room)
			continue;
		room = may;
		*ret_until_ns = until_ns;
	}
	return room;
}

/* What the index has of a sample is looked at for the first time here, which takes some microseconds: a page of a
 * file, a block that is checked. */
uint64_t fill_feed(struct stream *stream, const struct budget *budget)
{
	const uint64_t now_ns = base_now_ns();
	uint64_t until_ns = 0;
	uint32_t room, began;
	bool queued = false;

	if (cache_is_awaited(stream, now_ns, &until_ns))
		return until_ns;
	room = room_to_begin(stream, now_ns, &until_ns);
	began = room;
	for (struct fill *fill = fill_next(stream->fill, NULL); fill;
	     fill = fill_next(stream->fill, fill))
		if (!feed_one(stream, fill, &room, budget, &queued))
			break;
	fair_charge(&stream->share.fair, began - room);
	fair_charge(&stream->share.reading.fair, began - room);
	if (queued)
		doorbell_ring_readers(stream->domain->doorbell);
	if (queued && budget_is_spent(budget))
		return budget->begun_ns;
	return room == 0 ? until_ns : 0;
}

/* The next watermark at which a job that was granted the chunk can go on. */
static uint32_t next_boundary(const struct stream *stream, const struct fill *fill)
{
	uint32_t next = fill->count;

	for (unsigned i = 0; i < carousel_jobs_end(stream->carousel); i++) {
		const struct job *job = stream->users.job[i];

		if (!job || !job->slot[fill->slot].granted)
			continue;
		next = BASE_MIN(next, windows_end(fill, job->batch) + job->batch);
		if (job->slot[fill->slot].end > fill->watermark)
			next = BASE_MIN(next, job->slot[fill->slot].end);
	}
	return next;
}

/* Under way: queued, and not ended. */
static bool is_under_way(const struct stream *stream, const struct fill *fill, uint32_t i)
{
	const struct fill_task *task = &fill->task[i];

	return task->queued && task->status == LAYOUT_SAMPLE_PENDING &&
	       !queue_is_end(queue_task_state(&stream->shared.queue, fill->row, i, NULL));
}

/* The task behind whose end the watermark may be at the next boundary, and is not before: the last one before it that is
 * under way. false: there is none. */
static bool last_before_boundary(const struct stream *stream, const struct fill *fill,
				 uint32_t *ret)
{
	uint32_t i = next_boundary(stream, fill);

	while (i > fill->watermark && !is_under_way(stream, fill, i - 1))
		i--;
	*ret = i - 1;
	return i > fill->watermark;
}

/* So many ends: of forms that are made ahead all; where tasks wait for room in the arena some; else the next. */
static bool arm_by_number(struct stream *stream, const struct fill *fill)
{
	uint32_t at = 0, ended;

	if (fill->is_ahead)
		at = fill->count;
	else if (fill->fed < fill->count)
		at = BASE_MIN(next_boundary(stream, fill), fill->seen + RING_STEP);
	at = BASE_MAX(at, fill->seen + 1);
	queue_ring_at(&stream->shared.queue, fill->row, at);
	ended = queue_ended(&stream->shared.queue, fill->row);
	return ended != fill->seen && ended >= at;
}

/* Has come meanwhile what the ring would be for? A lie is due once. */
static bool arm(struct stream *stream, const struct fill *fill)
{
	struct queue *queue = &stream->shared.queue;
	uint32_t last;

	if (fill->is_ahead || fill->fed < fill->count || !last_before_boundary(stream, fill, &last))
		return arm_by_number(stream, fill);
	queue_ring_upto(queue, fill->row, last);
	return queue_ended(queue, fill->row) != fill->seen &&
	       queue_have_ended(queue, fill->row, last);
}

bool fill_arm(struct stream *stream)
{
	bool is_due = false;

	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		if (stream->fill[i].used)
			is_due |= arm(stream, &stream->fill[i]);
	return is_due;
}

/* ---- looking ---- */

enum layout_stage fill_stage(const struct stream *stream, const struct fill *fill)
{
	switch (queue_task_state(&stream->shared.queue, fill->row,
				 BASE_MIN(fill->watermark, fill->count - 1), NULL)) {
	case LAYOUT_TASK_HELD:
	case LAYOUT_TASK_QUEUED:
	case LAYOUT_TASK_READING:
		return LAYOUT_STAGE_READ;
	case LAYOUT_TASK_FREE:
		if (stream->share.is_read_limited)
			return LAYOUT_STAGE_READ;
		break;
	case LAYOUT_TASK_READY:
	case LAYOUT_TASK_RUNNING:
	case LAYOUT_TASK_DONE:
	case LAYOUT_TASK_FAILED:
		break;
	}
	return stream->domain->workers.alive ? LAYOUT_STAGE_DECODE : LAYOUT_STAGE_WORKERS;
}

uint64_t fill_awaits(const struct stream *stream, const struct fill *fill)
{
	return (uint64_t)fill_chunk_of(stream, fill)
	    ->ids[BASE_MIN(fill->watermark, fill->count - 1)];
}
