/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiled COMMAND...: runs it with what the default seccomp profiles of container runtimes refuse refused.
 *
 * They list what they allow, some 350 calls. This lists what those lists leave out and a process without capabilities
 * might try: namespaces, mounts, other processes' memory, keys, clocks, modules, io_uring. Like theirs it answers EPERM,
 * and ENOSYS to clone3, whose flags no filter can see, so that libc takes clone.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

#define NAMESPACES                                                                     \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

static const char *const refused[] = {
    "acct",
    "add_key",
    "bpf",
    "chroot",
    "clock_settime",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_mempolicy",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mbind",
    "migrate_pages",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "set_mempolicy",
    "set_mempolicy_home_node",
    "setdomainname",
    "sethostname",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "umount2",
    "unshare",
    "userfaultfd",
    "vhangup",
};

static int refuse(scmp_filter_ctx filter)
{
	int r;

	for (size_t i = 0; i < BASE_ARRAY_LEN(refused); i++) {
		int call = seccomp_syscall_resolve_name(refused[i]);

		/* The library is older than the call: its number is above all that it knows. */
		r = call == __NR_SCMP_ERROR
			? 0
			: seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
		if (r)
			return r;
	}
	for (int bit = 0; bit < 32; bit++) {
		scmp_datum_t flag = (scmp_datum_t)NAMESPACES & 1u << bit;

		r = flag ? seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
					    SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag))
			 : 0;
		if (r)
			return r;
	}
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (argc < 2 || !filter) {
		fputs("usage: profiled COMMAND...\n", stderr);
		return 2;
	}
	r = refuse(filter);
	r = r ? r
	      : seccomp_load(
		    filter); /* sets no_new_privs, too, as allowPrivilegeEscalation: false does */
	seccomp_release(filter);
	if (r) {
		fprintf(stderr, "profiled: %s\n", strerror(-r));
		return 70;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "profiled: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
