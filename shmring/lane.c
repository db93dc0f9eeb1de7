/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The way of a task: HELD -> QUEUED -> READING -> READY -> RUNNING -> DONE or FAILED (layout.h).
 *
 * There is no queue. A task's state word says whose turn it is, and a reader thread or worker
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
 * Hints (s_read_hint, s_run_hint) save looking at tasks that are gone; a claim starts there and
 * then goes once round, so a wrong hint costs time and never a task. s_ended says when to look (L5,
 * L6); the states say what is. Both may be wrong after a death.
 *
 * A worker that was born before a variant came knows nothing of it. It passes over chunks that have
 * it, and where a new chunk took the place of an old one between that look and the claim, it puts the
 * task back and has a worker woken: one may have looked and gone to sleep meanwhile.
 *
 * The lane is writable by workers, which run decoders on hostile bytes: each number is copied once
 * and checked against the private geometry (is_in_bounds()); a task that fails the check is FAILED
 * for everybody. What a captured worker can do to its own trust domain is spoil its pictures.
 *
 * Rejected: a ring buffer with head and tail (a process that dies between reserve and publish
 * blocks it); a robust mutex (the kernel's list walk is one more thing to believe, and a stopped
 * process still holds it); a pipe (a system call a task, and the token dies with its reader).
 */

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "shmring/lane.h"

#define WORD(owner, state) ((uint32_t)(owner) << 8 | (uint32_t)(state))
#define STATE_OF(word) ((word)&0xff)
#define OWNER_OF(word) ((word) >> 8)

static struct layout_task *task_of(const struct lane *lane, uint32_t block, uint32_t index)
{
	return &lane->task[(uint64_t)block * lane->chunk + index];
}

static bool is_end(enum layout_task_state state)
{
	return state == LAYOUT_TASK_DONE || state == LAYOUT_TASK_FAILED;
}

/* The count may be read by a late scanner while accessd begins a new chunk: relaxed, then
 * clamped. */
static uint32_t count_of(const struct lane *lane, uint32_t block)
{
	uint32_t count = __atomic_load_n(&lane->block[block].d_count, __ATOMIC_RELAXED);

	return BASE_MIN(count, lane->chunk);
}

/* The same is true of these; who has claimed a task of the block reads what accessd wrote. */
static uint32_t variants_of(const struct lane *lane, uint32_t block)
{
	return __atomic_load_n(&lane->block[block].d_variants, __ATOMIC_RELAXED);
}

/* Readers look for QUEUED tasks, workers for READY ones. */
static _Atomic uint32_t *hint_of(const struct lane *lane, uint32_t block,
				 enum layout_task_state looked_for)
{
	struct layout_block *b = &lane->block[block];

	return looked_for == LAYOUT_TASK_QUEUED ? &b->s_read_hint : &b->s_run_hint;
}

static void lower_hint(struct lane *lane, uint32_t block, uint32_t index,
		       enum layout_task_state looked_for)
{
	_Atomic uint32_t *hint = hint_of(lane, block, looked_for);

	if (atomic_load_explicit(hint, memory_order_relaxed) > index)
		atomic_store_explicit(hint, index, memory_order_relaxed);
}

/* ---- accessd: blocks ---- */

static int find_unused(const struct lane *lane, uint32_t *ret_block)
{
	for (uint32_t b = 0; b < lane->n_blocks; b++) {
		if (atomic_load_explicit(&lane->block[b].d_order, memory_order_relaxed) == 0) {
			*ret_block = b;
			return 0;
		}
	}
	return LANE_E_FULL;
}

void lane_task_key(struct lane *lane, uint32_t block, uint32_t index, uint64_t seed, uint64_t lap)
{
	struct layout_task *task = task_of(lane, block, index);

	task->d_seed = seed;
	task->d_lap = lap;
}

void lane_task_keep(struct lane *lane, uint32_t block, uint32_t index, const struct lane_keep *keep)
{
	struct layout_task *task = task_of(lane, block, index);

	task->d_room = keep->room;
	task->d_want = keep->want;
	task->d_make = keep->make;
	task->d_probe = keep->probe;
	task->d_timed = keep->timed;
}

