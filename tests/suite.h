/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The main() of a Check program with one case. */

#include <check.h>
#include "tests/patience.h"

static inline int suite_run(const char *name, void (*add)(TCase *tcase))
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	add(tcase);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
