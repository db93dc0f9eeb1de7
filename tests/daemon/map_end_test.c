/* SPDX-License-Identifier: Apache-2.0 */

/* Large shared memory is let go of in steps, and we are not the last to have it; small one at once. */

#include "daemon/map_end.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/ending.h"
#include "daemon/loop.h"
#include "storage/dataset.h"
#include "storage/wrapped.h"
#include "tests/suite.h"

static struct endings endings;

static void begin(void)
{
	ck_assert_int_eq(loop_new(&endings.loop), 0);
}

static void end(void)
{
	endings_fini(&endings);
	loop_free(endings.loop);
}

/* Bytes of indexes that this process has mapped. */
static uint64_t mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	uint64_t bytes = 0;
	char line[4096];

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "access-index") && sscanf(line, "%llx-%llx", &from, &to) == 2)
			bytes += to - from;
	fclose(maps);
	return bytes;
}

static struct dataset *index_of(uint64_t samples, int *ret_fd)
{
	const struct wrapped_note note = {.count = samples, .room = 1};
	struct dataset *dataset;

	ck_assert_int_eq(wrapped_index(&note, NULL, ret_fd), 0);
	ck_assert_int_eq(dataset_map(*ret_fd, &dataset), 0);
	return dataset;
}

static void let_go(struct dataset *dataset, int fd)
{
	uint64_t bytes;
	void *map = dataset_take_map(dataset, &bytes);

	map_end(&endings, map, bytes);
	close(fd);
}

static struct {
	struct loop_watch *timer;
	uint64_t last, most_a_turn;
	unsigned turns;
} watch;

static void on_turn(void *arg)
{
	const uint64_t now = mapped();

	(void)arg;
	watch.most_a_turn = BASE_MAX(watch.most_a_turn, watch.last - now);
	watch.last = now;
	watch.turns++;
	if (LIST_EMPTY(&endings.list))
		loop_stop(endings.loop);
	else
		loop_timer_set(watch.timer, 0);
}

START_TEST(a_large_one_goes_in_steps)
{
	int fd, status;
	struct dataset *dataset = index_of(2000000, &fd);
	uint64_t bytes = mapped();

	for (uint64_t i = 0; i < dataset_count(dataset); i++)
		ck_assert_uint_eq(dataset_size_of(dataset, i), 1);
	ck_assert_uint_gt(bytes, UINT64_C(32) << 20);
	let_go(dataset, fd);
	watch.last = mapped();
	ck_assert_uint_eq(watch.last, bytes); /* nothing of it at once */
	ck_assert_int_eq(waitpid(-1, &status, WNOHANG), 0);
	ck_assert_int_eq(loop_timer_new(endings.loop, on_turn, NULL, &watch.timer), 0);
	loop_timer_set(watch.timer, 0);
	ck_assert_int_eq(loop_run(endings.loop), 0);
	ck_assert_uint_eq(mapped(), 0);
	ck_assert_uint_le(watch.most_a_turn, UINT64_C(8) << 20);
	ck_assert_uint_ge(watch.turns, 4);
	ck_assert_int_gt(waitpid(-1, &status, 0), 0);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	loop_unwatch(&watch.timer);
}
END_TEST

START_TEST(a_small_one_goes_at_once)
{
	int fd;
	struct dataset *dataset = index_of(1000, &fd);

	let_go(dataset, fd);
	ck_assert_uint_eq(mapped(), 0);
	ck_assert(LIST_EMPTY(&endings.list));
	map_end(&endings, NULL, 0);
	ck_assert_int_lt(waitpid(-1, NULL, WNOHANG), 0); /* nobody was needed */
}
END_TEST

START_TEST(the_rest_goes_at_our_end)
{
	int fd;
	struct dataset *dataset = index_of(2000000, &fd);

	let_go(dataset, fd);
	endings_fini(&endings);
	ck_assert_uint_eq(mapped(), 0);
	ck_assert_int_gt(waitpid(-1, NULL, 0), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, a_large_one_goes_in_steps);
	tcase_add_test(tcase, a_small_one_goes_at_once);
	tcase_add_test(tcase, the_rest_goes_at_our_end);
}

int main(void)
{
	return suite_run("map_end", add);
}
