/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ledger counts what it should, and after kill -9 at any moment its counters, totals and token
 * say the same.
 */

#include "tools/ledger.h"
#include "tests/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct ledger ledger;
static int fd;

static void make(uint64_t n, uint32_t batch, uint32_t token)
{
	fd = ledger_memory();
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ledger_open(fd, &ledger), LEDGER_E_EMPTY);
	ck_assert_int_eq(ledger_make(fd, n, batch, token, &ledger), 0);
}

static void deliver(uint64_t epoch, const int64_t *ids, uint32_t count, const char *token)
{
	struct ledger_totals totals = *ledger_totals(&ledger);
	size_t size = strlen(token);

	ledger_count(&ledger, epoch, ids, count, &totals);
	totals.samples += count;
	memcpy(ledger_token_room(&ledger), token, size);
	ledger_commit(&ledger, epoch, ids, count, &totals, (uint32_t)size);
}

START_TEST(counts_what_came)
{
	static const struct {
		uint64_t epoch;
		int64_t ids[4];
		uint64_t missing, duplicates, strange; /* after it */
	} steps[] = {
	    {0, {0, 1, 2, 3}, 0, 0, 0},   {0, {4, 5, 5, 6}, 0, 1, 0}, /* twice in a batch */
	    {0, {7, 8, 0, 9}, 0, 2, 0},                               /* twice in an epoch */
	    {1, {0, 1, -1, 12}, 0, 2, 2},                             /* no such samples */
	    {1, {2, 10, 3, 4}, 1, 2, 2},                              /* 10 never came in epoch 0 */
	    {1, {10, 5, 6, 7}, 1, 3, 2},
	};

	uint64_t strange = 1;

	make(12, 4, 16);
	for (size_t i = 0; i < BASE_ARRAY_LEN(steps); i++) {
		const struct ledger_totals *totals;

		deliver(steps[i].epoch, steps[i].ids, 4, "");
		totals = ledger_totals(&ledger);
		ck_assert_uint_eq(totals->missing, steps[i].missing);
		ck_assert_uint_eq(totals->duplicates, steps[i].duplicates);
		ck_assert_uint_eq(totals->strange, steps[i].strange);
		ck_assert_uint_eq(totals->samples, 4 * (i + 1));
	}
	/* of epoch 1: 8, 9; 11 of both */
	ck_assert_uint_eq(ledger_missing(&ledger, 2, 12, &strange), 4);
	ck_assert_uint_eq(strange, 0);
	ck_assert_uint_eq(ledger_epochs_of(&ledger, 0), 2);
	ck_assert_uint_eq(ledger_epochs_of(&ledger, 8), 1);
	ledger_close(&ledger);
	close(fd);
}
END_TEST

/* A job of four samples out of ten, of which the last two cannot be its own. */
START_TEST(a_part_is_counted_as_one)
{
	static const int64_t first[] = {1, 3, 5, 8}, second[] = {1, 3, 4, 0};
	uint64_t strange = 1;

	make(10, 4, 16);
	ledger_exclude(&ledger, 8);
	ledger_exclude(&ledger, 9);
	deliver(0, first, 4, "");
	ck_assert_uint_eq(ledger_totals(&ledger)->strange, 1);
	ck_assert_uint_eq(ledger_missing(&ledger, 1, 4, &strange), 1);
	ck_assert_uint_eq(ledger_missing(&ledger, 2, 4, &strange), 5);
	ck_assert_uint_eq(strange, 0);
	deliver(1, second, 4, ""); /* 0 and 4 were not in the first epoch; 5 lacks */
	ck_assert_uint_eq(ledger_totals(&ledger)->missing, 2);
	ck_assert_uint_eq(ledger_missing(&ledger, 2, 4, &strange), 1);
	ck_assert_uint_eq(strange, 1);
	ck_assert_uint_eq(ledger_epochs_of(&ledger, 8), 0);
	ledger_close(&ledger);
	close(fd);
}
END_TEST

