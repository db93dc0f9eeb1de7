/* SPDX-License-Identifier: Apache-2.0 */

/* Plan logs of groups that are gone: of one user's so many are left, the last ones, whatever others have; but all in whose
 * groups ranks may still be, which after a restart is a minute long. */

#include "daemon/place.h"
#include "daemon/serve/group_keep.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/loop.h"
#include "daemon/net/request.h"
#include "tests/suite.h"

#define EACH 64 /* KEPT_EACH */
#define MIB (UINT64_C(1) << 20)
#define USUAL (UINT64_C(1) << 16) /* bytes of a log */
#define MINUTE (UINT64_C(60) * 1000000000)
#define AT_ONCE 16 /* MOST_REMOVED */

uint64_t __real_base_now_ns(void);
uint64_t __wrap_base_now_ns(void);
static uint64_t passed_ns;

uint64_t __wrap_base_now_ns(void)
{
	return __real_base_now_ns() + passed_ns;
}

static char folder[] = "/tmp/kept-XXXXXX";
static struct kept_logs logs;
static struct loop *loop;

static void begin(void)
{
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(loop_new(&loop), 0);
	keep_load(&logs, folder, fd);
	ck_assert_int_eq(keep_watch(&logs, loop), 0);
}

/* How many files there are; they are removed. */
static unsigned end(void)
{
	const struct dirent *entry;
	DIR *dir = opendir(folder);
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		n += unlinkat(dirfd(dir), entry->d_name, 0) == 0;
	closedir(dir);
	rmdir(folder);
	keep_unload(&logs);
	close(logs.fd);
	loop_free(loop);
	return n;
}

static struct request request;
static const struct hash_id pipeline;

static struct keep_job job_of(uid_t uid, unsigned number)
{
	static char name[16];

	snprintf(name, sizeof(name), "job %u", number);
	request.job = name;
	request.ranks = 2;
	return (struct keep_job){.pipeline = &pipeline, .uid = uid, .request = &request};
}

/* A group of that job comes, and ranks may still be in it. bytes: of its log; disk: so many of them at least take place. */
static struct keep lend_one(uid_t uid, unsigned number, const uint8_t id[PLAN_LOG_ID],
			    uint64_t bytes, uint64_t disk)
{
	const struct keep_job of = job_of(uid, number);
	struct plan_log plan_log;
	struct keep keep;
	int fd;

	ck_assert_int_eq(plan_log_new(bytes, 100, id, &plan_log, &fd), 0);
	keep_begin(&keep, &logs, &of, &plan_log);
	keep_publish(&keep, &plan_log);
	if (disk)
		ck_assert_int_eq(posix_fallocate(keep.fd, 0, (off_t)disk), 0);
	keep_lend(&keep);
	plan_log_detach(&plan_log);
	close(fd);
	return keep;
}

static struct keep lend(uid_t uid, unsigned number, uint64_t bytes, uint64_t disk)
{
	const uint8_t id[PLAN_LOG_ID] = {(uint8_t)number, (uint8_t)uid};

	return lend_one(uid, number, id, bytes, disk);
}

/* A group of that job comes and goes. */
static void leave(uid_t uid, unsigned number, uint64_t bytes, uint64_t disk)
{
	struct keep keep = lend(uid, number, bytes, disk);

	keep_end(&keep, false);
}

