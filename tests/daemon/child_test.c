/* SPDX-License-Identifier: Apache-2.0 */

/* Children of accessd: where programs are looked for, what a start, a failed exec and an end look
 * like from our side. */

#include "daemon/loop.h"
#include "daemon/proc/child.h"
#include "daemon/proc/reaper.h"
#include "tests/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "access-program"

static char shell[] = "/bin/sh";

static struct child start_at(enum cpu_priority priority, const char *script)
{
	char *argv[] = {shell, (char *)"-c", (char *)script, NULL};
	struct child child;

	ck_assert_int_eq(child_start(shell, argv, priority, &child), 0);
	ck_assert_int_gt(child.pid, 0);
	ck_assert_int_ge(child.sock, 0);
	return child;
}

static struct child start(const char *script)
{
	return start_at(CPU_PRIORITY_NORMAL, script);
}

static void await_readable(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	ck_assert_int_eq(poll(&pollfd, 1, PATIENCE_MS), 1);
}

static const struct {
	enum cpu_priority priority;
	int policy, nice; /* nice: added */
} priorities[] = {
    {CPU_PRIORITY_NORMAL, SCHED_OTHER, 0},
    {CPU_PRIORITY_LOW, SCHED_BATCH, 10},
    {CPU_PRIORITY_IDLE, SCHED_IDLE, 0},
};

/* Of a child's child, as workers are: nice and policy are fields 19 and 41, of a name without blanks. */
START_TEST(priorities_are_inherited)
{
	struct child child = start_at(priorities[_i].priority, "cat /proc/self/stat >&3");
	const int own = getpriority(PRIO_PROCESS, 0);
	char stat[1024], *at = stat;
	int nice = -99, policy = -99;
	ssize_t n;

	await_readable(child.sock);
	n = recv(child.sock, stat, sizeof(stat) - 1, 0);
	ck_assert_int_gt(n, 0);
	stat[n] = '\0';
	for (int field = 1; field <= 41 && at; field++, at = strchr(at, ' ')) {
		at += *at == ' ';
		if (field == 19)
			nice = atoi(at);
		if (field == 41)
			policy = atoi(at);
	}
	ck_assert_int_eq(policy, priorities[_i].policy);
	ck_assert_int_eq(nice, BASE_MIN(own + priorities[_i].nice, 19));
	child_end(&child);
}
END_TEST

START_TEST(descriptor_3_is_the_control_socket)
{
	struct child child =
	    start("line=$(dd bs=64 count=1 <&3 2>/dev/null); echo \"$line and back\" >&3");
	char answer[64];
	ssize_t n;

	ck_assert_int_eq(fcntl(child.sock, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	ck_assert_int_eq(fcntl(child.sock, F_GETFD), FD_CLOEXEC);
	ck_assert_int_lt(recv(child.sock, answer, sizeof(answer), 0), 0);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(send(child.sock, "there\n", 6, 0), 6);
	await_readable(child.sock);
	n = recv(child.sock, answer, sizeof(answer) - 1, 0);
	ck_assert_int_eq(n, 15);
	ck_assert_int_eq(memcmp(answer, "there and back\n", 15), 0);
	child_end(&child);
	ck_assert_int_eq(child.pid, 0);
	ck_assert_int_eq(child.sock, -1);
}
END_TEST

START_TEST(no_signal_stays_blocked)
{
	struct child child;
	sigset_t all;
	char answer[256];
	ssize_t n;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	child = start("exec sed -n 's/^SigBlk:[[:space:]]*//p' /proc/self/status >&3");
	await_readable(child.sock);
	n = recv(child.sock, answer, sizeof(answer) - 1, 0);
	ck_assert_int_gt(n, 0);
	answer[n] = '\0';
	ck_assert_str_eq(answer, "0000000000000000\n");
	child_end(&child);
}
END_TEST

START_TEST(a_program_that_is_not_there)
{
	static char missing[] = "/nonexistent/program";
	char *argv[] = {missing, NULL};
	struct child child;
	char byte;
	int status;

	ck_assert_int_eq(child_start(missing, argv, CPU_PRIORITY_NORMAL, &child), 0);
	await_readable(child.sock); /* hang-up */
	ck_assert_int_eq(recv(child.sock, &byte, 1, 0), 0);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 127);
	child.pid = 0; /* reaped, as accessd does on SIGCHLD */
	child_end(&child);
	ck_assert_int_eq(child.sock, -1);
}
END_TEST

START_TEST(an_end_is_an_end)
{
	struct child child = start("trap '' TERM INT; exec sleep 600");
	pid_t pid = child.pid;

	child_end(&child);
	ck_assert_int_lt(kill(pid, 0), 0);
	ck_assert_int_eq(errno, ESRCH); /* killed and reaped */
	child_end(&child);              /* twice is fine */
}
END_TEST

START_TEST(hanging_up_is_seen_by_the_child)
{
	struct child child = start("read line <&3; exit 5");
	int status;

	close(child.sock);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 5);
}
END_TEST