START_TEST(token_comes_back)
{
	static const int64_t ids[] = {0, 1};
	size_t size = 1;

	make(4, 2, 8);
	ledger_token(&ledger, &size);
	ck_assert_uint_eq(size, 0);
	deliver(0, ids, 2, "first");
	deliver(0, ids + 1, 1, "second");
	ledger_close(&ledger);
	ck_assert_int_eq(ledger_open(fd, &ledger), 0);
	ck_assert_mem_eq(ledger_token(&ledger, &size), "second", 6);
	ck_assert_uint_eq(size, 6);
	ck_assert_uint_eq(ledger_totals(&ledger)->samples, 3);
	ledger_close(&ledger);
	close(fd);
}
END_TEST

START_TEST(foreign_memory_is_refused)
{
	static const char junk[8192] = {'O'};

	for (size_t size = 1; size <= sizeof(junk); size += size < 200 ? 1 : 4096) {
		int r;

		fd = ledger_memory();
		ck_assert_int_eq(write(fd, junk, size), (ssize_t)size);
		r = ledger_open(fd, &ledger);
		ck_assert(r == LEDGER_E_BAD || r == LEDGER_E_EMPTY);
		close(fd);
	}
}
END_TEST

/* Delivers the samples in order, for ever, from where the token says. */
_Noreturn static void job(uint64_t n)
{
	uint64_t at = 0;
	size_t size;
	const void *token = ledger_token(&ledger, &size);

	if (size == sizeof(at))
		memcpy(&at, token, size);
	for (;;) {
		struct ledger_totals totals = *ledger_totals(&ledger);
		int64_t ids[16];
		uint64_t epoch = at / n;
		uint32_t count = (uint32_t)BASE_MIN(UINT64_C(16), n - at % n);

		for (uint32_t i = 0; i < count; i++)
			ids[i] = (int64_t)((at + i) % n);
		ledger_count(&ledger, epoch, ids, count, &totals);
		totals.samples += count;
		at += count;
		memcpy(ledger_token_room(&ledger), &at, sizeof(at));
		ledger_commit(&ledger, epoch, ids, count, &totals, sizeof(at));
		if (at >= 60000 * n)
			_exit(0);
	}
}

/* Counters, totals and token are of the same moment. */
static void check_one_moment(uint64_t n)
{
	size_t size;
	const void *token = ledger_token(&ledger, &size);
	uint64_t at = 0, wrong = 0;

	if (size == sizeof(at))
		memcpy(&at, token, size);
	ck_assert_uint_eq(ledger_totals(&ledger)->samples, at);
	ck_assert_uint_eq(ledger_totals(&ledger)->duplicates, 0);
	ck_assert_uint_eq(ledger_totals(&ledger)->missing, 0);
	for (uint64_t i = 0; i < n; i++)
		wrong += ledger_epochs_of(&ledger, i) != at / n + (i < at % n);
	ck_assert_uint_eq(wrong, 0);
}

START_TEST(kill_leaves_one_moment)
{
	const uint64_t n = 1000;
	uint64_t before = 0, moved = 0;

	make(n, 16, 64);
	for (unsigned round = 0; round < 400 || moved <= 20;
	     round++) { /* they may not get to run */
		struct timespec life = {0, (20000 + 9973 * (long)(round % 61)) * (1 + round / 400)};
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			job(n);
		nanosleep(&life, NULL);
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ledger_close(&ledger);
		ck_assert_int_eq(ledger_open(fd, &ledger), 0);
		check_one_moment(n);
		moved += ledger_totals(&ledger)->samples > before;
		before = ledger_totals(&ledger)->samples;
	}
	ledger_close(&ledger);
	close(fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, counts_what_came);
	tcase_add_test(tcase, a_part_is_counted_as_one);
	tcase_add_test(tcase, token_comes_back);
	tcase_add_test(tcase, foreign_memory_is_refused);
	tcase_add_test(tcase, kill_leaves_one_moment);
}

int main(void)
{
	return suite_run("ledger", add);
}
