/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The way of a task: HELD -> QUEUED -> READING -> READY -> RUNNING -> DONE or FAILED (layout.h).
 *
 * No list links them. A task's state word says whose turn it is, and a reader thread or worker
 * claims a task by one compare-and-swap of that word, with its own number in it (L1). So there is
 * no place between two places where a task could be lost: a process that dies at any instruction
 * leaves each task either unclaimed or marked with its number, and accessd, which learns of the
 * death from the kernel, walks the words and takes the marked ones over. Nobody ever waits for a
 * dead process.
 *
 * Whoever moves a word on has written what the next one needs before it (L2 accessd, L3 reader and
 * worker: release; L1, L4: acquire). Only the owner moves a claimed task, by compare-and-swap
 * again, so one that was taken over by mistake changes nothing.
 *
 * Hints (s_read_hint, s_run_hint) save looking at tasks that are gone: a claim looks from there on, in all rows. What a wrong
 * hint hides is found where there is nothing else, and by one claim of CLAIMS_WHOLE, which look at whole rows:
 * it costs time and never a task. s_ended says when to look (L5,
 * L6); the states say what is. Both may be wrong after a death.
 *
 * A worker that was born before a variant came knows nothing of it. It passes over chunks that have
 * it, and where a new chunk took the place of an old one between that look and the claim, it puts the
 * task back and has a worker woken: one may have looked and gone to sleep meanwhile.
 *
 * The queue is writable by workers, which run decoders on hostile bytes: each number is copied once
 * and checked against the private geometry (is_in_bounds()); a task that fails the check is FAILED
 * for everybody. What a captured worker can do to its own trust domain is spoil its pictures.
 *
 * Rejected: a ring buffer with head and tail (a process that dies between reserve and publish
 * blocks it); a robust mutex (the kernel's list walk is one more thing to believe, and a stopped
 * process still holds it); a pipe (a system call a task, and the token dies with its reader).
 */

#include <limits.h>

#include "shmring/queue.h"

#define CLAIMS_WHOLE 32
#define WORD(owner, state) ((uint32_t)(owner) << 8 | (uint32_t)(state))
#define STATE_OF(word) ((word)&0xff)
#define OWNER_OF(word) ((word) >> 8)

#define RING_NEVER UINT32_MAX
#define RING_UPTO \
	(UINT32_C(1) << 31) /* when that task and all before it have ended, not when so many have */
_Static_assert(LAYOUT_MAX_CHUNK < RING_UPTO - 1,
	       "a count and a task's number leave that bit alone");

static struct layout_task *task_of(const struct queue *queue, uint32_t row, uint32_t index)
{
	return &queue->task[(uint64_t)row * queue->chunk + index];
}

/* The count may be read by a late scanner while accessd begins a new chunk: relaxed, then
 * clamped. */
static uint32_t count_of(const struct queue *queue, uint32_t row)
{
	uint32_t count = __atomic_load_n(&queue->row[row].d_count, __ATOMIC_RELAXED);

	return BASE_MIN(count, queue->chunk);
}

/* The same is true of these; who has claimed a task of the row reads what accessd wrote. */
static uint32_t variants_of(const struct queue *queue, uint32_t row)
{
	return __atomic_load_n(&queue->row[row].d_variants, __ATOMIC_RELAXED);
}

/* Readers look for QUEUED tasks, workers for READY ones. */
static _Atomic uint32_t *hint_of(const struct queue *queue, uint32_t row,
				 enum layout_task_state looked_for)
{
	struct layout_row *b = &queue->row[row];

	return looked_for == LAYOUT_TASK_QUEUED ? &b->s_read_hint : &b->s_run_hint;
}

static uint32_t hint_in(const struct queue *queue, uint32_t row, enum layout_task_state looked_for)
{
	return atomic_load_explicit(hint_of(queue, row, looked_for), memory_order_relaxed);
}

static void lower_hint(struct queue *queue, uint32_t row, uint32_t index,
		       enum layout_task_state looked_for)
{
	_Atomic uint32_t *hint = hint_of(queue, row, looked_for);

	if (atomic_load_explicit(hint, memory_order_relaxed) > index)
		atomic_store_explicit(hint, index, memory_order_relaxed);
}

/* ---- accessd: rows ---- */

