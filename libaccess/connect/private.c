/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The private daemon. Where no system accessd runs, the first job of a user starts one, and all
 * other jobs of that user use it. All of them look in one folder that is theirs alone; `socket` is
 * the daemon's, `lock` is the election's:
 *
 *   a client that finds nobody   takes `lock`, looks again, starts accessd, waits till it answers
 *   an idle accessd              takes `lock`, removes its socket, exits
 *
 * so nobody starts a second one, and nobody is left with a socket that is just being removed: it
 * gets a refusal, takes the lock and finds out. The lock is flock() on an open file: it dies with
 * us.
 *
 * The child belongs to a process whose signal handling is not ours. No handler is set; the child is
 * waited for by its own pid, told by a pidfd; if the program reaps all children itself or ignores
 * SIGCHLD, we take the end for a success and see by connecting. The child gets default signals, no
 * descriptor of ours, a session of its own; its stderr is a pipe, so that its reason to fail can be
 * handed to the caller in its own words. Nothing here blocks.
 */

#include "libaccess/connect/private.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "libaccess/error.h"

#define PRIVATE_RETRY_NS UINT64_C(20000000)

extern char **environ;

/* ---- the folder ---- */

static int private_check_folder(const char *folder, struct diag *diag)
{
	struct stat status;
	_cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENOENT))
		return error_of_errno(diag, -errno, folder);
	if (fd < 0)
		return diag_fail(diag, OA_E_PERMISSION,
				 "%s cannot be used for a private accessd (%s): it must be a "
				 "folder, not a link; remove it or set XDG_RUNTIME_DIR",
				 folder, strerrordesc_np(errno));
	if (fstat(fd, &status) < 0)
		return error_of_errno(diag, -errno, folder);
	if (status.st_uid != geteuid() || (status.st_mode & 077))
		return diag_fail(diag, OA_E_PERMISSION,
				 "%s must belong to uid %u alone (it has uid %u, mode %04o): "
				 "remove it or set XDG_RUNTIME_DIR",
				 folder, (unsigned)geteuid(), (unsigned)status.st_uid,
				 (unsigned)status.st_mode & 07777);
	return 0;
}

int private_folder(char *ret, size_t size, struct diag *diag)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	int length;

	if (runtime && *runtime == '/')
		length = snprintf(ret, size, "%s/oneaccess", runtime);
	else
		length = snprintf(ret, size, "/tmp/oneaccess-%u", (unsigned)geteuid());
	if (length < 0 || (size_t)length >= size)
		return diag_fail(
		    diag, OA_E_INVALID,
		    "XDG_RUNTIME_DIR is too long for a socket below it (at most %zu bytes)", size);
	return 0;
}

int private_make_folder(const char *folder, struct diag *diag)
{
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return diag_fail(diag, OA_E_PERMISSION,
				 "cannot make the folder %s for a private accessd (%s): set "
				 "XDG_RUNTIME_DIR to a folder of yours",
				 folder, strerrordesc_np(errno));
	return private_check_folder(folder, diag);
}

/* ---- the election ---- */

void private_init(struct private_start *start)
{
	*start = (struct private_start){.lock_fd = -1, .pid_fd = -1, .pipe_fd = -1};
}

void private_fini(struct private_start *start)
{
	base_kill(&start->pid);
	base_close(&start->pid_fd);
	base_close(&start->pipe_fd);
	/* Not by closing alone: a process that was forked meanwhile has a copy. */
	if (start->lock_fd >= 0)
		flock(start->lock_fd, LOCK_UN);
	base_close(&start->lock_fd);
	private_init(start);
}

int private_elect(struct private_start *start, const char *folder, struct diag *diag)
{
	char path[256];
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "%s/lock", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_of_errno(diag, -errno, path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_of_errno(diag, -errno, path);
		start->wake_ns = base_now_ns() + PRIVATE_RETRY_NS;
		return PRIVATE_AGAIN;
	}
	start->lock_fd = base_take_fd(&fd);
	return 0;
}

/* ---- the start ---- */

/* $ACCESS_DAEMON, the installed one, else whatever PATH has. */
static const char *private_program(void)
{
	const char *program = secure_getenv("ACCESS_DAEMON");

	if (program && *program)
		return program;
	return access(SBINDIR "/accessd", X_OK) == 0 ? SBINDIR "/accessd" : "accessd";
}

