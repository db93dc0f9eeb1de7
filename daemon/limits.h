/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this process may use: memory and CPUs, from the cgroup (v1 or v2), the cpuset and the
 * machine; and what it uses. */

#include "base/base.h"

#define LIMITS_PATH 512

struct limits {
	uint64_t ram;
	uint64_t memory;               /* the least that a cgroup gives us; UINT64_MAX: none does */
	char memory_file[LIMITS_PATH]; /* the file that says so, "": none */
	unsigned mask;                 /* CPUs of the affinity mask, which follows the cpuset */
	unsigned cpus; /* the mask, cut by a cgroup's quota (rounded up); at least 1 */
	char cpus_file[LIMITS_PATH]; /* of the quota that cuts it, "": none does */
	int error; /* 0, or why a file could not be read just now (limits_passes()): its limit may be missing */
};

/* An errno for want of descriptors or memory, which says nothing of what was asked. */
bool limits_passes(int error);
/* As it is now. */
void limits_read(struct limits *ret);
/* The budget for memory: what is configured, 0: half of the cgroup's limit, else a quarter of RAM; never more
 * than seven eighths of that limit, or of RAM. *ret_source tells which, for messages (static text). */
uint64_t limits_budget(const struct limits *limits, uint64_t configured, const char **ret_source);
/* How much of that limit, or of RAM, can be had now, page cache that gives way included; 0: that cannot be read. */
uint64_t limits_room(const struct limits *limits);
/* A file of our own cgroup (v2); where there is none, *ret is "". */
void limits_own_file(const char *name, char ret[LIMITS_PATH]);
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
