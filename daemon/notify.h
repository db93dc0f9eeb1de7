/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a service manager and a service say to each other by environment variables and datagrams, as systemd
 * documents them: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3). No library is needed for it.
 */

#include <sys/socket.h>
#include <sys/un.h>
#include "base/base.h"

struct notify { /* zeroed: nobody listens */
	int fd; /* 0: none; it has no name, so nobody can send anything to it */
	socklen_t size;
	struct sockaddr_un address;
	uint64_t watchdog_ns; /* a datagram must come as often; 0: nobody waits for it */
};

/* Takes what the environment says to this process, and removes it there, also if it is for another one: no child of ours
 * gets it. listens: false, none of it is for us. What cannot be made of it is logged, and nobody listens then. */
void notify_open(struct notify *notify, bool listens);
/* Sends lines of NAME=VALUE. true: it was sent, or nobody listens. Waits for nobody. */
bool notify_say(struct notify *notify, const char *lines);
void notify_close(struct notify *notify);

/* The listening socket that the manager opened for us, or -1: none, or with diag none that we can use. The caller owns it.
 * As notify_open() for the environment. */
int notify_take_socket(bool listens, struct diag *diag);
