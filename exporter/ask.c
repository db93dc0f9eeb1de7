/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child has a pipe, a connection, and an alarm that ends it. It dies with us. What it says is read as an answer of
 * accessd is: a JSON text of limited length.
 */
#include "exporter/ask.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "libaccess/libaccess.h"
#include "tools/ctl.h"

static void write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, text, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return;
		text += written;
		size -= (size_t)written;
	}
}

static void answer(int fd, char kind, const char *text)
{
	write_all(fd, &kind, 1);
	write_all(fd, text, strlen(text));
}

static void ask(const char *named, int fd)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;
	struct diag diag = {""};
	char socket[256], *text = NULL;

	if (ctl_find(named, socket, sizeof(socket), &diag)) {
		answer(fd, '-', diag.text);
		return;
	}
	if (oa_connect(socket, &client, &error) || oa_status(client, &text, &error))
		answer(fd, '-', error.text);
	else
		answer(fd, ASK_GOOD, text);
	free(text);
	oa_disconnect(client);
}

int ask_begin(const char *socket, pid_t *ret_pid, int *ret_fd)
{
	const pid_t parent = getpid();
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGALRM, SIG_DFL);
		alarm(ASK_TIMEOUT_S);
		if (getppid() == parent)
			ask(socket, fds[1]);
		_exit(0);
	}
	base_close(&fds[1]);
	if (pid < 0) {
		int r = -errno;

		base_close(&fds[0]);
		return r;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}
