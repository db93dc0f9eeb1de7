/* SPDX-License-Identifier: Apache-2.0 */

/* access-ctl cache warm: after which passes there is another one, and what is said of samples that are not kept. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ctl_warm.h"
#include "tests/suite.h"

#define SAMPLES 10

static const struct {
	const char *what, *form;
	const char
	    *looks;      /* one a pass: '-' nothing was decided and kept, else how many are kept */
	unsigned passes; /* that there are to be */
	uint64_t used;   /* of 100 */
} runs[] = {
    {"what has one form alone", "packed", "8", 1, 10},
    {"what is kept bit by bit", "packed", "11223348", 8, 10},
    {"a disk that is busy", "packed", "333333", 5, 10},
    {"a store that is full", "packed", "333333", 2, 90},
    {"passes in which forms are tried, and all is made after", "packed", "-----008", 8, 10},
    {"passes in which forms are tried, and nothing is made after", "packed", "-----0000", 9, 10},
    {"nothing is ever decided", "packed", "----------", 8, 10},
    {"files are the best", "file", "00", 1, 10},
};

/* Of ten samples one has no such form, and one is broken. */
START_TEST(as_many_passes_as_bring_something)
{
	struct ctl_warm_passes passes = {.n = 0};
	bool more = true;

	for (unsigned i = 0; more; i++) {
		const char said = runs[_i].looks[i];
		struct ctl_warm_look look = {.is_measured = said != '-',
					     .kept = said == '-' ? 0 : (uint64_t)(said - '0'),
					     .unfit = 1,
					     .used = runs[_i].used,
					     .limit = 100};

		ck_assert_msg(said, "%s: another pass after all of them", runs[_i].what);
		snprintf(look.form, sizeof(look.form), "%s", runs[_i].form);
		more = ctl_warm_needs_more(&passes, &look, SAMPLES, 1);
	}
	ck_assert_msg(passes.n == runs[_i].passes, "%s: %u passes, not %u", runs[_i].what, passes.n,
		      runs[_i].passes);
}
END_TEST

static const struct {
	uint64_t kept, used;
	const char *says; /* NULL: all is kept */
} ends[] = {
    {8, 10, NULL},
    {6, 10, "2 samples are not kept: the store did not take them"},
    {6, 90, "2 samples are not kept: there is no room for them"},
};

START_TEST(what_is_missing_is_said)
{
	const struct ctl_warm_look look = {.is_measured = true,
					   .form = "packed",
					   .kept = ends[_i].kept,
					   .unfit = 1,
					   .used = ends[_i].used,
					   .limit = 100};
	struct diag diag = {.text = ""};
	FILE *out = fopen("/dev/null", "w");

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(ctl_warm_tell(&look, SAMPLES, 1, out, &diag),
			 ends[_i].says ? CTL_E_NONE : 0);
	fclose(out);
	ck_assert_msg(strstr(diag.text, ends[_i].says ? ends[_i].says : ""), "%s", diag.text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, as_many_passes_as_bring_something, 0, BASE_ARRAY_LEN(runs));
	tcase_add_loop_test(tcase, what_is_missing_is_said, 0, BASE_ARRAY_LEN(ends));
}

int main(void)
{
	return suite_run("warm", add);
}
