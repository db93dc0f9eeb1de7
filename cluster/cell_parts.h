/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between cell.c (who is there, which links there are) and cell_talk.c (what calls make of them). */

#include "cluster/cell.h"

#define CELL_NOBODY GATE_MOST_MEMBERS
#define CELL_LEAST_PAUSE_NS UINT64_C(1000000000)
#define CELL_STRANGER_FAILURES 6 /* after a minute or so */
#define CELL_MOST_PAUSE_NS UINT64_C(30000000000)

struct cell_link {
	bool is_alive;
	uint64_t since_ns; /* alive */
	uint64_t next_ns;  /* when to call */
	unsigned failures; /* one after the other */
	/* Serials of the calls under way, there and from there; 0: none */
	uint64_t calling, taking;
};

struct cell_domain {
	uint64_t number, weight;
	char name[GATE_HELLO_DOMAIN + 1];
	struct cell_link links[GATE_MOST_MEMBERS];
};

struct cell {
	struct gate_hello self;
	uint64_t self_id, serial;
	struct cell_sink sink;
	struct cell_member members[GATE_MOST_MEMBERS];
	struct cell_domain *domains[CELL_MOST_DOMAINS];
};

/* cell.c */
void cell_say(struct cell *cell, struct cell_member *member);
void cell_set_state(struct cell *cell, unsigned slot, enum gate_state state,
		    const struct diag *text);
void cell_forget(struct cell *cell, unsigned slot);
unsigned cell_find(const struct cell *cell, const char *node);
unsigned cell_place(struct cell *cell, bool is_listed); /* CELL_NOBODY: there is none */
void cell_begin(struct cell *cell, unsigned slot, uint64_t now_ns);
struct cell_domain *cell_domain_of(const struct cell *cell, uint64_t number);
struct cell_domain *cell_domain_named(const struct cell *cell, const char *name);
struct cell_link *cell_link_of(const struct cell *cell, const struct cell_ref *ref);
/* Who called, and is in no list, is forgotten when there is nothing to connect him to. */
void cell_forget_stranger(struct cell *cell, unsigned slot);
bool cell_is_connected(const struct cell *cell, unsigned slot);
void cell_retry(struct cell_link *link, uint64_t now_ns);
