/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walls around the real thing: a job opens a stream of a private accessd and then tries to get
 * at the memory of others by way of our processes, as the same user. Mappings that a job has cannot
 * be made writable; accessd, its readers, the parent of the workers and the workers can be neither
 * read, nor written, nor traced, nor robbed of a descriptor.
 *
 * Who has CAP_SYS_PTRACE can do all that, and is outside of what we promise: as root the test gives
 * up its privileges before it starts the daemon. (The routes by the descriptor itself: tests/shmring/seal_test.c.)
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "libaccess/libaccess.h"
#include "tests/suite.h"

/* ---- the routes: each true if it worked ---- */

static int open_proc(pid_t pid, const char *name, int flags)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, flags | O_CLOEXEC);
}
static bool route_mem(pid_t pid)
{
	return open_proc(pid, "mem", O_RDWR) >= 0 || open_proc(pid, "mem", O_RDONLY) >= 0;
}
static bool route_fd(pid_t pid)
{
	char path[64];

	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof(path), "fd/%d", fd);
		if (open_proc(pid, path, O_RDONLY) >= 0 || open_proc(pid, path, O_RDWR) >= 0)
			return true;
	}
	return false;
}
static bool route_map_files(pid_t pid)
{
	int fd = open_proc(pid, "map_files", O_RDONLY | O_DIRECTORY);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	unsigned n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		closedir(folder);
	return n > 2; /* more than . and .. */
}
static bool route_maps(pid_t pid)
{
	char byte;

	return read(open_proc(pid, "maps", O_RDONLY), &byte, 1) == 1;
}
static bool route_environment(pid_t pid)
{
	char byte;

	return read(open_proc(pid, "environ", O_RDONLY), &byte, 1) == 1;
}
/* Not EPERM alone says "closed": the short-lived children of accessd may be gone, then it is ESRCH. */
static bool reached(ssize_t n)
{
	return n >= 0 || errno == EFAULT;
}
static bool route_vm_writev(pid_t pid)
{
	struct iovec local = {.iov_base = "x", .iov_len = 1};
	struct iovec remote = {.iov_base = &errno, .iov_len = 1};

	return reached(process_vm_writev(pid, &local, 1, &remote, 1, 0));
}
static bool route_vm_readv(pid_t pid)
{
	char byte;
	struct iovec local = {.iov_base = &byte, .iov_len = 1};
	struct iovec remote = {.iov_base = &errno, .iov_len = 1};

	return reached(process_vm_readv(pid, &local, 1, &remote, 1, 0));
}
static bool route_attach(pid_t pid)
{
	return ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0;
}
static bool route_seize(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
}
static bool route_steal(pid_t pid)
{
	int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);

	ck_assert(pid_fd >= 0 || errno == ESRCH);
	for (int fd = 0; pid_fd >= 0 && fd < 64; fd++)
		if (syscall(SYS_pidfd_getfd, pid_fd, fd, 0) >= 0)
			return true;
	if (pid_fd >= 0)
		close(pid_fd);
	return false;
}

static const struct {
	const char *name;
	bool (*try)(pid_t pid);
} routes[] = {
    {"mem", route_mem},
    {"fd", route_fd},
    {"map_files", route_map_files},
    {"maps", route_maps},
    {"environ", route_environment},
    {"process_vm_writev", route_vm_writev},
    {"process_vm_readv", route_vm_readv},
    {"PTRACE_ATTACH", route_attach},
    {"PTRACE_SEIZE", route_seize},
    {"pidfd_getfd", route_steal},
};

/* ---- the scene ---- */

static char runtime[] = "/tmp/oa-walls-XXXXXX";

/* All capabilities, as several open one of the routes, and the daemon shall not get them by exec. */
static void give_up_privileges(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{.effective = 0}};

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	ck_assert_int_eq(syscall(SYS_capset, &head, none), 0);
	prctl(PR_SET_DUMPABLE, 1); /* like a program that never had any */
}

/* Three files that look like pictures by their names: a listing looks at no more. */
static void make_dataset(char *path, size_t size)
{
	char name[256];

	snprintf(path, size, "%s/data", runtime);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	for (unsigned i = 0; i < 3; i++) {
		int fd;

		snprintf(name, sizeof(name), "%s/%u.jpg", path, i);
		fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(write(fd, "no picture", 10), 10);
		close(fd);
	}
}

