/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The doorbell: how workers and reader threads of a trust domain sleep, and who wakes them (wake.c).
 *
 * A process that is killed between its stores may leave a flag wrong: after any death accessd calls
 * doorbell_ring_all(), and no sleep is without end unless its caller says so.
 */

#include "shmring/queue.h"
#include "shmring/region.h"
#include "shmring/wake.h"

static uint64_t doorbell_bytes(void)
{
	return base_align_up(sizeof(struct layout_doorbell), base_page_size());
}

int doorbell_new(struct layout_doorbell **ret, int *ret_fd)
{
	struct layout_doorbell *doorbell;
	void *map;
	int r = region_new("oneaccess-doorbell", REGION_SHARED, doorbell_bytes(), &map, ret_fd);

	if (r)
		return r;
	doorbell = map;
	doorbell->magic = LAYOUT_MAGIC_DOORBELL;
	doorbell->version = LAYOUT_VERSION;
	doorbell->max_workers = LAYOUT_MAX_WORKERS;
	doorbell->bytes = sizeof(*doorbell);
	*ret = doorbell;
	return 0;
}

int doorbell_attach(int fd, struct layout_doorbell **ret)
{
	struct layout_doorbell *doorbell;
	void *map;
	int r = region_attach(fd, REGION_SHARED, doorbell_bytes(), true, &map);

	if (r)
		return r < 0 ? r : QUEUE_E_BAD;
	doorbell = map;
	if (doorbell->magic != LAYOUT_MAGIC_DOORBELL || doorbell->version != LAYOUT_VERSION ||
	    doorbell->max_workers != LAYOUT_MAX_WORKERS || doorbell->bytes != sizeof(*doorbell)) {
		region_unmap(map, doorbell_bytes());
		return QUEUE_E_BAD;
	}
	*ret = doorbell;
	return 0;
}

void doorbell_detach(struct layout_doorbell *doorbell)
{
	region_unmap(doorbell, doorbell_bytes());
}

/* ---- sleeping and waking ---- */

void doorbell_ring_workers(struct layout_doorbell *doorbell)
{
	wake_ring(&doorbell->s_work_seq, &doorbell->s_work_armed, 1);
}

void doorbell_ring_readers(struct layout_doorbell *doorbell)
{
	wake_ring(&doorbell->s_read_seq, &doorbell->s_read_armed, INT32_MAX);
}

void doorbell_ring_all(struct layout_doorbell *doorbell)
{
	atomic_fetch_add_explicit(&doorbell->s_work_seq, 1, memory_order_seq_cst);
	wake_some(&doorbell->s_work_seq, INT32_MAX);
	atomic_fetch_add_explicit(&doorbell->s_read_seq, 1, memory_order_seq_cst);
	wake_some(&doorbell->s_read_seq, INT32_MAX);
}

uint32_t doorbell_work_seq(const struct layout_doorbell *doorbell)
{
	return atomic_load_explicit(&doorbell->s_work_seq, memory_order_seq_cst);
}

uint32_t doorbell_read_seq(const struct layout_doorbell *doorbell)
{
	return atomic_load_explicit(&doorbell->s_read_seq, memory_order_seq_cst);
}

void doorbell_sleep_worker(struct layout_doorbell *doorbell, uint32_t seen, uint64_t timeout_ns)
{
	wake_sleep(&doorbell->s_work_seq, &doorbell->s_work_armed, seen, timeout_ns);
}

void doorbell_sleep_reader(struct layout_doorbell *doorbell, uint32_t seen, uint64_t timeout_ns)
{
	wake_sleep(&doorbell->s_read_seq, &doorbell->s_read_armed, seen, timeout_ns);
}

void doorbell_arm_event(struct layout_doorbell *doorbell)
{
	/* E5: seq_cst store, then accessd looks once more; pairs with E6. */
	atomic_store_explicit(&doorbell->s_event_armed, 1, memory_order_seq_cst);
}

bool doorbell_take_event_arm(struct layout_doorbell *doorbell)
{
	/* E6: seq_cst, after what accessd shall see; pairs with E5. */
	return atomic_exchange_explicit(&doorbell->s_event_armed, 0, memory_order_seq_cst) != 0;
}
