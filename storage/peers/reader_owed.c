/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions of peers for whose answer there is no room: a ring, so that a peer with a slow wire gets all of them in its time, and the
 * others have room, too.
 */

#include "base/hold.h"
#include "storage/reader_peers.h"

#define OWED_MOST 4096
#define OWED_EACH 1024 /* of one peer */

static struct {
	pthread_mutex_t lock;
	/* under the lock */
	struct reader_owed *ring; /* [OWED_MOST] */
	unsigned first, count;
	unsigned to[VALUE_MOST_PEERS]; /* of those, to each */
} owed = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool reader_owed_init(void)
{
	owed.ring = calloc(OWED_MOST, sizeof(*owed.ring));
	return owed.ring != NULL;
}

static bool add_locked(const struct value_head *get, bool is_looked)
{
	if (owed.count == OWED_MOST || owed.to[get->peer] == OWED_EACH)
		return false;
	owed.to[get->peer]++;
	owed.ring[(owed.first + owed.count++) % OWED_MOST] =
	    (struct reader_owed){.get = *get, .is_looked = is_looked};
	return true;
}

bool reader_owed_add(const struct value_head *get, bool is_looked)
{
	BASE_HOLD(&owed.lock);
	return add_locked(get, is_looked);
}

bool reader_owed_take(struct reader_owed *ret)
{
	bool is_there;

	pthread_mutex_lock(&owed.lock);
	is_there = owed.count > 0;
	if (is_there)
		*ret = owed.ring[owed.first];
	pthread_mutex_unlock(&owed.lock);
	if (!is_there || !reader_tell_has_room(BASE_MIN(ret->get.room, VALUE_MOST)))
		return false;
	pthread_mutex_lock(&owed.lock);
	owed.first = (owed.first + 1) % OWED_MOST;
	owed.count--;
	owed.to[ret->get.peer]--;
	pthread_mutex_unlock(&owed.lock);
	return true;
}

void reader_owed_gone(uint32_t peer)
{
	unsigned kept = 0;

	BASE_HOLD(&owed.lock);
	for (unsigned i = 0; i < owed.count; i++) {
		const struct reader_owed *one = &owed.ring[(owed.first + i) % OWED_MOST];

		if (one->get.peer != peer)
			owed.ring[(owed.first + kept++) % OWED_MOST] = *one;
	}
	owed.count = kept;
	owed.to[peer] = 0;
}

unsigned reader_owed_count(void)
{
	BASE_HOLD(&owed.lock);
	return owed.count;
}
