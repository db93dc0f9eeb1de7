/* SPDX-License-Identifier: Apache-2.0 */
/* Which pipelines may share decoding, and what people are told about the rest. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "pipeline/spec/compare.h"
#include "tests/suite.h"

#define CROP "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\","
#define NORM(mean) "{\"op\":\"normalize\",\"mean\":[" mean "],\"std\":[1,1,1]}"

static struct pipeline *compile(const char *ops)
{
	struct pipeline *pipeline = NULL;
	char text[1024];
	struct diag diag = {""};

	snprintf(text, sizeof(text), "{\"ops\":[%s]}", ops);
	ck_assert_msg(pipeline_compile(text, strlen(text), &pipeline, &diag) == 0, "%s", diag.text);
	return pipeline;
}

static const struct {
	const char *here, *there, *words, *reverse;
} words_table[] = {
    {CROP "\"size\":9}", CROP "\"size\":[9,9],\"scale\":[0.08,1]}", "nothing differs",
     "nothing differs"},
    {CROP "\"size\":9}", CROP "\"size\":8}", "random_resized_crop: size differs",
     "random_resized_crop: size differs"},
    {CROP "\"size\":9}", CROP "\"size\":8,\"scale\":[0.5,1],\"interpolation\":\"box\"}",
     "random_resized_crop: interpolation and scale and size differ",
     "random_resized_crop: interpolation and scale and size differ"},
    {CROP "\"size\":9},{\"op\":\"hflip\"}", CROP "\"size\":9},{\"op\":\"cast\"}",
     "hflip here, cast there", "cast here, hflip there"},
    {CROP "\"size\":9},{\"op\":\"hflip\"}", CROP "\"size\":9},{\"op\":\"hflip\",\"p\":0.25}",
     "hflip: p differs", "hflip: p differs"},
    {CROP "\"size\":9}", CROP "\"size\":9},{\"op\":\"hflip\"}", "hflip only there",
     "hflip only here"},
    {CROP "\"size\":9}," NORM("0,0,0"), CROP "\"size\":9}," NORM("0,0,0.5"),
     "normalize: mean differs", "normalize: mean differs"},
};

START_TEST(words)
{
	struct pipeline *here = compile(words_table[_i].here);
	struct pipeline *there = compile(words_table[_i].there);
	char text[128], small[12];

	ck_assert_str_eq(compare_words(here, there, text, sizeof(text)), words_table[_i].words);
	ck_assert_str_eq(compare_words(there, here, text, sizeof(text)), words_table[_i].reverse);
	/* all that there is room for */
	ck_assert_uint_lt(strlen(compare_words(here, there, small, sizeof(small))), sizeof(small));
	ck_assert(strncmp(small, words_table[_i].words, 6) == 0);
	ck_assert(compare_can_meet(here, there) && compare_can_meet(there, here));
	pipeline_free(here);
	pipeline_free(there);
}
END_TEST

#define JITTER ",{\"op\":\"color_jitter\",\"hue\":0.1}"

static const struct {
	const char *a, *b, *shared;
} shared_table[] = {
    {CROP "\"size\":9}", CROP "\"size\":8}", "decode"},
    {CROP "\"size\":9}," NORM("0,0,0"), CROP "\"size\":9}," NORM("0,0,0.5"),
     "decode and random_resized_crop"},
    /* what finishes a picture is each one's own */
    {CROP "\"size\":9}," NORM("0,0,0"), CROP "\"size\":9}," NORM("0,0,0") ",{\"op\":\"layout\"}",
     "decode and random_resized_crop"},
    {CROP "\"size\":9},{\"op\":\"hflip\"}", CROP "\"size\":9},{\"op\":\"hflip\"}" JITTER,
     "decode, random_resized_crop and hflip"},
    {CROP "\"size\":9},{\"op\":\"hflip\"}" JITTER JITTER,
     CROP "\"size\":9},{\"op\":\"hflip\"}" JITTER ",{\"op\":\"cast\"}",
     "decode to color_jitter (4 ops)"},
};

START_TEST(shared_in_words)
{
	struct pipeline *a = compile(shared_table[_i].a), *b = compile(shared_table[_i].b);
	char text[128], small[8];

	ck_assert_str_eq(compare_shared(a, b, text, sizeof(text)), shared_table[_i].shared);
	ck_assert_str_eq(compare_shared(b, a, text, sizeof(text)), shared_table[_i].shared);
	ck_assert_str_eq(compare_shared(a, b, small, sizeof(small)),
			 strncmp(text, "decode,", 7) == 0   ? "decode,"
			 : strncmp(text, "decode ", 7) == 0 ? "decode "
							    : "decode");
	pipeline_free(a);
	pipeline_free(b);
}
END_TEST

/* All named ones decode alike. */
START_TEST(named_ones_meet)
{
	const char *const *names;
	unsigned n = pipeline_names(&names);
	struct pipeline *first = NULL, *other = NULL;
	struct diag diag;

	for (unsigned i = 0; i < n; i++) {
		const char *text = pipeline_named(names[i]);

		ck_assert_int_eq(pipeline_compile(text, strlen(text), i ? &other : &first, &diag),
				 0);
		ck_assert(compare_can_meet(first, i ? other : first));
		pipeline_free(other);
		other = NULL;
	}
	pipeline_free(first);
}
END_TEST

/* A parameter that only one text has is named, too; and other pixels are not shared. */
START_TEST(fast_ones_do_not_meet)
{
	struct pipeline *exact = compile(CROP "\"size\":9}");
	struct pipeline *fast = compile("{\"op\":\"decode\",\"fast\":true},"
					"{\"op\":\"random_resized_crop\",\"size\":9}");
	char text[128];

	ck_assert(compare_can_meet(fast, fast));
	ck_assert(!compare_can_meet(exact, fast) && !compare_can_meet(fast, exact));
	ck_assert_str_eq(compare_words(exact, fast, text, sizeof(text)), "decode: fast differs");
	ck_assert_str_eq(compare_words(fast, exact, text, sizeof(text)), "decode: fast differs");
	pipeline_free(exact);
	pipeline_free(fast);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, words, 0, BASE_ARRAY_LEN(words_table));
	tcase_add_loop_test(tcase, shared_in_words, 0, BASE_ARRAY_LEN(shared_table));
	tcase_add_test(tcase, named_ones_meet);
	tcase_add_test(tcase, fast_ones_do_not_meet);
}

int main(void)
{
	return suite_run("compare", add);
}
