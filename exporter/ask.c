/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child has a pipe, a connection, and an alarm that ends it. It dies with us. What it says is read as an answer of
 * accessd is: a JSON text of limited length.
 */
#include "exporter/ask.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/ctl.h"
#include "tools/ctl_ask.h"

static void ask(const char *named, int fd)
{
	_cleanup_free_ char *text = NULL;
	struct diag diag = {""};
	char socket[256];
	FILE *out = fdopen(fd, "w");

	if (!out)
		return;
	/* The alarm comes first. */
	if (ctl_find(named, socket, sizeof(socket), &diag) ||
	    ctl_status(socket, base_now_ns() + 2 * ASK_TIMEOUT_S * UINT64_C(1000000000), &text,
		       &diag))
		fprintf(out, "-%s", diag.text);
	else
		fprintf(out, "%c%s", ASK_GOOD, text);
	if (fclose(out) != 0)
		_exit(1); /* what was written is no whole text, and is refused as such */
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
