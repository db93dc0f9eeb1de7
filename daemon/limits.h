/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LIMITS_H
#define DAEMON_LIMITS_H

/* What this process may use: memory and CPUs, from the cgroup (v1 or v2), the cpuset and the
 * machine. */

#include <sys/types.h>
#include "base/base.h"

/* Budget when none is configured: half of the smallest cgroup limit above us, else a quarter of
 * RAM. *ret_source tells which, for messages (static text). */
uint64_t limits_memory(const char **ret_source);
/* CPUs: the affinity mask, cut by the cgroup's quota (rounded up); at least 1. */
unsigned limits_cpus(void);
/* User + system CPU time of a live process, 0 if it is gone. */
uint64_t limits_cpu_ns(pid_t pid);
/* Its state as /proc/PID/stat has it: 'R', 'S', 'D', 'T' (stopped) ...; 0: cannot be read. */
char limits_state(pid_t pid);
/* Whose child it is; 0: nobody's, as init; -1: it is gone. */
pid_t limits_parent(pid_t pid);
uint64_t limits_own_cpu_ns(void);
uint64_t limits_own_rss(void); /* bytes */
/* Soft limit of descriptors up to the hard one; returns it. */
uint64_t limits_raise_files(void);

#endif
