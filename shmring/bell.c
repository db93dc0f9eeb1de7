/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bell: how workers and reader threads of a trust domain sleep, and who wakes them.
 *
 * A sleeper notes the sequence, looks for work, finds none, arms (E1) and lets the kernel compare
 * the sequence again as it goes to sleep (E2). A ringer has put the work where it is found, moves
 * the sequence (E3) and enters the kernel only if the flag is armed (E4). Store before load on both
 * sides: either the sleeper's comparison fails or the ringer sees the flag.
 *
 * The flag says "somebody may sleep", for all of them together, so a ringer does not clear it when
 * it wakes one. It clears it when the kernel says that nobody slept, and then moves the sequence
 * and wakes once more, for one who armed just before and is about to sleep. So ringing costs
 * nothing while all are at work, and each READY task wakes one worker, not all.
 *
 * The futexes are of shared memory (no FUTEX_PRIVATE_FLAG). A process that is killed between its
 * stores may leave the flag wrong: after any death accessd calls bell_ring_all(), and no sleep is
 * without end unless its caller says so.
 */

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shmring/lane.h"
#include "shmring/region.h"

#define NS_PER_S UINT64_C(1000000000)

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

/* Number of sleepers woken; an error (no such futex: nobody slept) counts as none. */
static long wake(_Atomic uint32_t *seq, int n)
{
	return BASE_MAX(syscall(SYS_futex, seq, FUTEX_WAKE, n, NULL, NULL, 0), 0);
}

static void ring(_Atomic uint32_t *seq, _Atomic uint32_t *armed, int n)
{
	/* E3: seq_cst, pairs with E2. */
	atomic_fetch_add_explicit(seq, 1, memory_order_seq_cst);
	/* E4: seq_cst load after E3, pairs with E1. */
	if (!atomic_load_explicit(armed, memory_order_seq_cst) || wake(seq, n) > 0)
		return;
	atomic_store_explicit(armed, 0, memory_order_seq_cst);
	atomic_fetch_add_explicit(seq, 1, memory_order_seq_cst);
	wake(seq, INT32_MAX);
}

static void sleep_until_rung(_Atomic uint32_t *seq, _Atomic uint32_t *armed, uint32_t seen,
			     uint64_t timeout_ns)
{
	struct timespec timeout = {
	    .tv_sec = (time_t)(timeout_ns / NS_PER_S),
	    .tv_nsec = (long)(timeout_ns % NS_PER_S),
	};

	/* E1: seq_cst store, then E2; pairs with E4. */
	atomic_store_explicit(armed, 1, memory_order_seq_cst);
	/* E2: the kernel compares under its own lock, a full barrier; pairs with E3. */
	syscall(SYS_futex, seq, FUTEX_WAIT, seen, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL,
		0);
}

void bell_ring_workers(struct layout_bell *bell)
{
	ring(&bell->s_work_seq, &bell->s_work_armed, 1);
}

void bell_ring_readers(struct layout_bell *bell)
{
	ring(&bell->s_read_seq, &bell->s_read_armed, INT32_MAX);
}

void bell_ring_all(struct layout_bell *bell)
{
	atomic_fetch_add_explicit(&bell->s_work_seq, 1, memory_order_seq_cst);
	wake(&bell->s_work_seq, INT32_MAX);
	atomic_fetch_add_explicit(&bell->s_read_seq, 1, memory_order_seq_cst);
	wake(&bell->s_read_seq, INT32_MAX);
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
	sleep_until_rung(&bell->s_work_seq, &bell->s_work_armed, seen, timeout_ns);
}

void bell_sleep_reader(struct layout_bell *bell, uint32_t seen, uint64_t timeout_ns)
{
	sleep_until_rung(&bell->s_read_seq, &bell->s_read_armed, seen, timeout_ns);
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