int lane_block_begin(struct lane *lane, uint64_t order, uint64_t lap, uint64_t seed, uint32_t slot,
		     uint32_t variants, uint32_t count, uint32_t *ret_block)
{
	struct layout_block *block;
	int r;

	if (order == 0 || count == 0 || count > lane->chunk || variants == 0 ||
	    variants >> LAYOUT_MAX_VARIANTS)
		return LANE_E_BAD;
	r = find_unused(lane, ret_block);
	if (r)
		return r;
	block = &lane->block[*ret_block];
	block->d_lap = lap;
	block->d_seed = seed;
	block->d_slot = slot;
	__atomic_store_n(&block->d_variants, variants, __ATOMIC_RELAXED);
	__atomic_store_n(&block->d_count, count, __ATOMIC_RELAXED);
	atomic_store_explicit(&block->s_read_hint, 0, memory_order_relaxed);
	atomic_store_explicit(&block->s_run_hint, 0, memory_order_relaxed);
	atomic_store_explicit(&block->s_ended, 0, memory_order_relaxed);
	atomic_store_explicit(&block->d_ring_at, UINT32_MAX, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		lane_task_key(lane, *ret_block, i, seed, lap);
		lane_task_keep(lane, *ret_block, i, &(struct lane_keep){0});
		atomic_store_explicit(&task_of(lane, *ret_block, i)->s_state,
				      WORD(0, LAYOUT_TASK_HELD), memory_order_relaxed);
	}
	/* L0: release of the block's head, pairs with the acquire in blocks_in_order(). */
	atomic_store_explicit(&block->d_order, order, memory_order_release);
	return 0;
}

void lane_block_end(struct lane *lane, uint32_t block)
{
	atomic_store_explicit(&lane->block[block].d_order, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < lane->chunk; i++)
		atomic_store_explicit(&task_of(lane, block, i)->s_state, WORD(0, LAYOUT_TASK_FREE),
				      memory_order_release);
}

void lane_close(struct lane *lane)
{
	atomic_store_explicit(&lane->head->d_closed, 1, memory_order_seq_cst);
}

void lane_ring_at(struct lane *lane, uint32_t block, uint32_t ended)
{
	/* L5: seq_cst store, then lane_ended(); pairs with L6. */
	atomic_store_explicit(&lane->block[block].d_ring_at, ended, memory_order_seq_cst);
}

uint32_t lane_ended(const struct lane *lane, uint32_t block)
{
	return atomic_load_explicit(&lane->block[block].s_ended, memory_order_seq_cst);
}

void lane_recount(struct lane *lane, uint32_t block)
{
	_Atomic uint32_t *counted = &lane->block[block].s_ended;
	uint32_t before = atomic_load_explicit(counted, memory_order_seq_cst), ended = 0;

	for (uint32_t i = 0; i < count_of(lane, block); i++)
		ended += is_end(lane_task_state(lane, block, i, NULL));
	while (before < ended && !atomic_compare_exchange_weak(counted, &before, ended))
		;
}

/* ---- accessd: tasks ---- */

void lane_task_queue(struct lane *lane, uint32_t block, uint32_t index, uint64_t sample,
		     uint64_t random_id, uint32_t position, uint32_t label, uint64_t arena_offset,
		     uint32_t bytes, uint32_t attempt)
{
	struct layout_task *task = task_of(lane, block, index);

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
	lower_hint(lane, block, index, LAYOUT_TASK_QUEUED);
}

enum layout_task_state lane_task_state(const struct lane *lane, uint32_t block, uint32_t index,
				       uint32_t *ret_owner)
{
	/* L4: acquire, pairs with L3: the outcome and the pixels of an ended task. */
	uint32_t word =
	    atomic_load_explicit(&task_of(lane, block, index)->s_state, memory_order_acquire);

	if (ret_owner)
		*ret_owner = OWNER_OF(word);
	return BASE_MIN(STATE_OF(word), LAYOUT_TASK_FAILED);
}

