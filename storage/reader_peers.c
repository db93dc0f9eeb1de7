/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Other nodes: who is there, and the thread that takes what comes from them (cluster/value.h).
 *
 * Each sample of a group has an owner among the nodes that are connected (base/owner.h), or among those of a job that spreads its
 * samples (reader_spread.c). What that means for tasks and for questions of others is in reader_serve.c, what is said in
 * reader_tell.c.
 *
 * One thread, the peers' thread, takes what comes from the carrier: it reads from the store and from memory, and from no
 * user data, so it is never held by a file system of the user's.
 *
 * When a carrier was replaced, or a channel was lost, all that was asked there is given up, and whatever still
 * comes finds no entry. So is what that peer had promised. A peer that is connected anew is told the names of groups
 * anew. A lost channel is the carrier's GONE alone, which stands in the ring between the old channel's words and those
 * of the next one with that number; members, which come another way, only say who is asked from now on.
 */

#include "storage/reader_peers.h"

#include "base/hold.h"
#include "base/little.h"
#include "base/log.h"
#include "base/owner.h"
#include "cluster/promise.h"

#define PEERS_ITEMS 256 /* of the ring, a turn: then it is looked whether it is time to end */

static struct {
	bool is_ready, is_started; /* main thread; is_ready: there is memory for all of it */
	_Atomic bool is_on;        /* somebody is connected; for eyes: lock says who */
	_Atomic bool is_untold;    /* somebody may not know of this node's spreads */
	pthread_t thread;

	pthread_mutex_t lock;
	/* under the lock */
	struct owner_node nodes[VALUE_MOST_PEERS + 1]; /* [0]: this one */
	uint32_t number[VALUE_MOST_PEERS + 1];         /* of each, as a peer */
	unsigned n;
	struct rings new_to, new_from; /* of a new carrier, until the thread has taken them */
	bool is_new, is_taking, is_ending;
	struct store *store; /* borrowed from the keeper; NULL: there is none, or not yet */
	struct rings from;   /* written by the thread alone */

	/* the thread's */
	uint32_t seen; /* of the ring, before it was looked at last */
	bool is_more;  /* there is more in it than one turn takes */
	uint64_t ticked_ns;
} peers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- who is there ---- */

/* Under the lock: of all that are connected. */
static uint32_t owner_of_all(const struct hash_id *group, uint64_t sample, uint32_t *ret_next)
{
	unsigned next = OWNER_NONE, first = 0;

	if (peers.n > 1)
		first = owner_of(little_64(group->bytes), sample, peers.nodes, peers.n, &next);
	*ret_next = next && next != OWNER_NONE ? peers.number[next] : PROMISE_SELF;
	return first ? peers.number[first] : PROMISE_SELF;
}

/* Under the lock. */
static bool is_member(uint32_t peer)
{
	for (unsigned i = 1; i < peers.n; i++)
		if (peers.number[i] == peer)
			return true;
	return peer == PROMISE_SELF;
}

uint32_t reader_peers_owner(const struct hash_id *group, uint64_t sample, uint32_t *ret_next)
{
	uint32_t owner, spread;
	bool is_in;

	BASE_HOLD(&peers.lock);
	owner = owner_of_all(group, sample, ret_next);
	spread = reader_spread_owner(group, sample, &is_in);
	if (spread != owner && is_member(spread)) {
		*ret_next = owner;
		owner = spread;
	}
	return owner;
}

bool reader_peers_makes(const struct hash_id *group, uint64_t sample)
{
	uint32_t next, owner, spread;
	bool is_in;

	BASE_HOLD(&peers.lock);
	owner = owner_of_all(group, sample, &next);
	spread = reader_spread_owner(group, sample, &is_in);
	if (is_in && is_member(spread))
		owner = spread;
	return owner == PROMISE_SELF;
}

uint64_t reader_peers_id(uint32_t peer)
{
	uint64_t id = 0;

	BASE_HOLD(&peers.lock);
	for (unsigned i = 1; i < peers.n; i++)
		if (peers.number[i] == peer)
			id = peers.nodes[i].id;
	return id;
}

/* Under the lock: what is asked while a carrier is being exchanged would be given up at once. */
static void settle_locked(void)
{
	atomic_store_explicit(&peers.is_on, peers.n > 1 && !peers.is_new && !peers.is_taking,
			      memory_order_relaxed);
}

bool reader_peers_is_on(void)
{
	return atomic_load_explicit(&peers.is_on, memory_order_relaxed);
}

struct store *reader_peers_store_now(void)
{
	struct store *store;

	BASE_HOLD(&peers.lock);
	store = peers.store;
	return store;
}

/* ---- the thread ---- */

/* A new carrier's rings, if there are any: what was said to the one before is lost. false: time to end. */
static bool take_carrier(void)
{
	struct rings old_to = {.head = NULL}, old_from = old_to, to = old_to;
	bool is_new, is_ending;

	pthread_mutex_lock(&peers.lock);
	is_new = peers.is_new;
	is_ending = peers.is_ending;
	if (is_new) {
		old_from = peers.from;
		peers.from = peers.new_from;
		to = peers.new_to;
		peers.is_new = false;
		peers.is_taking = true;
	}
	pthread_mutex_unlock(&peers.lock);
	if (is_new) {
		old_to = reader_tell_by(&to);
		rings_detach(&old_to);
		rings_detach(&old_from);
	}
	for (uint32_t peer = 0; is_new && peer < VALUE_MOST_PEERS; peer++)
		reader_serve_gone(peer);
	pthread_mutex_lock(&peers.lock);
	peers.is_taking = false;
	settle_locked();
	pthread_mutex_unlock(&peers.lock);
	return !is_ending;
}

