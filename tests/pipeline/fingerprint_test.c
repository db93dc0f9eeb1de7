/* SPDX-License-Identifier: Apache-2.0 */

/* Draws, weights and pixels are the same on all machines, to the last bit. */

#include <check.h>
#include <stdlib.h>

#include "pipeline/ops/fingerprint.h"

START_TEST(arithmetic_is_the_same_everywhere)
{
	ck_assert_uint_eq(fingerprint_of_arithmetic(), UINT64_C(9515637512053474713));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fingerprint");
	TCase *tcase = tcase_create("fingerprint");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, arithmetic_is_the_same_everywhere);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
