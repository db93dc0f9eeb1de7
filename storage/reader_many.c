/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several tasks that a thread brings at once, where a kind can (source/source_kind.h): samples that processes make, reads that are under
 * way together, rows so small that what each one costs is more than its bytes. A thread takes no more than its share of those that wait.
 *
 * Each is told as it comes: whoever waits for one waits for no other.
 */

#include "storage/source/source_bytes.h"

#include "storage/source/source_kind.h"

/* More of the queue's tasks, to be brought at once: no more than the thread's share of those that wait. */
static unsigned claim_more(const struct reader_thread *thread, struct reader_queue *queue,
			   unsigned most, struct queue_task ret[])
{
	const unsigned threads = source_sample_threads(queue->dataset);
	const unsigned share = queue_length(&queue->queue) / (threads ? threads : 2);
	unsigned n = 0;
	int r = 0;

	while (n < BASE_MIN(most, share) && !r) {
		r = queue_claim_read(&queue->queue, thread->owner, &ret[n]);
		n += !r;
	}
	if (r == QUEUE_E_BAD)
		reader_queue_forged(thread->owner);
	return n;
}

/* Nothing but the sample itself is to be brought, and nobody is asked. */
static bool is_plain(const struct reader_queue *queue, const struct queue_task *task)
{
	const struct reader_kept *kept = task->make ? reader_queue_kept(queue, task->make) : NULL;

	return reader_queue_fits(queue, task) &&
	       (queue->dataset->ops->make || (!task->want && !(kept && kept->shared)));
}

static struct reader_wanted many_wants(const struct reader_queue *queue,
				       const struct queue_task *task)
{
	const uint64_t at = task->arena_offset, end = at + task->bytes;
	const bool is_placed = dataset_is_placed(queue->dataset->index);

	return (struct reader_wanted){
	    .task = task,
	    .buffer = queue->arena + at,
	    .before = is_placed ? (uint32_t)(at % DATASET_PLACE) : 0,
	    .behind = is_placed ? (uint32_t)(base_align_up(end, DATASET_PLACE) - end) : 0,
	};
}

struct telling {
	struct reader_many many;
	struct reader_queue *queue;
	uint64_t told_ns; /* when some were told last */
	uint64_t cpu_ns;  /* the thread's, when it was last asked for */
	unsigned untimed; /* were told since */
};

/* Of those that were told since it was asked for last, each. */
static uint64_t share_cpu(struct telling *all)
{
	const uint64_t cpu_ns = base_cpu_ns(), share = (cpu_ns - all->cpu_ns) / all->untimed;

	all->cpu_ns = cpu_ns;
	all->untimed = 0;
	return share;
}

/* Those that are left since. Where memory is short they are brought when all others are. */
static void leave_some(const struct telling *all)
{
	bool is_any = false;

	for (unsigned i = 0; i < all->many.n; i++) {
		struct reader_wanted *wanted = &all->many.wanted[i];

		if (!wanted->is_left || wanted->is_told)
			continue;
		wanted->is_told = reader_mount_leave(all->queue, wanted->task);
		is_any |= wanted->is_told;
	}
	if (is_any)
		reader_queue_wake();
}

static bool is_news(const struct reader_wanted *wanted)
{
	return wanted->is_settled && !wanted->is_told;
}

/* Those that came since, each of which took its part of the time. */
static void many_tell(struct reader_many *many)
{
	struct telling *all = (struct telling *)many;
	uint64_t now_ns, cpu_ns = 0;
	unsigned came = 0;
	bool is_timed = false;

	leave_some(all);
	for (unsigned i = 0; i < many->n; i++) {
		if (!is_news(&many->wanted[i]))
			continue;
		came++;
		is_timed |= many->wanted[i].task->timed == LAYOUT_TIMED_ALL;
	}
	if (!came)
		return;
	now_ns = base_now_ns();
	all->untimed += came;
	if (is_timed)
		cpu_ns = share_cpu(all);
	for (unsigned i = 0; i < many->n; i++) {
		struct reader_wanted *wanted = &many->wanted[i];
		const struct reader_came as = {.bytes = wanted->task->bytes};

		if (!is_news(wanted))
			continue;
		wanted->is_told = true;
		reader_queue_end(all->queue, wanted->task, &as, &wanted->outcome,
				 (now_ns - all->told_ns) / came, cpu_ns);
	}
	all->told_ns = now_ns;
}

static void many_bring(struct reader_thread *thread, struct reader_queue *queue,
		       struct reader_wanted *wanted, unsigned n)
{
	struct telling all = {.many = {&thread->link, wanted, n, many_tell},
			      .queue = queue,
			      .told_ns = base_now_ns(),
			      .cpu_ns = base_cpu_ns()};

	source_sample_many(queue->dataset, &all.many);
	many_tell(&all.many);
	for (unsigned i = 0; i < n; i++)
		if (!wanted[i].is_told)
			reader_queue_serve(thread, queue, wanted[i].task);
}

static void many_serve(struct reader_thread *thread, struct reader_queue *queue,
		       const struct queue_task task[], unsigned n)
{
	struct reader_wanted wanted[SOURCE_MOST_MADE];
	unsigned fit = 0;

	for (unsigned i = 0; i < n; i++) {
		reader_queue_touch(queue, &task[i]);
		if (is_plain(queue, &task[i]))
			wanted[fit++] = many_wants(queue, &task[i]);
		else
			reader_queue_serve(thread, queue, &task[i]);
	}
	if (fit)
		many_bring(thread, queue, wanted, fit);
}

void reader_many_serve(struct reader_thread *thread, struct reader_queue *queue,
		       const struct queue_task *first)
{
	const struct source_ops *ops = queue->dataset->ops;
	const unsigned most = source_sample_most(queue->dataset, &thread->link);
	struct queue_task task[SOURCE_MOST_MADE];
	unsigned n = 1;

	if (most > 1)
		n += claim_more(thread, queue, most - 1, task + 1);
	if (most == 1 || (n == 1 && ops->make)) {
		reader_queue_serve(thread, queue, first);
		return;
	}
	task[0] = *first;
	many_serve(thread, queue, task, n);
}
