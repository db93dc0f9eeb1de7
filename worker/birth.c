/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the parent does to itself before it has anything worth protecting. The order matters:
 *
 *   oom_score_adj, then identity   the file belongs to root once the process is not dumpable, which it
 *                                  never is again after it has become somebody else
 *   identity, then death signal    a change of uid forgets it
 *   death signal, then getppid()   accessd may have died in between; before the first of the two,
 *                                  the hang-up of descriptor 3 tells
 *   dumpable, then START           from here on /proc/PID/mem is closed to the same uid, and only
 *                                  then memory of streams is mapped; workers inherit it
 */

#include "worker/birth.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "worker/parent.h"

static int birth_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	if (null == WORKER_EVENT_FD)
		return 0; /* holds the eventfd's number until START brings it */
	if (dup3(null, WORKER_EVENT_FD, O_CLOEXEC) < 0)
		return -errno;
	if (null > STDERR_FILENO) /* else it is one of them: accessd had it closed */
		base_close(&null);
	return 0;
}

static void birth_open_oom(struct pool_settings *settings)
{
	char text[16] = "";

	settings->oom_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	settings->oom_parent = 0;
	if (settings->oom_fd >= 0 && read(settings->oom_fd, text, sizeof(text) - 1) > 0)
		settings->oom_parent = atoi(text);
}

static int birth_open_signals(int *ret)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGTSTP};
	sigset_t child;
	int fd;

	for (size_t i = 0; i < BASE_ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &child, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

int birth_of_parent(pid_t accessd, struct pool_settings *settings, int *ret_signals)
{
	int rc;

	if (close_range(PARENT_CONTROL_FD + 1, ~0U, 0) < 0)
		return -errno;
	rc = birth_stdio();
	if (rc < 0)
		return rc;
	birth_open_oom(settings);
	rc = settings->as ? identity_become(settings->as) : 0;
	if (rc < 0)
		return rc;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	if (getppid() != accessd)
		return -ESRCH;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	prctl(PR_SET_NAME, "access-parent", 0, 0, 0);
	return birth_open_signals(ret_signals);
}
