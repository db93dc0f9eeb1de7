/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The domains' carriers, by the sockets that accessd introduced them with. A domain lives in the cell as long as its
 * carrier's socket does: whose carrier has died is not called, nor answered to, until accessd has started another.
 */

#include <poll.h>

#include "cluster/cell.h"

#define GATE_CARRIERS_NAME 48

struct gate_carriers {
	struct cell *cell; /* borrowed */
	size_t n;
	struct gate_carrier {
		uint64_t domain, weight;
		uint64_t again_ns; /* his user has no name: looked for then; 0: is in the cell */
		char name[GATE_CARRIERS_NAME]; /* accessd's */
		int fd;
	} carrier[CELL_MOST_DOMAINS];
};

/* name: as GATE_KEY_NAME; as long as this machine has no name for the uid in it, it waits. fd is consumed. What has that number is replaced. */
void gate_carriers_begin(struct gate_carriers *carriers, uint64_t domain, const char *name,
			 uint64_t weight, int fd);
void gate_carriers_end(struct gate_carriers *carriers, uint64_t domain);
/* Looks for names of those who wait. When it is to be called again; UINT64_MAX: for nobody. */
uint64_t gate_carriers_again(struct gate_carriers *carriers, uint64_t now_ns);
/* Fills n of them; gate_carriers_hear() takes them back, polled. */
void gate_carriers_poll(const struct gate_carriers *carriers, struct pollfd *ret);
void gate_carriers_hear(struct gate_carriers *carriers, const struct pollfd *pollfds, size_t n);
/* fd stays the caller's. false: the carrier does not take it. */
bool gate_carriers_hand(struct gate_carriers *carriers, uint64_t domain, uint64_t id,
			const struct gate_hello *theirs, const struct carrier_keys *keys, int fd);
