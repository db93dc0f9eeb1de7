/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A worker: claims READY tasks of the queues it was born with, runs the pipeline from arena to slot
 * and says how it went, until its generation is over. It is a process of its own so that whatever
 * a picture does to a decoder happens to one task; it never reports its own death, hang or size:
 * accessd sees those from outside (its entry in the doorbell, PARENT_EXITED).
 *
 * Sleeping without losing a wake: the doorbell's sequence is read before the generation and the queues
 * are looked at, and the sleep returns at once if it has moved since.
 *
 * Its entry in the doorbell is written started-first, so that whoever reads a task's word reads the
 * start of that task or of a later one, never of an earlier one: nobody looks hung who is not.
 *
 * Nothing here is trusted with more than the worker's own memory: the generation word and the
 * arena are mapped read-only and the sandbox has no mprotect().
 */

#include "worker/worker.h"

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "worker/evict.h"
#include "worker/forming.h"
#include "base/sandbox.h"

#define WORKER_SLEEP_NS UINT64_C(1000000000)
#define WORKER_HEAP_STEP (8 << 20) /* larger blocks are mapped and given back one by one */
#define WORKER_HEAP_SPARE (16 << 20)
#define WORKER_HEAP_SHARE 8 /* of its memory a worker must still get, to go on after a failure */

_Static_assert(PIPELINE_MAX_VARIANTS == LAYOUT_MAX_VARIANTS, "one number of variants");
_Static_assert((int)PIPELINE_FAIL_DECODE == (int)LAYOUT_FAIL_DECODE, "one set of numbers");
_Static_assert((int)PIPELINE_FAIL_REFUSED == (int)LAYOUT_FAIL_REFUSED, "one set of numbers");
_Static_assert((int)PIPELINE_FAIL_MEMORY == (int)LAYOUT_FAIL_MEMORY, "one set of numbers");
_Static_assert((int)PIPELINE_FAIL_FILTERED == (int)LAYOUT_FAIL_FILTERED, "one set of numbers");

struct worker_queue {
	const struct workset_queue *set;
	struct queue queue;           /* own copy: its private state is this worker's */
	uint32_t known;               /* variants, a bit each */
	struct pipeline_run *scratch; /* made when the queue's first task comes */
};

struct worker {
	const struct worker_setup *setup;
	struct forming forming;
	struct layout_worker *entry;
	struct worker_queue *queue; /* [count] */
	unsigned count, next;
};

/* ---- the entry in the doorbell ---- */

/* A picture's patience follows its size. */
static void worker_entry_size(void *arg, uint32_t height, uint32_t width)
{
	struct layout_worker *entry = arg;

	atomic_store_explicit(&entry->w_pixels, (uint64_t)height * width, memory_order_relaxed);
}

static void worker_entry_end(struct worker *worker, uint64_t work_ns)
{
	struct layout_worker *entry = worker->entry;

	/* Counters with one writer, for eyes only: no order needed. */
	atomic_store_explicit(&entry->w_task, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->w_done,
			      atomic_load_explicit(&entry->w_done, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&entry->w_busy_ns,
			      atomic_load_explicit(&entry->w_busy_ns, memory_order_relaxed) +
				  work_ns,
			      memory_order_relaxed);
}

/* ---- one task ---- */

static void worker_fail(struct pipeline_error *ret, enum pipeline_fail stage, int code,
			const char *text)
{
	*ret = (struct pipeline_error){.stage = stage, .code = code};
	strncpy(ret->text, text, sizeof(ret->text) - 1);
}

static int worker_need_scratch(const struct worker_setup *setup, struct worker_queue *queue,
			       struct pipeline_error *ret_error)
{
	const struct pipeline *pipelines[LAYOUT_MAX_VARIANTS];

	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++)
		pipelines[v] = queue->known >> v & 1 ? queue->set->variant[v].pipeline : NULL;
	if (queue->scratch != NULL)
		return 0;
	if (pipeline_run_new(pipelines, LAYOUT_MAX_VARIANTS, &queue->scratch) != 0) {
		worker_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the pipeline");
		return PIPELINE_E_BAD;
	}
	pipeline_run_watch(queue->scratch, worker_entry_size,
			   &setup->doorbell->worker[setup->index]);
	return 0;
}

