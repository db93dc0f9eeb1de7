/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of a stream on the node of its job, on machines with several nodes. */

#include "daemon/machine/topology.h"

struct json_out;

struct numa {
	bool is_on; /* parameter, and the machine has several nodes */
	struct topology topology;
	int refused;     /* errno of the kernel's last refusal, 0: none */
	uint64_t told;   /* nodes of which a refusal was logged */
	uint64_t placed; /* memories that lie where they should */
};

void numa_init(struct numa *numa, bool is_wanted);
/* The node that a process is held on, by its CPU mask; -1: none, or it does not matter. */
int numa_node_of(const struct numa *numa, pid_t pid);
/* Pages of a memfd that are touched from now on, by anybody, come from that node, as long as it has any. -1 is fine. */
void numa_prefer(struct numa *numa, int fd, uint64_t bytes, int node);
/* A member "numa". */
void numa_describe(const struct numa *numa, struct json_out *out);
