/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slots in small pages against slots in huge ones: what it costs to make them ready, to fill them
 * for the first time, to map them for the first time into a job, and to read them there.
 *
 *	pages [READERS [ROUNDS]]     8 readers, 5 rounds
 *
 * A slot is one hand of 256 x 3 x 224 x 224 floats, in a memfd as accessd makes it. Both ways are
 * measured in turn in one run, each on fresh memory; the median of the rounds counts. "map" is what
 * libaccess's helper thread does (MADV_POPULATE_READ), "read" is a sum over every cache line after it,
 * the first time in cold translation buffers.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "shmring/board.h"

#define PAGES_MOST_ROUNDS 99

enum step { STEP_RESERVE, STEP_GATHER, STEP_FILL, STEP_MAP, STEP_READ, STEPS };

static const char *const step_name[STEPS] = {"reserve", "gather", "fill", "map", "read"};
static double took_ms[2][STEPS][PAGES_MOST_ROUNDS];
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

/* The time since *since, which becomes now. */
static double lap_ms(uint64_t *since)
{
	uint64_t before = *since;

	*since = base_now_ns();
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
	since = base_now_ns();
	if (madvise((void *)(uintptr_t)slots, geometry->slots_bytes, MADV_POPULATE_READ) < 0)
		fail("MADV_POPULATE_READ", errno);
	*map_ms += lap_ms(&since);
	for (uint64_t i = 0; i < geometry->slots_bytes; i += BASE_CACHE_LINE)
		sum += slots[i];
	*read_ms += lap_ms(&since);
	board_slots_detach(geometry, slots);
}

/* false: the kernel cannot gather. */
static bool run_round(const struct board_geometry *geometry, bool huge, unsigned readers,
		      unsigned round)
{
	double took[STEPS] = {0};
	uint64_t since;
	void *map;
	int fd, r;

	if (board_slots_new(geometry, &fd) || board_slots_map(fd, geometry->slots_bytes, &map) ||
	    board_slots_seal(fd))
		fail("a slot", errno);
	since = base_now_ns();
	r = board_slots_reserve(fd, geometry, 0);
	if (r)
		fail("board_slots_reserve", -r);
	took[STEP_RESERVE] = lap_ms(&since);
	r = huge ? board_slots_gather(fd, geometry, 0) : 0;
	took[STEP_GATHER] = lap_ms(&since);
	memset(map, 1, geometry->slots_bytes);
	took[STEP_FILL] = lap_ms(&since);
	for (unsigned i = 0; i < readers; i++)
		read_once(geometry, fd, &took[STEP_MAP], &took[STEP_READ]);
	for (int step = 0; step < STEPS; step++)
		took_ms[huge][step][round] = took[step];
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

static void print(unsigned readers, unsigned rounds)
{
	double total[2] = {0};

	printf("a slot of 147 MiB, %u readers: ms\n%-8s %9s %9s %9s\n", readers, "", "small",
	       "huge", "ratio");
	for (int step = 0; step < STEPS; step++) {
		double small = median(took_ms[0][step], rounds);
		double huge = median(took_ms[1][step], rounds);

		total[0] += small;
		total[1] += huge;
		printf("%-8s %9.1f %9.1f", step_name[step], small, huge);
		if (step != STEP_GATHER)
			printf(" %9.2f", huge / small);
		putchar('\n');
	}
	printf("%-8s %9.1f %9.1f %9.2f\n", "all", total[0], total[1], total[1] / total[0]);
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
		for (int huge = 0; huge < 2; huge++)
			if (!run_round(&geometry, huge, readers, round))
				printf("this kernel cannot gather pages (Linux 6.1 can)\n");
	print(readers, rounds);
	return sum == 0;
}
