/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slots in small pages against slots in huge ones: what it costs to make them ready, to fill them
 * for the first time, to map them for the first time into a job, and to read them there.
 *
 *	pages [READERS [ROUNDS]]     8 readers, 5 rounds
 *
 * A slot is one hand of 256 x 3 x 224 x 224 floats, in a memfd as accessd makes it. Three ways are
 * measured in turn in one run, each on fresh memory: small pages, small ones that are gathered, and
 * pages that are huge from the start, as far as the kernel had them; the median of the rounds
 * counts, of CPU time. "map" is what
 * libaccess's helper thread does (MADV_POPULATE_READ), "read" is a sum over every cache line after it,
 * the first time in cold translation buffers.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "shmring/board.h"

#define PAGES_MOST_ROUNDS 99

enum step { STEP_RESERVE, STEP_GATHER, STEP_FILL, STEP_MAP, STEP_READ, STEPS };

enum way { WAY_SMALL, WAY_GATHERED, WAY_HUGE, WAYS };

static const char *const step_name[STEPS] = {"reserve", "gather", "fill", "map", "read"};
static double took_ms[WAYS][STEPS][PAGES_MOST_ROUNDS];
static uint64_t sum; /* so that the reads are not left out */

static _Noreturn void fail(const char *what, int error)
{
	fprintf(stderr, "pages: %s: %s\n", what, strerror(error));
	exit(1);
}

static struct board_geometry one_slot(void)
{
	struct board_geometry geometry = {
	    .max_slots = 1,
	    .hand = 256,
	    .grain = 1,
	    .n_fields = 1,
	    .n_samples = 256,
	    .field = {{.name = "image",
		       .dtype = LAYOUT_F32,
		       .where = LAYOUT_IN_SLOT,
		       .ndim = 3,
		       .shape = {3, 224, 224}}},
	};

	if (board_plan(&geometry))
		fail("board_plan", EINVAL);
	return geometry;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
		fail("clock_gettime", errno);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The time since *since, which becomes now. */
static double lap_ms(uint64_t *since)
{
	uint64_t before = *since;

	*since = now_ns();
	return (double)(*since - before) / 1e6;
}

static void read_once(const struct board_geometry *geometry, int fd, double *map_ms,
		      double *read_ms)
{
	const uint8_t *slots;
	uint64_t since;
	int r = board_slots_attach(fd, geometry, &slots);

	if (r)
		fail("board_slots_attach", r < 0 ? -r : EINVAL);
	since = now_ns();
	if (madvise((void *)(uintptr_t)slots, geometry->slots_bytes, MADV_POPULATE_READ) < 0)
		fail("MADV_POPULATE_READ", errno);
	*map_ms += lap_ms(&since);
	for (uint64_t i = 0; i < geometry->slots_bytes; i += BASE_CACHE_LINE)
		sum += slots[i];
	*read_ms += lap_ms(&since);
	board_slots_detach(geometry, slots);
}

/* false: the kernel cannot gather. */
static bool run_round(const struct board_geometry *geometry, enum way way, unsigned readers,
		      unsigned round)
{
	double took[STEPS] = {0};
	uint64_t since;
	void *map;
	int fd, r;

	if (board_slots_new(geometry, &fd) || board_slots_map(fd, geometry->slots_bytes, &map) ||
	    board_slots_seal(fd))
		fail("a slot", errno);
	since = now_ns();
	if (way == WAY_HUGE)
		(void)board_slots_reserve_huge(fd, geometry, 0);
	r = board_slots_reserve(fd, geometry, 0);
	if (r)
		fail("reserve", -r);
	took[STEP_RESERVE] = lap_ms(&since);
	r = way == WAY_GATHERED ? board_slots_gather(fd, geometry, 0) : 0;
	took[STEP_GATHER] = lap_ms(&since);
	memset(map, 1, geometry->slots_bytes);
	took[STEP_FILL] = lap_ms(&since);
	for (unsigned i = 0; i < readers; i++)
		read_once(geometry, fd, &took[STEP_MAP], &took[STEP_READ]);
	for (int step = 0; step < STEPS; step++)
		took_ms[way][step][round] = took[step];
	munmap(map, geometry->slots_bytes);
	close(fd);
	return r == 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

static void print_line(const char *name, const double ms[WAYS])
{
	printf("%-8s %9.1f %9.1f %9.1f %9.2f\n", name, ms[WAY_SMALL], ms[WAY_GATHERED],
	       ms[WAY_HUGE], ms[WAY_SMALL] > 0 ? ms[WAY_HUGE] / ms[WAY_SMALL] : 0);
}

static void print(unsigned readers, unsigned rounds)
{
	double total[WAYS] = {0};

	printf("a slot of 147 MiB, %u readers: ms of CPU time\n%-8s %9s %9s %9s %9s\n", readers, "",
	       "small", "gathered", "huge", "huge/small");
	for (int step = 0; step < STEPS; step++) {
		double ms[WAYS];

		for (int way = 0; way < WAYS; way++) {
			ms[way] = median(took_ms[way][step], rounds);
			total[way] += ms[way];
		}
		print_line(step_name[step], ms);
	}
	print_line("all", total);
}

int main(int argc, char **argv)
{
	struct board_geometry geometry = one_slot();
	unsigned readers = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;

	if (argc > 3 || rounds < 1 || rounds > PAGES_MOST_ROUNDS) {
		fprintf(stderr, "usage: pages [READERS [ROUNDS]], rounds from 1 to %d\n",
			PAGES_MOST_ROUNDS);
		return 2;
	}
	for (unsigned round = 0; round < rounds; round++)
		for (int way = 0; way < WAYS; way++)
			if (!run_round(&geometry, (enum way)way, readers, round))
				printf("this kernel cannot gather pages (Linux 6.1 can), or has "
				       "none\n");
	print(readers, rounds);
	return sum == 0;
}
