/* SPDX-License-Identifier: Apache-2.0 */

/*
 * accessd under a service manager that this test is: what it is told, when it is told nothing, which socket accessd takes.
 * A real systemd: tests/scenarios/27-systemd.sh.
 */

#include "daemon/service.h"
#include "tests/patience.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64], heard[4096];
static struct sockaddr_un address;
static int manager = -1;
static pid_t accessd;

static int listen_to(const char *name)
{
	socklen_t size;

	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	size =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + (name[0] != '@'));
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, size), 0);
	return setenv("NOTIFY_SOCKET", name, 1);
}

static void setup(void)
{
	char name[128];

	strcpy(root, "/tmp/access-service-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(name, sizeof(name), "%s/manager", root);
	ck_assert_int_eq(listen_to(name), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	if (accessd > 0) {
		kill(accessd, SIGKILL);
		waitpid(accessd, NULL, 0);
	}
	base_close(&manager);
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The next datagram is in `heard`; false: none in that time. */
static bool hears(int timeout_ms)
{
	struct pollfd pollfd = {.fd = manager, .events = POLLIN};
	ssize_t size;

	if (poll(&pollfd, 1, timeout_ms) != 1)
		return false;
	size = recv(manager, heard, sizeof(heard) - 1, 0);
	ck_assert_int_gt(size, 0);
	heard[size] = '\0';
	return true;
}

static void hears_line(const char *line)
{
	do
		ck_assert_msg(hears(PATIENCE_MS), "accessd never said %s", line);
	while (!strstr(heard, line));
}

static void config(const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/conf", root);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

/* given_fd: becomes descriptor 3 of it, opened for it; -1: none. */
static void start(int given_fd)
{
	char node[96], cache[96], conf[96], pid[32];

	snprintf(node, sizeof(node), "%s/node", root);
	snprintf(cache, sizeof(cache), "cache_dir=%s/cache", root);
	snprintf(conf, sizeof(conf), "%s/conf", root);
	accessd = fork();
	ck_assert_int_ge(accessd, 0);
	if (accessd > 0)
		return;
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	if (given_fd >= 0) {
		dup2(given_fd, 3);
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "1", 1);
	}
	execl(getenv("ACCESS_DAEMON"), "accessd", "--private", "--dir", node, "--config", conf,
	      "--set", cache, NULL);
	_exit(127);
}

static bool can_connect(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool can;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/node/socket", root);
	can = connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
	close(fd);
	return can;
}

static void ends_well(void)
{
	int status;

	kill(accessd, SIGTERM);
	hears_line("STOPPING=1\n");
	ck_assert_int_eq(waitpid(accessd, &status, 0), accessd);
	accessd = 0;
	ck_assert_int_eq(status, 0);
}

START_TEST(ready_when_it_serves)
{
	config("");
	start(-1);
	hears_line("READY=1\n");
	ck_assert(can_connect());
	ck_assert_ptr_nonnull(strstr(heard, "STATUS=Serves: jobs 0"));
	ends_well();
}
END_TEST

/* Silence has no end that could be waited for: a beat would have come ten times. */
START_TEST(beats_as_long_as_it_turns)
{
	config("");
	setenv("WATCHDOG_USEC", "300000", 1);
	start(-1);
	hears_line("READY=1\n");
	for (int i = 0; i < 5; i++)
		hears_line("WATCHDOG=1\n");
	kill(accessd, SIGSTOP);
	waitpid(accessd, NULL, WUNTRACED);
	while (hears(0))
		continue;
	ck_assert_msg(!hears(1000), "one that is stopped says %s", heard);
	kill(accessd, SIGKILL); /* as the manager does now */
	waitpid(accessd, NULL, 0);
	start(-1);
	hears_line("READY=1\n");
	hears_line("WATCHDOG=1\n");
	ends_well();
}
END_TEST

START_TEST(a_reload_says_what_it_cannot)
{
	config("linger_s = 4\nworkers = 1\n");
	start(-1);
	hears_line("READY=1\n");
	config("linger_s = 5\nworkers = 2\nreaders = 3\n");
	kill(accessd, SIGHUP);
	hears_line("RELOADING=1\nMONOTONIC_USEC=");
	hears_line("READY=1\n");
	ck_assert_ptr_nonnull(strstr(heard, "needs a restart: workers, readers"));
	config("linger_s = no\n");
	kill(accessd, SIGHUP);
	hears_line("RELOADING=1\n");
	hears_line("READY=1\n");
	ck_assert_ptr_nonnull(strstr(heard, "conf:1: parameter linger_s: \"no\" is not"));
	config("linger_s = 6\nworkers = 1\n");
	kill(accessd, SIGHUP);
	hears_line("RELOADING=1\n");
	hears_line("READY=1\n");
	ck_assert_ptr_null(strstr(heard, "; needs"));
	ends_well();
}
END_TEST

/* The next accessd finds who came when there was none. */
START_TEST(a_socket_outlives_it)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	config("");
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/node", root);
	ck_assert_int_eq(mkdir(at.sun_path, 0700), 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/node/socket", root);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	for (int i = 0; i < 2; i++) {
		start(fd);
		hears_line("READY=1\n");
		ends_well();
		ck_assert_msg(can_connect(), "the socket went with accessd");
	}
	close(fd);
}
END_TEST

START_TEST(a_socket_of_another_kind)
{
	int status, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	config("");
	start(fd);
	ck_assert_int_eq(waitpid(accessd, &status, 0), accessd);
	accessd = 0;
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	close(fd);
}
END_TEST

/* ---- without a process ---- */

START_TEST(abstract_names)
{
	struct notify notify;

	base_close(&manager);
	listen_to("@access-service-test");
	setenv("WATCHDOG_USEC", "1000", 1);
	notify_open(&notify, true);
	ck_assert_uint_eq(notify.watchdog_ns, 1000000);
	ck_assert(notify_say(&notify, "X=1\n"));
	hears_line("X=1\n");
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
	ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
	notify_close(&notify);
	ck_assert(notify_say(&notify, "X=2\n"));
	ck_assert(!hears(0));
}
END_TEST

static const char *const strange[] = {"", "@", "/", "manager", "vsock:2:1", "unix:/run/x"};

START_TEST(strange_addresses)
{
	struct notify notify;

	setenv("NOTIFY_SOCKET", strange[_i], 1);
	setenv("WATCHDOG_USEC", "1000", 1);
	notify_open(&notify, true);
	ck_assert_int_eq(notify.fd, 0);
	ck_assert_uint_eq(notify.watchdog_ns, 0);
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
}
END_TEST

static const struct {
	const char *pid, *usec;
} not_ours[] = {{"1", "1000"},
		{"x", "1000"},
		{"", "1000"},
		{NULL, "-1"},
		{NULL, "1000 s"},
		{NULL, ""},
		{NULL, "18446744073709551615"}};

START_TEST(watchdogs_of_others)
{
	struct notify notify;

	if (not_ours[_i].pid)
		setenv("WATCHDOG_PID", not_ours[_i].pid, 1);
	setenv("WATCHDOG_USEC", not_ours[_i].usec, 1);
	notify_open(&notify, true);
	ck_assert_int_gt(notify.fd, 0);
	ck_assert_uint_eq(notify.watchdog_ns, 0);
	notify_close(&notify);
}
END_TEST

/* What a job's own manager said is nothing to an accessd that the job starts. */
START_TEST(the_job_is_the_service)
{
	struct notify notify;
	struct diag diag = {""};
	char pid[32];

	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	notify_open(&notify, false);
	ck_assert_int_eq(notify.fd, 0);
	ck_assert_int_eq(notify_take_socket(false, &diag), -1);
	ck_assert_str_eq(diag.text, "");
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
	ck_assert_ptr_null(getenv("LISTEN_FDS"));
}
END_TEST

START_TEST(two_sockets)
{
	struct diag diag = {""};
	char pid[32];

	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "2", 1);
	ck_assert_int_eq(notify_take_socket(true, &diag), -1);
	ck_assert_ptr_nonnull(strstr(diag.text, "opened 2 sockets"));
}
END_TEST

START_TEST(children)
{
	uint64_t stopped_ns = 0;

	ck_assert_int_eq(service_judge(&stopped_ns, 'T', 100, 50), SERVICE_CHILD_STOPPED);
	ck_assert_int_eq(service_judge(&stopped_ns, 'T', 149, 50), SERVICE_CHILD_STOPPED);
	ck_assert_int_eq(service_judge(&stopped_ns, 'S', 150, 50), SERVICE_CHILD_WELL);
	ck_assert_int_eq(service_judge(&stopped_ns, 'T', 160, 50), SERVICE_CHILD_STOPPED);
	ck_assert_int_eq(service_judge(&stopped_ns, 'T', 210, 50), SERVICE_CHILD_STUCK);
	ck_assert_int_eq(service_judge(&stopped_ns, 't', 210, 50), SERVICE_CHILD_WELL);
	ck_assert_int_eq(service_judge(&stopped_ns, 'D', 210, 50), SERVICE_CHILD_WELL);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, ready_when_it_serves);
	tcase_add_test(tcase, beats_as_long_as_it_turns);
	tcase_add_test(tcase, a_reload_says_what_it_cannot);
	tcase_add_test(tcase, a_socket_outlives_it);
	tcase_add_test(tcase, a_socket_of_another_kind);
	tcase_add_test(tcase, abstract_names);
	tcase_add_loop_test(tcase, strange_addresses, 0, (int)BASE_ARRAY_LEN(strange));
	tcase_add_loop_test(tcase, watchdogs_of_others, 0, (int)BASE_ARRAY_LEN(not_ours));
	tcase_add_test(tcase, the_job_is_the_service);
	tcase_add_test(tcase, two_sockets);
	tcase_add_test(tcase, children);
}

int main(void)
{
	return suite_run("service", add);
}