static int find_unused(const struct queue *queue, uint32_t *ret_row)
{
	for (uint32_t b = 0; b < queue->n_rows; b++) {
		if (atomic_load_explicit(&queue->row[b].d_order, memory_order_relaxed) == 0) {
			*ret_row = b;
			return 0;
		}
	}
	return QUEUE_E_FULL;
}

void queue_task_key(struct queue *queue, uint32_t row, uint32_t index, uint64_t seed,
		    uint64_t nonce)
{
	struct layout_task *task = task_of(queue, row, index);

	task->d_seed = seed;
	task->d_nonce = nonce;
}

void queue_task_keep(struct queue *queue, uint32_t row, uint32_t index,
		     const struct queue_keep *keep)
{
	struct layout_task *task = task_of(queue, row, index);

	task->d_room = keep->room;
	task->d_want = keep->want;
	task->d_make = keep->make;
	task->d_probe = keep->probe;
	task->d_timed = (uint8_t)keep->timed;
}

int queue_row_begin(struct queue *queue, uint64_t order, uint64_t nonce, uint64_t seed,
		    uint32_t slot, uint32_t variants, uint32_t count, uint32_t *ret_row)
{
	struct layout_row *row;
	int r;

	if (order == 0 || count == 0 || count > queue->chunk || variants == 0 ||
	    variants >> LAYOUT_MAX_VARIANTS)
		return QUEUE_E_BAD;
	r = find_unused(queue, ret_row);
	if (r)
		return r;
	row = &queue->row[*ret_row];
	row->d_nonce = nonce;
	row->d_seed = seed;
	row->d_slot = slot;
	__atomic_store_n(&row->d_variants, variants, __ATOMIC_RELAXED);
	__atomic_store_n(&row->d_count, count, __ATOMIC_RELAXED);
	atomic_store_explicit(&row->s_read_hint, 0, memory_order_relaxed);
	atomic_store_explicit(&row->s_run_hint, 0, memory_order_relaxed);
	atomic_store_explicit(&row->s_ended, 0, memory_order_relaxed);
	atomic_store_explicit(&row->d_ring_at, RING_NEVER, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		queue_task_key(queue, *ret_row, i, seed, nonce);
		queue_task_keep(queue, *ret_row, i, &(struct queue_keep){0});
		atomic_store_explicit(&task_of(queue, *ret_row, i)->s_state,
				      WORD(0, LAYOUT_TASK_HELD), memory_order_relaxed);
	}
	/* L0: release of the row's head, pairs with the acquire in rows_in_order(). */
	atomic_store_explicit(&row->d_order, order, memory_order_release);
	return 0;
}

void queue_row_end(struct queue *queue, uint32_t row)
{
	atomic_store_explicit(&queue->row[row].d_order, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < queue->chunk; i++)
		atomic_store_explicit(&task_of(queue, row, i)->s_state, WORD(0, LAYOUT_TASK_FREE),
				      memory_order_release);
}

void queue_close(struct queue *queue)
{
	atomic_store_explicit(&queue->head->d_closed, 1, memory_order_seq_cst);
}

void queue_ring_at(struct queue *queue, uint32_t row, uint32_t ended)
{
	/* L5: seq_cst store, then queue_ended(); pairs with L6. */
	atomic_store_explicit(&queue->row[row].d_ring_at, ended, memory_order_seq_cst);
}

void queue_ring_upto(struct queue *queue, uint32_t row, uint32_t last)
{
	queue_ring_at(queue, row, RING_UPTO | last);
}

uint32_t queue_ended(const struct queue *queue, uint32_t row)
{
	return atomic_load_explicit(&queue->row[row].s_ended, memory_order_seq_cst);
}

void queue_recount(struct queue *queue, uint32_t row)
{
	_Atomic uint32_t *counted = &queue->row[row].s_ended;
	uint32_t before = atomic_load_explicit(counted, memory_order_seq_cst), ended = 0;

	for (uint32_t i = 0; i < count_of(queue, row); i++)
		ended += queue_is_end(queue_task_state(queue, row, i, NULL));
	while (before < ended && !atomic_compare_exchange_weak(counted, &before, ended))
		;
}

/* ---- accessd: tasks ---- */

