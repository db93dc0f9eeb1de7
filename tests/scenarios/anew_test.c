/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A dataset that is made anew while somebody has it open: removed and copied back, unpacked, moved. A new job is served
 * whatever others hold; a job that had the old one open goes on where names, sizes and times agree, and else is
 * told. Case 44 of the README's table.
 */

#include "tests/scenarios/trainee.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 400 /* many more than slots hold: who goes on must read */
#define SETTINGS "workers=2", "chunk=16", "slots=4", "linger_s=80000"

/* In a shell, where $D is the dataset and $S a copy of it with the same times. */
static const struct way {
	const char *name, *command, *needs;
	bool is_same; /* names, sizes and times are those that were */
} ways[] = {
    {"cp -a", "rm -rf \"$D\"; cp -a \"$S\" \"$D\"", "cp", true},
    {"tar x",
     "rm -rf \"$D\"; mkdir \"$D\"; tar -C \"$S\" --format=posix -cf - . | tar -C \"$D\" -xpf -",
     "tar", true},
    {"rsync -a", "rm -rf \"$D\"; rsync -a \"$S/\" \"$D\"", "rsync", true},
    {"git checkout, times kept",
     "cp -a \"$S\" \"$R/work\"; cd \"$R/work\"; git init -q; git add .; git -c user.name=anna -c "
     "user.email=anna@localhost commit -qm pictures; rm -rf \"$D\"; git clone -q . \"$D\"; rm -rf "
     "\"$D/.git\"; "
     "cd \"$S\"; find . -exec touch -r {} \"$D/{}\" \\;",
     "git", true},
    {"mv, cp -a, rm", "mv \"$D\" \"$D.old\"; cp -a \"$D.old\" \"$D\"; rm -rf \"$D.old\"", "cp",
     true},
    {"mv, cp -a, the old one written to",
     "mv \"$D\" \"$D.old\"; cp -a \"$D.old\" \"$D\"; find \"$D.old\" -name '*.jpg' -exec truncate "
     "-s 9 {} +",
     "cp", true},
    {"a link elsewhere", "cp -a \"$D\" \"$D.new\"; rm -rf \"$D\"; ln -s \"$D.new\" \"$D\"", "cp",
     true},
    {"one class", "rm -rf \"$D/class_0001\"; cp -a \"$S/class_0001\" \"$D\"", "cp", true},
    {"one file",
     "rm \"$D/class_0001/000300.jpg\"; cp -a \"$S/class_0001/000300.jpg\" \"$D/class_0001\"", "cp",
     true},
    {"cp -r", "rm -rf \"$D\"; cp -r \"$S\" \"$D\"", "cp", false},
    {"cp -a of what was written to since",
     "find \"$S\" -name '*.jpg' -exec touch -d 2001-02-03 {} +; rm -rf \"$D\"; cp -a \"$S\" \"$D\"",
     "cp", false},
    {"tar x, whole seconds",
     "rm -rf \"$D\"; mkdir \"$D\"; tar -C \"$S\" --format=gnu -cf - . | tar -C \"$D\" -xpf -",
     "tar", false},
    {"a hundred files fewer", /* of one a job may have read all that is gone */
     "rm -rf \"$D\"; cp -a \"$S\" \"$D\"; rm \"$D\"/class_0001/0003*.jpg", "cp", false},
};

static void run(const char *command)
{
	ck_assert_msg(system(command) == 0, "%s", command);
}

static bool is_here(const char *program)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	return system(command) == 0;
}

/* The dataset of the test, and $D and $S of the ways. */
static const char *make(void)
{
	static char folder[PATH_MAX];

	setenv("R", rig_path("run"), 1);
	run("rm -rf \"$R\"; mkdir \"$R\"");
	snprintf(folder, sizeof(folder), "%s", rig_pictures("run/pictures", N, 2, 40));
	setenv("D", folder, 1);
	setenv("S", rig_path("run/copy"), 1);
	run("cp -a \"$D\" \"$S\"");
	return folder;
}

