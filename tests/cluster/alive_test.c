/* SPDX-License-Identifier: Apache-2.0 */

/* Whether the other end of a connection is there: who is believed, who is lost and why, and when that is looked at. */

#include <stdlib.h>

#include "cluster/alive.h"
#include "tests/suite.h"

#define S UINT64_C(1000000000)
#define NOW (1000 * S)

static const struct alive_now idle = {.is_held = false};
static struct alive alive;

static void begin(void)
{
	alive = alive_from(NOW);
	alive.whole_ns = NOW;
}

static const char *why(const struct alive_now *now, uint64_t now_ns)
{
	static struct diag diag;

	return alive_is_lost(&alive, now, now_ns, &diag) ? diag.text : "";
}

START_TEST(who_was_asked_and_is_silent_is_lost)
{
	begin();
	ck_assert_str_eq(why(&idle, NOW + 100 * S), "");
	alive_asks(&alive, NOW);
	alive_asks(&alive, NOW + S); /* counts from the first */
	ck_assert_uint_eq(alive_due_ns(&alive, &idle), NOW + ALIVE_SILENT_NS);
	ck_assert_str_eq(why(&idle, NOW + ALIVE_SILENT_NS - 1), "");
	ck_assert_str_eq(why(&idle, NOW + ALIVE_SILENT_NS),
			 "it was asked, and has said nothing for 2 s");
	alive_heard(&alive, NOW + S);
	ck_assert_str_eq(why(&idle, NOW + 100 * S), "");
	ck_assert_uint_eq(alive_due_ns(&alive, &idle), UINT64_MAX);
}
END_TEST

START_TEST(who_ends_no_frame_or_takes_nothing_is_lost)
{
	const struct alive_now begun = {.has_begun = true}, waits = {.waiting = 7};

	begin();
	ck_assert_uint_eq(alive_due_ns(&alive, &begun), NOW + ALIVE_WHOLE_NS);
	ck_assert_str_eq(why(&begun, NOW + ALIVE_WHOLE_NS - 1), "");
	ck_assert_str_eq(why(&begun, NOW + ALIVE_WHOLE_NS), "a frame was not whole within 10 s");
	ck_assert_uint_eq(alive_due_ns(&alive, &waits), NOW + ALIVE_STUCK_NS);
	ck_assert_str_eq(why(&waits, NOW + ALIVE_STUCK_NS - 1), "");
	ck_assert_str_eq(why(&waits, NOW + ALIVE_STUCK_NS),
			 "it has taken nothing of 7 bytes for 30 s");
}
END_TEST

START_TEST(who_owes_says_that_he_lives)
{
	const struct alive_now held = {.is_held = true};

	begin();
	ck_assert(!alive_is_to_say(&alive, &idle, NOW + S));
	alive_is_asked(&alive, NOW);
	ck_assert_uint_eq(alive_due_ns(&alive, &idle), NOW + ALIVE_SAY_NS);
	ck_assert(!alive_is_to_say(&alive, &idle, NOW + ALIVE_SAY_NS - 1));
	ck_assert(alive_is_to_say(&alive, &idle, NOW + ALIVE_SAY_NS));
	ck_assert(!alive_is_to_say(&alive, &idle, NOW + ALIVE_SAY_NS)); /* it was said */
	alive_answers(&alive);
	alive_answers(&alive); /* one that was forgotten */
	ck_assert(!alive_is_to_say(&alive, &idle, NOW + S));
	ck_assert(alive_is_to_say(&alive, &held, NOW + S));
	alive_is_asked(&alive, NOW + S);
	ck_assert(!alive_is_to_say(&alive, &idle, NOW + S + ALIVE_OWES_NS)); /* nobody answers */
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, who_was_asked_and_is_silent_is_lost);
	tcase_add_test(tcase, who_ends_no_frame_or_takes_nothing_is_lost);
	tcase_add_test(tcase, who_owes_says_that_he_lives);
}

int main(void)
{
	return suite_run("alive", add);
}
