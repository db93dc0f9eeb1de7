/* SPDX-License-Identifier: Apache-2.0 */

/* Draws, weights and pixels are the same on all machines, to the last bit. */

#include <stdlib.h>

#include "pipeline/ops/fingerprint.h"
#include "tests/suite.h"

START_TEST(arithmetic_is_the_same_everywhere)
{
	ck_assert_uint_eq(fingerprint_of_arithmetic(), UINT64_C(9515637512053474713));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, arithmetic_is_the_same_everywhere);
}

int main(void)
{
	return suite_run("fingerprint", add);
}