static struct pipeline_key worker_key(const struct queue_task *task)
{
	return (struct pipeline_key){task->seed, task->nonce, task->random_id};
}

/* The queue's pipelines on these bytes, which are the task's or a form of them. */
static int worker_run_on(struct worker_queue *queue, const struct queue_task *task,
			 const struct pipeline_out *out, const uint8_t *data, size_t size,
			 struct pipeline_error *ret_error)
{
	const struct pipeline_key key = worker_key(task);

	return pipeline_run_sample(queue->scratch, task->variants, data, size, task->label, &key,
				   out, ret_error);
}

/* The bytes that came; NULL: they are nowhere. */
static const uint8_t *worker_bytes(const struct worker_setup *setup,
				   const struct worker_queue *queue, const struct queue_task *task)
{
	if (task->resident)
		return resident_at(setup->resident, task->resident, task->came);
	return queue->set->arena + task->arena_offset;
}

/* What the pipelines need but for the bytes. 0, or PIPELINE_E_BAD and *ret_error. */
static int worker_prepare(const struct worker_setup *setup, struct worker_queue *queue,
			  const struct queue_task *task, struct pipeline_out *out,
			  struct pipeline_error *ret_error)
{
	if (!workset_outputs(queue->set, task, out) || !worker_bytes(setup, queue, task)) {
		worker_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "no such slot, position or bytes");
		return PIPELINE_E_BAD;
	}
	if (worker_need_scratch(setup, queue, ret_error) != 0)
		return PIPELINE_E_BAD;
	workset_touch(queue->set, task, out);
	return 0;
}

/* ---- stored forms of a sample that came as its file ---- */

/* The pipelines on these bytes, with the CPU time that it took. 0, or PIPELINE_E_BAD and *ret_error. */
static int worker_run_timed(struct worker_queue *queue, const struct queue_task *task,
			    const struct pipeline_out *out, const uint8_t *data, size_t size,
			    uint64_t *ret_ns, struct pipeline_error *ret_error)
{
	const uint64_t begin_ns = base_cpu_ns();
	int rc = worker_run_on(queue, task, out, data, size, ret_error);

	*ret_ns = base_cpu_ns() - begin_ns;
	return rc;
}

/* CPU time of the pipelines from these bytes; false: they do not take them. */
static bool worker_time(struct worker_queue *queue, const struct queue_task *task,
			const struct pipeline_out *out, const uint8_t *data, size_t size,
			uint64_t *ret_ns)
{
	struct pipeline_error error;

	return worker_run_timed(queue, task, out, data, size, ret_ns, &error) == 0;
}

/* Runs the pipelines from the form as it would be if such forms were all that came: behind another one, so
 * that code and what processors foretell are of this kind, and with neither the form nor the outputs' place in their caches.
 * The file was timed when the sample was served, which is just so. In the end the outputs are the form's, as of all that is
 * kept. false: the pipelines do not take it. */
static bool worker_try_form(struct worker *worker, struct worker_queue *queue,
			    const struct queue_task *task, const struct pipeline_out *out,
			    const struct forming_form *form, struct queue_made *ret)
{
	const struct forming_form earlier = forming_earlier_of(&worker->forming, task->probe, form);
	uint64_t ns;

	worker_time(queue, task, out, earlier.data, earlier.size, &ns);
	evict(form->data, form->size);
	workset_evict(queue->set, task, out);
	if (!worker_time(queue, task, out, form->data, form->size, &ns))
		return false;
	ret->form_us = (uint32_t)BASE_MIN((ns + 500) / 1000, (uint64_t)UINT32_MAX);
	return true;
}

static bool worker_make_form(struct worker *worker, struct worker_queue *queue,
			     const struct queue_task *task, unsigned wanted,
			     struct forming_form *ret_form, struct queue_made *ret)
{
	const struct pipeline_key key = worker_key(task);
	const uint64_t begin_ns = base_cpu_ns();
	const int r = forming_make(&worker->forming, wanted, queue->scratch,
				   (unsigned)__builtin_ctz(task->variants), &key,
				   queue->set->arena + task->arena_offset, task->came, ret_form);

