/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Queue pairs of an RDMA device (cluster/verbs.h), one a connection. The pool is made before the sandbox, with the memory
 * that all of it sends from and receives into; a transport takes a queue pair out of it and gives it back.
 *
 * A transport is made, says its address, is connected to the other end, and tried. Then it gets the socket that all this was
 * said over, whose end is the connection's, and is a transport like any other.
 */

#include "cluster/transport.h"
#include "cluster/verbs.h"

struct verbs_pool;

/* why: what hinders it and how to mend it. 0 or negative errno. */
int verbs_pool_new(const struct verbs_ops *ops, struct verbs_pool **ret, struct diag *why);
void verbs_pool_free(struct verbs_pool *pool); /* all transports were closed */
const char *verbs_pool_device(const struct verbs_pool *pool);
int verbs_pool_device_fd(const struct verbs_pool *pool);
int verbs_pool_event_fd(const struct verbs_pool *pool);
/* The event descriptor is readable: is the device gone? */
bool verbs_pool_broken(struct verbs_pool *pool);

/* Of a free queue pair, with its address. 0 or negative errno. */
int transport_verbs_new(struct verbs_pool *pool, struct transport **ret,
			struct path_address *ret_address, struct diag *why);
/* 0 or negative errno. */
int transport_verbs_connect(struct transport *transport, const struct path_address *theirs,
			    struct diag *why);
/* The other end is connected, too: sends it a message without bytes. 0 or negative errno. */
int transport_verbs_try(struct transport *transport);
/* Did ours arrive, and theirs come? 1; 0: not yet; negative errno: there is no way. */
int transport_verbs_works(struct transport *transport);
/* From now on bytes go this way; the socket is its own. epoll_fd: knows the socket. 0 or negative errno. */
int transport_verbs_take(struct transport *transport, int fd, int epoll_fd, uint64_t tag);

bool transport_is_verbs(const struct transport *transport);
