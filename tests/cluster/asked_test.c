/* SPDX-License-Identifier: Apache-2.0 */

/* GETs that are out: their ids, their order, and how long a peer may be silent. */

#include <stdlib.h>

#include "base/philox.h"
#include "cluster/asked.h"
#include "tests/suite.h"

#define MS UINT64_C(1000000)
#define NOW (1000000 * MS)

static struct asked asked;
static uint64_t serial;

static void setup(void)
{
	serial = 0;
	ck_assert_int_eq(asked_init(&asked), 0);
}

static void teardown(void)
{
	asked_fini(&asked);
}

static uint64_t add(uint64_t reader_id, uint64_t now_ns)
{
	const struct value_head head = {.id = reader_id, .sample = reader_id + 1, .room = 9};

	return asked_add(&asked, &head, false, now_ns, &serial);
}

START_TEST(test_silence)
{
	add(1, NOW);
	ck_assert_uint_eq(asked_until(&asked, 0), NOW + 250 * MS);
	/* What was heard before it went out does not help, what came after does, for a while. */
	ck_assert_uint_eq(asked_until(&asked, NOW - MS), NOW + 250 * MS);
	ck_assert_uint_eq(asked_until(&asked, NOW + 30 * MS), NOW + 280 * MS);
	ck_assert_uint_eq(asked_until(&asked, NOW + 1990 * MS), NOW + 2240 * MS);
	ck_assert_uint_eq(asked_until(&asked, NOW + 2300 * MS), NOW + 2250 * MS);
}
END_TEST

/* One that is given up says that the peer was silent, or only that it is slow. */
START_TEST(test_slow)
{
	const struct asked_get *get;

	add(1, NOW);
	get = asked_oldest(&asked);
	ck_assert(asked_is_silent(&asked, get, 0, asked_until(&asked, 0)));
	ck_assert(!asked_is_silent(&asked, get, 0, asked_until(&asked, 0) - 1));
	ck_assert_uint_eq(asked_until(&asked, NOW + 2240 * MS), NOW + 2250 * MS);
	ck_assert(!asked_is_silent(&asked, get, NOW + 2240 * MS, NOW + 2250 * MS));
}
END_TEST

/* Three times the median of the last answers, in its limits. */
START_TEST(test_patience)
{
	static const struct {
		uint64_t answer, patience;
	} cases[] = {
	    {0, 250 * MS},        {10 * MS, 250 * MS},   {90 * MS, 270 * MS},
	    {300 * MS, 900 * MS}, {900 * MS, 2000 * MS},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		for (unsigned j = 0; j < ASKED_RECENT; j++)
			asked_note(&asked, cases[i].answer);
		ck_assert_uint_eq(asked.patience_ns, cases[i].patience);
	}
	/* Fewer than half of them do not move it, more do. */
	for (unsigned j = 0; j < ASKED_RECENT / 2; j++)
		asked_note(&asked, 100 * MS);
	ck_assert_uint_eq(asked.patience_ns, 2000 * MS);
	for (unsigned j = 0; j < 8; j++)
		asked_note(&asked, 100 * MS);
	ck_assert_uint_eq(asked.patience_ns, 300 * MS);
}
END_TEST

START_TEST(test_full)
{
	uint64_t first;

	ck_assert_ptr_null(asked_oldest(&asked));
	first = add(0, NOW);
	for (unsigned i = 1; i < ASKED_MOST; i++) {
		ck_assert(!asked_is_full(&asked));
		add(i, NOW + i);
	}
	ck_assert(asked_is_full(&asked));
	ck_assert_uint_eq(asked_oldest(&asked)->id, first);
	asked_drop(&asked, asked_oldest(&asked));
	ck_assert(!asked_is_full(&asked));
	ck_assert_ptr_null(asked_find(&asked, first));
	/* Its entry is used again, its id is not. */
	ck_assert_uint_ne(add(5, NOW), first);
	ck_assert_ptr_null(asked_find(&asked, first));
	ck_assert_ptr_null(asked_find(&asked, 0));
}
END_TEST

/* Against a plain list: who is found, who is the oldest, how many. */
START_TEST(test_model)
{
	enum { STEPS = 20000, MOST = 64 };
	uint64_t ids[MOST], readers[MOST], gone = 0;
	struct philox_seq seq;
	unsigned n = 0;

	philox_seq_init(&seq, 3, 0, 0);
	for (unsigned step = 0; step < STEPS; step++) {
		if (n < MOST && philox_below(&seq, 2) == 0) {
			readers[n] = step;
			ids[n] = add(step, NOW + step);
			n++;
		} else if (n) {
			const unsigned which = (unsigned)philox_below(&seq, n);
			const struct asked_get *get = asked_find(&asked, ids[which]);

			ck_assert_ptr_nonnull(get);
			ck_assert_uint_eq(get->reader_id, readers[which]);
			ck_assert_uint_eq(get->sample, readers[which] + 1);
			gone = ids[which];
			asked_drop(&asked, get);
			n--;
			for (unsigned i = which; i < n; i++) {
				ids[i] = ids[i + 1];
				readers[i] = readers[i + 1];
			}
		}
		ck_assert_ptr_null(asked_find(&asked, gone));
		ck_assert_uint_eq(asked.n, n);
		if (n)
			ck_assert_uint_eq(asked_oldest(&asked)->id, ids[0]);
		else
			ck_assert_ptr_null(asked_oldest(&asked));
	}
}
END_TEST

static void add_tests(TCase *all)
{
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, test_silence);
	tcase_add_test(all, test_slow);
	tcase_add_test(all, test_patience);
	tcase_add_test(all, test_full);
	tcase_add_test(all, test_model);
}

int main(void)
{
	return suite_run("asked", add_tests);
}
