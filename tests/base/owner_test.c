/* SPDX-License-Identifier: Apache-2.0 */

/* Whose a sample is: the same for everybody, by weight, and nothing moves that need not. */

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/owner.h"
#include "tests/suite.h"

#define KEY UINT64_C(0x8d1f3a9b2c7e5046)

enum { SAMPLES = 20000, MOST = 16 };

static struct owner_node nodes[MOST];

static void setup(void)
{
	for (unsigned i = 0; i < MOST; i++)
		nodes[i] = (struct owner_node){UINT64_C(0x1234567) * (i + 1), 100};
}

static uint64_t owner_id(const struct owner_node *of, unsigned n, uint64_t sample)
{
	unsigned next;

	return of[owner_of(KEY, sample, of, n, &next)].id;
}

/* Within five standard deviations of what it should be. */
static void check_share(unsigned count, double share)
{
	const double mean = SAMPLES * share, deviation = sqrt(SAMPLES * share * (1 - share));

	ck_assert_msg(fabs(count - mean) < 5 * deviation, "%u of %d, not %g", count, SAMPLES, mean);
}

START_TEST(one_that_comes_takes_its_share_and_nothing_else_moves)
{
	for (unsigned n = 1; n < MOST; n++) {
		unsigned moved = 0;

		for (uint64_t s = 0; s < SAMPLES; s++) {
			const uint64_t before = owner_id(nodes, n, s);
			const uint64_t after = owner_id(nodes, n + 1, s);

			moved += before != after;
			ck_assert(before == after || after == nodes[n].id);
		}
		check_share(moved, 1.0 / (n + 1));
	}
}
END_TEST

/* And the next is whose it was before, or will be when the owner goes. */
START_TEST(the_next_is_the_owner_without_the_owner)
{
	for (uint64_t s = 0; s < 2000; s++) {
		struct owner_node left[MOST];
		unsigned next, unused, k = 0;
		const unsigned first = owner_of(KEY, s, nodes, 7, &next);

		for (unsigned i = 0; i < 7; i++)
			if (i != first)
				left[k++] = nodes[i];
		ck_assert_uint_eq(left[owner_of(KEY, s, left, 6, &unused)].id, nodes[next].id);
		ck_assert_uint_eq(owner_of(KEY, s, nodes, 1, &next), 0);
		ck_assert_uint_eq(next, OWNER_NONE);
	}
}
END_TEST

START_TEST(weights_are_met)
{
	static const uint32_t weight[] = {1, 2, 3, 10, 0, 100};
	unsigned count[BASE_ARRAY_LEN(weight)] = {0}, next;
	double sum = 0;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(weight); i++) {
		nodes[i].weight = weight[i];
		sum += BASE_MAX(weight[i], 1u);
	}
	for (uint64_t s = 0; s < SAMPLES; s++)
		count[owner_of(KEY, s, nodes, BASE_ARRAY_LEN(weight), &next)]++;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(weight); i++)
		check_share(count[i], BASE_MAX(weight[i], 1u) / sum);
}
END_TEST

/* Only what the weights say moves when one of them grows: towards that node. */
START_TEST(a_weight_that_grows_takes_from_others)
{
	struct owner_node more[5];

	for (unsigned i = 0; i < 5; i++)
		more[i] = nodes[i];
	more[2].weight = 300;
	for (uint64_t s = 0; s < SAMPLES; s++) {
		const uint64_t before = owner_id(nodes, 5, s), after = owner_id(more, 5, s);

		ck_assert(before == after || after == more[2].id);
	}
}
END_TEST

/* By their numbers, each as much as another; a data set more has other owners. */
START_TEST(nodes_of_a_spread_have_even_parts)
{
	for (unsigned i = 0; i < OWNER_SPREAD; i++)
		nodes[i] = (struct owner_node){.id = i, .weight = 7};
	for (unsigned n = 2; n <= OWNER_SPREAD; n++) {
		unsigned count[OWNER_SPREAD] = {0}, same = 0, next;

		for (uint64_t s = 0; s < SAMPLES; s++) {
			const unsigned owner = owner_of_spread(KEY, s, n);

			ck_assert_uint_eq(owner, owner_of(KEY, s, nodes, n, &next));
			count[owner]++;
			same += owner == owner_of_spread(KEY + 1, s, n);
		}
		for (unsigned i = 0; i < n; i++)
			check_share(count[i], 1.0 / n);
		check_share(same, 1.0 / n);
	}
}
END_TEST

START_TEST(the_order_of_nodes_is_nothing)
{
	struct owner_node turned[MOST];

	for (unsigned i = 0; i < MOST; i++)
		turned[(i * 7 + 3) % MOST] = nodes[i];
	for (uint64_t s = 0; s < SAMPLES; s++)
		ck_assert_uint_eq(owner_id(nodes, MOST, s), owner_id(turned, MOST, s));
}
END_TEST

/* What was kept yesterday is looked for today, by machines of every kind: this may never change. */
START_TEST(owners_are_frozen)
{
	uint64_t sum = 0, spread = 0;
	unsigned next;

	nodes[3].weight = 17;
	for (uint64_t s = 0; s < 1000; s++) {
		const unsigned first = owner_of(KEY, s << 20 | s, nodes, 11, &next);

		sum = sum * 31 + first * 16 + next;
		spread = spread * 31 + owner_of_spread(KEY, s << 20 | s, 11);
	}
	ck_assert_uint_eq(spread, UINT64_C(1965390084178864268));
	ck_assert_uint_eq(sum, UINT64_C(6829791105600059395));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, one_that_comes_takes_its_share_and_nothing_else_moves);
	tcase_add_test(tcase, the_next_is_the_owner_without_the_owner);
	tcase_add_test(tcase, weights_are_met);
	tcase_add_test(tcase, a_weight_that_grows_takes_from_others);
	tcase_add_test(tcase, nodes_of_a_spread_have_even_parts);
	tcase_add_test(tcase, the_order_of_nodes_is_nothing);
	tcase_add_test(tcase, owners_are_frozen);
}

int main(void)
{
	return suite_run("owner", add);
}
