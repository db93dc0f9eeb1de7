/* SPDX-License-Identifier: Apache-2.0 */

/* What an owner remembers of who makes what, against a model that looks through all of it. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/philox.h"
#include "cluster/promise.h"
#include "tests/suite.h"

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
	list = promise_made(promises, &one.group, 5, 2);
	ck_assert_uint_eq(list->id, 2);
	ck_assert_uint_eq(answer(promises, list), 1);
	/* it may still be on its way to the disk */
	ck_assert_ptr_null(promise_kept(promises));
	ck_assert_int_eq(promise_ask(promises, &other, 3), PROMISE_WAITS);
	ck_assert_uint_eq(answer(promises, promise_kept(promises)), 1);
	ck_assert_ptr_null(promise_expired(promises, LASTS + 2));
	ck_assert_int_eq(promise_ask(promises, &other, LASTS + 2), PROMISE_MAKE);
	promise_free(promises);
}
END_TEST

/* Names whose first bytes are, together with the sample, always the same: as a peer would choose them. */
START_TEST(names_that_are_chosen_make_no_look_long)
{
	struct promises *promises = promise_new(1024, MOST_WAITERS, LASTS);
	struct promise_waiter usual = asker(1, 5, 0, 1);
	unsigned waiters, n;

	for (uint64_t i = 0; i < 1024; i++) {
		struct promise_waiter chosen = {.sample = i, .id = i};

		memcpy(chosen.group.bytes, &i, sizeof(i));
		promise_ask(promises, &chosen, 0);
	}
	n = promise_count(promises, &waiters);
	ck_assert_uint_ge(n, 16);
	ck_assert_uint_le(n, 64);
	ck_assert_int_eq(promise_ask(promises, &usual, 0), PROMISE_MAKE);
	promise_free(promises);
}
END_TEST

START_TEST(who_keeps_others_keeps_this_one_too)
{
	struct promises *promises = promise_new(MOST, MOST_WAITERS, LASTS);
	struct promise_waiter early = asker(1, 5, 0, 1), waits = asker(1, 5, 1, 2);

	promise_ask(promises, &early, 0);
	promise_ask(promises, &waits, 0);
	for (uint64_t s = 0; s < 20; s++) { /* each of which was given before */
		promise_note(promises, &early.group, 100 + s, 0, s);
		ck_assert_ptr_null(promise_made(promises, &early.group, 100 + s, s * (LASTS - 1)));
		ck_assert_ptr_null(promise_expired(promises, s * (LASTS - 1)));
	}
	ck_assert(promise_note(promises, &early.group, 7, 0, LASTS));
	ck_assert(!promise_note(promises, &early.group, 7, 1, LASTS)); /* it is the other's */
	promise_made(promises, &early.group, 7, 19 * (LASTS - 1)); /* which was given far later */
	ck_assert_uint_eq(answer(promises, promise_expired(promises, 19 * (LASTS - 1))), 1);
	promise_free(promises);
}
END_TEST

START_TEST(what_is_over_passes_to_who_waited_longest)
{
	struct promises *promises = promise_new(MOST, MOST_WAITERS, LASTS);
	struct promise_waiter maker = asker(1, 5, 0, 1), first = asker(1, 5, 1, 2),
			      second = asker(1, 5, 2, 3), *list;

	promise_ask(promises, &maker, 0);
	promise_ask(promises, &first, 1);
	promise_ask(promises, &second, 2);
	ck_assert_uint_eq(answer(promises, promise_patient(promises, 0)), 0);
	list = promise_expired(promises, LASTS);
	ck_assert_uint_eq(list->id, 2);
	ck_assert_uint_eq(answer(promises, list), 1);
	ck_assert_ptr_null(promise_expired(promises, 2 * LASTS - 1));
	list = promise_gone(promises, 1, LASTS + 1); /* the heir */
	ck_assert_uint_eq(list->id, 3);
	ck_assert_uint_eq(answer(promises, list), 1);
	ck_assert_int_eq(promise_ask(promises, &maker, LASTS + 2), PROMISE_WAITS);
	list = promise_patient(promises, LASTS + 2);
	ck_assert_uint_eq(list->id, 1);
	ck_assert_uint_eq(answer(promises, list), 1);
	ck_assert_int_eq(promise_ask(promises, &maker, LASTS + 3), PROMISE_WAITS);
	ck_assert_uint_eq(answer(promises, promise_unmade(promises, &maker.group, 5, LASTS + 4)),
			  1);
	ck_assert_int_eq(promise_ask(promises, &maker, LASTS + 5), PROMISE_MAKE);
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
	ck_assert_ptr_null(promise_gone(promises, 1, 1));
	ck_assert_uint_eq(promise_count(promises, &waiters), 1);
	ck_assert_uint_eq(waiters, 1);
	ck_assert_uint_eq(answer(promises, promise_gone(promises, 0, 1)), 1);
	ck_assert_uint_eq(promise_count(promises, &waiters), 1); /* it is this node's now */
	ck_assert_uint_eq(waiters, 0);
	promise_free(promises);
}
END_TEST

/* ---- the model ---- */

struct model_waiter {
	uint32_t peer;
	uint64_t since;
};
struct model {
	bool is_there, is_made;
	uint32_t maker;
	uint64_t since;
	unsigned n;
	struct model_waiter waiter[MOST_WAITERS]; /* the first has waited longest */
};
static struct {
	uint64_t kept, given;
} makers[PEERS];
static struct model model[GROUPS][SAMPLES];

