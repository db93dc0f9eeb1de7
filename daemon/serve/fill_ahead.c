/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored forms that no job here waits for, made while nobody needs a processor: of samples that this node owns, in the form
 * that the choice prefers, so that other nodes that ask get them. Where no other node is connected there is
 * nothing of this.
 *
 * They are a row of the queue as a chunk is, but of no slot, and of the lowest order. No more than a task for each worker is under
 * way, and none is begun while a chunk is in production anywhere on the node: so who comes waits for a sample at
 * most. The reader says whose a sample is, and whether somebody makes it already (reader_queue.c).
 *
 * What it takes is the stream's, as all that is made for it: of its jobs' account, share and limits of reading.
 */
#include "daemon/serve/fill_parts.h"

#include "daemon/cache/cache.h"
#include "daemon/node.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/admit.h"
#include "daemon/tenant/domain.h"

#define AHEAD_LOOKS 4096 /* samples that are looked at, a turn */

/* Of chunks. */
static uint32_t chunk_rows(const struct node *node)
{
	const uint32_t producing = (uint32_t)node->param.producing;

	return producing + admit_spare_rows(producing);
}

uint32_t fill_rows(const struct node *node)
{
	return BASE_MIN(chunk_rows(node) + gating_is_on(&node->gating), (uint32_t)LAYOUT_MAX_ROWS);
}

uint64_t fill_samples(const struct stream *stream)
{
	return stream->figures.samples_done + stream->figures.samples_ahead;
}

/* ---- when ---- */

/* Is anything made for a job, or ahead for another stream? */
static bool is_node_busy(const struct node *node)
{
	bool is_busy = node->draining;

	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
				is_busy |= stream->state == STREAM_RUNS && stream->fill[i].used;
	return is_busy;
}

/* Does some job here want all of the data set? */
static bool is_whole(const struct stream *stream, uint64_t now_ns)
{
	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++) {
		const struct job *job = stream->users.job[i];
		struct carousel_job_view view;

		if (!job || !job->active)
			continue;
		carousel_job(stream->carousel, job->number, now_ns, &view);
		if (view.population == stream->geometry.n_samples)
			return true;
	}
	return false;
}

static bool may_begin(struct stream *stream, uint64_t now_ns)
{
	struct ahead_look look = {.samples = stream->geometry.n_samples, .now_ns = now_ns};

	cache_look_ahead(stream, now_ns, &look);
	if (look.has_peers && look.is_worth) {
		look.is_whole = is_whole(stream, now_ns);
		look.is_busy = stream->shared.queue.n_rows <= chunk_rows(stream->node) ||
			       cache_is_learning(stream) || is_node_busy(stream->node);
	}
	return ahead_look(&stream->ahead, &look) == AHEAD_MAKES;
}

/* ---- a row ---- */

/* false: the arena has no room. */
static bool take_sample(struct stream *stream, struct fill_task *task, uint64_t sample,
			const struct queue_keep *keep, uint64_t *ret_offset)
{
	uint32_t extent;

	if (keep->room > stream->shared.arena.bytes ||
	    !arena_reserve(&stream->shared.arena, keep->room, ret_offset, &extent))
		return false;
	*task = (struct fill_task){
	    .extent = extent, .has_extent = true, .queued = true, .keep = *keep, .source = sample};
	return true;
}

/* The next samples that have no such form yet, at most so many. How many. */
static uint32_t take_samples(struct stream *stream, struct fill *fill, uint32_t most,
			     uint64_t offset[])
{
	struct ahead *ahead = &stream->ahead;
	uint32_t n = 0;

	for (unsigned looks = AHEAD_LOOKS;
	     looks > 0 && n < most && ahead->next < stream->geometry.n_samples;
	     looks--, ahead->next++) {
		const uint64_t sample = ahead->next;
		struct queue_keep keep;

		if (cache_plan_ahead(stream, sample,
				     dataset_size_of(stream->source->dataset, sample), &keep) &&
		    take_sample(stream, &fill->task[n], sample, &keep, &offset[n]))
			n++;
	}
	return n;
}

