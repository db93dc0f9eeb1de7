/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several tasks that a thread brings at once, where a kind can (source/source_kind.h): samples that processes make, reads that are under
 * way together, rows so small that what each one costs is more than its bytes. A thread takes no more than its share of those that wait.
 *
 * Each is told as it comes: whoever waits for one waits for no other. Where samples come from far away, more are taken on
 * meanwhile, so that the last of some is not waited for before others are asked for.
 */

#include "storage/source/source_bytes.h"

#include "storage/source/source_kind.h"

#define MANY_MORE 512 /* tasks that a thread takes on while others are under way */

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
	struct reader_thread *thread;
	struct reader_queue *queue;
	struct queue_task *task;  /* of each that is wanted */
	struct reader_came *came; /* what came of it before; NULL: nothing of any */
	unsigned more;            /* that were taken on since */
	uint64_t told_ns;         /* when some were told last */
	uint64_t cpu_ns;          /* the thread's, when it was last asked for */
	unsigned untimed;         /* were told since */
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
		struct reader_came as = {.bytes = wanted->task->bytes};

		if (!is_news(wanted))
			continue;
		if (all->came) {
			as = all->came[i];
			as.bytes += wanted->task->bytes;
		}
		wanted->is_told = true;
		reader_queue_end(all->queue, wanted->task, &as, &wanted->outcome,
				 (now_ns - all->told_ns) / came, cpu_ns);
	}
	all->told_ns = now_ns;
}

/* ---- which are brought so ---- */

/* Of an object store, which is far away: also samples of which a form is wanted that is not there. false: it has been ended. */
static bool wants_object(struct telling *all, unsigned i)
{
	const uint64_t begin_ns = base_now_ns();
	struct reader_outcome outcome = {.stage = LAYOUT_FAIL_READ, .code = EINVAL};
	const struct queue_task *task = &all->task[i];
	struct reader_came *came = &all->came[i];
	enum reader_bring is;

	*came = (struct reader_came){.form = 0};
	if (!reader_queue_fits(all->queue, task)) {
		reader_queue_serve(all->thread, all->queue, task);
		return false;
	}
	is = reader_queue_bring_kept(all->queue, task, came, &outcome);
	if (is == READER_BRING_DONE)
		reader_queue_end(all->queue, task, came, &outcome, base_now_ns() - begin_ns, 0);
	return is == READER_BRING_SAMPLE;
}

/* The task of that number. false: it has been ended. */
static bool want_one(struct telling *all, unsigned i)
{
	const struct queue_task *task = &all->task[i];
	bool is_wanted;

	reader_queue_touch(all->queue, task);
	if (all->came)
		is_wanted = wants_object(all, i);
	else if (!(is_wanted = is_plain(all->queue, task)))
		reader_queue_serve(all->thread, all->queue, task);
	if (!is_wanted)
		return false;
	all->many.wanted[i] = many_wants(all->queue, task);
	if (all->came)
		all->many.wanted[i].buffer += all->came[i].bytes;
	return true;
}

/* No more than so many in all, so that other queues have their turn. */
static struct reader_wanted *many_more(struct reader_many *many)
{
	struct telling *all = (struct telling *)many;
	unsigned i = 0;
	int r;

	while (i < many->n && !many->wanted[i].is_told)
		i++;
	if (i == many->n && many->n < SOURCE_MOST_MADE)
		many->n++;
	while (i < many->n && all->more < MANY_MORE && !reader_queue_is_leaving(all->queue)) {
		many->wanted[i].is_told = true; /* until there is one */
		r = queue_claim_read(&all->queue->queue, all->thread->owner, &all->task[i]);
		if (r == QUEUE_E_BAD)
			reader_queue_forged(all->thread->owner);
		if (r)
			break;
		all->more++;
		if (want_one(all, i))
			return &many->wanted[i];
	}
	if (i < many->n)
		many->wanted[i] = (struct reader_wanted){.task = &all->task[i], .is_told = true};
	return NULL;
}

static void many_bring(struct telling *all)
{
	struct reader_wanted *wanted = all->many.wanted;

	source_sample_many(all->queue->dataset, &all->many);
	many_tell(&all->many);
	for (unsigned i = 0; i < all->many.n; i++)
		if (!wanted[i].is_told)
			reader_queue_serve(all->thread, all->queue, wanted[i].task);
}

static void many_serve(struct reader_thread *thread, struct reader_queue *queue,
		       struct queue_task task[], unsigned n)
{
	struct reader_wanted wanted[SOURCE_MOST_MADE];
	struct reader_came came[SOURCE_MOST_MADE];
	struct telling all = {
	    .many = {&thread->link, wanted, 0, many_tell, many_more},
	    .thread = thread,
	    .queue = queue,
	    .task = task,
	    .came = queue->dataset->bucket ? came : NULL,
	};

	for (unsigned i = 0; i < n; i++) {
		if (all.many.n < i)
			task[all.many.n] = task[i];
		all.many.n += want_one(&all, all.many.n);
	}
	all.told_ns = base_now_ns();
	all.cpu_ns = base_cpu_ns();
	if (all.many.n)
		many_bring(&all);
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
