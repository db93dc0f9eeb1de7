/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd's side of the gate (cluster/gate.h), which knows the other nodes: starts it where `peers` says that there may
 * be some, starts it again when it dies, tells it of each domain, and remembers what it says of members.
 */

#include "cluster/gate.h"
#include "daemon/proc/keeper.h"

struct json_out;
struct param;

struct gating_member {
	uint64_t id, incarnation;
	uint64_t state; /* enum gate_state */
	char node[65], address[256], why[256];
};

struct gating {                    /* zeroed: no peers, and no gate */
	const struct param *param; /* borrowed */
	struct child_wants wants;
	struct keeper keeper;
	void (*started)(void *arg); /* a new gate, which knows no domain */
	void *arg;                  /* its */
	uint64_t incarnation, id;   /* of this node; 0: there are no peers */
	char name[65], address[256];
	char why[1024];             /* the gate has failed for good: the configuration is wrong */
	char trouble[1024];         /* it tries something again and again; "": nothing */
	int key_fd[3];              /* owned; of GATE_START, -1: none */
	int login_fd;               /* the same */
	uint64_t domains, restarts; /* so many were numbered, from 1 */
	struct gating_member member[GATE_MOST_MEMBERS];
	unsigned n;
};

/* Reads what the configuration says of peers, and starts the gate if it says anything. started and arg were set
 * before, wants is copied. 0, or not, with diag. */
int gating_begin(struct gating *gating, const struct child_wants *wants, struct diag *diag);
void gating_end(struct gating *gating);
/* Are there to be peers? */
bool gating_is_on(const struct gating *gating);
/* What the node may keep, MiB: the same measure on every node. */
uint64_t gating_weight(const struct gating *gating);
/* A domain has a carrier: gate_fd is the gate's end of their pair (taken). number: the domain's, never 0; name: as
 * GATE_KEY_NAME has it. */
void gating_domain(struct gating *gating, uint64_t number, const char *name, int gate_fd);
void gating_domain_end(struct gating *gating, uint64_t number);
/* A member's name; its id in hexadecimal if it is not known by one. */
const char *gating_name_of(const struct gating *gating, uint64_t id, char ret[65]);
/* Who is there, as members of a JSON object. */
void gating_describe(const struct gating *gating, struct json_out *out);
