/* SPDX-License-Identifier: Apache-2.0 */

/* A whole accessd, spoken to over raw sockets: what it does when jobs fail and its own processes
 * die, or cannot be started, at awkward moments. */

#include "tests/daemon/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct raw_open usual(const char *dataset)
{
	return (struct raw_open){.dataset = dataset, .pipeline = "imagenet-eval-u8", .batch = 8};
}

static void damage(const char *dataset, unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++) {
		char path[512];
		FILE *file;

		snprintf(path, sizeof(path), "%s/class_0000/%06u.jpg", dataset, i);
		file = fopen(path, "w");
		ck_assert_ptr_nonnull(file);
		fputs("no picture", file);
		fclose(file);
	}
}

/* ---- jobs ---- */

/* A job that spent its budget does not look at its messages before it needs one: what it finds in
 * its inbox until then must be withdrawn, for its slots go to others. */
START_TEST(a_failed_job_can_take_nothing)
{
	struct raw_open open = usual(rig_pictures("bad", 64, 1, 32));
	struct wire_in opened, failed;
	struct raw_rank rank;
	struct grant grant;
	int sock;

	damage(open.dataset, 0, 31);
	open.hand = 8;
	open.policy = PROTO_POLICY_SKIP;
	open.has_budget = true;
	rig_start("workers=1", "linger_s=0", NULL);
	sock = raw_open(&open, &opened);
	raw_attach(&opened, &rank);
	ck_assert_int_eq(raw_hear(sock, PROTO_FAILED, &failed), 0);
	ck_assert_uint_gt(atomic_load(&rank.inbox->d_posted), 0);
	ck_assert_int_eq(grant_take(&rank.rank, &grant), GRANT_E_NONE);
	wire_in_fini(&failed);
	wire_in_fini(&opened);
	raw_detach(&rank);
	close(sock);
	rig_end();
}
END_TEST

/* ---- our own processes ---- */

static void kill_our(const char *path)
{
	int pid = (int)rig_status(path);

	ck_assert_int_gt(pid, 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	for (unsigned i = 0; i < 500 && (int)rig_status(path) == pid; i++)
		rig_sleep_ms(5);
}

/* Deaths in quick succession have a pause after them. Who opens in the pause gets his stream. */
START_TEST(an_open_while_no_parent_lives)
{
	struct raw_open open = usual(rig_pictures("paused", 64, 1, 32));
	struct wire_in opened;
	int sock;

	rig_start("workers=1", "linger_s=0", NULL);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(rig_wait_status("node.parent_pid", 2, INT_MAX));
		kill_our("node.parent_pid");
	}
	ck_assert_int_eq((int)rig_status("node.parent_pid"), 0);
	sock = raw_open(&open, &opened);
	wire_in_fini(&opened);
	close(sock);
	rig_end();
}
END_TEST

START_TEST(an_open_while_no_reader_lives)
{
	struct raw_open open = usual(rig_pictures("unread", 64, 1, 32));
	struct wire_in opened;
	int sock;

	rig_start("workers=1", "linger_s=0", NULL);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(rig_wait_status("node.reader_pid", 2, INT_MAX));
		kill_our("node.reader_pid");
	}
	ck_assert_int_eq((int)rig_status("node.reader_pid"), 0);
	sock = raw_open(&open, &opened);
	wire_in_fini(&opened);
	close(sock);
	rig_end();
}
END_TEST

/* A program in front of ours that fails when the file "broken" is there. */
static void write_wrapper(const char *folder, const char *program)
{
	const char *libexec = getenv("ACCESS_LIBEXEC");
	char path[512], real[PATH_MAX];
	FILE *file;

	ck_assert_ptr_nonnull(libexec);
	ck_assert_ptr_nonnull(realpath(libexec, real));
	snprintf(path, sizeof(path), "%s/%s", folder, program);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "#!/bin/sh\n[ -e '%s/broken-%s' ] && exit 9\nexec '%s/%s' \"$@\"\n", folder,
		program, real, program);
	fclose(file);
	ck_assert_int_eq(chmod(path, 0755), 0);
}

static const char *wrap_programs(void)
{
	const char *folder = rig_path("wrapped");

	ck_assert(mkdir(folder, 0755) == 0 || errno == EEXIST);
	write_wrapper(folder, "access-reader");
	write_wrapper(folder, "access-worker");
	setenv("ACCESS_LIBEXEC", folder, 1);
	return folder;
}

static void break_program(const char *folder, const char *program)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/broken-%s", folder, program);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void expect_text(int sock, uint16_t type, const char *part)
{
	const char *text = "";
	struct wire_in in;

	ck_assert_int_eq(raw_hear(sock, type, &in), 0);
	ck_assert_uint_eq(in.type, type);
	wire_get_string(&in, PROTO_KEY_TEXT, &text);
	ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in: %s", part, text);
	wire_in_fini(&in);
}

/* Processes that die as soon as they are started: opens are refused with the reason, running jobs
 * are told, nobody waits for ever. */
static void hopeless(const char *program, const char *pid_path, const char *part)
{
	struct raw_open open = usual(rig_pictures("hopeless", 64, 1, 32));
	const char *folder = wrap_programs();
	struct wire_in opened;
	int running, asking;

	rig_start("workers=1", "linger_s=0", NULL);
	running = raw_open(&open, &opened);
	wire_in_fini(&opened);
	break_program(folder, program);
	kill_our(pid_path);
	asking = raw_ask(&open);
	expect_text(asking, PROTO_REFUSED, "");
	close(asking);
	expect_text(running, strcmp(program, "access-worker") == 0 ? PROTO_LOST : PROTO_FAILED, "");
	close(running);
	ck_assert(rig_wait_status(strcmp(program, "access-worker") == 0 ? "node.parent_restarts"
									: "node.reader_restarts",
				  6, 1e9));
	asking = raw_ask(&open);
	expect_text(asking, PROTO_REFUSED, part);
	close(asking);
	unlink(rig_path("wrapped/broken-%s", program));
	ck_assert(rig_wait_status(pid_path, 2, INT_MAX));
	rig_sleep_ms(100);
	running = raw_open(&open, &opened);
	wire_in_fini(&opened);
	close(running);
	rig_end();
}

START_TEST(a_reader_that_cannot_live)
{
	hopeless("access-reader", "node.reader_pid", "no reader: 6 in a row");
}
END_TEST

START_TEST(workers_that_cannot_live)
{
	hopeless("access-worker", "node.parent_pid", "no workers: 6 worker parents");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_failed_job_can_take_nothing);
	tcase_add_test(tcase, an_open_while_no_parent_lives);
	tcase_add_test(tcase, an_open_while_no_reader_lives);
	tcase_add_test(tcase, a_reader_that_cannot_live);
	tcase_add_test(tcase, workers_that_cannot_live);
}

int main(void)
{
	return rig_main("node", add);
}