/* Do all threads of the process stand? */
static bool is_stopped(pid_t pid)
{
	glob_t stats;
	char pattern[64], line[512];
	bool stands = true;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/stat", (int)pid);
	ck_assert_int_eq(glob(pattern, 0, NULL, &stats), 0);
	for (size_t i = 0; i < stats.gl_pathc && stands; i++) {
		FILE *file = fopen(stats.gl_pathv[i], "re");

		stands = file && fgets(line, sizeof(line), file) && strstr(line, ") T ");
		if (file)
			fclose(file);
	}
	globfree(&stats);
	return stands;
}

/* Streams read ahead while nobody asks. So that nothing is read while there is no dataset, the reader stands meanwhile. */
static void make_anew(const char *shell)
{
	const pid_t reader = rig_kill("node.reader_pid", SIGSTOP);
	char command[1024];

	for (uint64_t end = base_now_ns() + PATIENCE_NS; !is_stopped(reader);) {
		ck_assert_uint_lt(base_now_ns(), end);
		rig_sleep_ms(1);
	}
	snprintf(command, sizeof(command), "set -e; %s", shell);
	run(command);
	kill(reader, SIGCONT);
}

/* One epoch, in which each of n samples comes. */
static void train(const char *dataset, unsigned n)
{
	struct oa_options options = trainee_options(dataset, 8, 1);
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, &options);
	struct trainee_seen seen = {{0}};

	trainee_train(stream, 0, &seen);
	ck_assert(trainee_saw_all(&seen, n, 1));
	oa_close(stream);
	oa_disconnect(client);
}

/* A job that has begun, and holds a batch. */
struct held {
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct trainee_seen seen;
};

static void held_begin(struct held *held, const char *dataset)
{
	struct oa_options options = trainee_options(dataset, 8, 1);

	*held = (struct held){.client = rig_connect()};
	held->stream = rig_open(held->client, &options);
	held->batch = trainee_next(held->stream);
	trainee_see(&held->seen, held->batch);
}

static void held_end(struct held *held)
{
	oa_close(held->stream);
	oa_disconnect(held->client);
}

static void held_goes_on(struct held *held)
{
	oa_release(held->batch);
	trainee_train(held->stream, 0, &held->seen);
	ck_assert(trainee_saw_all(&held->seen, N, 1));
	held_end(held);
}

