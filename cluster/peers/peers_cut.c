/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cells: the nodes sorted by the hash of their names (of their addresses, where the list has no names), and cut into as
 * few equal parts as there must be for at most 16 each. All nodes that see the same list cut it at the same
 * places, so that each one's cell is the others', too. A node that comes or goes moves one node at a border.
 */

#include <ifaddrs.h>
#include <netinet/in.h>

#include "cluster/peers/peers_kind.h"

#define CELL (GATE_MOST_MEMBERS + 1)

struct ranked {
	uint64_t key;
	const struct peers_entry *entry; /* NULL: this node */
};

bool peers_is_any(const struct gate_address *address)
{
	static const struct sockaddr_in6 none;
	const struct sockaddr_in6 *six = (const void *)&address->sock;
	const struct sockaddr_in *four = (const void *)&address->sock;

	if (address->sock.ss_family == AF_INET6)
		return memcmp(&six->sin6_addr, &none.sin6_addr, sizeof(six->sin6_addr)) == 0;
	return four->sin_addr.s_addr == 0;
}

static bool is_of_this_machine(const struct gate_address *address)
{
	struct ifaddrs *all = NULL;
	bool is_ours = false;

	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *one = all; one && !is_ours; one = one->ifa_next) {
		struct gate_address ours = {{0}, 0};
		const int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;

		if (family != AF_INET && family != AF_INET6)
			continue;
		memcpy(&ours.sock, one->ifa_addr,
		       family == AF_INET ? sizeof(struct sockaddr_in)
					 : sizeof(struct sockaddr_in6));
		is_ours = gate_address_is_host(&ours, address);
	}
	freeifaddrs(all);
	return is_ours;
}

/* Is it an address of this node, on which it listens? */
static bool peers_is_self(const struct peers_self *self, const struct gate_address *address)
{
	if (gate_address_port(address) != gate_address_port(&self->listen))
		return false;
	return peers_is_any(&self->listen) ? is_of_this_machine(address)
					   : gate_address_is_host(address, &self->listen);
}

static uint64_t key_of(const char *node, const struct gate_address *address)
{
	char text[GATE_CALL_ADDRESS];

	return gate_id_of(*node ? node : gate_address_text(address, text));
}

static int by_key(const void *one, const void *other)
{
	const struct ranked *a = one, *b = other;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* Sorted, each key once, with one entry for this node. */
static size_t rank(const struct peers_self *self, const struct peers_found *found,
		   struct ranked *ret)
{
	struct ranked own = {
	    key_of(found->n && !*found->entries[0].node ? "" : self->node, &self->listen), NULL};
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < found->n; i++) {
		const struct peers_entry *entry = &found->entries[i];
		const uint64_t key = key_of(entry->node, &entry->address);

		if (*entry->node ? strcmp(entry->node, self->node) == 0
				 : peers_is_self(self, &entry->address))
			own.key = key;
		else
			ret[n++] = (struct ranked){key, entry};
	}
	ret[n++] = own;
	qsort(ret, n, sizeof(*ret), by_key);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && ret[kept - 1].key == ret[i].key && ret[i].entry)
			continue;
		if (kept > 0 && ret[kept - 1].key == ret[i].key)
			kept--;
		ret[kept++] = ret[i];
	}
	return kept;
}

void peers_cut(const struct peers_self *self, struct peers_found *found, struct peers_list *ret)
{
	struct ranked *ranked = calloc(found->n + 1, sizeof(*ranked));
	size_t n, cells, own = 0, cell;

	ret->n = 0;
	if (!ranked)
		return;
	n = rank(self, found, ranked);
	while (ranked[own].entry)
		own++;
	cells = (n + CELL - 1) / CELL;
	cell = ((own + 1) * cells - 1) / n;
	for (size_t i = cell * n / cells; i < (cell + 1) * n / cells; i++)
		if (ranked[i].entry && ret->n < GATE_MOST_MEMBERS)
			ret->entries[ret->n++] = *ranked[i].entry;
	free(ranked);
}
