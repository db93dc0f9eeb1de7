/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it is at, and since when, accessd notes itself from the words of the tasks: what a worker
 * writes into its own entry in the doorbell is believed only where no running stream has a task of it
 * (its stream has ended meanwhile), and can hide nothing that anybody waits for. An idle worker is
 * looked at too, as long as tasks wait for one: stopped, it would never take any.
 */
#include "daemon/serve/hung.h"

#include "base/log.h"
#include "daemon/limits.h"
#include "daemon/node.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"
#include "shmring/inbox.h"

#define FROZEN_NS UINT64_C(1000000000) /* between looks: several ticks were missed */
#define NOBODY UINT32_MAX              /* no owner: they have 24 bits */

struct look {
	struct workers *workers;
	struct hang_work work[LAYOUT_MAX_WORKERS];
	bool is_as_before[LAYOUT_MAX_WORKERS];
	uint32_t stranger; /* has a task and is no worker, or NOBODY */
	bool is_wanted;    /* a task waits for a worker */
};

static unsigned index_of(const struct workers *workers, uint32_t owner)
{
	unsigned i = 0;

	while (i < LAYOUT_MAX_WORKERS &&
	       (!workers->worker[i].pid || workers->worker[i].owner != owner))
		i++;
	return i;
}

/* A worker has one task. Who seems to have more (a liar) is measured by that which it had before. */
static void note_running(struct look *look, uint32_t owner, const struct hang_work *work)
{
	unsigned i = index_of(look->workers, owner);

	if (i == LAYOUT_MAX_WORKERS) {
		look->stranger = owner;
		return;
	}
	if (look->is_as_before[i])
		return;
	look->work[i] = *work;
	look->is_as_before[i] = hang_is_same(work, &look->workers->worker[i].hang.work);
}

static void look_at_chunk(struct look *look, const struct stream *stream, const struct fill *fill)
{
	for (uint32_t i = fill->watermark; i < fill->fed; i++) {
		struct hang_work work = {.has_task = true,
					 .queue = stream->shared.queue.number,
					 .row = fill->row,
					 .task = i,
					 .instance = fill->started_ns,
					 .attempt = fill->task[i].attempt};
		uint32_t owner;

		switch (queue_task_state(&stream->shared.queue, fill->row, i, &owner)) {
		case LAYOUT_TASK_RUNNING:
			note_running(look, owner, &work);
			break;
		case LAYOUT_TASK_READY:
			look->is_wanted = true;
			break;
		default:
			break;
		}
	}
}

static void look_at_tasks(struct look *look, const struct domain *domain)
{
	BASE_EACH(stream, &domain->streams, link)
		for (unsigned b = 0; b < LAYOUT_MAX_ROWS && stream->state == STREAM_RUNS; b++)
			if (stream->fill[b].used)
				look_at_chunk(look, stream, &stream->fill[b]);
}

/* What no running stream knows of: as the worker says. */
static void ask_doorbell(struct look *look, const struct domain *domain, unsigned index)
{
	struct inbox_work said;

	if (inbox_work_of(domain->doorbell, index, &said))
		look->work[index] = (struct hang_work){.has_task = true,
						       .queue = said.queue,
						       .row = said.row,
						       .task = said.task,
						       .instance = said.started_ns};
	else
		look->work[index].is_wanted = look->is_wanted;
}

static uint64_t limit_of(struct domain *domain, unsigned index, const struct hang_work *work)
{
	const struct stream *stream = stream_of_queue(domain, work->queue);
	struct inbox_work said;
	uint64_t bytes = stream ? fill_bytes_of(stream, work->row, work->task) : 0;

	inbox_work_of(domain->doorbell, index, &said);
	return stream_patience_ns(domain, work->queue, work->row,
				  hang_allowance_ns(said.pixels, bytes));
}

static void judge(struct domain *domain, unsigned index, uint64_t now_ns)
{
	static const char *const how[] = {
	    [HANG_LOOPS] = "computes", [HANG_BLOCKED] = "sleeps", [HANG_STOPPED] = "is stopped"};
	struct workers_one *worker = &domain->workers.worker[index];
	uint64_t limit_ns = limit_of(domain, index, &worker->hang.work);
	enum hang_verdict verdict;

	if (!hang_is_late(&worker->hang, now_ns, limit_ns))
		return;
	verdict = hang_judge(&worker->hang, now_ns, limit_ns, limits_state(worker->pid));
	if (verdict == HANG_NO)
		return;
	log_line(LOG_LEVEL_WARN, "worker-hung",
		 "index=%u pid=%ld how=\"%s\" seconds=%.1f cpu=%.1f allowed=%.1f", index,
		 (long)worker->pid, how[verdict], (double)(now_ns - worker->hang.since_ns) / 1e9,
		 (double)hang_spent_ns(&worker->hang) / 1e9, (double)limit_ns / 1e9);
	workers_kill(&domain->workers, index, verdict == HANG_STOPPED);
}

/* Nobody will end a task whose owner is no worker. It may be one that we have not heard of yet. */
static void judge_stranger(struct domain *domain, uint32_t stranger, uint64_t now_ns)
{
	struct workers *workers = &domain->workers;

	if (stranger != workers->stranger) {
		workers->stranger = stranger;
		workers->stranger_ns = now_ns;
	}
	if (stranger == NOBODY ||
	    now_ns - workers->stranger_ns < stream_patience_ns(domain, 0, UINT32_MAX, 0))
		return;
	log_line(LOG_LEVEL_WARN, "task-of-nobody", "owner=%u", stranger);
	domain->node->counters.nonsense++;
	workers->stranger = NOBODY;
	stream_worker_died(
	    domain, &(struct fill_death){.owner = stranger,
					 .stage = LAYOUT_FAIL_CRASH,
					 .work_us = domain->node->param.sample_timeout_ms * 1000});
}

bool hung_find(struct domain *domain, uint64_t now_ns)
{
	struct workers *workers = &domain->workers;
	struct look look = {.workers = workers, .stranger = NOBODY};
	bool is_frozen = now_ns - workers->looked_ns > FROZEN_NS, any = false;

	workers->looked_ns = now_ns;
	look_at_tasks(&look, domain);
	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++) {
		struct workers_one *worker = &workers->worker[i];
		const uint64_t cpu_ns = limits_cpu_ns(worker->pid);

		worker->cpu_ns = BASE_MAX(worker->cpu_ns, cpu_ns);
		if (!worker->pid || worker->doom != WORKERS_LIVES)
			continue;
		if (!look.work[i].has_task)
			ask_doorbell(&look, domain, i);
		any |= look.work[i].has_task;
		hang_note(&worker->hang, &look.work[i], now_ns, cpu_ns);
		if (is_frozen)
			hang_forgive(&worker->hang, now_ns);
		judge(domain, i, now_ns);
	}
	if (is_frozen)
		workers->stranger_ns = now_ns;
	judge_stranger(domain, look.stranger, now_ns);
	return any;
}