void queue_task_put(struct queue *queue, uint32_t row, uint32_t index, uint64_t sample,
		    uint64_t random_id, uint32_t position, uint32_t label, uint64_t arena_offset,
		    uint32_t bytes, uint32_t attempt)
{
	struct layout_task *task = task_of(queue, row, index);

	task->d_sample = sample;
	task->d_random_id = random_id;
	task->d_arena_offset = arena_offset;
	task->d_bytes = bytes;
	task->d_label = label;
	task->d_position = position;
	task->d_attempt = attempt;
	task->r_bytes = bytes;
	task->r_form = 0;
	task->r_from = LAYOUT_FROM_SOURCE;
	task->r_resident = 0;
	task->s_made = LAYOUT_MADE_NONE;
	/* L2: release of the task, pairs with L1. */
	atomic_store_explicit(&task->s_state, WORD(0, LAYOUT_TASK_QUEUED), memory_order_release);
	lower_hint(queue, row, index, LAYOUT_TASK_QUEUED);
}

enum layout_task_state queue_task_state(const struct queue *queue, uint32_t row, uint32_t index,
					uint32_t *ret_owner)
{
	/* L4: acquire, pairs with L3: the outcome and the pixels of an ended task. */
	uint32_t word =
	    atomic_load_explicit(&task_of(queue, row, index)->s_state, memory_order_acquire);

	if (ret_owner)
		*ret_owner = OWNER_OF(word);
	return BASE_MIN(STATE_OF(word), LAYOUT_TASK_FAILED);
}

void queue_task_outcome(const struct queue *queue, uint32_t row, uint32_t index,
			enum layout_fail *ret_stage, int *ret_code, char ret_text[48],
			uint32_t *ret_work_us)
{
	const struct layout_task *task = task_of(queue, row, index);
	/* One load: what is checked is what is returned, and becomes an index of tables. */
	uint32_t stage = __atomic_load_n(&task->s_stage, __ATOMIC_RELAXED);
	int code = __atomic_load_n(&task->s_code, __ATOMIC_RELAXED);

	*ret_stage = BASE_MIN(stage, (uint32_t)LAYOUT_FAIL_FILTERED);
	*ret_code = BASE_MAX(code, -INT_MAX); /* so that there is its opposite */
	memcpy(ret_text, task->s_text, sizeof(task->s_text));
	ret_text[sizeof(task->s_text) - 1] = 0;
	*ret_work_us = task->s_work_us;
}

void queue_task_kept(const struct queue *queue, uint32_t row, uint32_t index,
		     struct queue_kept *ret)
{
	const struct layout_task *task = task_of(queue, row, index);
	/* One load each: what is checked is what is returned, and becomes an index of tables. */
	uint32_t form = __atomic_load_n(&task->r_form, __ATOMIC_RELAXED);
	uint32_t made = __atomic_load_n(&task->s_made, __ATOMIC_RELAXED);
	uint32_t from = __atomic_load_n(&task->r_from, __ATOMIC_RELAXED);

	*ret = (struct queue_kept){
	    .read_us = (uint32_t)BASE_MIN(task->r_read_ns / 1000, UINT32_MAX),
	    .read_cpu_us = task->r_cpu_us,
	    .came = task->r_bytes,
	    .form = form < LAYOUT_FORMS ? (uint8_t)form : 0,
	    .from = (enum layout_from)BASE_MIN(from, (uint32_t)LAYOUT_FROM_PEER),
	    .made = (enum layout_made)BASE_MIN(made, (uint32_t)LAYOUT_MADE_FILE),
	    .work_us = task->s_cpu_us,
	    .make_us = task->s_make_us,
	    .form_us = task->s_form_us,
	    .form_bytes = task->s_form_bytes,
	};
}

static void set_outcome(struct layout_task *task, enum layout_fail stage, int code,
			const char *text, uint64_t work_us)
{
	size_t length = text ? strnlen(text, sizeof(task->s_text) - 1) : 0;

	task->s_stage = stage;
	task->s_code = code;
	task->s_work_us = (uint32_t)BASE_MIN(work_us, UINT32_MAX);
	memset(task->s_text, 0, sizeof(task->s_text));
	if (length)
		memcpy(task->s_text, text, length);
}

