/* SPDX-License-Identifier: Apache-2.0 */

/* What an owner remembers of who makes what, against a model that looks through all of it. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/philox.h"
#include "storage/promise.h"
#include "tests/patience.h"

enum { MOST = 24, MOST_WAITERS = 40, SAMPLES = 12, GROUPS = 3, PEERS = 4, LASTS = 100 };

static struct hash_id group_of(unsigned number)
{
	struct hash_id id;

	hash_of(&number, sizeof(number), &id);
	return id;
}

static struct promise_waiter asker(unsigned group, uint64_t sample, uint32_t peer, uint64_t id)
{
	return (struct promise_waiter){
	    .group = group_of(group), .sample = sample, .id = id, .peer = peer};
}

static unsigned answer(struct promises *promises, struct promise_waiter *list)
{
	unsigned n = 0;

	for (const struct promise_waiter *one = list; one; one = one->next)
		n++;
	promise_answered(promises, list);
	return n;
}

START_TEST(the_first_makes_it_and_others_wait)
{
	struct promises *promises = promise_new(MOST, MOST_WAITERS, LASTS);
	struct promise_waiter one = asker(1, 5, 0, 1), other = asker(1, 5, 1, 2),
			      elsewhere = asker(2, 5, 1, 3), *list;

	ck_assert_int_eq(promise_ask(promises, &one, 0), PROMISE_MAKE);
	ck_assert_int_eq(promise_ask(promises, &other, 1), PROMISE_WAITS);
	ck_assert_int_eq(promise_ask(promises, &elsewhere, 1), PROMISE_MAKE);
	ck_assert_ptr_null(promise_expired(promises, LASTS - 1));
	list = promise_made(promises, &one.group, 5);
	ck_assert_uint_eq(list->id, 2);
	ck_assert_uint_eq(answer(promises, list), 1);
	/* it may still be on its way to the disk */
	ck_assert_ptr_null(promise_kept(promises));
	ck_assert_int_eq(promise_ask(promises, &other, 2), PROMISE_WAITS);
	ck_assert_uint_eq(answer(promises, promise_kept(promises)), 1);
	ck_assert_ptr_null(promise_expired(promises, LASTS));
	ck_assert_int_eq(promise_ask(promises, &other, LASTS), PROMISE_MAKE);
	promise_free(promises);
}
END_TEST

START_TEST(who_is_gone_makes_nothing_and_waits_for_nothing)
{
	struct promises *promises = promise_new(MOST, MOST_WAITERS, LASTS);
	struct promise_waiter maker = asker(1, 5, 0, 1), waits = asker(1, 5, 1, 2),
			      self = asker(1, 5, PROMISE_SELF, 3);
	unsigned waiters;

	promise_ask(promises, &maker, 0);
	promise_ask(promises, &waits, 0);
	promise_ask(promises, &self, 0);
	ck_assert_ptr_null(promise_gone(promises, 1));
	ck_assert_uint_eq(promise_count(promises, &waiters), 1);
	ck_assert_uint_eq(waiters, 1);
	ck_assert_uint_eq(answer(promises, promise_gone(promises, 0)), 1);
	ck_assert_uint_eq(promise_count(promises, &waiters), 0);
	ck_assert_uint_eq(waiters, 0);
	promise_free(promises);
}
END_TEST

/* ---- the model ---- */

struct model {
	bool is_there, is_made;
	uint32_t maker;
	uint64_t until;
	unsigned waiting[PEERS];
};
static struct model model[GROUPS][SAMPLES];

static unsigned waiting_of(const struct model *one)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PEERS; i++)
		n += one->waiting[i];
	return n;
}

static void count(unsigned *ret_promises, unsigned *ret_waiters)
{
	*ret_promises = *ret_waiters = 0;
	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned s = 0; s < SAMPLES; s++) {
			*ret_promises += model[g][s].is_there;
			*ret_waiters += waiting_of(&model[g][s]);
		}
}

/* Takes those of whom it is so out of the model; how many wait for them. */
static unsigned model_end(uint64_t now, uint32_t gone)
{
	unsigned n = 0;

	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned s = 0; s < SAMPLES; s++) {
			struct model *one = &model[g][s];

			if (gone < PEERS)
				one->waiting[gone] = 0;
			if (!one->is_there ||
			    (gone < PEERS ? one->maker != gone || one->is_made : one->until > now))
				continue;
			n += waiting_of(one);
			memset(one, 0, sizeof(*one));
		}
	return n;
}

static void ask_both(struct promises *promises, unsigned g, unsigned s, uint32_t peer, uint64_t now)
{
	const struct promise_waiter who = asker(g, s, peer, 1);
	struct model *one = &model[g][s];
	unsigned n, waiters;
	enum promise_answer expected;

	count(&n, &waiters);
	if (one->is_there)
		expected = waiters < MOST_WAITERS ? PROMISE_WAITS : PROMISE_FULL;
	else
		expected = n < MOST ? PROMISE_MAKE : PROMISE_FULL;
	ck_assert_int_eq(promise_ask(promises, &who, now), expected);
	if (expected == PROMISE_WAITS)
		one->waiting[peer]++;
	if (expected == PROMISE_MAKE)
		*one = (struct model){.is_there = true, .maker = peer, .until = now + LASTS};
}

static void make_both(struct promises *promises, unsigned g, unsigned s)
{
	const struct hash_id group = group_of(g);
	struct model *one = &model[g][s];

	ck_assert_uint_eq(answer(promises, promise_made(promises, &group, s)), waiting_of(one));
	memset(one->waiting, 0, sizeof(one->waiting));
	one->is_made = one->is_there;
}

static void look_both(struct promises *promises)
{
	unsigned n = 0;

	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned s = 0; s < SAMPLES; s++)
			if (model[g][s].is_made) {
				n += waiting_of(&model[g][s]);
				memset(model[g][s].waiting, 0, sizeof(model[g][s].waiting));
			}
	ck_assert_uint_eq(answer(promises, promise_kept(promises)), n);
}

START_TEST(as_a_model_says)
{
	struct promises *promises = promise_new(MOST, MOST_WAITERS, LASTS);
	struct philox_seq seq;
	uint64_t now = 0;

	memset(model, 0, sizeof(model));
	philox_seq_init(&seq, (uint64_t)_i, 0, 0);
	for (unsigned step = 0; step < 20000; step++) {
		const unsigned g = (unsigned)philox_below(&seq, GROUPS);
		const unsigned s = (unsigned)philox_below(&seq, SAMPLES);
		const uint32_t peer = (uint32_t)philox_below(&seq, PEERS);
		unsigned n, waiters, real;

		now += philox_below(&seq, 5);
		switch (philox_below(&seq, 12)) {
		case 0:
			make_both(promises, g, s);
			break;
		case 1:
			ck_assert_uint_eq(answer(promises, promise_expired(promises, now)),
					  model_end(now, PEERS));
			break;
		case 2:
			look_both(promises);
			break;
		case 3:
			if (philox_below(&seq, 10) == 0)
				ck_assert_uint_eq(answer(promises, promise_gone(promises, peer)),
						  model_end(now, peer));
			break;
		default:
			ask_both(promises, g, s, peer, now);
		}
		count(&n, &waiters);
		ck_assert_uint_eq(promise_count(promises, &real), n);
		ck_assert_uint_eq(real, waiters);
	}
	promise_free(promises);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("promise");
	TCase *tcase = tcase_create("promise");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, the_first_makes_it_and_others_wait);
	tcase_add_test(tcase, who_is_gone_makes_nothing_and_waits_for_nothing);
	tcase_add_loop_test(tcase, as_a_model_says, 0, 4);
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
