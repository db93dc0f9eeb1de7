/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a job's samples are spread over nodes (plan/ranks/spread.h), a sample goes to the node of the job that owns it, as long
 * as that has room in the step. The same node is to keep what is made of it: else a node would look at others, each
 * epoch, for what it is given in each. So the nodes of such a job tell each other which of its nodes they are, and whose
 * a sample is of these groups is said by the very function that spreads them (owner_of_spread()).
 *
 * Nothing is agreed on: a node whose number is not known owns nothing by it, and its samples have the owner that they have
 * without a spread. Which sample a rank gets never depends on this. What a node said holds for as long as
 * it is connected, also when its job has ended: what is kept stays where it is looked for.
 *
 * Groups are few: those of spread data sets. Of more than there is room for, the one of others that was said longest ago
 * is forgotten, and costs its nodes what they would have without this; none of this node's own is for another's word.
 */

#include "base/hold.h"
#include "storage/reader_peers.h"

#include "base/owner.h"
#include "cluster/promise.h"

#define SPREADS_MOST 32

struct place { /* nodes 0: none */
	uint64_t key;
	uint32_t number, nodes;
};

struct spread {
	struct hash_id group;
	uint64_t turn; /* 0: free */
	struct place own, peer[VALUE_MOST_PEERS];
	struct reader_shared *shared; /* owned, what is told of the own one; NULL: there is none */
};

static struct {
	pthread_mutex_t lock;
	/* under the lock */
	struct spread one[SPREADS_MOST];
	uint64_t turn;

	_Atomic bool any; /* has anybody a place? for eyes */
} spreads = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct spread *find(const struct hash_id *group)
{
	for (unsigned i = 0; i < SPREADS_MOST; i++)
		if (spreads.one[i].turn &&
		    memcmp(&spreads.one[i].group, group, sizeof(*group)) == 0)
			return &spreads.one[i];
	return NULL;
}

/* Which of them goes first: free ones, then others' by age, then this node's by age, and that for its own alone. */
static bool is_sooner(const struct spread *a, const struct spread *b)
{
	const bool of_a = a->own.nodes > 0, of_b = b->own.nodes > 0;

	return of_a != of_b ? of_b : a->turn < b->turn;
}

/* NULL: there is no place for one that others have. */
static struct spread *find_or_add(const struct hash_id *group, bool is_own)
{
	struct spread *spread = find(group);

	if (!spread) {
		spread = &spreads.one[0];
		for (unsigned i = 1; i < SPREADS_MOST; i++)
			if (is_sooner(&spreads.one[i], spread))
				spread = &spreads.one[i];
		if (spread->own.nodes && !is_own)
			return NULL;
		free(spread->shared);
		*spread = (struct spread){.group = *group};
	}
	spread->turn = ++spreads.turn;
	atomic_store_explicit(&spreads.any, true, memory_order_relaxed);
	return spread;
}

void reader_spread_take(const struct reader_shared *of, uint64_t key, uint32_t number,
			uint32_t nodes)
{
	struct reader_shared *shared = reader_peers_share(&of->id, of->samples, of->form, of->note);
	struct spread *spread;

	if (!shared)
		return;
	shared->key = key;
	shared->number = number;
	shared->nodes = nodes;
	pthread_mutex_lock(&spreads.lock);
	spread = find_or_add(&of->id, true);
	free(spread->shared);
	spread->shared = shared;
	spread->own = (struct place){.key = key, .number = number, .nodes = nodes};
	pthread_mutex_unlock(&spreads.lock);
	reader_peers_tell_spreads();
}

void reader_spread_heard(const struct value_head *head)
{
	struct spread *spread;

	BASE_HOLD(&spreads.lock);
	spread = find_or_add(&head->group, false);
	if (spread)
		spread->peer[head->peer] = (struct place){
		    .key = head->id, .number = (uint32_t)head->sample, .nodes = head->room};
}

void reader_spread_gone(uint32_t peer)
{
	BASE_HOLD(&spreads.lock);
	for (unsigned i = 0; i < SPREADS_MOST; i++)
		spreads.one[i].peer[peer] = (struct place){.nodes = 0};
}

bool reader_spread_tell(uint32_t peer)
{
	bool is_told = true;

	BASE_HOLD(&spreads.lock);
	for (unsigned i = 0; i < SPREADS_MOST; i++)
		if (spreads.one[i].shared)
			is_told &= reader_tell_group(spreads.one[i].shared, peer);
	return is_told;
}

/* The spread that counts here: this node's own, or any. */
static const struct place *place_of(const struct spread *spread)
{
	const struct place *place = &spread->own;

	for (unsigned i = 0; i < VALUE_MOST_PEERS && !place->nodes; i++)
		place = &spread->peer[i];
	return place;
}

static bool is_number(const struct place *place, const struct place *of, uint32_t number)
{
	return place->nodes == of->nodes && place->key == of->key && place->number == number;
}

static uint32_t owner_in(const struct spread *spread, uint64_t sample)
{
	const struct place *of = place_of(spread);
	uint32_t number;

	if (!of->nodes)
		return READER_SPREAD_NOBODY;
	number = owner_of_spread(of->key, sample, of->nodes);
	if (is_number(&spread->own, of, number))
		return PROMISE_SELF;
	for (uint32_t peer = 0; peer < VALUE_MOST_PEERS; peer++)
		if (is_number(&spread->peer[peer], of, number))
			return peer;
	return READER_SPREAD_NOBODY;
}

uint32_t reader_spread_owner(const struct hash_id *group, uint64_t sample, bool *ret_is_in)
{
	uint32_t owner = READER_SPREAD_NOBODY;
	const struct spread *spread;

	*ret_is_in = false;
	if (!atomic_load_explicit(&spreads.any, memory_order_relaxed))
		return owner;
	BASE_HOLD(&spreads.lock);
	spread = find(group);
	if (spread) {
		owner = owner_in(spread, sample);
		*ret_is_in = spread->own.nodes > 0;
	}
	return owner;
}
