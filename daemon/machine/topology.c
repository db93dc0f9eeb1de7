/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of nodes have gaps (a node that is offline, one with memory alone), so nodes are known by the kernel's
 * number. A job that may run on CPUs of several nodes belongs to none: wherever its memory lay, the next tick of the
 * scheduler might make it wrong.
 */
#include "daemon/machine/topology.h"

#include <stdio.h>

bool topology_parse_list(const char *text, uint64_t *bits, unsigned most)
{
	uint64_t first, last;

	memset(bits, 0, (most + 63) / 64 * sizeof(*bits));
	while (*text && *text != '\n') {
		if (!base_parse_number(&text, most - 1, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!base_parse_number(&text, most - 1, &last) || last < first)
				return false;
		}
		for (; first <= last; first++)
			bits[first / 64] |= UINT64_C(1) << first % 64;
		if (*text == ',' && text[1] != '\n' && text[1])
			text++;
		else if (*text && *text != '\n')
			return false;
	}
	return true;
}

static bool read_list(const char *folder, const char *name, uint64_t *bits, unsigned most)
{
	char path[512], line[4096];
	FILE *file;
	bool is_read;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	is_read = fgets(line, sizeof(line), file) && topology_parse_list(line, bits, most);
	fclose(file);
	return is_read;
}

void topology_read(struct topology *topology, const char *folder)
{
	*topology = (struct topology){.n_nodes = 0};
	if (!read_list(folder, "online", &topology->online, TOPOLOGY_NODES))
		topology->online = 0;
	for (unsigned node = 0; node < TOPOLOGY_NODES; node++) {
		char name[32];

		if (!(topology->online >> node & 1))
			continue;
		snprintf(name, sizeof(name), "node%u/cpulist", node);
		if (read_list(folder, name, topology->cpus[node].bits, TOPOLOGY_CPUS)) {
			topology->n_nodes++;
		} else {
			topology->online &= ~(UINT64_C(1) << node);
			topology->cpus[node] = (struct topology_cpus){.bits = {0}};
		}
	}
}

static bool has_all(const struct topology_cpus *node, const struct topology_cpus *cpus)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cpus->bits); i++) {
		if (cpus->bits[i] & ~node->bits[i])
			return false;
		any |= cpus->bits[i];
	}
	return any != 0;
}

int topology_node_of(const struct topology *topology, const struct topology_cpus *cpus)
{
	for (int node = 0; node < TOPOLOGY_NODES; node++)
		if (has_all(&topology->cpus[node], cpus))
			return node;
	return -1;
}
