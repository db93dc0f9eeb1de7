/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is in this node's cell, and which channels there are to be: a link for each pair of a member and a domain. No
 * socket, no clock: what happens is told, with its time, and what follows is asked for. gate_serve.c has the calls.
 *
 * A link is called when its domain begins, and again 1 to 30 s after it was lost or a call came to nothing. While the same
 * link is called from both sides, the call of the node with the smaller id wins: he refuses the other's, and the other
 * drops his own. A member is known by its node's name once one of the two has proved the key to the other; before that
 * by its address, unless who listed it knew the name.
 */

#include "cluster/gate.h"
#include "cluster/gate_call.h"
#include "cluster/peers/peers.h"

#define CELL_MOST_DOMAINS 256
#define CELL_REPLACED 4

struct cell;

struct cell_member {
	bool is_used, is_listed;
	bool is_self;                   /* a listed address of this node */
	bool is_alias;                  /* of a node that is listed by another address, too */
	char node[GATE_HELLO_NAME + 1]; /* "": not known yet */
	bool has_address;
	struct gate_address address;
	uint64_t incarnation;
	uint64_t replaced[CELL_REPLACED]; /* earlier ones, the last first */
	enum gate_state state;
	struct diag text;
	uint64_t said; /* the id by which accessd knows it; 0: does not */
};

struct cell_sink {
	void *arg;
	void (*member)(void *arg, uint64_t id,
		       const struct cell_member *member); /* new or changed */
	void (*gone)(void *arg, uint64_t id);
};

/* A call's place. One whose serial is not the link's any more is not wanted. */
struct cell_ref {
	unsigned slot;
	uint64_t domain, serial;
};

struct cell_call { /* to be made */
	struct cell_ref ref;
	struct gate_address to;
	struct gate_hello hello;
};

/* self: cluster, node, incarnation, port and is_sealed of this node. */
int cell_new(const struct gate_hello *self, const struct cell_sink *sink, struct cell **ret);
void cell_free(struct cell *cell);

/* The members as they are listed now, GATE_MOST_MEMBERS of them at most. */
void cell_list(struct cell *cell, const struct peers_list *list, uint64_t now_ns);
/* 0; -EEXIST: that number is in use; -ENOSPC. */
int cell_domain(struct cell *cell, uint64_t number, const char *name, uint64_t weight,
		uint64_t now_ns);
void cell_domain_end(struct cell *cell, uint64_t number);
/* A channel has ended: it is connected anew, in time. */
void cell_lost(struct cell *cell, uint64_t domain, uint64_t id, uint64_t incarnation,
	       uint64_t now_ns);

/* A call that is due, under way from now on. false: none is. */
bool cell_due(struct cell *cell, uint64_t now_ns, struct cell_call *ret);
uint64_t cell_next_ns(const struct cell *cell); /* when one will be; UINT64_MAX: never */
bool cell_wants(const struct cell *cell, const struct cell_ref *ref);

/* Somebody called: the answer, to be written in any case. YES: the call is ret_ref's. r: gate_hello_read()'s. */
void cell_asked(struct cell *cell, const struct gate_call *call, uint64_t now_ns,
		struct gate_hello *ret_answer, struct cell_ref *ret_ref);
/* A call of this node's was answered otherwise than by YES. */
void cell_answered(struct cell *cell, const struct cell_ref *ref, const struct gate_call *call,
		   uint64_t now_ns);
/* A call came to nothing. */
void cell_failed(struct cell *cell, const struct cell_ref *ref, bool is_refused,
		 const struct diag *diag, uint64_t now_ns);
/* It is a channel. false: it is not wanted. *ret_id: of the node. */
bool cell_done(struct cell *cell, const struct cell_ref *ref, const struct gate_call *call,
	       uint64_t now_ns, uint64_t *ret_id);
