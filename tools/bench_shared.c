/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The seats, and the two moments between which the rate over all jobs is measured. A moment is
 * written down by the job that makes it come, not by the parent's next tick: at 64 jobs a tick is
 * many batches. A job may be killed between claiming a mark and finishing it; then there is no
 * rate, rather than a wrong one.
 */

#include "tools/bench.h"

#include <sys/mman.h>

static size_t bench_shared_size(uint32_t jobs)
{
	return sizeof(struct bench_shared) + jobs * sizeof(struct bench_seat);
}

struct bench_shared *bench_shared_new(uint32_t jobs)
{
	struct bench_shared *shared = mmap(NULL, bench_shared_size(jobs), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return NULL;
	shared->jobs = jobs;
	shared->zero_ns = base_now_ns();
	return shared;
}

void bench_shared_free(struct bench_shared *shared)
{
	if (shared)
		munmap(shared, bench_shared_size(shared->jobs));
}

static void bench_mark_write(struct bench_shared *shared, struct bench_mark *mark)
{
	if (!counter_claim(&mark->claimed))
		return;
	mark->ns = base_now_ns();
	mark->samples = 0;
	for (uint32_t i = 0; i < shared->jobs; i++)
		mark->samples += counter_get(&shared->seat[i].samples);
	counter_set(&mark->whole, 1); /* S1: pairs with S2 in bench_shared_rate() */
}

void bench_shared_mark(struct bench_shared *shared)
{
	bool all_have_one = true, one_ended = false;

	if (counter_get(&shared->one_ended.claimed))
		return;
	for (uint32_t i = 0; i < shared->jobs; i++) {
		if (counter_get(&shared->seat[i].first_ns) == 0)
			all_have_one = false;
		if (counter_get(&shared->seat[i].stage) >= BENCH_ENDED)
			one_ended = true;
	}
	if (all_have_one && !one_ended)
		bench_mark_write(shared, &shared->all_have_one);
	if (one_ended)
		bench_mark_write(shared, &shared->one_ended);
}

double bench_shared_rate(const struct bench_shared *shared)
{
	const struct bench_mark *from = &shared->all_have_one, *to = &shared->one_ended;

	/* S2: pairs with S1: what is whole does not change any more */
	if (!counter_get(&from->whole) || !counter_get(&to->whole) || to->ns <= from->ns ||
	    to->samples <= from->samples)
		return 0;
	return (double)(to->samples - from->samples) * 1e9 / (double)(to->ns - from->ns);
}
