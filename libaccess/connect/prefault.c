/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first touch of a slot costs page faults: 10-12 ms for 147 MiB, in the middle of a training
 * step. A thread of its own maps the pages in beforehand (MADV_POPULATE_READ) and ends by itself
 * when it has seen every slot in use, or after PREFAULT_MAX_S.
 *
 * Only slots that hold a finished chunk are touched. Those that never held one may not be reserved,
 * and to read a hole of a memfd would allocate pages that nobody has accounted for; and in one that
 * is still being filled the first to touch a page has to clear it, while all others of all jobs
 * wait for him. What fails here (an old kernel, no thread to be had) costs time and nothing else,
 * so it is not reported.
 *
 * The thread is as nice as can be: it only moves work forward into time that nobody needs. Where
 * workers need all there is, a page is mapped when it is touched, at the same price.
 *
 * The thread blocks signals: handlers of the program do not run on it. It owns nothing; it must
 * have ended before slot table and slots are unmapped.
 */

#include "libaccess/connect/prefault.h"
#include "base/hold.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "libaccess/connect/dial.h"

#define PREFAULT_MAX_S 30
#define PREFAULT_PAUSE_NS 20000000
#define PREFAULT_NICE 19
#define PREFAULT_STACK (512 << 10)         /* the program's thread-local variables lie in it, too */
#define PREFAULT_PIECE (UINT64_C(8) << 20) /* between two looks at `stopping` */

struct prefault {
	/* never changes */
	const struct slot_table *table;
	const uint8_t *slots;
	pthread_t thread;
	/* the thread's */
	bool done[LAYOUT_MAX_SLOTS];
	uint32_t n_done;
	/* lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stopping;
};

static bool prefault_is_stopping(struct prefault *prefault)
{
	BASE_HOLD(&prefault->lock);
	return prefault->stopping;
}

/* 0, or the errno of a kernel that will never do it. */
static int prefault_slot(struct prefault *prefault, uint32_t slot)
{
	uint64_t stride = prefault->table->geometry.slot_stride;
	uint8_t *at = (uint8_t *)prefault->slots + slot * stride;

	for (uint64_t done = 0; done < stride && !prefault_is_stopping(prefault);
	     done += PREFAULT_PIECE) {
		uint64_t piece = BASE_MIN(PREFAULT_PIECE, stride - done);

		if (madvise(at + done, (size_t)piece, MADV_POPULATE_READ) < 0 && errno != EINTR)
			return errno;
	}
	return 0;
}

static bool prefault_is_filled(const struct prefault *prefault, uint32_t slot)
{
	struct slot_table_chunk chunk;

	slot_table_read(prefault->table, slot, &chunk);
	return chunk.instance && slot_table_read_watermark(prefault->table, slot) >= chunk.count;
}

static int prefault_pass(struct prefault *prefault)
{
	uint32_t n = prefault->table->geometry.max_slots;

	for (uint32_t slot = 0; slot < n && !prefault_is_stopping(prefault); slot++) {
		if (prefault->done[slot] || !prefault_is_filled(prefault, slot))
			continue;
		if (prefault_slot(prefault, slot))
			return -1;
		prefault->done[slot] = true;
		prefault->n_done++;
	}
	return 0;
}

/* Sleeps a little. true: stop. */
static bool prefault_pause(struct prefault *prefault)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PREFAULT_PAUSE_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	BASE_HOLD(&prefault->lock);
	if (!prefault->stopping)
		pthread_cond_timedwait(&prefault->wake, &prefault->lock, &until);
	return prefault->stopping;
}

static void *prefault_run(void *argument)
{
	struct prefault *prefault = argument;
	uint64_t until = base_now_ns() + UINT64_C(1000000000) * PREFAULT_MAX_S;

	pthread_setname_np(pthread_self(), "oa-prefault");
	setpriority(PRIO_PROCESS, (id_t)gettid(), PREFAULT_NICE);
	while (prefault->n_done < prefault->table->geometry.max_slots && base_now_ns() < until) {
		if (prefault_pass(prefault) || prefault_pause(prefault))
			break;
	}
	return NULL;
}

static int prefault_start(struct prefault *prefault)
{
	pthread_attr_t attributes;
	sigset_t before;
	int r = pthread_attr_init(&attributes);

	if (r)
		return r;
	pthread_attr_setstacksize(&attributes, PREFAULT_STACK);
	dial_block_signals(&before);
	r = pthread_create(&prefault->thread, &attributes, prefault_run, prefault);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return r;
}

struct prefault *prefault_new(const struct slot_table *table, const uint8_t *slots)
{
	struct prefault *prefault = calloc(1, sizeof(*prefault));
	pthread_condattr_t attributes;

	if (!prefault)
		return NULL;
	prefault->table = table;
	prefault->slots = slots;
	pthread_mutex_init(&prefault->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&prefault->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	if (prefault_start(prefault) == 0)
		return prefault;
	pthread_cond_destroy(&prefault->wake);
	pthread_mutex_destroy(&prefault->lock);
	free(prefault);
	return NULL;
}

void prefault_stop(struct prefault *prefault)
{
	if (!prefault)
		return;
	BASE_HOLD(&prefault->lock);
	prefault->stopping = true;
	pthread_cond_signal(&prefault->wake);
}

void prefault_free(struct prefault *prefault)
{
	if (!prefault)
		return;
	prefault_stop(prefault);
	pthread_join(prefault->thread, NULL);
	pthread_cond_destroy(&prefault->wake);
	pthread_mutex_destroy(&prefault->lock);
	free(prefault);
}
