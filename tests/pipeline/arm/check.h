/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * As much of Check as the tests of kernels use, for machines whose Check is not at hand
 * (tests/pipeline/arm.mk). All tests of a program run in one process; the first failure ends it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARM_TESTS 32

struct arm_test {
	const char *name;
	void (*run)(int i);
	int from, to;
};

struct arm_suite { /* a program has one suite with one case */
	const char *name;
	void (*setup)(void), (*teardown)(void);
	unsigned count;
	struct arm_test test[ARM_TESTS];
};
typedef struct arm_suite Suite, TCase, SRunner;

static inline struct arm_suite *arm_the_suite(const char *name)
{
	static struct arm_suite suite;

	suite.name = name;
	return &suite;
}

static inline void arm_add(struct arm_suite *suite, struct arm_test test)
{
	if (suite->count == ARM_TESTS)
		abort();
	suite->test[suite->count++] = test;
}

static inline void arm_run(const struct arm_suite *suite)
{
	unsigned runs = 0;

	for (const struct arm_test *test = suite->test; test != suite->test + suite->count;
	     test++) {
		for (int i = test->from; i < test->to; i++, runs++) {
			printf("%s:%s:%d\n", suite->name, test->name, i);
			fflush(stdout);
			if (suite->setup)
				suite->setup();
			test->run(i);
			if (suite->teardown)
				suite->teardown();
		}
	}
	printf("100%%: Checks: %u\n", runs);
}

#define START_TEST(test) static void test(int _i __attribute__((unused)))
#define END_TEST

#define CK_NORMAL 0
#define CK_ENV 0
#define suite_create(name) arm_the_suite(name)
#define tcase_create(name) arm_the_suite(name)
#define srunner_create(suite) (suite)
#define suite_add_tcase(suite, tcase) ((void)(suite), (void)(tcase))
#define tcase_set_timeout(tcase, seconds) ((void)(tcase), (void)(seconds))
#define tcase_add_checked_fixture(tcase, begin, end) \
	((tcase)->setup = (begin), (tcase)->teardown = (end))
#define tcase_add_loop_test(tcase, test, from, to) \
	arm_add(tcase, (struct arm_test){#test, test, (int)(from), (int)(to)})
#define tcase_add_test(tcase, test) tcase_add_loop_test(tcase, test, 0, 1)
#define srunner_run_all(runner, mode) ((void)(mode), arm_run(runner))
#define srunner_ntests_failed(runner) ((void)(runner), 0)
#define srunner_free(runner) ((void)(runner))

#define ck_abort_msg(...) \
	(printf("%s:%d:F: ", __FILE__, __LINE__), printf(__VA_ARGS__), puts(""), exit(EXIT_FAILURE))
#define ck_assert_msg(good, ...) ((good) ? (void)0 : ck_abort_msg(__VA_ARGS__))
#define ck_assert(good) ck_assert_msg(good, "%s", #good)
#define ck_assert_mem_eq(a, b, size) ck_assert(memcmp(a, b, size) == 0)
#define ck_assert_mem_ne(a, b, size) ck_assert(memcmp(a, b, size) != 0)
#define ck_assert_ptr_eq(a, b) ck_assert((a) == (b))
#define ck_assert_ptr_ne(a, b) ck_assert((a) != (b))
#define ck_assert_ptr_null(a) ck_assert((a) == NULL)
#define ck_assert_ptr_nonnull(a) ck_assert((a) != NULL)

static inline void arm_compare(bool good, intmax_t a, intmax_t b, const char *what, const char *at,
			       int line)
{
	if (good)
		return;
	printf("%s:%d:F: %s: %jd, %jd\n", at, line, what, a, b);
	exit(EXIT_FAILURE);
}

#define ARM_COMPARE(type, a, op, b)                                                              \
	do {                                                                                     \
		type arm_a = (type)(a), arm_b = (type)(b);                                       \
		arm_compare(arm_a op arm_b, (intmax_t)arm_a, (intmax_t)arm_b, #a " " #op " " #b, \
			    __FILE__, __LINE__);                                                 \
	} while (0)
#define ck_assert_int_eq(a, b) ARM_COMPARE(intmax_t, a, ==, b)
#define ck_assert_uint_eq(a, b) ARM_COMPARE(uintmax_t, a, ==, b)
#define ck_assert_uint_lt(a, b) ARM_COMPARE(uintmax_t, a, <, b)
#define ck_assert_uint_ge(a, b) ARM_COMPARE(uintmax_t, a, >=, b)
#define ck_assert_uint_gt(a, b) ARM_COMPARE(uintmax_t, a, >, b)
#define ck_assert_uint_le(a, b) ARM_COMPARE(uintmax_t, a, <=, b)
#define ck_assert_double_eq(a, b) ck_assert((double)(a) == (double)(b))
