/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What people ask of the store, at the reader that does it: which answer comes, in which order, and what comes
 * when who asked has gone. Chores wait until it is known whether there is a store, so what is asked before
 * STORE is all there when the first one is done.
 */

#include "tests/storage/hold.h"
#include "tests/storage/reader_process.h"

#include "shmring/rings.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT (8 << 20)
#define SAMPLES 60
#define MOST 64 /* that a reader lets wait */

static struct hold hold;
static struct process process;

/* A store with two groups, and a reader that does not know of it yet. */
static void setup(void)
{
	int rings_fd = -1;
	struct wire_out out;

	hold_new(&hold, LIMIT);
	hold_open(&hold);
	for (uint64_t number = 1; number <= 2; number++) {
		struct store_group *group = hold_group(&hold, number, SAMPLES);

		for (uint64_t i = 0; i < SAMPLES; i++)
			ck_assert(hold_put(group, number, i, 1000));
		hold_settle(&hold);
		store_group_close(group);
	}
	hold_close(&hold);
	process_start(&process, NULL, false);
	ck_assert_int_eq(rings_new(1, 1 << 20, &rings_fd), 0);
	wire_out_init(&out, READER_START);
	wire_put_fd(&out, process.doorbell_fd);
	wire_put_fd(&out, process.event_fd);
	wire_put_fd(&out, rings_fd);
	process_send(&process, &out);
	close(rings_fd);
}

static void teardown(void)
{
	process_stop(&process);
	hold_remove(&hold);
}

static void give_store(void)
{
	struct wire_out out;

	wire_out_init(&out, READER_STORE);
	wire_put_u64(&out, READER_KEY_LIMIT, LIMIT);
	wire_put_u64(&out, READER_KEY_FORCE, 1);
	wire_put_u64(&out, READER_KEY_SUSPECT, 0);
	wire_put_fd(&out, hold.fd);
	process_send(&process, &out);
}

static void ask(uint64_t id, enum reader_verb verb, uint64_t number)
{
	const struct hash_id group = hold_id(number);
	struct wire_out out;

	wire_out_init(&out, READER_CHORE);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_VERB, verb);
	wire_put_bytes(&out, READER_KEY_GROUP, &group, sizeof(group));
	process_send(&process, &out);
}

static void cancel(uint64_t id)
{
	struct wire_out out;

	wire_out_init(&out, READER_CHORE_CANCEL);
	wire_put_u64(&out, READER_KEY_ID, id);
	process_send(&process, &out);
}

struct answer {
	uint64_t id;
	int64_t code;
	char text[256], list[8192];
};

/* The next one, whosever it is. */
static struct answer answer(void)
{
	struct answer ret = {.code = 0};
	const char *text = "";
	uint64_t code = 0;
	struct wire_in in;
	int fd;

	for (;;) {
		process_receive(&process, &in);
		if (in.type == READER_CHORE_DONE)
			break;
		ck_assert(in.type == READER_STATE || in.type == READER_CHORE_PROGRESS);
		wire_in_fini(&in);
	}
	ck_assert_int_eq(wire_get_u64(&in, READER_KEY_ID, &ret.id), 0);
	ck_assert_int_eq(wire_get_u64(&in, READER_KEY_CODE, &code), 0);
	ck_assert_int_eq(wire_get_string(&in, READER_KEY_TEXT, &text), 0);
	ret.code = (int64_t)code;
	strncpy(ret.text, text, sizeof(ret.text) - 1);
	fd = wire_take_fd(&in, 0);
	if (fd >= 0)
		ck_assert_int_gt(pread(fd, ret.list, sizeof(ret.list) - 1, 0), 0);
	base_close(&fd);
	wire_in_fini(&in);
	return ret;
}

