/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bell: how workers and reader threads of a trust domain sleep, and who wakes them (wake.c).
 *
 * A process that is killed between its stores may leave a flag wrong: after any death accessd calls
 * bell_ring_all(), and no sleep is without end unless its caller says so.
 */

#include "shmring/lane.h"
#include "shmring/region.h"
#include "shmring/wake.h"

static uint64_t bell_bytes(void)
{
	return base_align_up(sizeof(struct layout_bell), base_page_size());
}

int bell_new(struct layout_bell **ret, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct layout_bell *bell;
	void *map;
	int r = region_new("oneaccess-bell", bell_bytes(), &map, &fd);

	if (r)
		return r;
	bell = map;
	bell->magic = LAYOUT_MAGIC_BELL;
	bell->version = LAYOUT_VERSION;
	bell->max_workers = LAYOUT_MAX_WORKERS;
	bell->bytes = sizeof(*bell);
	r = region_seal(fd, REGION_SHARED);
	if (r) {
		region_unmap(map, bell_bytes());
		return r;
	}
	*ret = bell;
	*ret_fd = base_take_fd(&fd);
	return 0;
}

int bell_attach(int fd, struct layout_bell **ret)
{
	struct layout_bell *bell;
	void *map;
	int r = region_attach(fd, REGION_SHARED, bell_bytes(), true, &map);

	if (r)
		return r < 0 ? r : LANE_E_BAD;
	bell = map;
	if (bell->magic != LAYOUT_MAGIC_BELL || bell->version != LAYOUT_VERSION ||
	    bell->max_workers != LAYOUT_MAX_WORKERS || bell->bytes != sizeof(*bell)) {
		region_unmap(map, bell_bytes());
		return LANE_E_BAD;
	}
	*ret = bell;
	return 0;
}

void bell_detach(struct layout_bell *bell)
{
	region_unmap(bell, bell_bytes());
}

/* ---- sleeping and waking ---- */

void bell_ring_workers(struct layout_bell *bell)
{
	wake_ring(&bell->s_work_seq, &bell->s_work_armed, 1);
}

void bell_ring_readers(struct layout_bell *bell)
{
	wake_ring(&bell->s_read_seq, &bell->s_read_armed, INT32_MAX);
}

void bell_ring_all(struct layout_bell *bell)
{
	atomic_fetch_add_explicit(&bell->s_work_seq, 1, memory_order_seq_cst);
	wake_some(&bell->s_work_seq, INT32_MAX);
	atomic_fetch_add_explicit(&bell->s_read_seq, 1, memory_order_seq_cst);
	wake_some(&bell->s_read_seq, INT32_MAX);
}

uint32_t bell_work_seq(const struct layout_bell *bell)
{
	return atomic_load_explicit(&bell->s_work_seq, memory_order_seq_cst);
}

uint32_t bell_read_seq(const struct layout_bell *bell)
{
	return atomic_load_explicit(&bell->s_read_seq, memory_order_seq_cst);
}

void bell_sleep_worker(struct layout_bell *bell, uint32_t seen, uint64_t timeout_ns)
{
	wake_sleep(&bell->s_work_seq, &bell->s_work_armed, seen, timeout_ns);
}

void bell_sleep_reader(struct layout_bell *bell, uint32_t seen, uint64_t timeout_ns)
{
	wake_sleep(&bell->s_read_seq, &bell->s_read_armed, seen, timeout_ns);
}

void bell_arm_event(struct layout_bell *bell)
{
	/* E5: seq_cst store, then accessd looks once more; pairs with E6. */
	atomic_store_explicit(&bell->s_event_armed, 1, memory_order_seq_cst);
}

bool bell_take_event_arm(struct layout_bell *bell)
{
	/* E6: seq_cst, after what accessd shall see; pairs with E5. */
	return atomic_exchange_explicit(&bell->s_event_armed, 0, memory_order_seq_cst) != 0;
}
