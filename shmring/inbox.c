/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that are shown, not obeyed. Each is loaded and stored once, relaxed: nothing is ordered by
 * them, a value that is a moment old is as good. The wish for a kick is the exception: accessd that
 * polls the grants after it has shown the wish misses nothing that is given back.
 */
#include "shmring/inbox.h"

#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define STORE(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

void inbox_set_end(struct layout_inbox *inbox, uint64_t epochs)
{
	STORE(inbox->d_end_epoch, epochs);
}

void inbox_show(struct layout_inbox *inbox, uint32_t stage, uint32_t kicks, uint64_t now_ns)
{
	STORE(inbox->d_stage, stage);
	/* K1: seq_cst store, then a poll of the grants; pairs with K2 in grant.c. */
	atomic_store_explicit(&inbox->d_wants_kick, kicks, memory_order_seq_cst);
	STORE(inbox->d_heartbeat_ns, now_ns);
}

void inbox_show_late(struct layout_inbox *inbox, uint64_t late_ns)
{
	STORE(inbox->d_late_ns, late_ns);
}

void inbox_read_figures(const struct layout_outbox *outbox, struct inbox_figures *ret)
{
	ret->samples = LOAD(outbox->c_samples);
	ret->batches = LOAD(outbox->c_batches);
	ret->wait_ns = LOAD(outbox->c_wait_ns);
	ret->copied = LOAD(outbox->c_copied);
	ret->epochs = LOAD(outbox->c_epochs);
}

uint64_t inbox_slept_ns(const struct layout_outbox *outbox)
{
	return LOAD(outbox->c_slept_ns);
}

void inbox_tell_sleep(struct layout_outbox *outbox, uint64_t now_ns)
{
	STORE(outbox->c_slept_ns, now_ns);
}

uint32_t inbox_stage(const struct layout_inbox *inbox)
{
	return LOAD(inbox->d_stage);
}

uint64_t inbox_heartbeat_ns(const struct layout_inbox *inbox)
{
	return LOAD(inbox->d_heartbeat_ns);
}

uint64_t inbox_late_ns(const struct layout_inbox *inbox)
{
	return LOAD(inbox->d_late_ns);
}

BASE_HOT void inbox_tell_figures(struct layout_outbox *outbox, const struct inbox_figures *figures)
{
	STORE(outbox->c_samples, figures->samples);
	STORE(outbox->c_batches, figures->batches);
	STORE(outbox->c_wait_ns, figures->wait_ns);
	STORE(outbox->c_copied, figures->copied);
	STORE(outbox->c_epochs, figures->epochs);
}

bool inbox_work_of(const struct layout_doorbell *doorbell, uint32_t index, struct inbox_work *ret)
{
	const struct layout_worker *worker = &doorbell->worker[index];
	uint64_t task = LOAD(worker->w_task);

	*ret = (struct inbox_work){
	    .queue = (uint32_t)(task >> 48),
	    .row = (uint32_t)(task >> 40) & 0xff,
	    .task = (uint32_t)(task >> 8),
	    .started_ns = LOAD(worker->w_started_ns),
	    .done = LOAD(worker->w_done),
	    .busy_ns = LOAD(worker->w_busy_ns),
	    .pixels = LOAD(worker->w_pixels),
	};
	return task & 1;
}