	ret->made = r < 0 ? LAYOUT_MADE_NONE : LAYOUT_MADE_UNFIT;
	if (r != 0)
		return false;
	ret->make_us = (uint32_t)((base_cpu_ns() - begin_ns) / 1000);
	ret->bytes = (uint32_t)BASE_MIN(ret_form->kept, UINT32_MAX);
	return true;
}

/* Of a sample that is done. 0, or PIPELINE_E_BAD and *ret_error. */
static int worker_probe(struct worker *worker, struct worker_queue *queue,
			const struct queue_task *task, const struct pipeline_out *out,
			struct queue_made *ret, struct pipeline_error *ret_error)
{
	struct forming_form form;

	if (!worker_make_form(worker, queue, task, task->probe, &form, ret))
		return 0;
	if (!worker_try_form(worker, queue, task, out, &form, ret))
		return worker_run_on(queue, task, out, queue->set->arena + task->arena_offset,
				     task->came, ret_error);
	forming_set_aside(&worker->forming, task->probe, &form);
	ret->made = LAYOUT_MADE_YES;
	return 0;
}

/* Outputs from the form that is to be kept, if it can be made and they take it: that is the same, and
 * quicker. 0, or they are to be made from the file. */
static int worker_run_made(struct worker *worker, struct worker_queue *queue,
			   const struct queue_task *task, const struct pipeline_out *out,
			   struct queue_made *ret)
{
	struct forming_form form;
	struct pipeline_error error;
	uint64_t work_ns;

	if (!worker_make_form(worker, queue, task, task->make, &form, ret))
		return PIPELINE_E_BAD;
	if (worker_run_timed(queue, task, out, form.data, form.size, &work_ns, &error) != 0) {
		if (error.stage == PIPELINE_FAIL_MEMORY)
			ret->made = LAYOUT_MADE_NONE;
		return PIPELINE_E_BAD;
	}
	ret->work_us = (uint32_t)(work_ns / 1000);
	ret->made = forming_hand_over(worker->setup->rings, worker->setup->index,
				      queue->set->number, task, &form)
			? LAYOUT_MADE_YES
			: LAYOUT_MADE_FULL;
	return 0;
}

/* ---- a task ---- */

/* From what came. That clock costs a system call a look, so it is not looked at where nobody wants to know. 0, or
 * PIPELINE_E_BAD and *ret_error. */
static int worker_run_came(const struct worker *worker, struct worker_queue *queue,
			   const struct queue_task *task, const struct pipeline_out *out,
			   struct queue_made *ret_made, struct pipeline_error *ret_error)
{
	const uint8_t *data = worker_bytes(worker->setup, queue, task);
	uint64_t work_ns;
	int rc;

	if (!task->timed && !task->probe)
		return worker_run_on(queue, task, out, data, task->came, ret_error);
	rc = worker_run_timed(queue, task, out, data, task->came, &work_ns, ret_error);
	ret_made->work_us = (uint32_t)(work_ns / 1000);
	return rc;
}

/* No form was made of what came. Where there is none to be made, and other nodes are asked for the form (it is wanted, too), the
 * file may be kept in its place: it serves as well, and so they need not read it. A crop index is of no use in
 * front of another file. Not where memory was short: nodes that had enough would take the file for a lie (reader_checks.c). */
static bool worker_may_keep_file(const struct queue_task *task, const struct queue_made *made)
{
	return made->made == LAYOUT_MADE_UNFIT && task->want == task->make &&
	       task->make != LAYOUT_FORM_INDEXED;
}

/* Keeps it, if it is a good one. */
static void worker_keep_file(struct worker *worker, const struct worker_queue *queue,
			     const struct queue_task *task, bool is_good,
			     struct queue_made *ret_made)
{
	const struct rings *rings = worker->setup->rings;
	const struct forming_form file = {
	    .data = worker_bytes(worker->setup, queue, task),
	    .size = task->came,
	    .kept = task->came,
	};

