/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A worker decodes bytes that a stranger may have made to break it. After sandbox_enter() it owns
 * its heap, the mappings it was born with and one eventfd (an indexer: a pipe, and the file that it reads), and a broken decoder can do no more
 * than scribble on those: DESIGN.md section 5, doc/decisions/020-sandbox.md.
 *
 * The filter is a list of what is allowed; anything else kills the process, which its parent
 * reports as any other crash. What the rules keep out beyond the obvious:
 *
 *   futex     waiting and waking: robust, priority-inheriting and requeueing ones have been doors
 *             into the kernel before
 *   mmap      private, anonymous, never executable; not MAP_GROWSDOWN, which RLIMIT_DATA does not
 *             count, and nothing shared, for the same reason
 *   mprotect  not at all: the arena and the generation word stay read-only, no page becomes code
 *   madvise   advice that only gives memory back or changes page sizes: MADV_REMOVE would punch
 *             holes into shared memory
 *   write     to the eventfd alone; pread64 of an indexer's file, or read of the pipe that it has instead
 *   ioctl     of a carrier with an RDMA device: that device's calls, which a queue pair's connecting is; all was mapped before
 *   signals   none are handled, so not even rt_sigreturn; abort() dies of its first system call
 *
 * The stack is limited, for RLIMIT_DATA does not count it and "unlimited" may be inherited.
 *
 * The order matters: descriptors are closed while closing is allowed, limits are set before the
 * filter takes setrlimit away.
 */

#include "base/sandbox.h"

#include <linux/capability.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SANDBOX_STACK ((rlim_t)8 << 20)
#define SANDBOX_TALKING_FILES 64 /* descriptors of one that talks */

/* Those from the first to the one before the end. */
static int sandbox_close(unsigned first, unsigned end)
{
	return first < end && close_range(first, end - 1, 0) < 0 ? -errno : 0;
}

static int sandbox_close_all_but(unsigned one, unsigned other)
{
	const unsigned low = BASE_MIN(one, other), high = BASE_MAX(one, other);
	int rc = sandbox_close(0, low);

	if (rc == 0)
		rc = sandbox_close(low + 1, high);
	return rc == 0 ? sandbox_close(high + 1, ~0U) : rc;
}

/* Limits only go down: one that is lower already stays. */
static int sandbox_limit(uint64_t memory, rlim_t files)
{
	const struct {
		int resource;
		rlim_t limit;
	} table[] = {
	    {RLIMIT_DATA, memory}, {RLIMIT_STACK, SANDBOX_STACK},
	    {RLIMIT_CORE, 0},      {RLIMIT_NOFILE, files},
	    {RLIMIT_NPROC, 0},     {RLIMIT_MEMLOCK, 0},
	    {RLIMIT_MSGQUEUE, 0},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		struct rlimit limit;

		if (getrlimit((__rlimit_resource_t)table[i].resource, &limit) < 0)
			return -errno;
		limit.rlim_max = BASE_MIN(limit.rlim_max, table[i].limit);
		limit.rlim_cur = BASE_MIN(limit.rlim_cur, limit.rlim_max);
		if (setrlimit((__rlimit_resource_t)table[i].resource, &limit) < 0)
			return -errno;
	}
	return 0;
}

/* Only root has anything to lose here; dropping from the bounding set needs CAP_SETPCAP. */
int sandbox_drop_capabilities(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}, {0, 0, 0}};

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
			return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 && errno != EPERM)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* Allowed whatever the arguments are. */