static void tick_if_due(uint64_t now_ns)
{
	if (now_ns - peers.ticked_ns < PEERS_TICK_NS)
		return;
	peers.ticked_ns = now_ns;
	reader_serve_tick(now_ns);
}

/* Also those who know it already, and keep that. */
static void tell_spreads(void)
{
	uint32_t number[VALUE_MOST_PEERS + 1];
	bool is_told = true;
	unsigned n;

	if (!atomic_exchange(&peers.is_untold, false))
		return;
	pthread_mutex_lock(&peers.lock);
	memcpy(number, peers.number, sizeof(number));
	n = peers.n;
	pthread_mutex_unlock(&peers.lock);
	for (unsigned i = 1; i < n; i++)
		is_told &= reader_spread_tell(number[i]);
	if (!is_told)
		atomic_store(&peers.is_untold, true);
}

bool reader_peers_turn(void)
{
	struct rings_item item;
	bool is_bad = false;
	unsigned n = 0;

	if (!take_carrier())
		return false;
	peers.seen = rings_seq(&peers.from);
	tell_spreads();
	for (; n < PEERS_ITEMS && rings_look(&peers.from, 0, &item, &is_bad); n++) {
		reader_serve_take(item.data, item.bytes);
		rings_pass(&peers.from, 0, &item);
		tick_if_due(base_now_ns());
	}
	if (is_bad)
		log_line(LOG_LEVEL_ERROR, "ring-bad", "of=carrier");
	peers.is_more = n == PEERS_ITEMS;
	reader_serve_owed();
	tick_if_due(base_now_ns());
	return true;
}

static bool has_news(void)
{
	BASE_HOLD(&peers.lock);
	return peers.is_new || peers.is_ending;
}

static void *peers_thread(void *unused)
{
	pthread_setname_np(pthread_self(), "peers");
	while (reader_peers_turn())
		if (!peers.is_more && !has_news())
			rings_sleep(&peers.from, peers.seen, reader_serve_nap_ns());
	reader_guests_end();
	return unused;
}

/* ---- from the main thread and the keeper ---- */

/* Under the lock. */
static void wake_thread(void)
{
	if (peers.from.head)
		rings_wake(&peers.from);
}

void reader_peers_wake(void)
{
	BASE_HOLD(&peers.lock);
	wake_thread();
}

void reader_peers_tell_spreads(void)
{
	atomic_store(&peers.is_untold, true);
	reader_peers_wake();
}

static bool make_ready(void)
{
	peers.is_ready = peers.is_ready || reader_serve_init();
	return peers.is_ready;
}

void reader_peers_start(void)
{
	if (peers.is_started)
		return;
	if (pthread_create(&peers.thread, NULL, peers_thread, NULL))
		reader_say_fatal("threads", "no thread for other nodes' values can be started: "
					    "raise TasksMax or ulimit -u");
	peers.is_started = true;
}

static bool is_one_ring(const struct rings *rings)
{
	return rings->n_rings == 1 && rings_most(rings) >= VALUE_MOST + sizeof(struct value_head);
}

bool reader_peers_carrier(uint64_t self, int to_fd, int from_fd)
{
	struct rings to = {.head = NULL}, from = to;

	if (rings_attach(to_fd, &to) || rings_attach(from_fd, &from) || !is_one_ring(&to) ||
	    !is_one_ring(&from)) {
		rings_detach(&to);
		rings_detach(&from);
		return false;
	}
	if (!make_ready())
		reader_say_fatal("memory", "not enough memory for values of other nodes");
	BASE_HOLD(&peers.lock);
	if (peers.is_new) { /* it was not taken yet, and never is */
		rings_detach(&peers.new_to);
		rings_detach(&peers.new_from);
	}
	peers.nodes[0].id = self;
	peers.n = 1;
	peers.new_to = to;
	peers.new_from = from;
	peers.is_new = true;
	settle_locked();
	wake_thread();
	return true;
}

/* A cell is small, and each node is in it once. */
static bool are_members(const struct reader_member *members, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (members[i].peer >= VALUE_MOST_PEERS)
			return false;
		for (unsigned k = 0; k < i; k++)
			if (members[k].peer == members[i].peer || members[k].id == members[i].id)
				return false;
	}
	return n <= VALUE_MOST_PEERS;
}

bool reader_peers_members(uint32_t weight, const struct reader_member *members, unsigned n)
{
	if (!peers.is_ready || !are_members(members, n))
		return false;
	BASE_HOLD(&peers.lock);
	peers.nodes[0].weight = weight;
	for (unsigned i = 0; i < n; i++) {
		peers.nodes[i + 1] = (struct owner_node){members[i].id, members[i].weight};
		peers.number[i + 1] = members[i].peer;
	}
	peers.n = n + 1;
	atomic_store(&peers.is_untold, true);
	settle_locked();
	wake_thread();
	return true;
}

void reader_peers_store(struct store *store)
{
	BASE_HOLD(&peers.lock);
	peers.store = store;
}

void reader_peers_end(void)
{
	if (!peers.is_started)
		return;
	pthread_mutex_lock(&peers.lock);
	peers.is_ending = true;
	peers.n = 0; /* so that nobody begins to wait */
	settle_locked();
	wake_thread();
	pthread_mutex_unlock(&peers.lock);
	pthread_join(peers.thread, NULL);
}
