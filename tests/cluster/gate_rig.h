/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Real access-gates on loopback, driven as accessd and the carriers do it: by their sockets. Whatever does not come in
 * PATIENCE_S fails the test. */

#include <stdbool.h>
#include <sys/types.h>

#include "cluster/carrier.h"
#include "cluster/gate.h"

#define RIG_TEXT 1024

struct rig_gate {
	pid_t pid;
	int sock;
	char address[64]; /* READY's */
	char failed[RIG_TEXT];
	char
	    trouble[RIG_TEXT]; /* what it said first that it cannot do, before READY; "": nothing */
};

struct rig_start {
	const char *node, *cluster, *listen,
	    *peers;           /* NULL: "n", "c", "127.0.0.1:0", "static:127.0.0.1:1" */
	uint64_t incarnation; /* 0: by chance */
	bool is_plain;
	const char *key;      /* the file's text; NULL: 48 letters */
	const char *files[3]; /* paths of certificates */
	const char *login;    /* of etcd: the file's text; NULL: none */
};

struct rig_channel {
	uint64_t id, incarnation, weight, is_sealed;
	struct carrier_keys keys;
	int fd;
};

struct rig_member {
	uint64_t id, incarnation, state;
	char node[65], address[64], text[1024];
};

/* Until it has said READY, or FAILED (then address is ""). */
struct rig_gate rig_gate_start(const struct rig_start *start);
void rig_gate_stop(struct rig_gate *gate);
/* user:UID:GID of this process. The carrier's socket. */
int rig_gate_domain(const struct rig_gate *gate, uint64_t number, uint64_t weight);
void rig_gate_domain_end(const struct rig_gate *gate, uint64_t number);
struct rig_channel rig_gate_channel(int carrier);
void rig_gate_ended(int carrier, const struct rig_channel *channel);
/* What it says next of a member whose state and node (NULL: any) these are; what comes before is dropped. */
struct rig_member rig_gate_member(const struct rig_gate *gate, enum gate_state state,
				  const char *node);
/* What it says next that it cannot do; what comes before is dropped. */
void rig_gate_trouble(const struct rig_gate *gate, char ret[RIG_TEXT]);
/* Waits for a MEMBER_GONE of this id. */
void rig_gate_gone(const struct rig_gate *gate, uint64_t id);
/* Is there nothing to read there by now? */
bool rig_is_silent(int fd);
/* Has this process's user a name here? Nodes know each other's users by their names. */
bool rig_user_has_name(void);
/* A port of 127.0.0.1 for a server of this test, as text with the host. Until it ends nobody else gets it. */
void rig_free_address(char ret[64]);
int rig_connect(const char *address);
int rig_try_connect(const char *address); /* -1: nobody listens there */
/* The type of what the gate says next, which is dropped. */
unsigned rig_gate_next(const struct rig_gate *gate);
