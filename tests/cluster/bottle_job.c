/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs, each of which gets every sample of an epoch once. A task looks for its sample in this node's store, else asks, else
 * reads its source; what was read a worker makes into the value, which is then somebody's to keep.
 */

#include "tests/cluster/bottle.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS \
	(30 * SECOND) /* a reader's 20 s, and what the source takes; where nothing stands still */
#define UNFIT 37      /* of so many samples one has no such form */

static const uint8_t no_value[1];

static unsigned group_of(const struct bottle *bottle, const struct hash_id *group)
{
	for (unsigned i = 0; i < BOTTLE_GROUPS; i++)
		if (memcmp(&bottle->group[i], group, sizeof(*group)) == 0)
			return i;
	abort();
}

/* ---- what is kept ---- */

int kept_find(void *arg, const struct hash_id *group, uint64_t sample, uint8_t *buffer, size_t room,
	      size_t *ret_bytes)
{
	struct node *node = arg;
	const struct kept *kept = &node->kept[group_of(node->bottle, group)][sample];

	if (!kept->value || kept->from_ns > node->bottle->clock.now_ns)
		return STORE_E_NONE;
	if (kept->bytes > room)
		return STORE_E_ROOM;
	memcpy(buffer, kept->value, kept->bytes);
	*ret_bytes = kept->bytes;
	return 0;
}

/* On a disk without memory before it, it takes its time until it can be found. */
void kept_keep(void *arg, const struct hash_id *group, uint64_t sample, const uint8_t *value,
	       size_t bytes)
{
	struct node *node = arg;
	struct bottle *bottle = node->bottle;
	struct kept *kept = &node->kept[group_of(bottle, group)][sample];

	if (kept->value)
		return;
	kept->value = malloc(bytes);
	if (!kept->value)
		abort();
	memcpy(kept->value, value, bytes);
	kept->bytes = (uint32_t)bytes;
	kept->from_ns = bottle->clock.now_ns;
	if (bottle->is_slow)
		kept->from_ns += (1 + bottle_below(bottle, 300)) * MS;
}

void kept_lose(struct node *node)
{
	for (unsigned g = 0; g < BOTTLE_GROUPS; g++)
		for (unsigned s = 0; s < BOTTLE_SAMPLES; s++) {
			free(node->kept[g][s].value);
			node->kept[g][s].value = NULL;
		}
}

/* ---- tasks ---- */

static struct node *node_of(const struct job *job)
{
	return job->node;
}

static void start_task(struct job *job, struct task *task);

static void on_pause(void *arg, uint64_t place, uint64_t serial)
{
	struct job *job = arg;
	struct task *task = &job->task[place];

	if (task->serial == serial && task->state == TASK_PAUSES)
		start_task(job, task);
}

static void begin_epoch(struct job *job)
{
	struct bottle *bottle = node_of(job)->bottle;

	job->epochs--;
	job->next = job->delivered = 0;
	memset(job->has, 0, sizeof(job->has));
	for (unsigned i = 0; i < BOTTLE_SAMPLES; i++)
		job->order[i] = (uint16_t)i;
	for (unsigned i = BOTTLE_SAMPLES - 1; i > 0; i--) {
		const unsigned k = (unsigned)bottle_below(bottle, i + 1);
		const uint16_t one = job->order[i];

		job->order[i] = job->order[k];
		job->order[k] = one;
	}
}

static void pause_task(struct job *job, struct task *task)
{
	struct bottle *bottle = node_of(job)->bottle;

	task->state = TASK_PAUSES;
	task->serial++;
	bottle_at(bottle, bottle->clock.now_ns + bottle_below(bottle, 2 * job->pace_ns + 1),
		  on_pause, job, (uint64_t)(task - job->task), task->serial);
}

/* A job gets a sample once. */
static void deliver(struct job *job, struct task *task, const uint8_t *value, uint32_t bytes)
{
	struct node *node = node_of(job);
	const uint8_t *wanted;
	uint32_t wanted_bytes;

	bottle_value(job->group, task->sample, &wanted, &wanted_bytes);
	if (value && (bytes != wanted_bytes || memcmp(value, wanted, bytes) != 0))
		bottle_break(node->bottle, "sample %u of job %u on node %u has wrong bytes",
			     task->sample, job->number, node->number);
	if (job->has[task->sample])
		bottle_break(node->bottle, "sample %u of job %u on node %u was delivered twice",
			     task->sample, job->number, node->number);
	if (node->bottle->clock.now_ns > task->late_ns)
		bottle_break(node->bottle, "sample %u of job %u on node %u came %.1f s late",
			     task->sample, job->number, node->number,
			     (double)(node->bottle->clock.now_ns - task->late_ns) / 1e9);
	job->has[task->sample] = true;
	job->delivered++;
	bottle_note(node->bottle, 'd', node->number * 2 + job->number, task->sample);
	pause_task(job, task);
	if (job->delivered == BOTTLE_SAMPLES && job->epochs > 0) {
		begin_epoch(job);
		for (unsigned i = 0; i < BOTTLE_WINDOW; i++)
			pause_task(job, &job->task[i]);
	}
}

