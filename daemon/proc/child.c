/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of accessd. Each gets one end of a SOCK_SEQPACKET pair as descriptor 3 and asks the
 * kernel by itself to die with us (PR_SET_PDEATHSIG), so that kill -9 of accessd leaves nothing
 * behind.
 *
 * A socket of theirs is closed by porter_close() once they have had it: a captured one may have left
 * descriptors in its queue.
 *
 * The reaper reaps them (reaper.h). Each is a process group of its own, that wait() for those of our own group does
 * not.
 *
 * What accessd and its children tell each other is of one build, and has no versions. A package's upgrade puts other
 * programs in the place of these while accessd runs, for moments or, where it is a user's own, for days. So each program
 * that was found is kept open: it is the same for as long as this accessd lives, also when its file is gone.
 */
#include "daemon/proc/child.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/library.h"
#include "daemon/proc/reaper.h"

#define LOW_NICE 10
#define LOOK_MS 10

/* The programs that were found, one for each way to one; the loop's thread alone looks for programs and starts them. */
static struct program {
	char path[PATH_MAX];
	int fd; /* O_PATH */
} programs[8];
static unsigned n_programs;

static const struct program *program_kept(const char *path)
{
	for (unsigned i = 0; i < n_programs; i++)
		if (strcmp(programs[i].path, path) == 0)
			return &programs[i];
	return NULL;
}

/* Is there a program? Then it is kept, where there is a descriptor for it. */
static bool is_program(const char *path)
{
	struct program *program = &programs[n_programs];
	_cleanup_close_ int fd = -1;

	if (program_kept(path))
		return true;
	if (access(path, X_OK))
		return false;
	if (n_programs == BASE_ARRAY_LEN(programs))
		return true;
	fd = open(path, O_PATH | O_CLOEXEC);
	program->fd = fcntl(fd, F_DUPFD_CLOEXEC, CHILD_SOCK + 1); /* a child's socket comes there */
	if (program->fd >= 0) {
		snprintf(program->path, sizeof(program->path), "%s", path);
		n_programs++;
	}
	return true;
}

int child_find(const char *program, bool is_private, char *ret, size_t size, struct diag *diag)
{
	const char *libexec = is_private ? getenv("ACCESS_LIBEXEC") : NULL;
	char path[PATH_MAX], folder[PATH_MAX];

	if (library_find_own(program, libexec, is_program, path)) {
		snprintf(ret, size, "%s", path);
		return 0;
	}
	library_own_folder(folder);
	return diag_fail(diag, -ENOENT, "cannot find the program %s: looked in %s%s%s and %s",
			 program, libexec ? libexec : "", libexec ? ", " : "", folder, LIBEXECDIR);
}

int child_nice(enum cpu_priority priority)
{
	return priority == CPU_PRIORITY_LOW ? LOW_NICE : 0;
}

/* In the child, for it and its children. Everybody may lower himself; where a sandbox forbids it, all goes on at what
 * it is, and /proc/PID/sched says so. */
static void set_priority(enum cpu_priority priority)
{
	static const int policies[] = {
	    [CPU_PRIORITY_LOW] = SCHED_BATCH, [CPU_PRIORITY_IDLE] = SCHED_IDLE};
	const struct sched_param param = {.sched_priority = 0};

	if (priority == CPU_PRIORITY_NORMAL)
		return;
	sched_setscheduler(0, policies[priority], &param);
	if (child_nice(priority))
		setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + child_nice(priority));
}

/* In the child: only what must be done before exec. */
static void exec_child(const char *path, char *const argv[], enum cpu_priority priority, int sock)
{
	const struct program *kept = program_kept(path);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	set_priority(priority);
	if (sock == CHILD_SOCK)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, CHILD_SOCK);
	if (kept)
		execveat(kept->fd, "", argv, environ, AT_EMPTY_PATH);
	execv(path, argv); /* of a script its interpreter wants a name */
	_exit(127);
}

int child_start(const char *path, char *const argv[], enum cpu_priority priority, struct child *ret)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (pid == 0)
		exec_child(path, argv, priority, pair[1]);
	base_close(&pair[1]);
	if (pid < 0) {
		int r = -errno;

		base_close(&pair[0]);
		return r;
	}
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	*ret = (struct child){.pid = pid, .sock = pair[0]};
	return 0;
}

void child_settle(pid_t accessd, int keep)
{
	identity_drop_switching();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != accessd)
		_exit(0); /* it died before that */
	close_range(0, 1, 0);
	if (keep > 3)
		close_range(3, (unsigned)keep - 1, 0);
	close_range((unsigned)BASE_MAX(keep + 1, 3), ~0U, 0);
}

void child_luck_start(struct child_luck *luck, uint64_t now_ns)
{
	luck->started_ns = now_ns;
}

uint64_t child_luck_failure(struct child_luck *luck, uint64_t now_ns)
{
	bool is_quick = now_ns - luck->started_ns < CHILD_QUICK_NS;

	luck->failures = is_quick ? BASE_MIN(luck->failures + 1, (unsigned)CHILD_HOPELESS) : 0;
	luck->started_ns = now_ns;
	return luck->failures > CHILD_PATIENCE ? CHILD_PAUSE_NS : 0;
}

bool child_luck_is_hopeless(const struct child_luck *luck)
{
	return luck->failures >= CHILD_HOPELESS;
}

char *child_describe_end(int status, char *ret, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(ret, size, "was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(ret, size, "exited with status %d", WEXITSTATUS(status));
	return ret;
}

/* ---- ends ---- */

bool child_has_ended(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns)
{
	siginfo_t info = {.si_pid = 0};
	struct rusage usage;

	if (pid <= 0 ||
	    syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, &usage) < 0 ||
	    info.si_pid != pid)
		return false;
	*ret_status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
						 : W_EXITCODE(0, info.si_status) |
						       (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
	*ret_cpu_ns = base_usage_ns(&usage);
	return true;
}

void child_abandon(struct child *child, struct reaper *reaper)
{
	if (child->pid > 0)
		kill(child->pid, SIGKILL);
	reaper_take(reaper, child->pid);
	child->pid = 0;
	base_close(&child->sock);
}

void child_end(struct child *child)
{
	base_kill(&child->pid);
	base_close(&child->sock);
}

static bool is_running(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != pid;
}

void child_await(pid_t pid, unsigned patience_ms)
{
	const uint64_t end_ns = base_now_ns() + (uint64_t)patience_ms * 1000000;
	_cleanup_close_ int pid_fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct pollfd ended = {.fd = pid_fd, .events = POLLIN};

	if (pid_fd >= 0)
		poll(&ended, 1, (int)patience_ms);
	else /* a sandbox may refuse it */
		while (pid > 0 && is_running(pid) && base_now_ns() < end_ns)
			poll(NULL, 0, LOOK_MS);
}

void child_leave(struct child *child, unsigned patience_ms)
{
	if (child->sock >= 0)
		shutdown(child->sock, SHUT_RDWR);
	child_await(child->pid, patience_ms);
	child_end(child);
}
