/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SHMRING_SUITE_H
#define TESTS_SHMRING_SUITE_H

/* The main() of a Check program with one case, and what several programs of the room need. */

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include "tests/patience.h"

#define assert_fine(broken)                             \
	do {                                            \
		const char *broken_ = (broken);         \
		ck_assert_msg(!broken_, "%s", broken_); \
	} while (0)

static inline int suite_run(const char *name, void (*add)(TCase *tcase))
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	add(tcase);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}

/* A small generator for tests: the same numbers on every run (xorshift64*). */
static inline uint64_t suite_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717) >> 11;
}

#endif
