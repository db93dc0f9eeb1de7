/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chunks in a row. Some are kept when they are empty, the last one first, so that a connection that is quick enough writes
 * to the same memory again and again, which then is mapped and in the processor's cache.
 */

#include "cluster/outbox.h"

#include "base/base.h"

#define MOST_SPARES 8

struct outbox_chunk {
	struct outbox_chunk *next;
	size_t size, begin, end; /* of data: its bytes, and those that wait */
	uint8_t data[];
};

static void free_all(struct outbox_chunk *chunk)
{
	while (chunk) {
		struct outbox_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
}

void outbox_fini(struct outbox *box)
{
	free_all(box->first);
	free_all(box->spare);
	*box = (struct outbox){.bytes = 0};
}

static struct outbox_chunk *chunk_of(struct outbox *box, size_t bytes)
{
	const size_t size = BASE_MAX(bytes, OUTBOX_CHUNK);
	struct outbox_chunk *chunk = box->spare;

	if (chunk && size == OUTBOX_CHUNK) {
		box->spare = chunk->next;
		box->spares--;
	} else {
		chunk = malloc(sizeof(*chunk) + size);
		if (!chunk)
			return NULL;
		chunk->size = size;
	}
	chunk->next = NULL;
	chunk->begin = chunk->end = 0;
	return chunk;
}

uint8_t *outbox_room(struct outbox *box, size_t bytes)
{
	struct outbox_chunk *chunk = box->last;

	if (!chunk || chunk->size - chunk->end < bytes) {
		chunk = chunk_of(box, bytes);
		if (!chunk)
			return NULL;
		if (box->last)
			box->last->next = chunk;
		else
			box->first = chunk;
		box->last = chunk;
	}
	return chunk->data + chunk->end;
}

void outbox_add(struct outbox *box, size_t bytes)
{
	box->last->end += bytes;
	box->bytes += bytes;
}

unsigned outbox_parts(const struct outbox *box, struct iovec *ret, unsigned most)
{
	unsigned n = 0;

	for (struct outbox_chunk *chunk = box->first; chunk && n < most; chunk = chunk->next)
		if (chunk->end > chunk->begin)
			ret[n++] =
			    (struct iovec){chunk->data + chunk->begin, chunk->end - chunk->begin};
	return n;
}

/* The first one is empty. */
static void drop_first(struct outbox *box)
{
	struct outbox_chunk *chunk = box->first;

	box->first = chunk->next;
	if (!box->first)
		box->last = NULL;
	if (chunk->size != OUTBOX_CHUNK || box->spares == MOST_SPARES) {
		free(chunk);
		return;
	}
	chunk->next = box->spare;
	box->spare = chunk;
	box->spares++;
}

void outbox_sent(struct outbox *box, size_t bytes)
{
	box->bytes -= bytes;
	while (box->first) {
		struct outbox_chunk *chunk = box->first;
		const size_t part = BASE_MIN(bytes, chunk->end - chunk->begin);

		chunk->begin += part;
		bytes -= part;
		if (chunk->begin < chunk->end)
			return;
		drop_first(box);
	}
}