	if (is_good && worker_may_keep_file(task, ret_made) &&
	    forming_hand_over(rings, worker->setup->index, queue->set->number, task, &file))
		ret_made->made = LAYOUT_MADE_FILE;
	else
		forming_hand_over_none(rings, worker->setup->index, queue->set->number, task);
}

/* Nobody waits for outputs: the form alone is made, of what came as its file. A file is a good one if what
 * the pipelines' ops on pictures make of it can be made. 0, or PIPELINE_E_BAD and *ret_error. */
static int worker_run_ahead(struct worker *worker, struct worker_queue *queue,
			    const struct queue_task *task, struct queue_made *ret_made,
			    struct pipeline_error *ret_error)
{
	const struct rings *rings = worker->setup->rings;
	struct forming_form form;
	bool is_good;

	if (task->form || !rings)
		return 0;
	if (worker_need_scratch(worker->setup, queue, ret_error) != 0)
		return PIPELINE_E_BAD;
	if (worker_make_form(worker, queue, task, task->make, &form, ret_made)) {
		ret_made->made =
		    forming_hand_over(rings, worker->setup->index, queue->set->number, task, &form)
			? LAYOUT_MADE_YES
			: LAYOUT_MADE_FULL;
		return 0;
	}
	is_good = worker_may_keep_file(task, ret_made) &&
		  worker_make_form(worker, queue, task, LAYOUT_FORM_AUGMENTED, &form, ret_made);
	worker_keep_file(worker, queue, task, is_good, ret_made);
	return 0;
}

/* 0, or PIPELINE_E_BAD and *ret_error. */
static int worker_run(struct worker *worker, struct worker_queue *queue,
		      const struct queue_task *task, struct queue_made *ret_made,
		      struct pipeline_error *ret_error)
{
	const bool is_file = !task->form && worker->setup->rings;
	struct pipeline_out out[LAYOUT_MAX_VARIANTS];
	int rc;

	if (task->slot == LAYOUT_NO_SLOT)
		return worker_run_ahead(worker, queue, task, ret_made, ret_error);
	rc = worker_prepare(worker->setup, queue, task, out, ret_error);
	if (rc != 0 && is_file && task->make)
		worker_keep_file(worker, queue, task, false, ret_made);
	if (rc != 0)
		return rc;
	if (is_file && task->make && worker_run_made(worker, queue, task, out, ret_made) == 0)
		return 0;
	rc = worker_run_came(worker, queue, task, out, ret_made, ret_error);
	if (is_file && task->make)
		worker_keep_file(worker, queue, task, rc == 0, ret_made);
	if (rc == 0 && is_file && task->probe)
		rc = worker_probe(worker, queue, task, out, ret_made, ret_error);
	return rc;
}

static void worker_ring_accessd(const struct worker *worker)
{
	const uint64_t one = 1;

	/* Fails only when the counter is full: then accessd is awake anyway. */
	if (doorbell_take_event_arm(worker->setup->doorbell) &&
	    write(WORKER_EVENT_FD, &one, sizeof(one)) < 0)
		return;
}

/* A picture that is too large gives its memory back; what leaks stays, and a picture that fails for
 * it may be as innocent as the next ones would be: its task dies with the worker, and a fresh worker
 * tries it once more. */
static bool worker_is_spent(const struct worker_setup *setup)
{
	void *volatile probe = malloc(setup->memory / WORKER_HEAP_SHARE);
	bool is_spent = probe == NULL;

	free(probe);
	return is_spent;
}