static void count(unsigned *ret_promises, unsigned *ret_waiters)
{
	*ret_promises = *ret_waiters = 0;
	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned s = 0; s < SAMPLES; s++) {
			*ret_promises += model[g][s].is_there;
			*ret_waiters += model[g][s].n;
		}
}

/* Takes out those of a peer, or (PEERS) who have waited since then; how many there were. */
static unsigned model_take(struct model *one, uint32_t peer, uint64_t since)
{
	unsigned kept = 0, n = one->n;

	for (unsigned i = 0; i < n; i++)
		if (peer == PEERS ? one->waiter[i].since > since : one->waiter[i].peer != peer)
			one->waiter[kept++] = one->waiter[i];
	one->n = kept;
	return n - kept;
}

/* How many are told that it is over. */
static unsigned model_pass(struct model *one, uint64_t now)
{
	const unsigned n = one->n;

	if (one->is_made || n == 0) {
		memset(one, 0, sizeof(*one));
		return n;
	}
	one->maker = one->waiter[0].peer;
	one->since = now;
	memmove(one->waiter, one->waiter + 1, (n - 1) * sizeof(one->waiter[0]));
	one->n--;
	return 1;
}

static bool model_is_over(const struct model *one, uint64_t now)
{
	uint64_t heard = one->since;

	if (!one->is_made && makers[one->maker].given >= one->since + LASTS)
		return true;
	if (!one->is_made)
		heard = BASE_MAX(heard, makers[one->maker].kept);
	return now >= heard + LASTS;
}

static unsigned model_end(uint64_t now, uint32_t gone)
{
	unsigned n = 0;

	if (gone < PEERS)
		memset(&makers[gone], 0, sizeof(makers[gone]));
	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned s = 0; s < SAMPLES; s++) {
			struct model *one = &model[g][s];

			if (gone < PEERS)
				model_take(one, gone, 0);
			if (one->is_there && (gone < PEERS ? one->maker == gone && !one->is_made
							   : model_is_over(one, now)))
				n += model_pass(one, now);
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
		one->waiter[one->n++] = (struct model_waiter){peer, now};
	if (expected == PROMISE_MAKE)
		*one = (struct model){.is_there = true, .maker = peer, .since = now};
}

static void make_both(struct promises *promises, unsigned g, unsigned s, bool is_made, uint64_t now)
{
	const struct hash_id group = group_of(g);
	struct model *one = &model[g][s];
	struct promise_waiter *list = is_made ? promise_made(promises, &group, s, now)
					      : promise_unmade(promises, &group, s, now);
	const bool is_new = one->is_there && !one->is_made;

	ck_assert_uint_eq(answer(promises, list), is_made || is_new ? one->n : 0);
	if (is_new) {
		makers[one->maker].kept = now;
		makers[one->maker].given = BASE_MAX(makers[one->maker].given, one->since);
	}
	if (is_new && !is_made) {
		memset(one, 0, sizeof(*one));
	} else if (is_made) {
		one->n = 0;
		one->is_made = one->is_there;
		one->since = is_new ? now : one->since;
	}
}

/* Who waits for what was made; or, since then, for what was not. */
static unsigned model_look(bool is_made, uint64_t since)
{
	unsigned n = 0;

	for (unsigned g = 0; g < GROUPS; g++)
		for (unsigned s = 0; s < SAMPLES; s++)
			if (model[g][s].is_made == is_made)
				n += model_take(&model[g][s], PEERS, since);
	return n;
}

START_TEST(as_a_model_says)
{
	struct promises *promises = promise_new(MOST, MOST_WAITERS, LASTS);
	struct philox_seq seq;
	uint64_t now = 1;

	memset(model, 0, sizeof(model));
	memset(makers, 0, sizeof(makers));
	philox_seq_init(&seq, (uint64_t)_i, 0, 0);
	for (unsigned step = 0; step < 20000; step++) {
		const unsigned g = (unsigned)philox_below(&seq, GROUPS);
		const unsigned s = (unsigned)philox_below(&seq, SAMPLES);
		const uint32_t peer = (uint32_t)philox_below(&seq, PEERS);
		unsigned n, waiters, real;

		now += philox_below(&seq, 5);
		switch (philox_below(&seq, 14)) {
		case 0:
			make_both(promises, g, s, philox_below(&seq, 4) > 0, now);
			break;
		case 1:
			ck_assert_uint_eq(answer(promises, promise_expired(promises, now)),
					  model_end(now, PEERS));
			break;
		case 2:
			ck_assert_uint_eq(answer(promises, promise_kept(promises)),
					  model_look(true, UINT64_MAX));
			break;
		case 3:
			if (philox_below(&seq, 10) == 0)
				ck_assert_uint_eq(
				    answer(promises, promise_gone(promises, peer, now)),
				    model_end(now, peer));
			break;
		case 4:
			ck_assert_uint_eq(answer(promises, promise_patient(promises, now / 2)),
					  model_look(false, now / 2));
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

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_first_makes_it_and_others_wait);
	tcase_add_test(tcase, names_that_are_chosen_make_no_look_long);
	tcase_add_test(tcase, who_keeps_others_keeps_this_one_too);
	tcase_add_test(tcase, what_is_over_passes_to_who_waited_longest);
	tcase_add_test(tcase, who_is_gone_makes_nothing_and_waits_for_nothing);
	tcase_add_loop_test(tcase, as_a_model_says, 0, 4);
}

int main(void)
{
	return suite_run("promise", add);
}
