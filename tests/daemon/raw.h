/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A client without libaccess: says exactly what a test wants said to the accessd of rig_start(),
 * also what no honest client would say.
 */

#include "base/wire.h"
#include "shmring/slot_table.h"
#include "shmring/grant.h"
#include "shmring/proto.h"
#include "tests/scenarios/rig.h"

struct raw_open { /* what an OPEN asks for; zeroed members are left out or 0 */
	const char *dataset, *pipeline;
	uint64_t batch, chunk, policy, budget;
	uint64_t spread; /* of the ranks 0 and 1 of four, in a seeded order */
	bool has_budget;
};

/* Connects; -1 with errno when it cannot. */
int raw_try_dial(void);
int raw_dial(void);
/* HELLO, if there is room for it: wire_send()'s outcome. */
int raw_say_hello(int sock, const char *program);
/* HELLO, and waits for WELCOME. */
int raw_greeted(struct wire_in *ret_welcome);
void raw_send_open(int sock, const struct wire_in *welcome, const struct raw_open *open);
/* An OPEN on a new socket, without waiting for its answer. */
int raw_ask(const struct raw_open *open);
/* The next message of the type (0: that is no PROGRESS and no NOTICE), at most PATIENCE_MS: 0, or
 * wire_recv()'s outcome. */
int raw_hear(int sock, uint16_t type, struct wire_in *ret);
int raw_hear_for(int sock, uint16_t type, unsigned ms, struct wire_in *ret); /* at most so long */
/* A whole opening that must succeed. */
int raw_open(const struct raw_open *open, struct wire_in *ret_opened);
void raw_say(int sock, uint16_t type);

/* A message of that kind of nonsense, of at most size bytes, 208 or more: how many. */
size_t raw_nonsense(unsigned kind, uint64_t *state, uint8_t *data, size_t size);

/* The rank's side of an opened job. */
struct raw_rank {
	const struct layout_inbox *inbox;
	struct layout_outbox *outbox;
	struct grant_rank rank;
};
void raw_attach(struct wire_in *opened, struct raw_rank *ret);
void raw_detach(struct raw_rank *rank);
