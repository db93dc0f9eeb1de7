/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy is the memfd's, not a process': mbind() on a shared mapping of it says where its pages come from, whoever touches
 * them first, so that it does not matter where the child that reserves slots or the reader that fills the arena runs.
 * It is a preference: a node that is full costs speed and refuses nothing.
 *
 * Containers' seccomp filters refuse mbind() (EPERM), and kernels without NUMA do not have it (ENOSYS): that is the last
 * question. A node may be gone, or lie outside accessd's own cpuset.mems (EINVAL), which says nothing of the others. What was
 * refused last is shown; of each node it is logged once.
 *
 * Rejected: libnuma, for one system call; to bind workers, who work for several streams, to nodes.
 */
#include "daemon/machine/numa.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "shmring/region.h"

#define NUMA_FOLDER "/sys/devices/system/node"
_Static_assert(CPU_SETSIZE == TOPOLOGY_CPUS, "one number of CPUs");
#define NUMA_PREFERRED 1 /* MPOL_PREFERRED of linux/mempolicy.h */

void numa_init(struct numa *numa, bool is_wanted)
{
	*numa = (struct numa){.refused = 0};
	topology_read(&numa->topology, NUMA_FOLDER);
	numa->is_on = is_wanted && numa->topology.n_nodes > 1;
}

int numa_node_of(const struct numa *numa, pid_t pid)
{
	struct topology_cpus cpus = {.bits = {0}};
	cpu_set_t set;

	if (!numa->is_on || pid <= 0 || sched_getaffinity(pid, sizeof(set), &set))
		return -1;
	for (int cpu = 0; cpu < TOPOLOGY_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus.bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
	return topology_node_of(&numa->topology, &cpus);
}

/* 0 or errno. */
static int prefer(int fd, uint64_t bytes, int node)
{
	const unsigned long nodes = 1ul << node;
	void *map;
	int error = 0;
	int r = region_map(fd, bytes, false, &map);

	if (r)
		return -r;
	if (syscall(SYS_mbind, map, bytes, NUMA_PREFERRED, &nodes, TOPOLOGY_NODES + 1, 0))
		error = errno;
	region_unmap(map, bytes);
	return error;
}

static bool is_for_all(int error)
{
	return error == EPERM || error == ENOSYS;
}

void numa_prefer(struct numa *numa, int fd, uint64_t bytes, int node)
{
	int error;

	if (!numa->is_on || node < 0 || is_for_all(numa->refused))
		return;
	error = prefer(fd, bytes, node);
	if (!error) {
		numa->placed++;
		return;
	}
	numa->refused = error;
	if (numa->told >> node & 1)
		return;
	numa->told |= UINT64_C(1) << node;
	log_line(LOG_LEVEL_WARN, "numa-refused",
		 "node=%d error=\"%s\" text=\"memory lies where it is touched first; %s, or set "
		 "numa = off\"",
		 node, strerror(error),
		 is_for_all(error) ? "a container's seccomp filter has to allow mbind()"
				   : "the node has to be among accessd's own (cpuset.mems)");
}

void numa_describe(const struct numa *numa, struct json_out *out)
{
	json_out_member_object(out, "numa");
	json_out_member_bool(out, "on", numa->is_on);
	json_out_member_u64(out, "nodes", numa->topology.n_nodes);
	json_out_member_u64(out, "placed", numa->placed);
	json_out_member_string(out, "refused", numa->refused ? strerror(numa->refused) : "");
	json_out_object_end(out);
}