static int private_set_actions(posix_spawn_file_actions_t *actions, int stderr_fd)
{
	/* First, as the pipe's end may be 0 or 1 in a program that has closed them. */
	int r = posix_spawn_file_actions_adddup2(actions, stderr_fd, 2);

	r = r ? r : posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	r = r ? r : posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
	r = r ? r : posix_spawn_file_actions_addclosefrom_np(actions, 3);
	return r;
}

static int private_set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(attributes, &none);
	r = r ? r : posix_spawnattr_setsigdefault(attributes, &all);
	if (!r)
		r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK |
							     POSIX_SPAWN_SETSIGDEF |
							     POSIX_SPAWN_SETSID);
	return r;
}

/* 0 or a positive errno, as posix_spawn() has it. */
static int private_exec(const char *program, const char *folder, int stderr_fd, pid_t *ret_pid)
{
	char *const arguments[] = {(char *)program, (char *)"--private",    (char *)"--dir",
				   (char *)folder,  (char *)"--background", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return r;
	r = posix_spawnattr_init(&attributes);
	if (r) {
		posix_spawn_file_actions_destroy(&actions);
		return r;
	}
	r = private_set_actions(&actions, stderr_fd);
	r = r ? r : private_set_attributes(&attributes);
	r = r ? r : posix_spawnp(ret_pid, program, &actions, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

int private_spawn(struct private_start *start, const char *folder, struct diag *diag)
{
	const char *program = private_program();
	_cleanup_close_ int write_end = -1;
	int ends[2];
	int r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_of_errno(diag, -errno, "starting a private accessd");
	start->pipe_fd = ends[0];
	write_end = ends[1];
	if (fcntl(start->pipe_fd, F_SETFL, O_NONBLOCK) < 0)
		return error_of_errno(diag, -errno, "starting a private accessd");
	r = private_exec(program, folder, write_end, &start->pid);
	if (r) {
		start->pid = 0;
		return diag_fail(
		    diag, OA_E_UNREACHABLE,
		    "no accessd runs here, and %s could not be started (%s): install accessd, or "
		    "name its program in ACCESS_DAEMON or a socket in ACCESS_SOCKET",
		    program, strerrordesc_np(r));
	}
	start->pid_fd = (int)syscall(SYS_pidfd_open, start->pid, 0);
	start->started = true;
	start->wake_ns = base_now_ns() + PRIVATE_RETRY_NS;
	return 0;
}

/* Collects what the child says; past the room of text it is read and forgotten. */
static void private_listen(struct private_start *start)
{
	char buffer[256];
	ssize_t got;

	while ((got = read(start->pipe_fd, buffer, sizeof(buffer))) > 0) {
		size_t n = BASE_MIN((size_t)got, sizeof(start->text) - 1 - start->length);

		memcpy(start->text + start->length, buffer, n);
		start->length += n;
		start->text[start->length] = '\0';
	}
}

/* Has the child ended? Its wait status, or 0 if somebody else reaped it. */
static bool private_has_ended(struct private_start *start, int *ret_status)
{
	struct pollfd end = {.fd = start->pid_fd, .events = POLLIN};
	pid_t pid = waitpid(start->pid, ret_status, WNOHANG);

	if (pid == start->pid)
		return true;
	if (pid == 0 || errno != ECHILD)
		return false;
	*ret_status = 0;
	return start->pid_fd < 0 || poll(&end, 1, 0) == 1;
}

int private_step(struct private_start *start, struct diag *diag)
{
	int status;

	private_listen(start);
	if (!private_has_ended(start, &status)) {
		start->wake_ns = base_now_ns() + PRIVATE_RETRY_NS;
		return PRIVATE_AGAIN;
	}
	private_listen(start);
	start->pid = 0;
	base_close(&start->pid_fd);
	base_close(&start->pipe_fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	while (start->length > 0 && start->text[start->length - 1] == '\n')
		start->text[--start->length] = '\0';
	if (WIFSIGNALED(status))
		return diag_fail(
		    diag, OA_E_UNREACHABLE, "%s, started as private daemon, died by signal %d%s%s",
		    private_program(), WTERMSIG(status), start->length ? ": " : "", start->text);
	return diag_fail(diag, OA_E_UNREACHABLE,
			 "%s, started as private daemon, gave up (status %d): %s",
			 private_program(), WEXITSTATUS(status),
			 start->length ? start->text : "it did not say why");
}