static void hand_in(struct job *job, const struct task *task)
{
	struct node *node = node_of(job);
	struct rings_item item = {
	    .queue = job->number, .form = LAYOUT_FORM_PACKED, .sample = task->sample};

	if (!node->reader)
		return;
	bottle_value(job->group, task->sample, &item.data, &item.bytes);
	if (task->sample % UNFIT == 5)
		node->reader->not_made(job->queue, task->sample);
	else if (!node->reader->made(job->queue, &item))
		kept_keep(node, &node->bottle->group[job->group], task->sample, item.data,
			  item.bytes);
	carrier_wake(node, node->bottle->clock.now_ns + 20 * US);
}

static void on_made(void *arg, uint64_t place, uint64_t serial)
{
	struct job *job = arg;
	struct node *node = node_of(job);
	struct bottle *bottle = node->bottle;
	struct task *task = &job->task[place];

	if (task->serial != serial || task->state != TASK_MAKES)
		return;
	if (node_awake_ns(node, false) > bottle->clock.now_ns) {
		bottle_at(bottle, node_awake_ns(node, false), on_made, job, place, serial);
		return;
	}
	node->busy--;
	/* A worker that dies says nothing; the next one makes it, and what it kept is lost. */
	if (!bottle->is_wild || bottle_below(bottle, 100) > 0)
		hand_in(job, task);
	node->files++;
	deliver(job, task, NULL, 0);
}

static void on_read(void *arg, uint64_t place, uint64_t serial)
{
	struct job *job = arg;
	struct node *node = node_of(job);
	struct bottle *bottle = node->bottle;
	struct task *task = &job->task[place];
	const uint64_t awake_ns = node_awake_ns(node, true);

	if (task->serial != serial || task->state != TASK_READS)
		return;
	if (awake_ns > bottle->clock.now_ns) {
		bottle_at(bottle, awake_ns, on_read, job, place, serial);
		return;
	}
	task->state = TASK_MAKES;
	bottle_at(bottle, bottle->clock.now_ns + (200 + bottle_below(bottle, 2000)) * US, on_made,
		  job, place, serial);
}

/* By the thread that is free first. */
static uint64_t thread_done_ns(struct node *node)
{
	struct bottle *bottle = node->bottle;
	unsigned first = 0;
	uint64_t begin_ns;

	for (unsigned i = 1; i < BOTTLE_THREADS; i++)
		if (node->thread_ns[i] < node->thread_ns[first])
			first = i;
	begin_ns = BASE_MAX(node->thread_ns[first], bottle->clock.now_ns);
	begin_ns = BASE_MAX(begin_ns, node->source_until_ns);
	node->thread_ns[first] =
	    begin_ns + (node->source_us / 2 + bottle_below(bottle, node->source_us)) * US;
	return node->thread_ns[first];
}

static void read_source(struct job *job, struct task *task)
{
	task->state = TASK_READS;
	node_of(job)->busy++;
	bottle_at(node_of(job)->bottle, thread_done_ns(node_of(job)), on_read, job,
		  (uint64_t)(task - job->task), task->serial);
}

/* In the store? Else as its file. */
static bool is_found(struct job *job, struct task *task)
{
	static uint8_t buffer[BOTTLE_VALUE];
	struct node *node = node_of(job);
	size_t bytes;

	if (kept_find(node, &node->bottle->group[job->group], task->sample, buffer, sizeof(buffer),
		      &bytes))
		return false;
	deliver(job, task, buffer, (uint32_t)bytes);
	return true;
}

static void on_retry(void *arg, uint64_t place, uint64_t serial)
{
	struct job *job = arg;
	struct task *task = &job->task[place];

	if (task->serial == serial && task->state == TASK_ASKED)
		start_task(job, task);
}

static void seek(struct job *job, struct task *task)
{
	struct node *node = node_of(job);
	const struct queue_task asked = {.row = task->serial,
					 .index = (uint32_t)(task - job->task),
					 .sample = task->sample,
					 .room = BOTTLE_VALUE,
					 .want = LAYOUT_FORM_PACKED,
					 .make = LAYOUT_FORM_PACKED};

	task->state = TASK_ASKED;
	if (node_awake_ns(node, true) > node->bottle->clock.now_ns)
		bottle_at(node->bottle, node_awake_ns(node, true), on_retry, job, asked.index,
			  task->serial);
	else if (!is_found(job, task) && !node->reader->ask(job->queue, &asked))
		read_source(job, task);
	carrier_wake(node, node->bottle->clock.now_ns + 20 * US);
}

