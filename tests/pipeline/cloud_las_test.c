/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LAS: the columns of old and new formats of points (clouds/, by make_clouds.py), and heads that are refused. cloud_test.c has their places,
 * and files that are cut off or damaged.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "tests/data.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define COUNT 40
#define MOST_POINTS 64
#define MOST_BYTES 8192

struct rig {
	struct trial trial;
	float points[MOST_POINTS * 4];
	int64_t label, length;
};

static int rig_run(struct rig *rig, const void *data, size_t size)
{
	const struct pipeline_out out = {.field = {rig->points, &rig->label, &rig->length}};

	return trial_run(&rig->trial, data, size, 7, 0, &out);
}

static size_t load(const char *name, uint8_t data[MOST_BYTES])
{
	return data_read("pipeline/clouds", name, data, MOST_BYTES);
}

/* ---- columns of point i ---- */

static double returned(unsigned i)
{
	return 1 + i % 5;
}

static double returns(unsigned i)
{
	return 5 - i % 3;
}

static double times_1500(unsigned i)
{
	return 1500.0 * i;
}

static double old_class(unsigned i)
{
	return i % 32;
}

static double new_class(unsigned i)
{
	return 6.0 * i;
}

static double times_3(unsigned i)
{
	return 3.0 * i;
}

static double times_1000(unsigned i)
{
	return 1000.0 * i;
}

static double old_angle(unsigned i)
{
	return (double)i - 20;
}

static double new_angle(unsigned i)
{
	return 100.0 * i - 2000;
}

static double number(unsigned i)
{
	return i;
}

static const struct {
	const char *file, *property;
	double (*value)(unsigned i);
} las_columns[] = {
    {"old.las", "intensity", times_1500},
    {"new.las", "intensity", times_1500},
    {"old.las", "return_number", returned},
    {"new.las", "return_number", returned},
    {"old.las", "number_of_returns", returns},
    {"new.las", "number_of_returns", returns},
    {"old.las", "classification", old_class},
    {"new.las", "classification", new_class},
    {"old.las", "user_data", times_3},
    {"new.las", "user_data", times_3},
    {"old.las", "point_source_id", times_1000},
    {"new.las", "point_source_id", times_1000},
    {"old.las", "scan_angle_rank", old_angle},
    {"new.las", "scan_angle", new_angle},
    {"new.las", "nir", number},
};

START_TEST(las)
{
	static uint8_t data[MOST_BYTES];
	static struct rig rig;
	char spec[512];

	snprintf(spec, sizeof(spec),
		 "[{\"op\":\"cloud\",\"points\":64,\"properties\":[\"x\",\"y\",\"z\",\"%s\"]}]",
		 las_columns[_i].property);
	trial_init(&rig.trial, spec);
	ck_assert_int_eq(rig_run(&rig, data, load(las_columns[_i].file, data)), 0);
	ck_assert_int_eq(rig.length, COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_double_eq(rig.points[4 * i + 3], las_columns[_i].value(i));
	trial_fini(&rig.trial);
}
END_TEST

#define NOT_FINITE "\0\0\0\0\0\0\xf0\x7f"
#define ZERO "\0\0\0\0\0\0\0\0"

static const struct {
	const char *file;
	size_t at, n; /* bytes that are others; n 0: the file ends there */
	const char *bytes, *text;
} bad_las[] = {
    {"old.las", 104, 1, "\x83", "LAZ: make LAS of it by pdal translate"},
    {"new.las", 104, 1, "\x46", "LAZ: make LAS of it by pdal translate"},
    {"old.las", 104, 1, "\x0b", "LAS: its points are of no format from 0 to 10"},
    {"old.las", 105, 2, "\x21\0", "LAS: its points are of no format from 0 to 10"},
    {"old.las", 105, 2, "\xff\xff", "LAS: the file is cut off"},
    {"old.las", 96, 4, "\xff\xff\xff\xff", "LAS: the file is cut off"},
    {"old.las", 107, 4, "\xff\xff\xff\xff", "LAS: the file is cut off"},
    {"new.las", 247, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", "LAS: the file is cut off"},
    {"old.las", 131, 8, NOT_FINITE, "LAS: its scale, offset or minimum is none"},
    {"old.las", 139, 8, ZERO, "LAS: its scale, offset or minimum is none"},
    {"old.las", 171, 8, NOT_FINITE, "LAS: its scale, offset or minimum is none"},
    {"old.las", 219, 8, NOT_FINITE, "LAS: its scale, offset or minimum is none"},
    {"old.las", 226, 0, NULL, "LAS: the file is cut off"},
    {"new.las", 374, 0, NULL, "LAS: the file is cut off"},
};

START_TEST(refused_las)
{
	static uint8_t data[MOST_BYTES];
	static struct rig rig;
	const size_t size = load(bad_las[_i].file, data);

	trial_init(&rig.trial, "[{\"op\":\"cloud\",\"points\":64}]");
	if (bad_las[_i].bytes)
		memcpy(&data[bad_las[_i].at], bad_las[_i].bytes, bad_las[_i].n);
	ck_assert_int_eq(rig_run(&rig, data, bad_las[_i].n ? size : bad_las[_i].at),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(rig.trial.error.text, bad_las[_i].text);
	trial_fini(&rig.trial);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cloud_las");
	TCase *tcase = tcase_create("cloud_las");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, las, 0, BASE_ARRAY_LEN(las_columns));
	tcase_add_loop_test(tcase, refused_las, 0, BASE_ARRAY_LEN(bad_las));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