static pid_t daemon_pid(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct ucred peer = {.pid = 0};
	socklen_t size = sizeof(peer);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/oneaccess/socket", runtime);
	ck_assert_int_eq(connect(sock, (const struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
	close(sock);
	return peer.pid;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "", *after;
	FILE *file;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (file && !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	after = strrchr(text, ')');
	if (after)
		sscanf(after, ") %*c %d", &parent);
	return parent;
}

static bool is_below(pid_t pid, pid_t ancestor)
{
	for (unsigned depth = 0; pid > 1 && depth < 8; depth++, pid = parent_of(pid))
		if (pid == ancestor)
			return true;
	return false;
}

static unsigned try_all(pid_t pid)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(routes); i++)
		ck_assert_msg(!routes[i].try(pid), "process %d can be had by %s", (int)pid,
			      routes[i].name);
	return 1;
}

/* accessd and all that it has started; how many. */
static unsigned try_family(pid_t daemon)
{
	DIR *proc = opendir("/proc");
	unsigned n = 0;

	ck_assert_ptr_nonnull(proc);
	for (const struct dirent *entry; (entry = readdir(proc));) {
		int pid = atoi(entry->d_name);

		if (pid > 1 && is_below(pid, daemon))
			n += try_all(pid);
	}
	closedir(proc);
	return n;
}

/* Each mapping of accessd's memory in this process but the outbox stays read-only. How many. */
static unsigned try_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		if (!strstr(line, "memfd:oneaccess-") || strstr(line, "oneaccess-outbox"))
			continue;
		ck_assert_int_eq(sscanf(line, "%lx-%lx r--s", &from, &to), 2);
		ck_assert_int_ne(mprotect((void *)from, to - from, PROT_READ | PROT_WRITE), 0);
		n++;
	}
	fclose(maps);
	return n;
}

/* A worker comes when it is there, which is after the stream was opened, maybe. */
static void await_worker(struct oa_client *client)
{
	static const char none[] = "\"workers_alive\":0";
	struct oa_error error = {.size = sizeof(error)};
	bool is_there = false;
	char *text;

	for (unsigned i = 0; i < PATIENCE_MS / 10 && !is_there; i++, usleep(10000)) {
		ck_assert_msg(oa_status(client, &text, &error) == 0, "%s", error.text);
		ck_assert_ptr_nonnull(strstr(text, "\"workers_alive\":"));
		is_there = !strstr(text, none);
		free(text);
	}
	ck_assert(is_there);
}

static void clean_up(const char *dataset)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", dataset, runtime);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(our_processes_are_closed)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = {.size = sizeof(options),
				     .pipeline = "imagenet-eval-u8",
				     .batch = 1,
				     .bad = OA_BAD_SKIP,
				     .bad_budget = 1000};
	struct oa_client *client;
	struct oa_stream *stream;
	char dataset[128];
	pid_t daemon;

	give_up_privileges();
	ck_assert_ptr_nonnull(mkdtemp(runtime));
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	unsetenv("ACCESS_SOCKET");
	make_dataset(dataset, sizeof(dataset));
	options.dataset = dataset;
	ck_assert_msg(oa_connect(NULL, &client, &error) == 0, "%s", error.text);
	ck_assert_msg(oa_open(client, &options, &stream, &error) == 0, "%s", error.text);
	daemon = daemon_pid();
	await_worker(client);
	ck_assert_uint_eq(try_mappings(), 3);
	ck_assert_uint_ge(try_family(daemon), 4); /* accessd, reader, parent, worker */
	ck_assert_int_eq(kill(daemon, 0), 0);     /* they live */
	oa_close(stream);
	oa_disconnect(client);
	kill(daemon, SIGTERM);
	for (unsigned i = 0; i < PATIENCE_MS / 10 && kill(daemon, 0) == 0; i++)
		usleep(10000);
	clean_up(dataset);
}
END_TEST

/* The routes are real: of an ordinary process of ours they work. */
START_TEST(ordinary_processes_are_open)
{
	unsigned worked = 0;
	pid_t pid;

	give_up_privileges();
	pid = fork();

	if (pid == 0) {
		alarm(4 * PATIENCE_S);
		for (;;)
			pause();
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(routes); i++)
		worked += routes[i].try(pid);
	kill(pid, SIGKILL);
	ck_assert_uint_ge(worked, 6); /* Yama and containers may forbid some */
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, our_processes_are_closed);
	tcase_add_test(tcase, ordinary_processes_are_open);
}

int main(void)
{
	if (!getenv("ACCESS_DAEMON")) {
		printf("ACCESS_DAEMON names no accessd: not tested\n");
		return 77;
	}
	return suite_run("walls", add);
}