static void must_answer(uint64_t id, int code, const char *says)
{
	const struct answer is = answer();

	ck_assert_uint_eq(is.id, id);
	ck_assert_int_eq(is.code, code);
	ck_assert_msg(strstr(is.text, says), "%s", is.text);
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

/* ---- one after the other ---- */

START_TEST(test_each_verb)
{
	struct answer list;

	give_store();
	ask(1, READER_VERB_LIST, 0);
	list = answer();
	ck_assert_uint_eq(list.id, 1);
	ck_assert_int_eq(list.code, 0);
	ck_assert_uint_eq(count(list.list, "\"id\":"), 2);
	ck_assert_uint_eq(count(list.list, "\"values\":60,"), 2);
	ck_assert_uint_eq(count(list.list, "\"pinned\":true"), 0);
	ask(2, READER_VERB_PIN, 1);
	must_answer(2, 0, "");
	ask(3, READER_VERB_DROP, 1);
	must_answer(3, -EBUSY, "is pinned");
	ask(4, READER_VERB_UNPIN, 1);
	must_answer(4, 0, "");
	ask(5, READER_VERB_DROP, 1);
	must_answer(5, 0, "");
	ask(6, READER_VERB_DROP, 1);
	must_answer(6, -ENOENT, "no such group");
	hold_scribble(&hold, "cache.mdb-damaged", 0, "x", 1);
	ask(6, READER_VERB_DROP, 9); /* wipes nevertheless */
	must_answer(6, -ENOENT, "there is no such group");
	ck_assert_uint_eq(hold_bytes(&hold, "cache.mdb-damaged"), 0);
	ask(7, READER_VERB_PIN, 9);
	must_answer(7, -ENOENT, "no such group");
	ask(8, READER_VERB_VERIFY, 0);
	must_answer(8, 0, "60 values of 1 groups are sound");
	ask(9, READER_VERB_LIST, 0);
	list = answer();
	ck_assert_uint_eq(count(list.list, "\"id\":"), 1);
}
END_TEST

/* ---- many at once ---- */

/* A check of everything may take minutes: what takes no time does not wait for it. */
START_TEST(test_short_ones_overtake_a_check)
{
	ask(1, READER_VERB_VERIFY, 0);
	ask(2, READER_VERB_VERIFY, 0);
	ask(3, READER_VERB_LIST, 0);
	ask(4, READER_VERB_DROP, 1);
	ask(5, READER_VERB_PIN, 2);
	give_store();
	must_answer(3, 0, "");
	must_answer(4, 0, "");
	must_answer(5, 0, "");
	must_answer(1, 0, " 0 damaged");
	must_answer(2, 0, "60 values of 1 groups are sound");
}
END_TEST

START_TEST(test_more_than_it_can_do)
{
	for (uint64_t id = 1; id <= MOST + 1; id++)
		ask(id, READER_VERB_LIST, 0);
	must_answer(MOST + 1, -EAGAIN, "too much to do");
	give_store();
	for (uint64_t id = 1; id <= MOST; id++)
		must_answer(id, 0, "");
}
END_TEST

/* ---- who asked goes away ---- */

START_TEST(test_cancelled)
{
	for (uint64_t id = 1; id <= 4; id++)
		ask(id, READER_VERB_VERIFY, 0);
	cancel(4);
	cancel(2);
	cancel(99);
	ask(5, READER_VERB_VERIFY, 0);
	ask(6, READER_VERB_LIST, 0);
	cancel(6);
	give_store();
	must_answer(1, 0, "120 values");
	must_answer(3, 0, "120 values");
	must_answer(5, 0, "120 values");
	cancel(1); /* long done */
	ask(7, READER_VERB_LIST, 0);
	must_answer(7, 0, "");
}
END_TEST

/* Of one that is under way: it ends at once, or was at its end; or it was not begun, and is not answered. */
START_TEST(test_cancelled_under_way)
{
	give_store();
	for (uint64_t id = 1; id <= 20; id++) {
		struct answer is;

		ask(id, READER_VERB_VERIFY, 0);
		cancel(id);
		ask(100 + id, READER_VERB_LIST, 0);
		do {
			is = answer();
			ck_assert(is.id == 100 + id || is.id <= id);
			ck_assert(is.code == 0 || (is.id <= id && is.code == -ECANCELED));
		} while (is.id != 100 + id);
	}
}
END_TEST

/* ---- where there is no store ---- */

START_TEST(test_without_a_store)
{
	ck_assert_int_eq(unlinkat(hold.fd, "cache.mdb", 0), 0);
	ck_assert_int_eq(mkdirat(hold.fd, "cache.mdb", 0700), 0);
	ask(1, READER_VERB_LIST, 0);
	give_store();
	must_answer(1, -ENODEV, "nothing is kept");
	ask(2, READER_VERB_VERIFY, 0);
	must_answer(2, -ENODEV, "nothing is kept");
	ck_assert_int_eq(unlinkat(hold.fd, "cache.mdb", AT_REMOVEDIR), 0);
}
END_TEST

/* The reader is told to end while chores wait, and does. */
START_TEST(test_ends_with_chores_that_wait)
{
	for (uint64_t id = 1; id <= 3; id++)
		ask(id, READER_VERB_VERIFY, 0);
	if (_i)
		give_store();
}
END_TEST

static void add(TCase *chores)
{
	tcase_add_checked_fixture(chores, setup, teardown);
	tcase_add_test(chores, test_each_verb);
	tcase_add_test(chores, test_short_ones_overtake_a_check);
	tcase_add_test(chores, test_more_than_it_can_do);
	tcase_add_test(chores, test_cancelled);
	tcase_add_test(chores, test_cancelled_under_way);
	tcase_add_test(chores, test_without_a_store);
	tcase_add_loop_test(chores, test_ends_with_chores_that_wait, 0, 2);
}

int main(void)
{
	return suite_run("reader_chores", add);
}
