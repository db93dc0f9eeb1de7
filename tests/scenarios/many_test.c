/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Case 46: five million files. Each of a hundred classes is a link to one folder of 50,000 names of one file, so
 * that they are made in a moment and listed one by one all the same.
 */

#include "tests/scenarios/trainee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASSES 100
#define NAMES 50000
#define OWN_BYTES (48 << 20) /* that a reader has whatever it lists */

static const char *many(void)
{
	static char folder[512];
	char first[512];

	snprintf(folder, sizeof(folder), "%s", rig_path("many"));
	if (access(folder, F_OK) == 0)
		return folder;
	ck_assert_int_eq(rig_write_pictures(rig_path("all"), 1, 1, 32), 0);
	snprintf(first, sizeof(first), "%s", rig_path("all/class_0000/000000.jpg"));
	for (unsigned i = 1; i < NAMES; i++)
		ck_assert_int_eq(link(first, rig_path("all/class_0000/%06u.jpg", i)), 0);
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	for (unsigned i = 0; i < CLASSES; i++)
		ck_assert_int_eq(symlink("../all/class_0000", rig_path("many/class_%04u", i)), 0);
	return folder;
}

/* The most that a process ever had of memory, in bytes. */
static double most_of(pid_t pid)
{
	char path[64], line[128];
	double kib = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtod(line + 6, NULL);
	fclose(file);
	return kib * 1024;
}

static int open_many(struct oa_client *client, int timeout_ms, struct oa_stream **ret,
		     struct oa_error *error)
{
	struct oa_options options = trainee_options(many(), 16, 1);

	options.timeout_ms = timeout_ms;
	*error = (struct oa_error){.size = sizeof(*error)};
	return oa_open(client, &options, ret, error);
}

/* The listing stays within the budget: it is refused with numbers, or served. */
START_TEST(five_million_files_are_listed_within_the_budget)
{
	static const struct {
		const char *setting;
		double budget;
		bool fits;
	} budgets[] = {{"memory=128M", 128 << 20, false}, {"memory=640M", 640 << 20, true}};
	struct oa_client *client;
	struct oa_stream *stream = NULL;
	struct oa_error error;
	int r;

	many();
	rig_start(budgets[_i].setting, "workers=1", "chunk=16", "slots=4", "arena=1M", NULL);
	client = rig_connect();
	r = open_many(client, 600000, &stream, &error);
	ck_assert_msg(
	    budgets[_i].fits ? r == 0 : r == OA_E_DATASET && strstr(error.text, "may have 128 MiB"),
	    "%s: %s", oa_error_name(r), error.text);
	ck_assert_double_le(most_of((pid_t)rig_status("node.reader_pid")),
			    budgets[_i].budget + OWN_BYTES);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, five_million_files_are_listed_within_the_budget, 0, 2);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("many_test: skipped: a sanitizer's memory is not the listing's");
	return 77;
#endif
	return rig_main("many", add);
}