static void held_is_told(struct held *held)
{
	struct oa_batch *batch;
	int r;

	oa_release(held->batch);
	while ((r = oa_next(held->stream, PATIENCE_MS, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_DATASET);
	ck_assert_msg(strstr(oa_error_text(held->stream), "dataset changed") != NULL, "%s",
		      oa_error_text(held->stream));
	held_end(held);
}

static unsigned left_by(const struct way *way)
{
	return strcmp(way->name, "a hundred files fewer") == 0 ? N - 100 : N;
}

/* As the new job is served at once, so it is the second time. */
START_TEST(a_new_job_is_served_beside_a_held_one)
{
	const struct way *way = &ways[_i];
	const char *dataset = make();
	struct held held;

	if (!is_here(way->needs)) {
		printf("skipped: %s is not here\n", way->needs);
		return;
	}
	rig_start(SETTINGS, NULL);
	held_begin(&held, dataset);
	make_anew(way->command);
	train(dataset, left_by(way));
	ck_assert_double_eq(rig_status("streams.1.id") >= 0, !way->is_same);
	train(dataset, left_by(way));
	if (way->is_same)
		held_goes_on(&held);
	else
		held_is_told(&held);
	train(dataset, left_by(way));
	rig_end();
}
END_TEST

START_TEST(a_new_job_is_served_under_the_linger)
{
	const struct way *way = &ways[_i];
	const char *dataset = make();
	struct held held;

	if (!is_here(way->needs)) {
		printf("skipped: %s is not here\n", way->needs);
		return;
	}
	rig_start(SETTINGS, NULL);
	held_begin(&held, dataset);
	oa_release(held.batch);
	held_end(&held);
	ck_assert(rig_wait_status("streams.0.jobs", 0, 0));
	make_anew(way->command);
	train(dataset, left_by(way));
	rig_end();
}
END_TEST

START_TEST(a_held_job_goes_on_by_itself)
{
	const char *dataset = make();
	struct held held;

	rig_start(SETTINGS, NULL);
	held_begin(&held, dataset);
	make_anew(ways[0].command);
	held_goes_on(&held);
	rig_end();
}
END_TEST

/* The dataset is another one when the job goes on: what differs gets the job's policy. */
START_TEST(one_file_that_differs_gets_the_policy)
{
	const char *dataset = make();
	struct oa_options options = trainee_options(dataset, 8, 1);
	struct oa_client *client;
	struct oa_stream *stream;
	struct trainee_seen seen = {{0}};

	rig_start(SETTINGS, NULL);
	options.bad = OA_BAD_SKIP;
	options.bad_budget = 1;
	client = rig_connect();
	options.order = OA_ORDER_SEQUENTIAL;
	stream = rig_open(client, &options);
	trainee_train(stream, 1, &seen);
	make_anew(
	    "rm -rf \"$D\"; cp -a \"$S\" \"$D\"; touch -d 2001-02-03 \"$D/class_0001/000350.jpg\"");
	trainee_train(stream, 0, &seen);
	ck_assert_uint_eq(seen.count[350], 0);
	seen.count[350] = 1;
	ck_assert(trainee_saw_all(&seen, N, 1));
	oa_close(stream);
	oa_disconnect(client);
	train(dataset, N);
	rig_end();
}
END_TEST

START_TEST(what_is_removed_for_good_is_told)
{
	const char *dataset = make();
	struct oa_options options = trainee_options(dataset, 8, 1);
	struct oa_error error = {.size = sizeof(error)};
	struct oa_stream *stream;
	struct held held;

	rig_start(SETTINGS, NULL);
	held_begin(&held, dataset);
	run("rm -rf \"$D\"");
	ck_assert_int_eq(oa_open(held.client, &options, &stream, &error), OA_E_DATASET);
	ck_assert_msg(strstr(error.text, "No such file or directory") != NULL, "%s", error.text);
	oa_release(held.batch);
	held.batch = NULL;
	while (oa_next(held.stream, PATIENCE_MS, &held.batch) == 0)
		oa_release(held.batch);
	ck_assert_msg(strstr(oa_error_text(held.stream), "was removed since it was listed") != NULL,
		      "%s", oa_error_text(held.stream));
	held_end(&held);
	rig_end();
}
END_TEST

/* Times that are kept hide from the folders' times what was written to: files that were put into the same folders. */
START_TEST(files_under_folders_of_the_same_times_are_listed)
{
	const char *dataset = make();

	rig_start("workers=2", "linger_s=0", NULL);
	train(dataset, N);
	ck_assert(rig_wait_status("streams.0.id", -1, -1));
	run("cd \"$D\"; for file in class_0001/00035*; do cp \"$file\" new; mv new \"$file\"; "
	    "done; "
	    "touch -r \"$S\" .; touch -r \"$S/class_0001\" class_0001");
	train(dataset, N);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_new_job_is_served_beside_a_held_one, 0, BASE_ARRAY_LEN(ways));
	tcase_add_loop_test(tcase, a_new_job_is_served_under_the_linger, 0, BASE_ARRAY_LEN(ways));
	tcase_add_test(tcase, a_held_job_goes_on_by_itself);
	tcase_add_test(tcase, one_file_that_differs_gets_the_policy);
	tcase_add_test(tcase, what_is_removed_for_good_is_told);
	tcase_add_test(tcase, files_under_folders_of_the_same_times_are_listed);
}

int main(void)
{
	return rig_main("anew", add);
}
