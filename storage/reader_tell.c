/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What this node says to others: reading threads, the keeper and the peers' thread write to one ring, one after the other.
 * A group's name is said before the first word of it, once a connection.
 */

#include "base/hold.h"
#include "storage/reader_peers.h"

static struct {
	pthread_mutex_t lock;
	/* under the lock */
	struct rings to;
	uint32_t turn
	    [VALUE_MOST_PEERS]; /* connections so far: whoever was told in another one was not */
} tell = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. false: no room, or no carrier. */
static bool locked(const struct value_head *head, const void *data)
{
	const uint32_t bytes = (uint32_t)sizeof(*head) + head->bytes;
	uint8_t *at = tell.to.head ? rings_begin(&tell.to, 0, bytes) : NULL;

	if (!at)
		return false;
	memcpy(at, head, sizeof(*head));
	if (head->bytes)
		memcpy(at + sizeof(*head), data, head->bytes);
	rings_end(&tell.to, 0, &(struct rings_item){.bytes = bytes});
	return true;
}

bool reader_tell(const struct value_head *head, const void *data)
{
	BASE_HOLD(&tell.lock);
	return locked(head, data);
}

bool reader_tell_has_room(uint32_t bytes)
{
	BASE_HOLD(&tell.lock);
	return tell.to.head && rings_begin(&tell.to, 0, sizeof(struct value_head) + bytes);
}

/* Under the lock: the group's name, and this node's place among those of a job, once a connection. */
static bool say_group_locked(struct reader_shared *shared, uint32_t peer)
{
	const struct value_head spread = {
	    .magic = VALUE_MAGIC,
	    .type = VALUE_SPREAD,
	    .peer = peer,
	    .id = shared->key,
	    .sample = shared->number,
	    .room = shared->nodes,
	    .group = shared->id,
	};
	const struct value_head head = {
	    .magic = VALUE_MAGIC,
	    .type = VALUE_GROUP,
	    .peer = peer,
	    .bytes = (uint32_t)strnlen(shared->note, VALUE_MOST_NOTE),
	    .samples = shared->samples,
	    .form = shared->form,
	    .group = shared->id,
	};

	if (shared->told[peer] == tell.turn[peer] + 1)
		return true;
	if (!locked(&head, shared->note) || (shared->nodes && !locked(&spread, NULL)))
		return false;
	shared->told[peer] = tell.turn[peer] + 1;
	return true;
}

bool reader_tell_of(struct reader_shared *shared, const struct value_head *head, const void *data)
{
	BASE_HOLD(&tell.lock);
	return say_group_locked(shared, head->peer) && locked(head, data);
}

bool reader_tell_group(struct reader_shared *shared, uint32_t peer)
{
	BASE_HOLD(&tell.lock);
	return say_group_locked(shared, peer);
}

struct reader_shared *reader_peers_share(const struct hash_id *id, uint64_t samples, unsigned form,
					 const char *note)
{
	struct reader_shared *shared = NULL;

	if (samples <= READER_GUEST_SAMPLES)
		shared = calloc(1, sizeof(*shared) + strlen(note) + 1);
	if (!shared)
		return NULL;
	shared->id = *id;
	shared->samples = samples;
	shared->form = form;
	strcpy(shared->note, note);
	return shared;
}

struct rings reader_tell_by(const struct rings *to)
{
	struct rings before;

	BASE_HOLD(&tell.lock);
	before = tell.to;
	tell.to = *to;
	return before;
}

void reader_tell_anew(uint32_t peer)
{
	BASE_HOLD(&tell.lock);
	tell.turn[peer]++;
}