/* From the last one down: as tasks are claimed from the first one up, that is over soon where one has not ended. */
bool queue_have_ended(const struct queue *queue, uint32_t row, uint32_t last)
{
	uint32_t n = BASE_MIN(last, queue->chunk - 1) + 1;

	while (n > 0 && queue_is_end(queue_task_state(queue, row, n - 1, NULL)))
		n--;
	return n == 0;
}

static bool is_ring_due(const struct queue *queue, uint32_t row, uint32_t index, uint32_t ended)
{
	const uint32_t at = atomic_load_explicit(&queue->row[row].d_ring_at, memory_order_seq_cst);
	const uint32_t last = at & ~RING_UPTO;

	if (at == RING_NEVER || !(at & RING_UPTO))
		return ended >= at;
	return index <= last && queue_have_ended(queue, row, last);
}

/* One more task has ended. true once an arm, when accessd wants to know. Of two that end at once, the one that is counted
 * second sees the end of the other. */
static bool count_end(struct queue *queue, uint32_t row, uint32_t index)
{
	struct layout_row *b = &queue->row[row];
	/* L6: seq_cst, then the look at d_ring_at; pairs with L5: one of the two sees. */
	uint32_t ended = atomic_fetch_add_explicit(&b->s_ended, 1, memory_order_seq_cst) + 1;

	return is_ring_due(queue, row, index, ended) &&
	       atomic_exchange_explicit(&b->d_ring_at, RING_NEVER, memory_order_seq_cst) !=
		   RING_NEVER;
}

bool queue_task_take_over(struct queue *queue, uint32_t row, uint32_t index, uint32_t owner,
			  enum layout_task_state from, enum layout_task_state to,
			  enum layout_fail stage, int code)
{
	struct layout_task *task = task_of(queue, row, index);
	uint32_t word = WORD(owner, from);

	if (atomic_load_explicit(&task->s_state, memory_order_acquire) != word)
		return false;
	set_outcome(task, to == LAYOUT_TASK_FAILED ? stage : LAYOUT_FAIL_NONE, code, NULL, 0);
	if (!atomic_compare_exchange_strong_explicit(&task->s_state, &word, WORD(0, to),
						     memory_order_acq_rel, memory_order_relaxed))
		return false;
	if (to == LAYOUT_TASK_FAILED)
		count_end(queue, row, index);
	else
		lower_hint(queue, row, index, to);
	return true;
}

/* ---- readers and workers: claims ---- */

/* Numbers of the rows in use, oldest chunk first. */
static uint32_t rows_in_order(const struct queue *queue, uint32_t ret[LAYOUT_MAX_ROWS])
{
	uint64_t order[LAYOUT_MAX_ROWS];
	uint32_t n = 0;

	for (uint32_t b = 0; b < queue->n_rows; b++) {
		/* acquire, pairs with L0 */
		uint64_t o = atomic_load_explicit(&queue->row[b].d_order, memory_order_acquire);
		uint32_t place = n;

		if (o == 0)
			continue;
		for (; place > 0 && order[place - 1] > o; place--) {
			order[place] = order[place - 1];
			ret[place] = ret[place - 1];
		}
		order[place] = o;
		ret[place] = b;
		n++;
	}
	return n;
}

static bool try_claim(struct layout_task *task, enum layout_task_state from, uint32_t word)
{
	uint32_t expected = WORD(0, from);

	if (atomic_load_explicit(&task->s_state, memory_order_relaxed) != expected)
		return false;
	/* L1: acquire, pairs with L2 (readers) and L3 (workers). */
	return atomic_compare_exchange_strong_explicit(&task->s_state, &expected, word,
						       memory_order_acq_rel, memory_order_relaxed);
}

static bool claim_between(struct queue *queue, uint32_t row, uint32_t first, uint32_t end,
			  enum layout_task_state from, uint32_t word, uint32_t *ret_index)
{
	for (uint32_t index = first; index < end; index++) {
		if (!try_claim(task_of(queue, row, index), from, word))
			continue;
		atomic_store_explicit(hint_of(queue, row, from), index + 1, memory_order_relaxed);
		*ret_index = index;
		return true;
	}
	return false;
}

