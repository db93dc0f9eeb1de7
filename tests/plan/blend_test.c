/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The blend: whatever the weights, no part is ever a whole unit before or behind its share; the rules
 * for an epoch's end are what they say, found by walking there; a place is found as it is walked to.
 */

#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "plan/mix/blend.h"
#include "tests/suite.h"

#define CASES 400

static void draw(struct philox_seq *random, struct blend *blend)
{
	uint32_t weights[BLEND_MAX_PARTS];
	uint32_t n = 1 + (uint32_t)philox_below(random, philox_below(random, 8) ? 5 : 64);
	uint64_t most = philox_below(random, 2) ? 10 : 1000;

	for (uint32_t i = 0; i < n; i++)
		weights[i] = 1 + (uint32_t)philox_below(random, most);
	ck_assert_int_eq(blend_init(blend, weights, n), 0);
}

static bool is_fair(const struct blend *blend, const struct blend_place *place)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < blend->n; i++) {
		int64_t given = (int64_t)(place->count[i] * blend->period);
		int64_t due = (int64_t)(place->units * blend->weight[i]);

		sum += place->count[i];
		if (given - due >= (int64_t)blend->period || due - given >= (int64_t)blend->period)
			return false;
	}
	return sum == place->units;
}

START_TEST(no_part_is_a_unit_off)
{
	struct philox_seq random;

	philox_seq_init(&random, 5, 0, 0);
	for (int k = 0; k < CASES; k++) {
		struct blend_place place = {0}, found;
		struct blend blend;
		uint64_t stop;

		draw(&random, &blend);
		stop = philox_below(&random, 2 * (uint64_t)blend.period + 1);
		stop = BASE_MIN(stop, UINT64_C(3000));
		for (uint64_t h = 0; h < stop; h++) {
			uint32_t peeked = blend_peek(&blend, &place);

			ck_assert_uint_eq(blend_next(&blend, &place), peeked);
			if (!is_fair(&blend, &place))
				ck_abort_msg("case %d: a part is off after %llu units", k,
					     (unsigned long long)place.units);
		}
		blend_seek(&blend, stop, &found);
		ck_assert_mem_eq(&found, &place, sizeof(place));
		blend_seek(&blend, stop + 7 * (uint64_t)blend.period, &found);
		for (uint32_t i = 0; i < blend.n; i++)
			ck_assert_uint_eq(found.count[i], place.count[i] + 7 * blend.weight[i]);
	}
}
END_TEST

/* Walks to the end that the rule says. */
static uint64_t walk(const struct blend *blend, const uint64_t *units, enum blend_end end)
{
	struct blend_place place = {0};
	uint32_t longest = 0;

	for (uint32_t i = 0; i < blend->n; i++)
		longest = units[i] > units[longest] ? i : longest;
	for (;;) {
		uint32_t next = blend_peek(blend, &place), done = 0;

		if (end == BLEND_FIRST && place.count[next] == units[next])
			return place.units;
		blend_next(blend, &place);
		for (uint32_t i = 0; i < blend->n; i++)
			done += place.count[i] >= units[i];
		if ((end == BLEND_ALL && done == blend->n) ||
		    (end == BLEND_LONGEST && place.count[longest] == units[longest]))
			return place.units;
	}
}

START_TEST(epochs_end_as_they_should)
{
	struct philox_seq random;

	philox_seq_init(&random, 6, 0, 0);
	for (int k = 0; k < CASES / 4; k++) {
		uint64_t units[BLEND_MAX_PARTS];
		struct blend blend;

		do
			draw(&random, &blend);
		while (blend.n > 5 || blend.period > 500);
		for (uint32_t i = 0; i < blend.n; i++)
			units[i] = 1 + philox_below(&random, 60);
		for (int end = BLEND_FIRST; end <= BLEND_LONGEST; end++)
			ck_assert_uint_eq(blend_length(&blend, units, (enum blend_end)end),
					  walk(&blend, units, (enum blend_end)end));
	}
}
END_TEST

START_TEST(large_numbers_are_numbers)
{
	static const uint32_t weights[] = {999998, 1, 1};
	const uint64_t units[] = {BLEND_MAX_UNITS, BLEND_MAX_UNITS, 1};
	struct blend_place place;
	struct blend blend;

	ck_assert_int_eq(blend_init(&blend, weights, 3), 0);
	ck_assert_uint_lt(blend_length(&blend, units, BLEND_FIRST), 2000000);
	ck_assert_uint_gt(blend_length(&blend, units, BLEND_ALL),
			  (BLEND_MAX_UNITS - 2) * UINT64_C(1000000));
	blend_seek(&blend, BLEND_MAX_UNITS, &place);
	ck_assert(place.count[0] + place.count[1] + place.count[2] == BLEND_MAX_UNITS);
}
END_TEST

START_TEST(bad_weights_are_refused)
{
	uint32_t weights[BLEND_MAX_PARTS + 1];
	struct blend blend;

	for (uint32_t i = 0; i <= BLEND_MAX_PARTS; i++)
		weights[i] = UINT32_MAX; /* in lowest terms 1 */
	ck_assert_int_eq(blend_init(&blend, weights, BLEND_MAX_PARTS), 0);
	ck_assert_uint_eq(blend.period, BLEND_MAX_PARTS);
	ck_assert_int_eq(blend_init(&blend, weights, BLEND_MAX_PARTS + 1), BLEND_E_BAD);
	ck_assert_int_eq(blend_init(&blend, weights, 0), BLEND_E_BAD);
	weights[1] = 0;
	ck_assert_int_eq(blend_init(&blend, weights, 3), BLEND_E_BAD);
	weights[1] = BLEND_MAX_PERIOD - 1;
	weights[0] = 1;
	ck_assert_int_eq(blend_init(&blend, weights, 2), 0);
	weights[0] = 2;
	ck_assert_int_eq(blend_init(&blend, weights, 2), BLEND_E_BAD);
}
END_TEST

/* Tokens name places: this must never change. */
START_TEST(blends_are_frozen)
{
	static const uint32_t weights[] = {5, 3, 2};
	static const uint32_t known[] = {0, 1, 0, 2, 0, 1, 0, 1, 0, 2};
	static const uint32_t scattered[] = {4, 2, 7, 6, 1, 0, 5, 3};
	uint32_t parts[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct blend_place place = {0};
	struct blend blend;

	ck_assert_int_eq(blend_init(&blend, weights, 3), 0);
	for (size_t i = 0; i < 2 * BASE_ARRAY_LEN(known); i++)
		ck_assert_uint_eq(blend_next(&blend, &place), known[i % BASE_ARRAY_LEN(known)]);
	blend_scatter(7, 2, 24, parts, 8);
	ck_assert_mem_eq(parts, scattered, sizeof(parts));
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, no_part_is_a_unit_off);
	tcase_add_test(t, epochs_end_as_they_should);
	tcase_add_test(t, large_numbers_are_numbers);
	tcase_add_test(t, bad_weights_are_refused);
	tcase_add_test(t, blends_are_frozen);
}

int main(void)
{
	return suite_run("blend", add);
}
