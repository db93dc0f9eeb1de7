/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nodes of memory of a machine, and where something should lie: read from a folder as the kernel's
 * /sys/devices/system/node, then plain arithmetic. */

#include "base/base.h"

#define TOPOLOGY_NODES 64
#define TOPOLOGY_CPUS 1024 /* more of them are as if they were on no node */

struct topology_cpus {
	uint64_t bits[TOPOLOGY_CPUS / 64];
};

struct topology {
	unsigned n_nodes;                          /* that are online; 0: nothing is known */
	uint64_t online;                           /* a bit each */
	struct topology_cpus cpus[TOPOLOGY_NODES]; /* by the kernel's number of the node */
};

/* A list of numbers as the kernel writes it, "0-3,8", into bits: those below most. false: it is none, or has others. */
bool topology_parse_list(const char *text, uint64_t *bits, unsigned most);
/* Nodes that cannot be read are not there. */
void topology_read(struct topology *topology, const char *folder);
/* The node that has all of these CPUs; -1: there are several, or none. */
int topology_node_of(const struct topology *topology, const struct topology_cpus *cpus);