/* From the hint on; whole: then those before it. */
static bool claim_in(struct queue *queue, uint32_t row, enum layout_task_state from, uint32_t word,
		     bool whole, uint32_t *ret_index)
{
	const uint32_t count = count_of(queue, row);
	const uint32_t start = BASE_MIN(hint_in(queue, row, from), count);

	return claim_between(queue, row, start, count, from, word, ret_index) ||
	       (whole && claim_between(queue, row, 0, start, from, word, ret_index));
}

static bool is_in_bounds(const struct queue *queue, const struct queue_task *task)
{
	return task->room <= queue->arena_bytes && task->bytes <= task->room &&
	       task->arena_offset <= queue->arena_bytes - task->room &&
	       (task->resident ? task->form != 0 : task->came <= task->room) &&
	       task->form < LAYOUT_FORMS && task->want < LAYOUT_FORMS &&
	       task->make < LAYOUT_FORMS && task->probe < LAYOUT_FORMS &&
	       task->position < queue->chunk &&
	       (task->slot < LAYOUT_MAX_SLOTS || (task->slot == LAYOUT_NO_SLOT && task->make));
}

/* Private copy of a claimed task. */
static void copy_task(const struct queue *queue, uint32_t row, uint32_t index, uint32_t owner,
		      struct queue_task *ret)
{
	const struct layout_task *task = task_of(queue, row, index);
	const struct layout_row *b = &queue->row[row];

	*ret = (struct queue_task){
	    .row = row,
	    .index = index,
	    .sample = task->d_sample,
	    .random_id = task->d_random_id,
	    .arena_offset = task->d_arena_offset,
	    .nonce = task->d_nonce,
	    .seed = task->d_seed,
	    .bytes = task->d_bytes,
	    .label = task->d_label,
	    .position = task->d_position,
	    .slot = b->d_slot,
	    .variants = variants_of(queue, row),
	    .attempt = task->d_attempt,
	    .owner = owner,
	    .came = task->r_bytes,
	    .resident = task->r_resident,
	    .form = (uint8_t)BASE_MIN(task->r_form, (uint32_t)LAYOUT_FORMS),
	    .want = task->d_want,
	    .make = task->d_make,
	    .probe = task->d_probe,
	    .timed = (enum layout_timed)BASE_MIN(task->d_timed, LAYOUT_TIMED_WORK),
	};
	ret->room = BASE_MAX(task->d_room, ret->bytes);
}

/* Moves a task on that is still its owner's; true: ring accessd. */
static bool finish(struct queue *queue, const struct queue_task *task, enum layout_task_state from,
		   enum layout_task_state to)
{
	uint32_t word = WORD(task->owner, from);

	/* L3: release of outcome, bytes and pixels, pairs with L1 (READY) and L4 (ends). */
	if (!atomic_compare_exchange_strong_explicit(
		&task_of(queue, task->row, task->index)->s_state, &word, WORD(0, to),
		memory_order_acq_rel, memory_order_relaxed))
		return false;
	if (queue_is_end(to))
		return count_end(queue, task->row, task->index);
	lower_hint(queue, task->row, task->index, to);
	return false;
}

struct claim { /* from which state to which, and the variants that the claimant knows */
	enum layout_task_state from, to;
	uint32_t known;
};

static bool is_owned(const struct queue *queue, const struct queue_task *task,
		     enum layout_task_state state)
{
	return atomic_load_explicit(&task_of(queue, task->row, task->index)->s_state,
				    memory_order_relaxed) == WORD(task->owner, state);
}

/* Just claimed: is it what may be done, by us? */
static int accept(struct queue *queue, uint32_t row, uint32_t index, uint32_t owner,
		  const struct claim *claim, struct queue_task *ret)
{
	struct queue_task task;

	copy_task(queue, row, index, owner, &task);
	if (task.variants & ~claim->known) {
		finish(queue, &task, claim->to, claim->from);
		return QUEUE_E_STRANGE;
	}
	if (is_in_bounds(queue, &task)) {
		*ret = task;
		return 0;
	}
	set_outcome(task_of(queue, row, index), LAYOUT_FAIL_READ, -EBADMSG,
		    "the task's numbers are out of bounds", 0);
	finish(queue, &task, claim->to, LAYOUT_TASK_FAILED);
	return QUEUE_E_BAD;
}

