/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a kind of `peers` has, and what it may use of peers.c. All of it is of the peers' thread, but check(). */

#include "cluster/peers/peers.h"

#define PEERS_HOST 256 /* bytes of a name */

struct peers_found { /* grows */
	struct peers_entry *entries;
	size_t n, room;
};

struct peers_look {       /* what a kind knows */
	const char *spec; /* behind "KIND:" */
	const struct peers_self *self;
	int stop_fd; /* readable: end */
	void (*publish)(struct peers_look *look, const struct peers_found *found);
};

struct peers_kind {
	const char *name;
	/* Does the text behind "KIND:" make sense? 0, or -EINVAL with diag. */
	int (*check)(const char *spec, struct diag *diag);
	/* Looks and publishes until stop_fd is readable. */
	void (*run)(struct peers_look *look);
};

extern const struct peers_kind peers_static, peers_dns, peers_slurm, peers_etcd;

/* Waits for the end. true: it has come; false: so many ms have passed. */
bool peers_wait(const struct peers_look *look, int ms);
/* Why it cannot look now; "": it can. */
void peers_tell(struct peers_look *look, const char *why);
/* false: no memory, or too many. */
bool peers_add(struct peers_found *found, const struct peers_entry *entry);
/* HOST, HOST:PORT, [IPv6]:PORT, up to `end`. Without a port 0. 0 or -EINVAL with diag. */
int peers_parse_host(const char *text, size_t size, char ret_host[PEERS_HOST], unsigned *ret_port,
		     struct diag *diag);
/* Does it stand for all addresses of this machine? */
bool peers_is_any(const struct gate_address *address);
/* ADDRESS:PORT in figures. false: it is none. */
bool peers_parse_address(const char *text, struct gate_address *ret);
/* The addresses of a name, `most` at most, those of the family that this node listens with. How many; 0: *ret_why says
 * why there are none. */
size_t peers_resolve(const struct peers_self *self, const char *host, unsigned port,
		     struct gate_address *ret, size_t most, struct diag *ret_why);
/* The same of a list of HOST[:PORT],..., the first address of each, published and told. false: some had none. */
bool peers_resolve_list(struct peers_look *look, const char *list, struct peers_found *found);
/* This node's cell, as all nodes cut it that found the same, sorted. ret has none of this node's entries. */
void peers_cut(const struct peers_self *self, struct peers_found *found, struct peers_list *ret);
/* Of a Slurm node list, "n[01-03,7],x4": "n01,n02,n03,n07,x4". 0 or -EINVAL with diag; the caller frees. */
int peers_slurm_expand(const char *text, char **ret, struct diag *diag);