/* accessd's wait() for what it forked must not reap it. */
START_TEST(a_child_is_a_group_of_its_own)
{
	struct child child = start("echo up >&3; exec sleep 600");

	await_readable(child.sock);
	ck_assert_int_eq(getpgid(child.pid), child.pid);
	ck_assert_int_eq(waitpid(0, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	child_end(&child);
}
END_TEST

static const struct end {
	const char *script;
	int status;
} ends[] = {{"exit 5", W_EXITCODE(5, 0)},
	    {"exit 0", W_EXITCODE(0, 0)},
	    {"ulimit -c 0; kill -9 $$", W_EXITCODE(0, SIGKILL)}};

static struct loop *loop;
static struct reaper reaper;

static void reaper_up(void)
{
	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(reaper_begin(&reaper, loop), 0);
}

static void reaper_down(void)
{
	reaper_end(&reaper);
	reaper_end(&reaper); /* twice is fine */
	loop_free(loop);
}

static void await_reaped(pid_t pid)
{
	while (kill(pid, 0) == 0) {
		ck_assert_int_eq(loop_turn(loop), 0);
		usleep(1000);
	}
	ck_assert_int_eq(errno, ESRCH);
}

/* Who looks whether it has ended does not reap it; the reaper does. */
START_TEST(an_end_is_looked_at_and_reaped)
{
	struct child child = start(ends[_i].script);
	uint64_t cpu_ns = 0;
	int status = -1;

	reaper_up();
	while (!child_has_ended(child.pid, &status, &cpu_ns))
		usleep(1000);
	ck_assert_int_eq(status, ends[_i].status);
	ck_assert_int_eq(kill(child.pid, 0), 0); /* not reaped */
	ck_assert_uint_gt(cpu_ns, 0);
	reaper_take(&reaper, child.pid);
	await_reaped(child.pid);
	ck_assert(!child_has_ended(child.pid, &status, &cpu_ns));
	reaper_take(&reaper, 0); /* is fine */
	reaper_down();
	child.pid = 0;
	child_end(&child);
}
END_TEST

START_TEST(who_runs_has_not_ended)
{
	struct child child = start("exec sleep 600");
	uint64_t cpu_ns;
	int status;
	pid_t pid = child.pid;

	reaper_up();
	ck_assert(!child_has_ended(pid, &status, &cpu_ns));
	ck_assert(!child_has_ended(0, &status, &cpu_ns));
	child_abandon(&child, &reaper); /* killed, and reaped by nobody here */
	ck_assert_int_eq(child.pid, 0);
	await_reaped(pid);
	reaper_down();
}
END_TEST

START_TEST(the_reaper_waits_for_nobody_who_runs)
{
	struct child running = start("exec sleep 600"), ended = start("exit 0");

	reaper_up();
	reaper_take(&reaper, running.pid);
	reaper_take(&reaper, ended.pid);
	await_reaped(ended.pid);
	reaper_down();
	ck_assert_int_eq(kill(running.pid, 0), 0);
	child_end(&running);
	ended.pid = 0;
	child_end(&ended);
}
END_TEST

static unsigned threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned n = 0;

	ck_assert_ptr_nonnull(tasks);
	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

/* In a child of a fork(), a lock that another thread held stays locked: the allocator's, while a thread begins. */
START_TEST(accessd_forks_beside_the_reaper)
{
	unsigned n;

	reaper_up();
	n = threads();
	for (unsigned i = 0; i < 100; i++) {
		struct child child = start("exit 0");
		pid_t pid;

		reaper_take(&reaper, child.pid);
		loop_turn(loop);
		ck_assert_uint_eq(threads(), n);
		pid = fork();
		if (pid == 0) {
			free(malloc(1 << (i % 20)));
			_exit(0);
		}
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		await_reaped(child.pid);
		base_close(&child.sock);
	}
	reaper_down();
}
END_TEST

/* A child that works beside accessd, for as long as it takes: what accessd closes is closed. */
START_TEST(a_settled_child_keeps_one_descriptor)
{
	int other[2], kept[2], early[2];
	pid_t us = getpid(), pid;
	char byte;

	ck_assert_int_eq(pipe(early), 0);
	ck_assert_int_eq(pipe(kept), 0);
	ck_assert_int_eq(pipe(other), 0);
	pid = fork();
	if (pid == 0) {
		child_settle(us, kept[1]);
		if (write(kept[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(kept[0], &byte, 1), 1);
	close(other[1]);
	close(early[1]);
	ck_assert_int_eq(fcntl(other[0], F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(fcntl(early[0], F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(read(other[0], &byte, 1), 0); /* hung up, though the child lives */
	ck_assert_int_eq(read(early[0], &byte, 1), 0);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 2; i++) {
		close(kept[i]);
		close(i ? early[0] : other[0]);
	}
}
END_TEST

/* Nobody is left to do it for. */
START_TEST(an_orphan_does_not_settle)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		child_settle(getppid() + 1, 2);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(no_descriptors_no_child)
{
	struct child child = {.pid = 7, .sock = 7};
	char *argv[] = {shell, NULL};
	int fds[4096], n = 0;

	while (n < 4096 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0 && fds[n] < 1020)
		n++;
	for (; n < 4096 && (fds[n] = dup(0)) >= 0;)
		n++;
	if (n == 4096)
		return; /* the limit is larger than we care to fill */
	ck_assert_int_eq(child_start(shell, argv, CPU_PRIORITY_NORMAL, &child), -EMFILE);
	ck_assert_int_eq(child.pid, 7); /* untouched */
	while (n > 0)
		close(fds[--n]);
}
END_TEST

START_TEST(programs_are_found)
{
	char path[PATH_MAX], folder[] = "/tmp/access-child-XXXXXX", program[64];
	struct diag diag = {""};
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/access-nothing", folder);
	fd = open(program, O_CREAT | O_WRONLY, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
	setenv("ACCESS_LIBEXEC", folder, 1);
	ck_assert_int_eq(child_find("access-nothing", true, path, sizeof(path), &diag), -ENOENT);
	ck_assert_ptr_nonnull(
	    strstr(diag.text, "cannot find the program access-nothing: looked in"));
	ck_assert_ptr_nonnull(strstr(diag.text, folder));
	ck_assert_ptr_nonnull(strstr(diag.text, LIBEXECDIR));
	ck_assert_int_eq(chmod(program, 0755), 0);
	ck_assert_int_eq(child_find("access-nothing", true, path, sizeof(path), &diag), 0);
	ck_assert_str_eq(path, program);
	/* The system's accessd believes no variable. */
	ck_assert_int_eq(child_find("access-nothing", false, path, sizeof(path), &diag), -ENOENT);
	ck_assert_ptr_null(strstr(diag.text, folder));
	unlink(program);
	rmdir(folder);
}
END_TEST

static void copy_to(const char *from, const char *to)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", from, to, to, to);
	ck_assert_int_eq(system(command), 0);
}

static int status_of(char *path)
{
	char *argv[] = {path, NULL};
	struct child child;
	int status;

	ck_assert_int_eq(child_start(path, argv, CPU_PRIORITY_NORMAL, &child), 0);
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert(WIFEXITED(status));
	child.pid = 0;
	child_end(&child);
	return WEXITSTATUS(status);
}

/* A sandbox may not let us. */
static bool descriptors_are_executed(void)
{
	char *const argv[] = {program_invocation_name, NULL};

	execveat(-1, "", argv, environ, AT_EMPTY_PATH);
	return errno == EBADF;
}

/* As a package's upgrade and its removal have it. The program is a copy of this one, which knows it by its name. */
START_TEST(a_program_stays_what_was_found)
{
	char path[PATH_MAX], folder[] = "/tmp/access-child-XXXXXX", program[64], own[32];
	struct diag diag = {""};

	if (!descriptors_are_executed())
		return;
	snprintf(own, sizeof(own), "/proc/%d/exe", (int)getpid());
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/" PROGRAM, folder);
	setenv("ACCESS_LIBEXEC", folder, 1);
	copy_to(own, program);
	ck_assert_int_eq(child_find(PROGRAM, true, path, sizeof(path), &diag), 0);
	copy_to("/dev/null", program);
	ck_assert_int_eq(child_find(PROGRAM, true, path, sizeof(path), &diag), 0);
	ck_assert_int_eq(status_of(path), 0);
	unlink(program);
	ck_assert_int_eq(child_find(PROGRAM, true, path, sizeof(path), &diag), 0);
	ck_assert_int_eq(status_of(path), 0);
	rmdir(folder);
}
END_TEST

START_TEST(bad_luck_costs_pauses_and_ends)
{
	struct child_luck luck = {0};
	uint64_t now_ns = 1000;

	for (unsigned i = 1; i <= 2 * CHILD_HOPELESS; i++) {
		child_luck_start(&luck, now_ns);
		now_ns += CHILD_QUICK_NS / 2;
		ck_assert_uint_eq(child_luck_failure(&luck, now_ns),
				  i > CHILD_PATIENCE ? CHILD_PAUSE_NS : 0);
		ck_assert_int_eq(child_luck_is_hopeless(&luck), i >= CHILD_HOPELESS);
	}
	child_luck_start(&luck, now_ns);
	now_ns += CHILD_QUICK_NS; /* one that lived */
	ck_assert_uint_eq(child_luck_failure(&luck, now_ns), 0);
	ck_assert(!child_luck_is_hopeless(&luck));
}
END_TEST

START_TEST(ends_are_told_in_words)
{
	char text[96], small[8];

	ck_assert_str_eq(child_describe_end(W_EXITCODE(9, 0), text, sizeof(text)),
			 "exited with status 9");
	child_describe_end(W_EXITCODE(0, SIGKILL), text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "was killed by signal 9 ("));
	ck_assert_uint_eq(strlen(child_describe_end(SIGKILL, small, sizeof(small))), 7);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, descriptor_3_is_the_control_socket);
	tcase_add_loop_test(tcase, priorities_are_inherited, 0, BASE_ARRAY_LEN(priorities));
	tcase_add_test(tcase, no_signal_stays_blocked);
	tcase_add_test(tcase, a_program_that_is_not_there);
	tcase_add_test(tcase, an_end_is_an_end);
	tcase_add_test(tcase, hanging_up_is_seen_by_the_child);
	tcase_add_test(tcase, a_child_is_a_group_of_its_own);
	tcase_add_loop_test(tcase, an_end_is_looked_at_and_reaped, 0, BASE_ARRAY_LEN(ends));
	tcase_add_test(tcase, who_runs_has_not_ended);
	tcase_add_test(tcase, the_reaper_waits_for_nobody_who_runs);
	tcase_add_test(tcase, accessd_forks_beside_the_reaper);
	tcase_add_test(tcase, a_settled_child_keeps_one_descriptor);
	tcase_add_test(tcase, an_orphan_does_not_settle);
	tcase_add_test(tcase, no_descriptors_no_child);
	tcase_add_test(tcase, programs_are_found);
	tcase_add_test(tcase, a_program_stays_what_was_found);
	tcase_add_test(tcase, bad_luck_costs_pauses_and_ends);
	tcase_add_test(tcase, ends_are_told_in_words);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');

	if (argc == 1 && name && strcmp(name + 1, PROGRAM) == 0)
		return 0; /* a_program_stays_what_was_found */
	return suite_run("child", add);
}