static bool is_there(uid_t uid, unsigned number)
{
	const struct keep_job of = job_of(uid, number);
	int fd = keep_find(&logs, &of, NULL, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

START_TEST(the_last_ones_of_each_user_are_left)
{
	begin();
	leave(8, 0, USUAL, 0);
	for (unsigned i = 1; i <= 2 * EACH; i++)
		leave(7, i, USUAL, 0);
	ck_assert(is_there(8, 0));
	for (unsigned i = 1; i <= 2 * EACH; i++)
		ck_assert_int_eq(is_there(7, i), i > EACH);
	ck_assert_uint_eq(end(), EACH + 1);
}
END_TEST

/* A group goes on with a file, and cannot have one of its own: what it gives from then on the old one lacks. */
START_TEST(what_cannot_be_written_anew_is_found_no_more)
{
	const uint8_t id[PLAN_LOG_ID] = {1, 7};
	struct keep_job of;
	struct plan_log plan_log;
	struct keep keep;
	int fd;

	begin();
	keep = lend(7, 1, USUAL, 0);
	*keep.temporary = *PLACE_TEMPORARY;
	ck_assert_int_eq(mkdirat(logs.fd, keep.temporary, 0700), 0);
	*keep.temporary = '\0';
	keep_end(&keep, false);
	ck_assert(is_there(7, 1));
	of = job_of(7, 1);
	ck_assert_int_eq(plan_log_new(USUAL, 100, id, &plan_log, &fd), 0);
	keep_begin(&keep, &logs, &of, &plan_log);
	ck_assert_int_lt(keep.fd, 0);
	keep_publish(&keep, &plan_log);
	ck_assert(!is_there(7, 1));
	ck_assert_int_eq(unlinkat(logs.fd, keep.temporary, AT_REMOVEDIR), 0);
	plan_log_detach(&plan_log);
	close(fd);
	ck_assert_uint_eq(end(), 0);
}
END_TEST

/* Nor do they count; but when their ranks are gone, too. */
START_TEST(those_in_which_ranks_may_be_are_left)
{
	static struct keep lent[2 * EACH];

	begin();
	for (unsigned i = 0; i < 2 * EACH; i++)
		lent[i] = lend(7, i, USUAL, 0);
	for (unsigned i = 2 * EACH; i < 3 * EACH; i++)
		leave(7, i, USUAL, 0);
	for (unsigned i = 0; i < 3 * EACH; i++)
		ck_assert(is_there(7, i));
	for (unsigned i = 2 * EACH; i-- > 0;)
		keep_end(&lent[i], false);
	for (unsigned i = 0; i < 3 * EACH; i++)
		ck_assert_int_eq(is_there(7, i), i < EACH);
	ck_assert_uint_eq(end(), EACH);
}
END_TEST

START_TEST(what_counts_is_what_the_disk_has)
{
	begin();
	for (unsigned i = 0; i < 8; i++)
		leave(7, i, 16 * MIB, 0);
	for (unsigned i = 0; i < 8; i++)
		ck_assert(is_there(7, i));
	leave(7, 8, 40 * MIB, 33 * MIB);
	ck_assert(is_there(7, 0));
	leave(7, 9, 40 * MIB, 33 * MIB);
	for (unsigned i = 0; i <= 9; i++)
		ck_assert_int_eq(is_there(7, i), i == 9);
	ck_assert_uint_eq(end(), 1);
}
END_TEST

static void restart(void)
{
	keep_unload(&logs);
	keep_load(&logs, folder, logs.fd);
	ck_assert_int_eq(keep_watch(&logs, loop), 0);
}

/* Their ranks wait for the next accessd. */
START_TEST(a_restart_removes_none)
{
	static struct keep of_one[2 * EACH];

	begin();
	for (unsigned i = 0; i < 2 * EACH; i++) {
		leave(i, i, USUAL, 0);
		of_one[i] = lend(2 * EACH, i, USUAL, 0);
	}
	logs.stays = true; /* accessd ends */
	for (unsigned i = 0; i < 2 * EACH; i++)
		keep_end(&of_one[i], false);
	restart();
	leave(7, 3 * EACH, USUAL, 0);
	for (unsigned i = 0; i < 2 * EACH; i++)
		ck_assert(is_there(i, i) && is_there(2 * EACH, i));
	ck_assert_uint_eq(end(), 4 * EACH + 1);
}
END_TEST

static char names[4 * EACH][KEEP_NAME];

/* One more is left, at that time. */
static void leave_at(uid_t uid, unsigned number, time_t when, uint64_t disk)
{
	const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
	struct keep keep = lend(uid, number, 40 * MIB, disk);

	memcpy(names[number], keep.name, sizeof(keep.name));
	ck_assert_int_eq(utimensat(logs.fd, keep.name, times, 0), 0);
	keep_end(&keep, false);
}

static bool has_file(unsigned number)
{
	return faccessat(logs.fd, names[number], F_OK, 0) == 0;
}

static unsigned count_files(unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		n += has_file(i);
	return n;
}

static void on_after(void *arg)
{
	*(bool *)arg = true;
}

static void fire_timer(void)
{
	struct loop_watch *after;
	bool is_after = false;

	ck_assert_int_eq(loop_timer_new(loop, on_after, &is_after, &after), 0);
	loop_timer_set(logs.timer, 0);
	loop_timer_set(after, 1000000);
	while (!is_after)
		ck_assert_int_eq(loop_turn(loop), 0);
	loop_unwatch(&after);
}

/* A minute later those count, too: the oldest go, a few a time, whatever others have. */
START_TEST(what_a_restart_left_is_bounded)
{
	begin();
	logs.stays = true;
	for (unsigned i = 0; i < 3 * EACH; i++) /* as the folder has them, their times are mixed */
		leave_at(7, i, 1000 + (time_t)(i * 37 % (3 * EACH)), 0);
	leave_at(8, 3 * EACH, 1, 0);
	restart();
	fire_timer();
	ck_assert_uint_eq(count_files(0, 3 * EACH + 1), 3 * EACH + 1);
	passed_ns = MINUTE;
	for (unsigned i = 0; i < 3 * EACH / AT_ONCE; i++) {
		const unsigned before = count_files(0, 3 * EACH);

		fire_timer();
		ck_assert_uint_le(before - count_files(0, 3 * EACH), AT_ONCE);
	}
	for (unsigned i = 0; i < 3 * EACH; i++)
		ck_assert_int_eq(has_file(i), i * 37 % (3 * EACH) >= 2 * EACH);
	ck_assert(has_file(3 * EACH));
	leave_at(7, 3 * EACH + 1, 5000, 0);
	ck_assert_uint_eq(count_files(0, 3 * EACH), EACH - 1);
	ck_assert_uint_eq(end(), EACH + 1);
}
END_TEST

START_TEST(what_a_restart_left_is_bounded_by_bytes)
{
	begin();
	logs.stays = true;
	for (unsigned i = 0; i < 4; i++)
		leave_at(7, i, 1000 - (time_t)i, i < 2 ? 33 * MIB : 0);
	restart();
	passed_ns = MINUTE;
	fire_timer();
	ck_assert(has_file(0)); /* the last one, however large */
	ck_assert_uint_eq(count_files(1, 4), 0);
	ck_assert_uint_eq(end(), 1);
}
END_TEST

/* Whose they are their names do not say. They stay for their day. */
START_TEST(what_has_no_user_in_its_name_is_left)
{
	begin();
	logs.stays = true;
	for (unsigned i = 0; i < 2 * EACH; i++) {
		char before[KEEP_NAME];

		leave_at(7, i, 1000, 0);
		memcpy(before, names[i], sizeof(before));
		*strrchr(names[i], '-') = '\0';
		ck_assert_int_eq(renameat(logs.fd, before, logs.fd, names[i]), 0);
	}
	restart();
	ck_assert(is_there(7, 0));
	passed_ns = MINUTE;
	fire_timer();
	ck_assert_uint_eq(count_files(0, 2 * EACH), 2 * EACH);
	passed_ns = 1440 * MINUTE;
	for (unsigned i = 0; i < 2 * EACH / AT_ONCE; i++)
		fire_timer();
	ck_assert_uint_eq(end(), 0);
}
END_TEST

static bool is_named(unsigned number, const char *id)
{
	const struct keep_job of = job_of(7, number);
	uint8_t its[PLAN_LOG_ID] = {0};
	int fd;

	memcpy(its, id, strlen(id));
	fd = keep_find(&logs, &of, its, 1); /* nothing began so */
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Whatever version of the plan a rank's token names. Another run that began alike ends it. */
START_TEST(a_plan_is_found_by_its_name)
{
	static const uint8_t before[PLAN_LOG_ID] = "the planversion",
			     after[PLAN_LOG_ID] = "new plan";
	struct keep keep;

	begin();
	keep = lend_one(7, 1, before, USUAL, 0);
	keep_end(&keep, false);
	leave(7, 2, USUAL, 0);
	ck_assert(is_named(1, "the planversion"));
	ck_assert(is_named(1, "the planother"));
	ck_assert(!is_named(1, "that planversion"));
	ck_assert(!is_named(2, "the planversion"));
	restart();
	ck_assert(is_named(1, "the planother"));
	keep = lend_one(7, 1, after, USUAL, 0);
	ck_assert(!is_named(1, "the planversion"));
	ck_assert(is_named(1, "new plan"));
	keep_end(&keep, false);
	ck_assert_uint_eq(end(), 2);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_last_ones_of_each_user_are_left);
	tcase_add_test(tcase, what_cannot_be_written_anew_is_found_no_more);
	tcase_add_test(tcase, those_in_which_ranks_may_be_are_left);
	tcase_add_test(tcase, what_counts_is_what_the_disk_has);
	tcase_add_test(tcase, a_restart_removes_none);
	tcase_add_test(tcase, what_a_restart_left_is_bounded);
	tcase_add_test(tcase, what_a_restart_left_is_bounded_by_bytes);
	tcase_add_test(tcase, what_has_no_user_in_its_name_is_left);
	tcase_add_test(tcase, a_plan_is_found_by_its_name);
}

int main(void)
{
	return suite_run("kept", add);
}