static void queue_row(struct stream *stream, struct fill *fill, const uint64_t offset[])
{
	for (uint32_t i = 0; i < fill->count; i++) {
		const struct fill_task *task = &fill->task[i];

		queue_task_keep(&stream->shared.queue, fill->row, i, &task->keep);
		queue_task_put(&stream->shared.queue, fill->row, i, task->source, task->source, i,
			       0, offset[i], dataset_size_of(stream->source->dataset, task->source),
			       0);
	}
	fair_charge(&stream->share.fair, fill->count);
	fair_charge(&stream->share.reading.fair, fill->count);
	doorbell_ring_readers(stream->domain->doorbell);
}

static struct fill *unused_fill(struct stream *stream)
{
	unsigned i = 0;

	while (i < LAYOUT_MAX_ROWS && stream->fill[i].used)
		i++;
	return i < LAYOUT_MAX_ROWS ? &stream->fill[i] : NULL;
}

/* Of one variant that is open: the form is the same behind all of them. 0: none is. */
static uint32_t some_variant(const struct stream *stream)
{
	const struct variant *first = variant_open_from(stream, 0);

	return first ? UINT32_C(1) << first->number : 0;
}

static void begin_row(struct stream *stream, uint32_t most, uint64_t now_ns)
{
	struct fill *fill = unused_fill(stream);
	const uint32_t variants = some_variant(stream);
	uint64_t offset[LAYOUT_MAX_WORKERS];
	uint32_t n;

	if (!fill || !variants)
		return;
	n = take_samples(stream, fill, BASE_MIN(most, (uint32_t)LAYOUT_MAX_WORKERS), offset);
	if (n == 0 || queue_row_begin(&stream->shared.queue, UINT64_MAX, 0, 0, LAYOUT_NO_SLOT,
				      variants, n, &fill->row)) {
		for (uint32_t i = 0; i < n; i++)
			fill_release_extent(stream, &fill->task[i]);
		return;
	}
	*fill = (struct fill){.used = true,
			      .is_ahead = true,
			      .row = fill->row,
			      .slot = LAYOUT_NO_SLOT,
			      .variants = variants,
			      .count = n,
			      .fed = n,
			      .task = fill->task,
			      .started_ns = now_ns};
	queue_row(stream, fill, offset);
}

void fill_ahead(struct stream *stream, uint64_t now_ns)
{
	uint64_t until_ns;
	uint32_t most;

	if (!may_begin(stream, now_ns))
		return;
	most = fill_read_room(stream, now_ns, &until_ns);
	most = BASE_MIN(BASE_MIN(most, stream->node->machine.workers), stream->shared.queue.chunk);
	if (most > 0)
		begin_row(stream, most, now_ns);
}

/* ---- what became of it ---- */

/* A sample that cannot be read or decoded is left to the job that wants it. */
static void collect_task(struct stream *stream, struct fill *fill, uint32_t i)
{
	struct fill_task *task = &fill->task[i];
	enum layout_task_state state = queue_task_state(&stream->shared.queue, fill->row, i, NULL);
	struct queue_kept kept;
	enum layout_fail stage;
	uint32_t work_us;
	char text[48];
	int code;

	if (task->queued && !queue_is_end(state))
		return;
	queue_task_outcome(&stream->shared.queue, fill->row, i, &stage, &code, text, &work_us);
	queue_task_kept(&stream->shared.queue, fill->row, i, &kept);
	if (task->queued && state == LAYOUT_TASK_DONE && !kept.form) {
		fill_count_read(stream, dataset_size_of(stream->source->dataset, task->source));
		stream->figures.made_ahead += cache_note_ahead(stream, task, &kept);
		stream->share.work_us += work_us;
		fill->elapsed_us += work_us;
		fill->cpu_us += kept.make_us;
	}
	fill_release_extent(stream, task);
	task->status = LAYOUT_SAMPLE_OK;
	fill->finished++;
	stream->figures.samples_ahead++;
}

void fill_ahead_collect(struct stream *stream, struct fill *fill)
{
	for (uint32_t i = 0; i < fill->count && stream->state == STREAM_RUNS; i++)
		if (fill->task[i].status == LAYOUT_SAMPLE_PENDING)
			collect_task(stream, fill, i);
	fill->seen = queue_ended(&stream->shared.queue, fill->row);
	if (fill->finished < fill->count || stream->state != STREAM_RUNS)
		return;
	queue_row_end(&stream->shared.queue, fill->row);
	fill->used = false;
	ahead_ended(&stream->ahead, fill->elapsed_us, fill->cpu_us, base_now_ns());
}