static void worker_do(struct worker *worker, struct worker_queue *queue,
		      const struct queue_task *task)
{
	struct pipeline_error error = {.code = 0};
	struct queue_made made = {.made = LAYOUT_MADE_NONE};
	uint64_t started_ns = base_now_ns(), work_ns;
	enum layout_fail stage = LAYOUT_FAIL_NONE;
	uint32_t queue_number = queue->set->number;
	uint64_t word = (uint64_t)queue_number << 48 | (uint64_t)task->row << 40 |
			(uint64_t)task->index << 8 | 1;

	atomic_store_explicit(&worker->entry->w_pixels, 0, memory_order_relaxed);
	/* E1: relaxed; E2 publishes it. */
	atomic_store_explicit(&worker->entry->w_started_ns, started_ns, memory_order_relaxed);
	/* E2: release, pairs with the acquire of whoever looks for hung workers (accessd). */
	atomic_store_explicit(&worker->entry->w_task, word, memory_order_release);
	if (worker_run(worker, queue, task, &made, &error) != 0)
		stage = (enum layout_fail)error.stage;
	if (stage == LAYOUT_FAIL_MEMORY && worker_is_spent(worker->setup))
		_exit(WORKER_EXIT_SPENT);
	work_ns = base_now_ns() - started_ns;
	queue_run_made(&queue->queue, task, &made);
	if (queue_run_done(&queue->queue, task, stage, error.code,
			   stage == LAYOUT_FAIL_NONE ? "" : error.text,
			   (uint32_t)BASE_MIN(work_ns / 1000, UINT32_MAX)))
		worker_ring_accessd(worker);
	worker_entry_end(worker, work_ns);
}

/* ---- the loop ---- */

/* One task of the next queue that has any. */
static bool worker_turn(struct worker *worker)
{
	for (unsigned n = 0; n < worker->count; n++) {
		unsigned i = (worker->next + n) % worker->count;
		struct worker_queue *queue = &worker->queue[i];
		struct queue_task task;
		int rc = queue_claim_run(&queue->queue, worker->setup->owner, queue->known, &task);

		if (rc == QUEUE_E_NONE)
			continue;
		worker->next = i + 1;
		if (rc == 0)
			worker_do(worker, queue, &task);
		else if (rc == QUEUE_E_STRANGE)
			doorbell_ring_workers(worker->setup->doorbell);
		else
			worker_ring_accessd(worker); /* the claim made the task FAILED */
		return true;
	}
	return false;
}

static void worker_loop(struct worker *worker)
{
	const struct worker_setup *setup = worker->setup;

	for (;;) {
		uint32_t seen = doorbell_work_seq(setup->doorbell);

		if (!generation_is_current(setup->current, setup->generation) ||
		    !generation_has_place(setup->current, setup->index))
			return;
		if (!worker_turn(worker))
			doorbell_sleep_worker(setup->doorbell, seen, WORKER_SLEEP_NS);
	}
}

/* ---- birth ---- */

static bool worker_become(const struct worker_setup *setup)
{
	sigset_t none;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != setup->parent)
		return false;
	prctl(PR_SET_NAME, "access-worker", 0, 0, 0);
	/* The parent handles signals in its loop; a worker has none to handle. The terminal's and the
	 * service manager's are accessd's business: it drains and then ends its parents. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* One arena of malloc and no giving back between samples: memory stays where it is. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, WORKER_HEAP_STEP);
	mallopt(M_TRIM_THRESHOLD, WORKER_HEAP_SPARE);
	if (setup->nice > 0)
		setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + setup->nice);
	return mprotect((void *)(uintptr_t)setup->current, base_page_size(), PROT_READ) == 0;
}

static bool worker_init(struct worker *worker, const struct worker_setup *setup)
{
	const struct workset *set = setup->workset;

	*worker = (struct worker){
	    .setup = setup,
	    .entry = &setup->doorbell->worker[setup->index],
	    .queue = calloc(set->count, sizeof(worker->queue[0])),
	};
	if (worker->queue == NULL)
		return false;
	for (unsigned i = 0; i < set->count; i++) {
		uint32_t known = workset_known(set->queue[i], setup->generation);

		if (!known)
			continue;
		worker->queue[worker->count++] = (struct worker_queue){
		    .set = set->queue[i], .queue = set->queue[i]->queue, .known = known};
	}
	return true;
}

void worker_main(const struct worker_setup *setup)
{
	const struct sandbox_limits limits = {.memory = setup->memory, .event_fd = WORKER_EVENT_FD};
	struct worker worker;

	if (!worker_become(setup) || !worker_init(&worker, setup))
		_exit(WORKER_EXIT_SETUP);
	if (sandbox_enter(&limits) < 0)
		_exit(WORKER_EXIT_SANDBOX);
	worker_loop(&worker);
	_exit(WORKER_EXIT_DONE);
}
