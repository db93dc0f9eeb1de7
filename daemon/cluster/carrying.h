/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd's side of a domain's carrier (cluster/carrier.h): starts it where there are to be peers, introduces it to the
 * gate and to the reader, and tells the reader who is connected. A carrier and its reader share what is under way, so
 * when one of them dies the other one of the pair gets new rings: the carrier dies with the reader.
 */

#include "base/identity.h"
#include "cluster/carrier.h"
#include "cluster/value.h"
#include "daemon/proc/keeper.h"
#include "sched/peering.h"

struct gating;
struct json_out;
struct reader_member;

struct carrying_calls { /* of who has it */
	void (*rings)(void *arg, int to_fd,
		      int from_fd); /* there is a new carrier, with nobody connected */
	void (*members)(void *arg, const struct reader_member *members, unsigned n);
	void *arg;
};
struct carrying_wants {
	struct carrying_calls calls;
	struct child_wants child; /* its uid: whose domain it is, ... */
	struct gating *gating;
	gid_t gid;        /* ... with which group */
	bool is_public;   /* of data that are open to everybody */
	const char *name; /* by which other nodes know it (cluster/gate.h) */
};

struct carrying_channel {
	uint64_t id, incarnation; /* 0: there is none of this number */
	uint64_t weight;
	bool is_rdma;
	char way[256]; /* the device, or why it is none */
	struct carrier_state state;
};
struct carrying_refused { /* a node to which values cannot go */
	uint64_t id;      /* 0: there is none */
	char why[512];
};
struct carrying_lost { /* connections to a node that ended */
	uint64_t id;   /* 0: there is none */
	uint64_t times;
	char why[256]; /* the last of them did */
};

struct carrying { /* zeroed: no carrier, as there are no peers */
	struct carrying_wants wants;
	char name[IDENTITY_TEXT_MAX];
	struct keeper keeper;
	uint64_t number;    /* the domain's, for the gate; 0: there is no carrier */
	int to_fd, from_fd; /* owned: rings that the reader writes and reads */
	struct carrying_channel channel[VALUE_MOST_PEERS];
	struct peering_carry carry; /* what carrying costs here, by whatever transport */
	struct carrying_refused refused[VALUE_MOST_PEERS];
	unsigned next_refused;
	struct carrying_lost lost[VALUE_MOST_PEERS];
	unsigned next_lost;
	uint64_t distrusted[VALUE_MOST_PEERS]; /* nodes whose values were wrong; 0: none */
};

/* Starts it. A domain without a carrier is one without peers, so no failure is an error: the log says it. */
void carrying_begin(struct carrying *carrying, const struct carrying_wants *wants);
/* Ends it. It waits for nobody. */
void carrying_end(struct carrying *carrying);
/* What a node gave is not what the source says: it is asked no more, until accessd begins anew. */
void carrying_distrust(struct carrying *carrying, uint64_t id, uint64_t sample);
/* The domain's reader has died, and a new one was started. */
void carrying_reader_died(struct carrying *carrying);
void carrying_reader_started(struct carrying *carrying);
/* The gate is a new one. */
void carrying_gate_started(struct carrying *carrying);
/* Its channels, each as a JSON object. */
/* What cannot be carried, and why; connections that ended, and why the last of each node did. */
void carrying_describe_refused(const struct carrying *carrying, struct json_out *out);
void carrying_describe_lost(const struct carrying *carrying, struct json_out *out);
void carrying_describe(const struct carrying *carrying, struct json_out *out);
