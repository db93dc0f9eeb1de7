/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What waits to be sent on a connection: frames are made in it, and leave it in the order they came, small ones together.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define OUTBOX_CHUNK ((size_t)256 << 10)

struct outbox_chunk;

struct outbox { /* all 0: empty */
	struct outbox_chunk *first, *last, *spare;
	unsigned spares;
	size_t bytes;
};

void outbox_fini(struct outbox *box);
/* Where so many bytes can be made, until the next call; NULL: no memory. */
uint8_t *outbox_room(struct outbox *box, size_t bytes);
/* They were made. */
void outbox_add(struct outbox *box, size_t bytes);
/* The oldest bytes, in up to `most` parts; how many parts. */
unsigned outbox_parts(const struct outbox *box, struct iovec *ret, unsigned most);
/* The oldest `bytes` were sent. */
void outbox_sent(struct outbox *box, size_t bytes);
