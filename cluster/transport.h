/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A way for the bytes of a connection: in order, none lost, nobody waits. A new one is a file with such a table.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct transport;

struct transport_ops {
	const char *name; /* for people: how values go */
	/* Bytes taken; -EAGAIN: none now; another negative errno: it has ended. */
	ssize_t (*send)(struct transport *transport, const struct iovec *parts, unsigned n);
	/* Bytes that came; 0: the other side ended it; -EAGAIN; another negative errno. */
	ssize_t (*receive)(struct transport *transport, const struct iovec *parts, unsigned n);
	/* Has it wake epoll_fd with `tag` when something came (if it receives), and when there is room to send (if it
	 * sends). 0; 1: that is so already, and nothing may wake; or negative errno. */
	int (*wait)(struct transport *transport, int epoll_fd, uint64_t tag, bool receives,
		    bool sends);
	/* It was woken by these events, or said that it is so already: what there is to do. */
	void (*woke)(struct transport *transport, uint32_t events, bool *ret_receives,
		     bool *ret_sends);
	/* More than the errno says, of what ended it; NULL: there is no more. */
	const char *(*why)(const struct transport *transport);
	void (*close)(struct transport *transport); /* frees it */
};

struct transport {
	const struct transport_ops *ops;
};

/* A connected stream socket, which is the transport's from then on, also where this fails. 0 or negative errno. */
int transport_tcp_new(int fd, struct transport **ret);
/* Takes the socket out of one; frees it. */
int transport_tcp_take(struct transport *transport);
