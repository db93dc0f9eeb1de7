/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The child belongs to a process whose signal handling is not ours. No handler is set; the child is
 * waited for by its own pid, told by a pidfd; if the program reaps all children itself or ignores
 * SIGCHLD, we take the end for a success and see by connecting. The child gets default signals, no
 * descriptor of ours, a session of its own; its stderr is a pipe, so that its reason to fail can be
 * handed to the caller in its own words. Nothing here blocks.
 */

#include "libaccess/connect/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "libaccess/error.h"

#define SPAWN_RETRY_NS UINT64_C(20000000)

extern char **environ;

/* ---- the election ---- */

void spawn_init(struct spawn *spawn)
{
	*spawn = (struct spawn){.lock_fd = -1, .pid_fd = -1, .pipe_fd = -1};
}

void spawn_fini(struct spawn *spawn)
{
	base_kill(&spawn->pid);
	base_close(&spawn->pid_fd);
	base_close(&spawn->pipe_fd);
	/* Not by closing alone: a process that was forked meanwhile has a copy. */
	if (spawn->lock_fd >= 0)
		flock(spawn->lock_fd, LOCK_UN);
	base_close(&spawn->lock_fd);
	spawn_init(spawn);
}

int spawn_elect(struct spawn *spawn, const char *folder, struct diag *diag)
{
	char path[1024];
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "%s/lock", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_of_errno(diag, -errno, path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_of_errno(diag, -errno, path);
		spawn->wake_ns = base_now_ns() + SPAWN_RETRY_NS;
		return SPAWN_AGAIN;
	}
	spawn->lock_fd = base_take_fd(&fd);
	return 0;
}

/* ---- the start ---- */

static int spawn_set_actions(posix_spawn_file_actions_t *actions, int stderr_fd)
{
	/* First, as the pipe's end may be 0 or 1 in a program that has closed them. */
	int r = posix_spawn_file_actions_adddup2(actions, stderr_fd, 2);

	r = r ? r : posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	r = r ? r : posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
	r = r ? r : posix_spawn_file_actions_addclosefrom_np(actions, 3);
	return r;
}

static int spawn_set_attributes(posix_spawnattr_t *attributes)
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
static int spawn_exec(char *const *arguments, int stderr_fd, pid_t *ret_pid)
{
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
	r = spawn_set_actions(&actions, stderr_fd);
	r = r ? r : spawn_set_attributes(&attributes);
	r = r ? r : posix_spawnp(ret_pid, arguments[0], &actions, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

int spawn_run(struct spawn *spawn, char *const *arguments)
{
	_cleanup_close_ int write_end = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	spawn->pipe_fd = ends[0];
	write_end = ends[1];
	if (fcntl(spawn->pipe_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = spawn_exec(arguments, write_end, &spawn->pid);
	if (r) {
		spawn->pid = 0;
		return -r;
	}
	spawn->pid_fd = (int)syscall(SYS_pidfd_open, spawn->pid, 0);
	spawn->has_run = true;
	spawn->wake_ns = base_now_ns() + SPAWN_RETRY_NS;
	return 0;
}

/* Collects what the child says; past the room of text it is read and forgotten. */
static void spawn_listen(struct spawn *spawn)
{
	char buffer[256];
	ssize_t got;

	while ((got = read(spawn->pipe_fd, buffer, sizeof(buffer))) > 0) {
		size_t n = BASE_MIN((size_t)got, sizeof(spawn->text) - 1 - spawn->length);

		memcpy(spawn->text + spawn->length, buffer, n);
		spawn->length += n;
		spawn->text[spawn->length] = '\0';
	}
}

/* Has the child ended? Its wait status, or 0 if somebody else reaped it. */
static bool spawn_has_ended(struct spawn *spawn, int *ret_status)
{
	struct pollfd end = {.fd = spawn->pid_fd, .events = POLLIN};
	pid_t pid = waitpid(spawn->pid, ret_status, WNOHANG);

	if (pid == spawn->pid)
		return true;
	if (pid == 0 || errno != ECHILD)
		return false;
	*ret_status = 0;
	return spawn->pid_fd < 0 || poll(&end, 1, 0) == 1;
}

/* How it ended, where that was not well. */
static int spawn_failed(const struct spawn *spawn, int status, const char *what, struct diag *diag)
{
	if (WIFSIGNALED(status))
		return diag_fail(diag, SPAWN_E_FAILED, "%s, died by signal %d%s%s", what,
				 WTERMSIG(status), spawn->length ? ": " : "", spawn->text);
	return diag_fail(diag, SPAWN_E_FAILED, "%s, gave up (status %d): %s", what,
			 WEXITSTATUS(status), spawn->length ? spawn->text : "it did not say why");
}

int spawn_step(struct spawn *spawn, const char *what, struct diag *diag)
{
	int status;

	spawn_listen(spawn);
	if (!spawn_has_ended(spawn, &status)) {
		spawn->wake_ns = base_now_ns() + SPAWN_RETRY_NS;
		return SPAWN_AGAIN;
	}
	spawn_listen(spawn);
	spawn->pid = 0;
	base_close(&spawn->pid_fd);
	base_close(&spawn->pipe_fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	while (spawn->length > 0 && spawn->text[spawn->length - 1] == '\n')
		spawn->text[--spawn->length] = '\0';
	return spawn_failed(spawn, status, what, diag);
}
