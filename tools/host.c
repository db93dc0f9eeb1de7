/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a private accessd: found as $ACCESS_DAEMON, else beside this program (a build tree
 * has it in ../daemon, an installed one in ../sbin), else where it was configured to be. It runs in
 * the foreground as a child, and dies with us (PDEATHSIG), so that a killed benchmark leaves no
 * daemon behind. It is ready when its socket accepts a connection.
 */

#include "tools/host.h"

#include "base/library.h"
#include "base/wire.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST_MAX_SETTINGS 300
#define HOST_START_MS 60000
#define HOST_END_MS 60000

static void host_pause_ms(unsigned ms)
{
	struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&pause, NULL);
}

/* Writes the path of accessd to ret. */
static void host_find(char *ret, size_t size)
{
	static const char *const beside[] = {"accessd", "../daemon/accessd", "../../daemon/accessd",
					     "../sbin/accessd"};
	const char *named = getenv("ACCESS_DAEMON");
	char self[PATH_MAX];

	if (named && *named) {
		snprintf(ret, size, "%s", named);
		return;
	}
	library_own_folder(self);
	for (size_t i = 0; *self && i < BASE_ARRAY_LEN(beside); i++) {
		int used = snprintf(ret, size, "%s/%s", self, beside[i]);

		if (used > 0 && (size_t)used < size && access(ret, X_OK) == 0)
			return;
	}
	snprintf(ret, size, "%s/accessd", SBINDIR);
}

/* In the child: becomes accessd, or writes errno to the pipe. */
_Noreturn static void host_exec(const char *program, const struct host *host,
				const char *const *settings, unsigned n, int parent, int errors)
{
	char cache[sizeof(host->dir) + 16];
	const char *argv[2 * HOST_MAX_SETTINGS + 12] = {
	    program,   "--private", "--config", "/dev/null", "--dir",
	    host->dir, "--set",     cache,      "--set",     "cache_size=0"};
	unsigned argc = 10;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(cache, sizeof(cache), "cache_dir=%s", host->dir);
	for (unsigned i = 0; i < n; i++) {
		argv[argc++] = "--set";
		argv[argc++] = settings[i];
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0); /* the terminal's ^C is for the benchmark, which ends accessd itself */
	if (getppid() == parent && null >= 0) {
		dup2(null, STDIN_FILENO);
		execv(program, (char *const *)argv);
	}
	if (write(errors, &errno, sizeof(errno)) < 0)
		_exit(126);
	_exit(127);
}

static bool host_accepts(const char *path)
{
	_cleanup_close_ int sock = wire_connect(path);

	return sock >= 0;
}

bool host_is_alive(struct host *host)
{
	if (host->pid > 0 && waitpid(host->pid, NULL, WNOHANG) == host->pid)
		host->pid = 0;
	return host->pid > 0;
}

static int host_wait_ready(struct host *host, struct diag *diag)
{
	uint64_t end = base_now_ns() + HOST_START_MS * UINT64_C(1000000);

	while (!host_accepts(host->socket)) {
		if (!host_is_alive(host))
			return diag_fail(
			    diag, HOST_E_FAILED,
			    "accessd ended before it was ready; its messages are above");
		if (base_now_ns() > end)
			return diag_fail(diag, HOST_E_FAILED,
					 "accessd was not ready within %d s: nothing answers at %s",
					 HOST_START_MS / 1000, host->socket);
		host_pause_ms(10);
	}
	return 0;
}

static int host_make_dir(struct host *host, struct diag *diag)
{
	const char *parent = getenv("TMPDIR");

	if (!parent || !*parent || strlen(parent) > 64)
		parent = "/tmp"; /* also when the socket's path would not fit */
	snprintf(host->dir, sizeof(host->dir), "%s/access-bench-XXXXXX", parent);
	if (!mkdtemp(host->dir)) {
		diag_set(
		    diag,
		    "cannot make a folder in %s: %s; set TMPDIR to a folder that can be written",
		    parent, strerror(errno));
		host->dir[0] = '\0';
		return HOST_E_FAILED;
	}
	snprintf(host->socket, sizeof(host->socket), "%s/socket", host->dir);
	return 0;
}

static int host_spawn(struct host *host, const char *const *settings, unsigned n, struct diag *diag)
{
	char program[PATH_MAX];
	int errors[2], error = 0, parent = getpid();
	ssize_t got;

	host_find(program, sizeof(program));
	if (pipe2(errors, O_CLOEXEC) < 0)
		return diag_fail(diag, HOST_E_FAILED, "cannot make a pipe: %s", strerror(errno));
	host->pid = fork();
	if (host->pid == 0)
		host_exec(program, host, settings, n, parent, errors[1]);
	error = host->pid < 0 ? errno : 0;
	close(errors[1]);
	got = error ? 0
		    : read(errors[0], &error, sizeof(error)); /* ends when it has become accessd */
	close(errors[0]);
	if (host->pid > 0 && got <= 0)
		return 0;
	if (host->pid > 0)
		waitpid(host->pid, NULL, 0);
	host->pid = 0;
	return diag_fail(diag, HOST_E_FAILED,
			 "cannot start %s: %s; ACCESS_DAEMON names another accessd", program,
			 strerror(error));
}

int host_start(const char *const *settings, unsigned n, struct host *ret, struct diag *diag)
{
	int r;

	*ret = (struct host){.pid = 0};
	if (n > HOST_MAX_SETTINGS)
		return diag_fail(diag, HOST_E_FAILED, "%u settings, more than %d", n,
				 HOST_MAX_SETTINGS);
	r = host_make_dir(ret, diag);
	r = r ? r : host_spawn(ret, settings, n, diag);
	r = r ? r : host_wait_ready(ret, diag);
	if (r)
		host_end(ret);
	return r;
}

static int host_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void host_end(struct host *host)
{
	uint64_t end = base_now_ns() + HOST_END_MS * UINT64_C(1000000);

	if (host->pid > 0)
		kill(host->pid, SIGTERM);
	while (host_is_alive(host)) {
		if (base_now_ns() > end)
			kill(host->pid, SIGKILL);
		host_pause_ms(5);
	}
	if (host->dir[0])
		nftw(host->dir, host_remove, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	host->dir[0] = '\0';
}
