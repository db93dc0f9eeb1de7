/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The program has a group of processes of its own, so that all of it is ended when its time is over. What it prints is
 * bounded, and wiped.
 */

#include "bucket/s3/s3_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_SAID 65536
#define MOST_TROUBLE 512

extern char **environ;

struct said { /* of a pipe; cut at the bound */
	int fd;
	char *text;
	size_t bytes, most;
};

static int start(const char *command, int out, int err, pid_t *ret)
{
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	if (posix_spawn_file_actions_init(&actions))
		return ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return ENOMEM;
	}
	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, out, 1);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, err, 2);
	r = r ? r : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	r = r ? r : posix_spawnattr_setpgroup(&attributes, 0);
	r = r ? r : posix_spawnattr_setsigmask(&attributes, &none);
	r = r ? r : posix_spawnattr_setsigdefault(&attributes, &all);
	r = r ? r
	      : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
							  POSIX_SPAWN_SETSIGMASK |
							  POSIX_SPAWN_SETSIGDEF);
	r = r ? r : posix_spawn(ret, "/bin/sh", &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* What there is now; false: it is at its end. */
static bool take(struct said *said)
{
	char more[4096];
	const ssize_t n = read(said->fd, more, sizeof(more));

	if (n > 0) {
		const size_t bytes = BASE_MIN((size_t)n, said->most - said->bytes);

		memcpy(said->text + said->bytes, more, bytes);
		said->bytes += bytes;
		said->text[said->bytes] = '\0';
	}
	explicit_bzero(more, sizeof(more));
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Until both are closed, or it is too late: false. */
static bool listen_to(struct said said[2], uint64_t until_ns)
{
	while (said[0].fd >= 0 || said[1].fd >= 0) {
		struct pollfd fds[2] = {{said[0].fd, POLLIN, 0}, {said[1].fd, POLLIN, 0}};
		const uint64_t now_ns = base_now_ns();

		if (now_ns >= until_ns)
			return false;
		if (poll(fds, 2, (int)((until_ns - now_ns) / 1000000) + 1) < 0 && errno != EINTR)
			return false;
		for (int i = 0; i < 2; i++)
			if (fds[i].revents && !take(&said[i]))
				base_close(&said[i].fd);
	}
	return true;
}

/* Its end, after which it can do no more harm; it may close its output and go on. */
static bool reap(pid_t pid, uint64_t until_ns, int *ret_status)
{
	while (waitpid(pid, ret_status, WNOHANG) != pid) {
		if (base_now_ns() >= until_ns) {
			kill(-pid, SIGKILL);
			while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
				continue;
			return false;
		}
		poll(NULL, 0, 5);
	}
	return true;
}

/* What it said as an error, in one line. */
static const char *trouble_of(struct said *said)
{
	while (said->bytes > 0 && (unsigned char)said->text[said->bytes - 1] <= ' ')
		said->text[--said->bytes] = '\0';
	return said->bytes ? said->text : "without a word";
}

static int judge(bool is_timely, int status, int timeout_ms, struct said said[2],
		 struct s3_keys *ret, struct diag *diag)
{
	struct diag why;
	int r;

	if (!is_timely)
		return diag_fail(diag, -EACCES, "it took more than %d s and was ended",
				 (timeout_ms + 999) / 1000);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return diag_fail(diag, -EACCES, "it failed (%s %d): %s",
				 WIFEXITED(status) ? "exit status" : "signal",
				 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
				 BASE_QUOTED(trouble_of(&said[1]), 300));
	r = s3_keys_of_json(said[0].text, said[0].bytes, ret, &why);
	return r == -EBADMSG ? diag_fail(diag, -EACCES, "%s", why.text) : r;
}

static int run(const char *command, int timeout_ms, struct said said[2], struct s3_keys *ret,
	       struct diag *diag)
{
	const uint64_t until_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000;
	int out[2] = {-1, -1}, err[2] = {-1, -1}, status = 0, r = 0;
	bool is_timely;
	pid_t pid = 0;

	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		r = errno;
	r = r ? r : start(command, out[1], err[1], &pid);
	base_close(&out[1]);
	base_close(&err[1]);
	said[0].fd = out[0];
	said[1].fd = err[0];
	if (r)
		return diag_fail(diag, -EACCES, "it cannot be started: %s", strerror(r));
	is_timely = listen_to(said, until_ns);
	is_timely = reap(pid, is_timely ? until_ns : 0, &status) && is_timely;
	return judge(is_timely, status, timeout_ms, said, ret, diag);
}

int s3_process_keys(const char *command, int timeout_ms, struct s3_keys *ret, struct diag *diag)
{
	struct said said[2] = {{-1, calloc(1, MOST_SAID + 1), 0, MOST_SAID},
			       {-1, calloc(1, MOST_TROUBLE + 1), 0, MOST_TROUBLE}};
	int r = -ENOMEM;

	if (said[0].text && said[1].text)
		r = run(command, timeout_ms, said, ret, diag);
	for (int i = 0; i < 2; i++) {
		base_close(&said[i].fd);
		if (said[i].text)
			explicit_bzero(said[i].text, said[i].bytes);
		free(said[i].text);
	}
	return r;
}