void lane_task_outcome(const struct lane *lane, uint32_t block, uint32_t index,
		       enum layout_fail *ret_stage, int *ret_code, char ret_text[48],
		       uint32_t *ret_work_us)
{
	const struct layout_task *task = task_of(lane, block, index);
	/* One load: what is checked is what is returned, and becomes an index of tables. */
	uint32_t stage = __atomic_load_n(&task->s_stage, __ATOMIC_RELAXED);
	int code = __atomic_load_n(&task->s_code, __ATOMIC_RELAXED);

	*ret_stage = BASE_MIN(stage, (uint32_t)LAYOUT_FAIL_FILTERED);
	*ret_code = BASE_MAX(code, -INT_MAX); /* so that there is its opposite */
	memcpy(ret_text, task->s_text, sizeof(task->s_text));
	ret_text[sizeof(task->s_text) - 1] = 0;
	*ret_work_us = task->s_work_us;
}

void lane_task_kept(const struct lane *lane, uint32_t block, uint32_t index, struct lane_kept *ret)
{
	const struct layout_task *task = task_of(lane, block, index);
	/* One load each: what is checked is what is returned, and becomes an index of tables. */
	uint32_t form = __atomic_load_n(&task->r_form, __ATOMIC_RELAXED);
	uint32_t made = __atomic_load_n(&task->s_made, __ATOMIC_RELAXED);
	uint32_t from = __atomic_load_n(&task->r_from, __ATOMIC_RELAXED);

	*ret = (struct lane_kept){
	    .read_us = (uint32_t)BASE_MIN(task->r_read_ns / 1000, UINT32_MAX),
	    .read_cpu_us = task->r_cpu_us,
	    .came = task->r_bytes,
	    .form = form < LAYOUT_FORMS ? (uint8_t)form : 0,
	    .from = (enum layout_from)BASE_MIN(from, (uint32_t)LAYOUT_FROM_PEER),
	    .made = (enum layout_made)BASE_MIN(made, (uint32_t)LAYOUT_MADE_FULL),
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

/* One more task has ended. true once an arm, when accessd wants to know. */
static bool count_end(struct lane *lane, uint32_t block)
{
	struct layout_block *b = &lane->block[block];
	/* L6: seq_cst, then the look at d_ring_at; pairs with L5: one of the two sees. */
	uint32_t ended = atomic_fetch_add_explicit(&b->s_ended, 1, memory_order_seq_cst) + 1;

	if (ended < atomic_load_explicit(&b->d_ring_at, memory_order_seq_cst))
		return false;
	return atomic_exchange_explicit(&b->d_ring_at, UINT32_MAX, memory_order_seq_cst) !=
	       UINT32_MAX;
}

bool lane_task_take_over(struct lane *lane, uint32_t block, uint32_t index, uint32_t owner,
			 enum layout_task_state from, enum layout_task_state to,
			 enum layout_fail stage, int code)
{
	struct layout_task *task = task_of(lane, block, index);
	uint32_t word = WORD(owner, from);

	if (atomic_load_explicit(&task->s_state, memory_order_acquire) != word)
		return false;
	set_outcome(task, to == LAYOUT_TASK_FAILED ? stage : LAYOUT_FAIL_NONE, code, NULL, 0);
	if (!atomic_compare_exchange_strong_explicit(&task->s_state, &word, WORD(0, to),
						     memory_order_acq_rel, memory_order_relaxed))
		return false;
	if (to == LAYOUT_TASK_FAILED)
		count_end(lane, block);
	else
		lower_hint(lane, block, index, to);
	return true;
}

/* ---- readers and workers: claims ---- */

/* Numbers of the blocks in use, oldest chunk first. */
static uint32_t blocks_in_order(const struct lane *lane, uint32_t ret[LAYOUT_MAX_BLOCKS])
{
	uint64_t order[LAYOUT_MAX_BLOCKS];
	uint32_t n = 0;

	for (uint32_t b = 0; b < lane->n_blocks; b++) {
		/* acquire, pairs with L0 */
		uint64_t o = atomic_load_explicit(&lane->block[b].d_order, memory_order_acquire);
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

static bool claim_in(struct lane *lane, uint32_t block, enum layout_task_state from, uint32_t word,
		     uint32_t *ret_index)
{
	_Atomic uint32_t *hint = hint_of(lane, block, from);
	uint32_t count = count_of(lane, block);
	uint32_t start = atomic_load_explicit(hint, memory_order_relaxed);

	if (start >= count)
		start = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = i < count - start ? start + i : i - (count - start);

		if (!try_claim(task_of(lane, block, index), from, word))
			continue;
		atomic_store_explicit(hint, index + 1, memory_order_relaxed);
		*ret_index = index;
		return true;
	}
	return false;
}

static bool is_in_bounds(const struct lane *lane, const struct lane_task *task)
{
	return task->room <= lane->arena_bytes && task->bytes <= task->room &&
	       task->arena_offset <= lane->arena_bytes - task->room &&
	       (task->resident ? task->form != 0 : task->came <= task->room) &&
	       task->form < LAYOUT_FORMS && task->want < LAYOUT_FORMS &&
	       task->make < LAYOUT_FORMS && task->probe < LAYOUT_FORMS &&
	       task->position < lane->chunk && task->slot < LAYOUT_MAX_SLOTS;
}

/* Private copy of a claimed task. */
static void copy_task(const struct lane *lane, uint32_t block, uint32_t index, uint32_t owner,
		      struct lane_task *ret)
{
	const struct layout_task *task = task_of(lane, block, index);
	const struct layout_block *b = &lane->block[block];

	*ret = (struct lane_task){
	    .block = block,
	    .index = index,
	    .sample = task->d_sample,
	    .random_id = task->d_random_id,
	    .arena_offset = task->d_arena_offset,
	    .lap = task->d_lap,
	    .seed = task->d_seed,
	    .bytes = task->d_bytes,
	    .label = task->d_label,
	    .position = task->d_position,
	    .slot = b->d_slot,
	    .variants = variants_of(lane, block),
	    .attempt = task->d_attempt,
	    .owner = owner,
	    .came = task->r_bytes,
	    .resident = task->r_resident,
	    .form = (uint8_t)BASE_MIN(task->r_form, (uint32_t)LAYOUT_FORMS),
	    .want = task->d_want,
	    .make = task->d_make,
	    .probe = task->d_probe,
	    .timed = task->d_timed != 0,
	};
	ret->room = BASE_MAX(task->d_room, ret->bytes);
}

/* Moves a task on that is still its owner's; true: ring accessd. */
static bool finish(struct lane *lane, const struct lane_task *task, enum layout_task_state from,
		   enum layout_task_state to)
{
	uint32_t word = WORD(task->owner, from);

	/* L3: release of outcome, bytes and pixels, pairs with L1 (READY) and L4 (ends). */
	if (!atomic_compare_exchange_strong_explicit(
		&task_of(lane, task->block, task->index)->s_state, &word, WORD(0, to),
		memory_order_acq_rel, memory_order_relaxed))
		return false;
	if (is_end(to))
		return count_end(lane, task->block);
	lower_hint(lane, task->block, task->index, to);
	return false;
}

struct claim { /* from which state to which, and the variants that the claimant knows */
	enum layout_task_state from, to;
	uint32_t known;
};

static bool is_owned(const struct lane *lane, const struct lane_task *task,
		     enum layout_task_state state)
{
	return atomic_load_explicit(&task_of(lane, task->block, task->index)->s_state,
				    memory_order_relaxed) == WORD(task->owner, state);
}

/* Just claimed: is it what may be done, by us? */
static int accept(struct lane *lane, uint32_t block, uint32_t index, uint32_t owner,
		  const struct claim *claim, struct lane_task *ret)
{
	struct lane_task task;

	copy_task(lane, block, index, owner, &task);
	if (task.variants & ~claim->known) {
		finish(lane, &task, claim->to, claim->from);
		return LANE_E_STRANGE;
	}
	if (is_in_bounds(lane, &task)) {
		*ret = task;
		return 0;
	}
	set_outcome(task_of(lane, block, index), LAYOUT_FAIL_READ, -EBADMSG,
		    "the task's numbers are out of bounds", 0);
	finish(lane, &task, claim->to, LAYOUT_TASK_FAILED);
	return LANE_E_BAD;
}

static int claim_any(struct lane *lane, uint32_t owner, const struct claim *claim,
		     struct lane_task *ret)
{
	uint32_t block[LAYOUT_MAX_BLOCKS], index, n;

	if (atomic_load_explicit(&lane->head->d_closed, memory_order_seq_cst))
		return LANE_E_NONE;
	n = blocks_in_order(lane, block);
	for (uint32_t i = 0; i < n; i++) {
		if (!(variants_of(lane, block[i]) & ~claim->known) &&
		    claim_in(lane, block[i], claim->from, WORD(owner, claim->to), &index))
			return accept(lane, block[i], index, owner, claim, ret);
	}
	return LANE_E_NONE;
}

int lane_claim_read(struct lane *lane, uint32_t owner, struct lane_task *ret)
{
	const struct claim claim = {LAYOUT_TASK_QUEUED, LAYOUT_TASK_READING, UINT32_MAX};

	return claim_any(lane, owner, &claim, ret);
}

uint32_t lane_queued(const struct lane *lane)
{
	uint32_t block[LAYOUT_MAX_BLOCKS], n = blocks_in_order(lane, block), queued = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0, count = count_of(lane, block[i]); k < count; k++)
			queued += atomic_load_explicit(&task_of(lane, block[i], k)->s_state,
						       memory_order_relaxed) ==
				  WORD(0, LAYOUT_TASK_QUEUED);
	return queued;
}

int lane_claim_run(struct lane *lane, uint32_t owner, uint32_t known, struct lane_task *ret)
{
	const struct claim claim = {LAYOUT_TASK_READY, LAYOUT_TASK_RUNNING, known};

	return claim_any(lane, owner, &claim, ret);
}

void lane_read_came(struct lane *lane, const struct lane_task *task, uint8_t form,
		    enum layout_from from, uint32_t bytes, uint64_t resident)
{
	struct layout_task *t = task_of(lane, task->block, task->index);

	if (!is_owned(lane, task, LAYOUT_TASK_READING))
		return;
	t->r_form = form;
	t->r_from = from;
	t->r_bytes = bytes;
	t->r_resident = resident;
}

bool lane_read_done(struct lane *lane, const struct lane_task *task, enum layout_fail stage,
		    int code, const char *text, uint64_t read_ns, uint64_t cpu_ns)
{
	struct layout_task *t = task_of(lane, task->block, task->index);

	if (!is_owned(lane, task, LAYOUT_TASK_READING))
		return false;
	set_outcome(t, stage, code, text, read_ns / 1000);
	t->r_read_ns = read_ns;
	t->r_cpu_us = (uint32_t)BASE_MIN(cpu_ns / 1000, UINT32_MAX);
	return finish(lane, task, LAYOUT_TASK_READING,
		      stage == LAYOUT_FAIL_NONE ? LAYOUT_TASK_READY : LAYOUT_TASK_FAILED);
}

bool lane_run_done(struct lane *lane, const struct lane_task *task, enum layout_fail stage,
		   int code, const char *text, uint32_t work_us)
{
	if (!is_owned(lane, task, LAYOUT_TASK_RUNNING))
		return false;
	set_outcome(task_of(lane, task->block, task->index), stage, code, text, work_us);
	return finish(lane, task, LAYOUT_TASK_RUNNING,
		      stage == LAYOUT_FAIL_NONE ? LAYOUT_TASK_DONE : LAYOUT_TASK_FAILED);
}

void lane_run_made(struct lane *lane, const struct lane_task *task, const struct lane_made *made)
{
	struct layout_task *t = task_of(lane, task->block, task->index);

	if (!is_owned(lane, task, LAYOUT_TASK_RUNNING))
		return;
	t->s_cpu_us = made->work_us;
	t->s_made = made->made;
	t->s_make_us = made->make_us;
	t->s_form_us = made->form_us;
	t->s_form_bytes = made->bytes;
}
