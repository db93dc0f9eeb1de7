/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is there: what `peers` of accessd.conf says, looked up again and again by a thread of its own, which may wait for
 * name servers and for etcd as long as these take. Each kind is a file with a struct peers_kind. A kind that gets no
 * answer lists what it listed last.
 */

#include "cluster/gate.h"
#include "cluster/gate_call.h"

#define PEERS_MOST 4096 /* nodes of a cluster that are looked at */
#define PEERS_SPEC 4096 /* most bytes of `peers` */
#define PEERS_TROUBLE 512

struct peers_entry {
	char node[GATE_HELLO_NAME + 1]; /* "": not known */
	struct gate_address address;
	uint64_t incarnation; /* 0: not known */
};

struct peers_list { /* of a cell, without this node */
	struct peers_entry entries[GATE_MOST_MEMBERS];
	size_t n;
	char trouble[PEERS_TROUBLE]; /* why it is as it was last seen; "": it is as it is */
};

struct peers_self {
	const char *node, *cluster; /* borrowed, for as long as the peers live */
	uint64_t incarnation;
	struct gate_address listen; /* as bound */
	const char *login;          /* of etcd, "USER:PASSWORD"; "": none */
};

struct peers;

/* Checks `peers` and starts to look. 0 or -EINVAL, ... with diag. */
int peers_start(const char *peers, const struct peers_self *self, struct peers **ret,
		struct diag *diag);
/* Ends what it told others (etcd), and the thread. NULL is fine. */
void peers_stop(struct peers *peers);
/* To poll for reading: the list has changed. */
int peers_fd(const struct peers *peers);
/* The list as it is now. */
void peers_take(struct peers *peers, struct peers_list *ret);
