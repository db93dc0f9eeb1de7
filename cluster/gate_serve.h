/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The gate's sockets: one that listens, the calls of both directions, and poll(). One thread, nothing waits but poll();
 * but for the name of a user, when a domain begins.
 */

#include "cluster/cell.h"
#include "cluster/gate_carriers.h"

struct gate_serve;

/* "ADDRESS:PORT", "[IPv6]:PORT"; *ret_address: as bound. A listening socket, or negative errno with diag. */
int gate_serve_listen(const char *listen, struct gate_address *ret_address, struct diag *diag);

/* All is borrowed for as long as it lives, but listen_fd. */
int gate_serve_new(struct gate_tls_way *way, struct gate_carriers *carriers, int listen_fd,
		   struct gate_serve **ret);
/* Waits for what comes next at the calls and at two other descriptors, and does what the calls need. The bits of those of
 * the two that can be read (1, 2), or negative errno. */
int gate_serve_turn(struct gate_serve *serve, const int fds[2]);
