/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ACCESS_DAEMON=BUILD/daemon/accessd ACCESS_LIBEXEC=BUILD/libexec BUILD/bench/neighbour: the rate of two honest users'
 * jobs beside a hostile neighbour (tests/scenarios/neighbour.h) over that beside a polite one, who trains, too.
 * Needs root. The environment of the test has the seed and the attacks here, too; there are as many as there is time for.
 *
 * The two jobs run all the time, with one accessd, each sample checked; the neighbours take turns, for a window of
 * WINDOW_S each, and what counts is the batches that a job got in a window. A machine that is slower for a while is
 * so for both.
 *
 * A process that burns CPU time, or starts others that do, needs no accessd for it, and how much of the CPU it gets
 * is the scheduler's matter. So in both windows all that runs as the neighbour's uid, his processes and those that
 * accessd has started for him, has nice 19, with all its threads, some milliseconds after it began. What remains is what
 * only accessd can do to the honest: turns of its loop that they wait for, children that it forks, locks, memory and
 * the disk; and the little that nice 19 leaves to each process that wants all it can get.
 */

#include "tests/scenarios/neighbour.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/scenarios/folk.h"
#include "tests/scenarios/honest.h"

#define WINDOW_S 10
#define ROUNDS 5
#define PICTURES 480
#define SIDE 224
#define EPOCHS 20 /* of a run */
#define POLITE_STEP_MS 20

static const struct speed {
	const char *what;
	unsigned step_ms;
} speeds[] = {{"a step of 10 ms a batch", 10}, {"as fast as they can", 0}};

struct pair {
	struct honest anna, carl;
};

/* ---- who is where ---- */

static unsigned batches_of(const struct honest *honest)
{
	return *(volatile const unsigned *)&honest->errand->batches;
}

/* Begins a job of a folder that is this user's alone, and returns when it has its first batch. */
static void begin(struct honest *honest, const struct town_user *user, const char *name,
		  enum oa_order order, unsigned step_ms)
{
	char path[512];

	snprintf(path, sizeof(path), "%s", rig_path("%s", name));
	if (access(path, F_OK) < 0)
		rig_pictures(name, PICTURES, 2, SIDE);
	town_give(path, user, user->gid, 0700, 0600);
	honest_start(honest, user, path, PICTURES, EPOCHS, order, step_ms);
	while (batches_of(honest) == 0 && !town_has_ended(honest->pid))
		rig_sleep_ms(10);
}

/* ---- a window ---- */

static unsigned batches_of_both(const struct pair *pair)
{
	return batches_of(&pair->anna) + batches_of(&pair->carl);
}

/* Batches a second of both jobs together. */
static double rate_now(const struct pair *pair)
{
	const unsigned before = batches_of_both(pair);
	const uint64_t begin_ns = base_now_ns();
	uint64_t now_ns;

	do {
		setpriority(PRIO_USER, town_bert.uid, 19); /* all threads of his, as they come */
		rig_sleep_ms(5);
		now_ns = base_now_ns();
	} while (now_ns < begin_ns + WINDOW_S * UINT64_C(1000000000));
	return (batches_of_both(pair) - before) * 1e9 / (double)(now_ns - begin_ns);
}

static void until_he_is_gone(void)
{
	ck_assert(rig_wait_status("jobs", 0, 2));
	rig_sleep_ms(1500); /* tenant_idle_s */
}

static double beside_polite(const struct pair *pair, const char *berts)
{
	struct town_errand *errand = town_errand_new(berts, FOLK_PICTURES, 1000000);
	double rate;
	pid_t pid;

	errand->step_ms = POLITE_STEP_MS;
	pid = town_send(&town_bert, town_train, errand);
	setpriority(PRIO_PROCESS, (id_t)pid, 19);
	rate = rate_now(pair);
	kill(pid, SIGKILL);
	town_wait(pid);
	town_errand_free(errand);
	until_he_is_gone();
	return rate;
}

static double beside_hostile(const struct pair *pair, struct neighbour *neighbour)
{
	double rate;

	neighbour_start(neighbour);
	rate = rate_now(pair);
	neighbour_end(neighbour);
	until_he_is_gone();
	return rate;
}

/* ---- rounds ---- */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const struct speed *speed, struct neighbour *neighbour)
{
	double ratios[ROUNDS];
	struct pair pair;

	begin(&pair.anna, &town_anna, "annas", OA_ORDER_CAROUSEL, speed->step_ms);
	begin(&pair.carl, &town_carl, "carls", OA_ORDER_SEEDED, speed->step_ms);
	for (unsigned i = 0; i < ROUNDS; i++) {
		double polite = beside_polite(&pair, neighbour->data);
		double hostile = beside_hostile(&pair, neighbour);

		ratios[i] = hostile / polite;
		printf("round %u, %s: %.1f batches/s beside polite, %.1f beside hostile, %.3f\n",
		       i + 1, speed->what, polite, hostile, ratios[i]);
		fflush(stdout);
	}
	honest_end(&pair.anna);
	honest_end(&pair.carl);
	qsort(ratios, ROUNDS, sizeof(ratios[0]), by_size);
	printf("| rate beside a hostile neighbour over beside a polite one, %s | >= 0.9 | %.3f "
	       "(%.3f to "
	       "%.3f in %d rounds), 0 missing, 0 repeated |\n",
	       speed->what, ratios[ROUNDS / 2], ratios[0], ratios[ROUNDS - 1], ROUNDS);
}

START_TEST(rates)
{
	struct neighbour neighbour;

	town_start("workers=1", "linger_s=0", "tenant_idle_s=1", "memory=1G", NULL);
	neighbour_init(&neighbour, 0);
	neighbour.nice = 19;
	for (size_t i = 0; i < BASE_ARRAY_LEN(speeds); i++)
		measure(&speeds[i], &neighbour);
	neighbour_tell(&neighbour);
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, rates);
}

int main(void)
{
	return folk_main("neighbour", add);
}