/* Other threads count, too: about. */
static bool is_whole_due(struct queue *queue)
{
	const uint32_t n = atomic_load_explicit(&queue->claims, memory_order_relaxed);

	atomic_store_explicit(&queue->claims, n + 1, memory_order_relaxed);
	return n % CLAIMS_WHOLE == 0;
}

static int claim_any(struct queue *queue, uint32_t owner, const struct claim *claim,
		     struct queue_task *ret)
{
	uint32_t row[LAYOUT_MAX_ROWS], index, n;

	if (atomic_load_explicit(&queue->head->d_closed, memory_order_seq_cst))
		return QUEUE_E_NONE;
	n = rows_in_order(queue, row);
	for (unsigned whole = is_whole_due(queue); whole < 2; whole++)
		for (uint32_t i = 0; i < n; i++)
			if (!(variants_of(queue, row[i]) & ~claim->known) &&
			    claim_in(queue, row[i], claim->from, WORD(owner, claim->to), whole,
				     &index))
				return accept(queue, row[i], index, owner, claim, ret);
	return QUEUE_E_NONE;
}

int queue_claim_read(struct queue *queue, uint32_t owner, struct queue_task *ret)
{
	const struct claim claim = {LAYOUT_TASK_QUEUED, LAYOUT_TASK_READING, UINT32_MAX};

	return claim_any(queue, owner, &claim, ret);
}

uint32_t queue_length(const struct queue *queue)
{
	uint32_t row[LAYOUT_MAX_ROWS], n = rows_in_order(queue, row), queued = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = hint_in(queue, row[i], LAYOUT_TASK_QUEUED),
			      count = count_of(queue, row[i]);
		     k < count; k++)
			queued += atomic_load_explicit(&task_of(queue, row[i], k)->s_state,
						       memory_order_relaxed) ==
				  WORD(0, LAYOUT_TASK_QUEUED);
	return queued;
}

int queue_claim_run(struct queue *queue, uint32_t owner, uint32_t known, struct queue_task *ret)
{
	const struct claim claim = {LAYOUT_TASK_READY, LAYOUT_TASK_RUNNING, known};

	return claim_any(queue, owner, &claim, ret);
}

void queue_read_came(struct queue *queue, const struct queue_task *task, uint8_t form,
		     enum layout_from from, uint32_t bytes, uint64_t resident)
{
	struct layout_task *t = task_of(queue, task->row, task->index);

	if (!is_owned(queue, task, LAYOUT_TASK_READING))
		return;
	t->r_form = form;
	t->r_from = from;
	t->r_bytes = bytes;
	t->r_resident = resident;
}

bool queue_read_done(struct queue *queue, const struct queue_task *task, enum layout_fail stage,
		     int code, const char *text, uint64_t read_ns, uint64_t cpu_ns)
{
	struct layout_task *t = task_of(queue, task->row, task->index);

	if (!is_owned(queue, task, LAYOUT_TASK_READING))
		return false;
	set_outcome(t, stage, code, text, read_ns / 1000);
	t->r_read_ns = read_ns;
	t->r_cpu_us = (uint32_t)BASE_MIN(cpu_ns / 1000, UINT32_MAX);
	return finish(queue, task, LAYOUT_TASK_READING,
		      stage == LAYOUT_FAIL_NONE ? LAYOUT_TASK_READY : LAYOUT_TASK_FAILED);
}

bool queue_run_done(struct queue *queue, const struct queue_task *task, enum layout_fail stage,
		    int code, const char *text, uint32_t work_us)
{
	if (!is_owned(queue, task, LAYOUT_TASK_RUNNING))
		return false;
	set_outcome(task_of(queue, task->row, task->index), stage, code, text, work_us);
	return finish(queue, task, LAYOUT_TASK_RUNNING,
		      stage == LAYOUT_FAIL_NONE ? LAYOUT_TASK_DONE : LAYOUT_TASK_FAILED);
}

void queue_run_made(struct queue *queue, const struct queue_task *task,
		    const struct queue_made *made)
{
	struct layout_task *t = task_of(queue, task->row, task->index);

	if (!is_owned(queue, task, LAYOUT_TASK_RUNNING))
		return;
	t->s_cpu_us = made->work_us;
	t->s_made = made->made;
	t->s_make_us = made->make_us;
	t->s_form_us = made->form_us;
	t->s_form_bytes = made->bytes;
}