static void start_task(struct job *job, struct task *task)
{
	struct node *node = node_of(job);

	if (!node->reader) {
		task->state = TASK_FREE;
		return;
	}
	if (task->state == TASK_PAUSES || task->state == TASK_FREE) {
		if (job->next == BOTTLE_SAMPLES) {
			task->state = TASK_FREE;
			return;
		}
		task->sample = job->order[job->next++];
		task->late_ns = node_awake_ns(node, true) + PATIENCE_NS;
	}
	seek(job, task);
}

/* ---- what the reader says ---- */

static struct task *task_of(struct node *node, uint64_t queue, const struct queue_task *said)
{
	struct job *job = &node->job[queue];
	struct task *task = &job->task[said->index];

	if (task->serial == said->row && task->state == TASK_ASKED && task->sample == said->sample)
		return task;
	bottle_break(node->bottle, "sample %u of job %u on node %u is ended twice",
		     (unsigned)said->sample, job->number, node->number);
	return NULL;
}

void job_again(void *arg, uint64_t queue, const struct queue_task *said)
{
	struct node *node = arg;
	struct task *task = task_of(node, queue, said);

	if (task && !is_found(&node->job[queue], task))
		read_source(&node->job[queue], task);
}

void job_bring(void *arg, uint64_t queue, const struct queue_task *said, const uint8_t *value,
	       uint32_t bytes)
{
	struct node *node = arg;
	struct task *task = task_of(node, queue, said);

	if (!task)
		return;
	node->gots++;
	deliver(&node->job[queue], task, bytes ? value : no_value, bytes);
}

bool job_is_idle(void *arg)
{
	const struct node *node = arg;

	return node->busy == 0 && !node->bottle->is_busy;
}

/* The reader that asked may have died. */
static void on_looked(void *arg, uint64_t at, uint64_t life)
{
	struct node *node = arg;
	struct value_head *get = (struct value_head *)(uintptr_t)at;

	if (node->reader && node->reader_life == life) {
		node->reader->looked(get, true);
		reader_wake(node, node->bottle->clock.now_ns + 20 * US);
		carrier_wake(node, node->bottle->clock.now_ns + 20 * US);
	}
	blocks_free(&node->bottle->blocks, get);
}

void job_look(void *arg, const struct value_head *get)
{
	struct node *node = arg;
	struct value_head *copy = blocks_add(&node->bottle->blocks, sizeof(*copy));

	*copy = *get;
	bottle_at(node->bottle, thread_done_ns(node), on_looked, node, (uint64_t)(uintptr_t)copy,
		  node->reader_life);
}

/* ---- jobs ---- */

void job_begin(struct node *node, unsigned number, unsigned group)
{
	node->job[number] = (struct job){
	    .node = node, .number = number, .group = group, .delivered = BOTTLE_SAMPLES};
	node->job[number].next = BOTTLE_SAMPLES;
}

void job_run(struct job *job, unsigned epochs, uint64_t pace_ns)
{
	job->pace_ns = pace_ns;
	job->epochs += epochs;
	if (job->delivered < BOTTLE_SAMPLES)
		return;
	begin_epoch(job);
	for (unsigned i = 0; i < BOTTLE_WINDOW; i++)
		pause_task(job, &job->task[i]);
}

/* What was under way in its reader is done anew; where the node died, all that was not delivered. */
void job_go_on(struct node *node, bool is_new)
{
	for (unsigned i = 0; i < BOTTLE_JOBS; i++)
		for (unsigned t = 0; t < BOTTLE_WINDOW; t++) {
			struct job *job = &node->job[i];
			struct task *task = &job->task[t];

			if (task->state == TASK_READS || (is_new && task->state == TASK_MAKES))
				node->busy--;
			if (task->state == TASK_FREE || task->state == TASK_PAUSES ||
			    (task->state == TASK_MAKES && !is_new)) {
				if (task->state == TASK_FREE && job->next < BOTTLE_SAMPLES)
					pause_task(job, task);
				continue;
			}
			task->serial++;
			task->late_ns = node_awake_ns(node, true) + PATIENCE_NS;
			task->state = TASK_ASKED; /* of that sample, still */
			if (node->reader)
				seek(job, task);
		}
}

void job_stood_still(struct node *node, uint64_t ns)
{
	for (unsigned i = 0; i < BOTTLE_JOBS; i++)
		for (unsigned t = 0; t < BOTTLE_WINDOW; t++)
			node->job[i].task[t].late_ns += ns;
}
