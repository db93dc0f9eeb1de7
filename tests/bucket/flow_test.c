/* SPDX-License-Identifier: Apache-2.0 */

/* How many requests at once, and how long one waits. */

#include "bucket/flow.h"
#include "bucket/http.h"
#include "tests/suite.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static struct flow flow;

static void answers(unsigned n, uint64_t latency_ns)
{
	while (n--)
		flow_good(&flow, latency_ns, true);
}

START_TEST(test_grows)
{
	unsigned before;

	flow_init(&flow, S);
	answers(3000, 50 * MS);
	ck_assert_uint_eq(flow.limit, FLOW_MOST);
	/* One a round, once it was too much. */
	flow_bad(&flow, 10 * S);
	before = flow.limit;
	ck_assert_uint_eq(before, FLOW_MOST * 7 / 10);
	answers(before - 1, 50 * MS);
	ck_assert_uint_eq(flow.limit, before);
	answers(1, 50 * MS);
	ck_assert_uint_eq(flow.limit, before + 1);
}
END_TEST

START_TEST(test_stays)
{
	unsigned before;

	flow_init(&flow, S);
	answers(8 + 16, 50 * MS);
	before = flow.limit;
	answers(1000, 80 * MS);
	ck_assert_uint_eq(flow.limit, before);
	/* Nor while so many are not needed. */
	flow_init(&flow, S);
	before = flow.limit;
	for (unsigned i = 0; i < 1000; i++)
		flow_good(&flow, 50 * MS, false);
	ck_assert_uint_eq(flow.limit, before);
	/* A place that has become slower for good is one to be measured anew. */
	answers(64, 50 * MS);
	answers(100000, 200 * MS);
	ck_assert_uint_gt(flow.limit, before);
}
END_TEST

START_TEST(test_shrinks)
{
	flow_init(&flow, S);
	answers(3000, 50 * MS);
	flow_bad(&flow, 10 * S);
	flow_bad(&flow, 10 * S + 10 * MS); /* of the same round trip */
	ck_assert_uint_eq(flow.limit, FLOW_MOST * 7 / 10);
	for (unsigned i = 1; i < 30; i++)
		flow_bad(&flow, 10 * S + i * 60 * MS);
	ck_assert_uint_eq(flow.limit, FLOW_LEAST);
}
END_TEST

START_TEST(test_patience)
{
	flow_init(&flow, S);
	ck_assert_uint_eq(flow_patience_ns(&flow, 100 * S), 5 * S);
	answers(200, 50 * MS);
	ck_assert_uint_eq(flow_patience_ns(&flow, S + 500 * MS), 5 * S);
	ck_assert_uint_eq(flow_patience_ns(&flow, 100 * S), S);
	answers(10, 900 * MS);
	ck_assert_uint_eq(flow_patience_ns(&flow, 100 * S), 3600 * MS);
}
END_TEST

START_TEST(test_haste)
{
	flow_init(&flow, S);
	answers(FLOW_HASTE - 1, 10 * MS);
	ck_assert(!flow_hasten(&flow));
	answers(1, 10 * MS);
	ck_assert_uint_eq(flow_haste_ns(&flow), 100 * MS);
	ck_assert(flow_hasten(&flow));
	ck_assert(!flow_hasten(&flow));
	/* A few that were late do not make it longer; where many are, it is how the server is. */
	answers(200, 50 * MS);
	answers(10, 2 * S);
	ck_assert_uint_eq(flow_haste_ns(&flow), 150 * MS);
	answers(200, 400 * MS);
	ck_assert_uint_eq(flow_haste_ns(&flow), 1200 * MS);
	for (unsigned i = 0; i < 8; i++)
		ck_assert(flow_hasten(&flow));
	ck_assert(!flow_hasten(&flow));
}
END_TEST

/* Who is busy is asked for half a minute, and what passes five times; nobody waits for two of the longest waits that there are. */
START_TEST(test_is_over)
{
	static const struct {
		unsigned tries;
		long status;
		uint64_t spent_ns;
		bool is_over;
	} tried[] = {
	    {4, 500, S, false},       {5, 500, S, true},       {2, 500, 31 * S, true},
	    {1, 503, 40 * S, false},  {2, 503, 29 * S, false}, {2, 503, 31 * S, true},
	    {50, 429, 29 * S, false}, {4, 0, 29 * S, false},   {5, 0, S, true},
	    {1, 0, 40 * S, false},    {2, 0, 40 * S, true},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(tried); i++)
		ck_assert_msg(http_is_over(tried[i].tries, tried[i].status, tried[i].spent_ns) ==
				  tried[i].is_over,
			      "%zu", i);
}
END_TEST

static void add(TCase *all)
{
	tcase_add_test(all, test_grows);
	tcase_add_test(all, test_is_over);
	tcase_add_test(all, test_stays);
	tcase_add_test(all, test_shrinks);
	tcase_add_test(all, test_patience);
	tcase_add_test(all, test_haste);
}

int main(void)
{
	return suite_run("flow", add);
}