static int sandbox_allow_plain(scmp_filter_ctx filter)
{
	static const int allowed[] = {
	    SCMP_SYS(munmap),
	    SCMP_SYS(mremap),
	    SCMP_SYS(brk),
	    SCMP_SYS(exit),
	    SCMP_SYS(exit_group),
	    SCMP_SYS(clock_gettime),
	    SCMP_SYS(restart_syscall),
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(allowed); i++) {
		int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int sandbox_allow_memory(scmp_filter_ctx filter)
{
	static const int advice[] = {MADV_NORMAL, MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE,
				     MADV_NOHUGEPAGE};
	const scmp_datum_t kind = MAP_TYPE | MAP_ANONYMOUS | MAP_GROWSDOWN;
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
				  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				  SCMP_A3(SCMP_CMP_MASKED_EQ, kind, MAP_PRIVATE | MAP_ANONYMOUS));

	for (size_t i = 0; rc == 0 && i < BASE_ARRAY_LEN(advice); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(madvise), 1,
				      SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)advice[i], 0));
	return rc;
}

static int sandbox_allow_futex(scmp_filter_ctx filter)
{
	static const int ops[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < BASE_ARRAY_LEN(ops); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(futex), 1,
				      SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)ops[i], 0));
	return rc;
}

static int sandbox_allow_files(scmp_filter_ctx filter, const struct sandbox_limits *limits)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
				  SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)limits->event_fd, 0));

	if (rc == 0 && limits->reads)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
				      limits->is_pipe ? SCMP_SYS(read) : SCMP_SYS(pread64), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)limits->read_fd, 0));
	return rc;
}

/* Whatever the descriptor is: all that it has were given to it. */
static int sandbox_allow_talk(scmp_filter_ctx filter)
{
	static const int allowed[] = {
	    SCMP_SYS(read),   SCMP_SYS(write),      SCMP_SYS(close),       SCMP_SYS(sendmsg),
	    SCMP_SYS(sendto), SCMP_SYS(recvmsg),    SCMP_SYS(recvfrom),    SCMP_SYS(poll),
	    SCMP_SYS(ppoll),  SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl),
	};
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(getsockopt), 1,
				  SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET, 0));

	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 2,
				      SCMP_A1(SCMP_CMP_EQ, IPPROTO_TCP, 0),
				      SCMP_A2(SCMP_CMP_EQ, TCP_NODELAY, 0));
	for (size_t i = 0; rc == 0 && i < BASE_ARRAY_LEN(allowed); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	return rc;
}

/* limits NULL: of one that talks; verbs_fd: -1: none. */
static int sandbox_load_filter(const struct sandbox_limits *limits, int verbs_fd)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc;

	if (filter == NULL)
		return -ENOMEM;
	rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, limits == NULL);
	if (rc == 0)
		rc = sandbox_allow_plain(filter);
	if (rc == 0)
		rc = sandbox_allow_futex(filter);
	if (rc == 0)
		rc = sandbox_allow_memory(filter);
	if (rc == 0)
		rc = limits ? sandbox_allow_files(filter, limits) : sandbox_allow_talk(filter);
	if (rc == 0 && verbs_fd >= 0) {
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 2,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)verbs_fd, 0),
				      SCMP_A1(SCMP_CMP_EQ, RDMA_VERBS_IOCTL, 0));
	}
	if (rc == 0)
		rc = seccomp_load(filter); /* sets no_new_privs, too */
	seccomp_release(filter);
	return rc;
}

int sandbox_enter(const struct sandbox_limits *limits)
{
	const unsigned event_fd = (unsigned)limits->event_fd;
	int rc =
	    sandbox_close_all_but(event_fd, limits->reads ? (unsigned)limits->read_fd : event_fd);

	if (rc == 0)
		rc = sandbox_drop_capabilities();
	if (rc == 0)
		rc = sandbox_limit(limits->memory, 0);
	return rc == 0 ? sandbox_load_filter(limits, -1) : rc;
}

int sandbox_enter_talking(uint64_t memory, int verbs_fd)
{
	int rc = sandbox_limit(memory, SANDBOX_TALKING_FILES);

	return rc == 0 ? sandbox_load_filter(NULL, verbs_fd) : rc;
}

bool sandbox_is_strict(void)
{
	return true;
}
