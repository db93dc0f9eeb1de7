/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parts of a dataset, against a real accessd.
 */

#include "tests/scenarios/trainee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 240
#define CLASSES 6

static const char *dataset;

static void make_dataset(void)
{
	dataset = rig_pictures("subset", SAMPLES, CLASSES, 32);
}

/* ---- what is in it ---- */

static struct oa_dataset *described(struct oa_client *client, const char *path)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_dataset *ret = NULL;
	int r = oa_dataset_open(client, path, 60000, &ret, &error);

	ck_assert_msg(r == 0, "oa_dataset_open: %d %s", r, error.text);
	return ret;
}

START_TEST(a_dataset_is_described)
{
	struct oa_client *client;
	struct oa_dataset *known;
	char name[32];

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	known = described(client, dataset);
	oa_disconnect(client);
	rig_end(); /* it needs nobody any more */
	ck_assert_uint_eq(oa_dataset_count(known), SAMPLES);
	ck_assert_uint_eq(oa_dataset_classes(known), CLASSES);
	for (int64_t id = 0; id < SAMPLES; id++)
		ck_assert_int_eq(oa_dataset_label(known, id), id * CLASSES / SAMPLES);
	for (unsigned i = 0; i < CLASSES; i++) {
		snprintf(name, sizeof(name), "class_%04u", i);
		ck_assert_str_eq(oa_dataset_class_name(known, i), name);
	}
	ck_assert_int_eq(oa_dataset_label(known, -1), -1);
	ck_assert_int_eq(oa_dataset_label(known, SAMPLES), -1);
	ck_assert_ptr_null(oa_dataset_class_name(known, CLASSES));
	oa_dataset_close(known);
	oa_dataset_close(NULL);
}
END_TEST

START_TEST(what_cannot_be_described_says_why)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_dataset *known = NULL;
	struct oa_client *client;

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	ck_assert_int_eq(oa_dataset_open(client, rig_path("nowhere"), 60000, &known, &error),
			 OA_E_DATASET);
	ck_assert_msg(strstr(error.text, "nowhere") != NULL, "%s", error.text);
	ck_assert_int_eq(oa_dataset_open(client, "", 0, &known, &error), OA_E_INVALID);
	ck_assert_int_eq(oa_dataset_open(client, NULL, 0, &known, &error), OA_E_INVALID);
	ck_assert_ptr_null(known);
	oa_dataset_close(described(client, dataset)); /* it goes on */
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Who asks and asks is given one memory, and leaves nothing behind. */
START_TEST(asking_again_costs_nothing)
{
	struct oa_client *client;
	unsigned before;

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	oa_dataset_close(described(client, dataset));
	before = rig_settled_fds(0);
	for (unsigned i = 0; i < 50; i++)
		oa_dataset_close(described(client, dataset));
	ck_assert_uint_le(rig_settled_fds(before), before);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, a_dataset_is_described);
	tcase_add_test(tcase, what_cannot_be_described_says_why);
	tcase_add_test(tcase, asking_again_costs_nothing);
}

int main(void)
{
	return rig_main("subset", add_tests);
}
