/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the machine gives us, and how we follow when that changes: workers follow the CPUs, the budget follows the
 * cgroup's memory, and what lies in memory ahead of need is given back under pressure. Who follows is told by calls.
 */

#include "daemon/limits.h"
#include "daemon/loop.h"
#include "daemon/machine/numa.h"
#include "daemon/machine/psi.h"
#include "daemon/machine/pressure.h"

struct json_out;

struct machine_wants { /* parameters of that name; 0: what the machine gives */
	uint64_t workers, memory;
	bool numa, pressure;
};

struct machine_calls { /* to whoever follows */
	void (*set_workers)(void *arg, unsigned workers);
	void (*set_memory)(void *arg, uint64_t budget, const char *source);
	/* Gives back the caches, or what nobody needs now. Returns how many bytes. */
	uint64_t (*give_back)(void *arg, bool caches, bool idle);
};

struct machine {
	struct limits limits; /* in force */
	struct machine_wants wants;
	const struct machine_calls *calls;
	void *arg;
	unsigned workers, workers_most; /* of a domain: now; that they may become */
	uint64_t budget;
	uint64_t arithmetic; /* fingerprint_of_arithmetic(), where something may be kept */
	struct numa numa;
	struct psi psi;
	struct pressure pressure;
	struct loop_watch *look, *call; /* a timer; the kernel's call */
	uint64_t pressures;             /* times that it rose from none */
	uint64_t workers_changed, budget_changed;
};

/* Reads the limits, tells them by calls, which are borrowed, and looks again from now on. 0 or negative errno. */
int machine_begin(struct machine *machine, struct loop *loop, const struct machine_wants *wants,
		  const struct machine_calls *calls, void *arg);
void machine_end(struct machine *machine);
/* Looks at once, as the timer does. */
void machine_look(struct machine *machine);
/* May slots be reserved before somebody needs them? */
bool machine_has_room_ahead(const struct machine *machine);
/* Bytes of `bytes` for caches in memory that may be had now. */
uint64_t machine_share(const struct machine *machine, uint64_t bytes);
/* Members "machine", the limits in force and where they come from, and the pressure, and "numa". */
void machine_describe(const struct machine *machine, struct json_out *out);
