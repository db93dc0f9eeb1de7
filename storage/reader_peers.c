/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Values from other nodes, and for them (cluster/value.h).
 *
 * Each sample of a group has an owner among the nodes that are connected (cluster/owner.h). A task of this node that
 * wants a form which is not here is asked of its owner: a reading thread writes the question and goes on, the task waits
 * in a table (reader_asks.c). An owner that has no such value says so to the first who asks, who makes it then and puts
 * it here; whoever asks meanwhile waits (storage/promise.h), this node's own tasks among them. Whatever does not come,
 * or does not come in time, is read from the source.
 *
 * One thread, the peers' thread, takes what comes from the carrier: it reads from the store and from memory, and from no
 * user data, so it is never held by a file system of the user's. Threads that read and the keeper write to the carrier,
 * too. What a carrier says is hostile: a head is copied once and checked, and a value is looked at by sandboxed
 * workers alone. What it may do is to answer what was asked, or to give for groups that it named, of samples that
 * this node owns, what comes to lie under just that name.
 *
 * When a carrier was replaced, or a channel was lost, all that was asked there is given up (gone()), and whatever still
 * comes finds no entry. So is what that peer had promised. A peer that is connected anew is told the names of groups
 * anew.
 *
 * Locks: `lock` and `say_lock`, neither inside the other; inside `lock` none but that of the table of asks.
 *
 * Rejected: to let the serving read right into the tray. Who asks would wait for this node's disk.
 */

#include "storage/reader_peers.h"

#include "base/log.h"
#include "cluster/owner.h"
#include "storage/promise.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_PROMISES 16384
#define PEERS_WAITERS 8192
#define PEERS_OWED 4096                        /* questions that wait for room in the tray */
#define PEERS_PROMISED_NS UINT64_C(2000000000) /* somebody makes it: so long others wait */
#define PEERS_PATIENCE_NS UINT64_C(3000000000) /* then a task is read from its source */
#define PEERS_TICK_NS UINT64_C(50000000)
#define PEERS_SHORT_NS \
	UINT64_C(1000000) /* a tray that is full has no bell for who waits for room */
#define PEERS_REST_NS UINT64_C(1000000000)

static struct {
	bool is_ready, is_started; /* main thread; is_ready: what is here has memory */
	_Atomic bool is_on;        /* somebody is connected; for eyes: lock says who */
	pthread_t thread;

	pthread_mutex_t lock;
	/* under the lock */
	struct owner_node nodes[VALUE_MOST_PEERS + 1]; /* [0]: this one */
	uint32_t number[VALUE_MOST_PEERS + 1];         /* of each, as a peer */
	unsigned n;
	struct promises *promises;
	struct value_head *owed; /* a ring, [PEERS_OWED] */
	unsigned owed_first, owed_count;
	struct tray new_to, new_from; /* of a new carrier, until the thread has taken them */
	bool is_new, is_taking, is_ending;
	uint32_t gone;       /* peers that left without a word of the carrier, a bit each */
	struct store *store; /* borrowed from the keeper; NULL: there is none, or not yet */
	struct tray from;    /* written by the thread alone */

	pthread_mutex_t say_lock;
	/* under the say_lock */
	struct tray to;
	uint32_t turn
	    [VALUE_MOST_PEERS]; /* of the connection, from 1: whoever was told in another one was not */

	/* the thread's */
	uint8_t *buffer; /* VALUE_MOST bytes */
	uint32_t seen;   /* of the tray, before it was looked at last */
	uint64_t ticked_ns;
} peers = {.lock = PTHREAD_MUTEX_INITIALIZER, .say_lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- saying ---- */

/* Under the say_lock. false: no room, or no carrier. */
static bool say_locked(const struct value_head *head, const void *data)
{
	const uint32_t bytes = (uint32_t)sizeof(*head) + head->bytes;
	uint8_t *at = peers.to.head ? tray_begin(&peers.to, 0, bytes) : NULL;

	if (!at)
		return false;
	memcpy(at, head, sizeof(*head));
	if (head->bytes)
		memcpy(at + sizeof(*head), data, head->bytes);
	tray_end(&peers.to, 0, &(struct tray_item){.bytes = bytes});
	return true;
}

static bool say(const struct value_head *head, const void *data)
{
	bool is_said;

	pthread_mutex_lock(&peers.say_lock);
	is_said = say_locked(head, data);
	pthread_mutex_unlock(&peers.say_lock);
	return is_said;
}

static bool has_room_to_say(uint32_t bytes)
{
	bool has;

	pthread_mutex_lock(&peers.say_lock);
	has = peers.to.head && tray_begin(&peers.to, 0, sizeof(struct value_head) + bytes);
	pthread_mutex_unlock(&peers.say_lock);
	return has;
}

/* Under the say_lock: the group's name, once a connection. */
static bool say_group_locked(struct reader_shared *shared, uint32_t peer)
{
	const struct value_head head = {
	    .magic = VALUE_MAGIC,
	    .type = VALUE_GROUP,
	    .peer = peer,
	    .bytes = (uint32_t)strnlen(shared->note, VALUE_MOST_NOTE),
	    .samples = shared->samples,
	    .form = shared->form,
	    .group = shared->id,
	};

	if (shared->told[peer] == peers.turn[peer])
		return true;
	if (!say_locked(&head, shared->note))
		return false;
	shared->told[peer] = peers.turn[peer];
	return true;
}

static bool say_of(struct reader_shared *shared, const struct value_head *head, const void *data)
{
	bool is_said;

	pthread_mutex_lock(&peers.say_lock);
	is_said = say_group_locked(shared, head->peer) && say_locked(head, data);
	pthread_mutex_unlock(&peers.say_lock);
	return is_said;
}

struct reader_shared *reader_peers_share(const struct hash_id *id, uint64_t samples, unsigned form,
					 const char *note)
{
	struct reader_shared *shared = calloc(1, sizeof(*shared) + strlen(note) + 1);

	if (!shared)
		return NULL;
	shared->id = *id;
	shared->samples = samples;
	shared->form = form;
	strcpy(shared->note, note);
	return shared;
}

/* ---- who is there ---- */

/* Under the lock. PROMISE_SELF: this node; as *ret_next also: there is no other. */
static uint32_t owner_locked(const struct hash_id *group, uint64_t sample, uint32_t *ret_next)
{
	unsigned next = OWNER_NONE, first = 0;

	if (peers.n > 1)
		first = owner_of(group, sample, peers.nodes, peers.n, &next);
	*ret_next = next && next != OWNER_NONE ? peers.number[next] : PROMISE_SELF;
	return first ? peers.number[first] : PROMISE_SELF;
}

static bool is_own_locked(const struct hash_id *group, uint64_t sample)
{
	uint32_t next;

	return owner_locked(group, sample, &next) == PROMISE_SELF;
}

static uint32_t owner(const struct hash_id *group, uint64_t sample, uint32_t *ret_next)
{
	uint32_t peer;

	pthread_mutex_lock(&peers.lock);
	peer = owner_locked(group, sample, ret_next);
	pthread_mutex_unlock(&peers.lock);
	return peer;
}

/* Under the lock: what is asked while a carrier is being exchanged would be given up at once. */
static void settle_locked(void)
{
	atomic_store_explicit(&peers.is_on, peers.n > 1 && !peers.is_new && !peers.is_taking,
			      memory_order_relaxed);
}

static bool is_on(void)
{
	return atomic_load_explicit(&peers.is_on, memory_order_relaxed);
}

/* ---- answers ---- */

/* Its task is to be read from the source, by a reading thread. */
static void read_instead(struct reader_ask *ask)
{
	reader_lane_again(ask);
}

static void read_all_instead(struct reader_ask *list)
{
	while (list) {
		struct reader_ask *next = list->next;

		read_instead(list);
		list = next;
	}
}

/* The value that a task waits for: checked to be no larger than its room. */
static void come(struct reader_ask *ask, enum layout_from from, unsigned form, const uint8_t *value,
		 uint32_t bytes)
{
	const uint32_t behind = form == LAYOUT_FORM_INDEXED ? ask->task.bytes : 0;

	if (ask->task.want != form || bytes > ask->task.room || ask->task.room - bytes < behind)
		read_instead(ask);
	else
		reader_lane_bring(ask, from, value, bytes);
}

/* Under the lock. */
static bool owe_locked(const struct value_head *head)
{
	if (peers.owed_count == PEERS_OWED)
		return false;
	peers.owed[(peers.owed_first + peers.owed_count++) % PEERS_OWED] = *head;
	return true;
}

static bool owe(const struct value_head *head)
{
	bool is_owed;

	pthread_mutex_lock(&peers.lock);
	is_owed = owe_locked(head);
	pthread_mutex_unlock(&peers.lock);
	return is_owed;
}

static struct value_head head_for(const struct promise_waiter *waiter, enum value_type type)
{
	return (struct value_head){.magic = VALUE_MAGIC,
				   .type = type,
				   .peer = waiter->peer,
				   .id = waiter->id,
				   .sample = waiter->sample,
				   .group = waiter->group};
}

/* He makes it himself. */
static void answer_miss(const struct promise_waiter *waiter)
{
	const struct value_head miss = head_for(waiter, VALUE_MISS);
	struct reader_ask *ask;

	if (waiter->peer != PROMISE_SELF) {
		say(&miss, NULL); /* without room he runs out of patience */
		return;
	}
	ask = reader_asks_take(waiter->id, PROMISE_SELF, &waiter->group, waiter->sample);
	if (ask)
		read_instead(ask);
}

static void answer_value(const struct promise_waiter *waiter, enum layout_from from, unsigned form,
			 const uint8_t *value, uint32_t bytes)
{
	struct value_head head = head_for(waiter, VALUE_HAVE);
	struct reader_ask *ask;

	if (waiter->peer == PROMISE_SELF) {
		ask = reader_asks_take(waiter->id, PROMISE_SELF, &waiter->group, waiter->sample);
		if (ask)
			come(ask, from, form, value, bytes);
		return;
	}
	head.form = form;
	head.bytes = bytes;
	if (bytes > waiter->room || bytes > VALUE_MOST) {
		answer_miss(waiter);
	} else if (!say(&head, value)) {
		head = head_for(waiter, VALUE_GET); /* when there is room */
		head.room = waiter->room;
		owe(&head);
	}
}

static void answered(struct promise_waiter *list)
{
	pthread_mutex_lock(&peers.lock);
	promise_answered(peers.promises, list);
	pthread_mutex_unlock(&peers.lock);
}

static void answer_misses(struct promise_waiter *list)
{
	if (!list)
		return;
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next)
		answer_miss(waiter);
	answered(list);
}

/* A value is here: to all who wait for it. */
static void answer_all(const struct value_head *put, enum layout_from from, const uint8_t *value)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&peers.lock);
	list = promise_made(peers.promises, &put->group, put->sample);
	pthread_mutex_unlock(&peers.lock);
	if (!list)
		return;
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next)
		answer_value(waiter, from, put->form, value, put->bytes);
	answered(list);
}

/* ---- asking, from reading threads ---- */

/* This node's own sample: does somebody make it already? Else it is this task that does. */
static bool waits_here(const struct reader_ask *ask, uint64_t id)
{
	const struct promise_waiter self = {
	    .group = ask->group, .sample = ask->task.sample, .id = id, .peer = PROMISE_SELF};
	bool waits;

	pthread_mutex_lock(&peers.lock);
	waits = promise_ask(peers.promises, &self, ask->since_ns) == PROMISE_WAITS;
	pthread_mutex_unlock(&peers.lock);
	return waits;
}

static bool ask_there(const struct reader_ask *ask, uint64_t id)
{
	const struct value_head get = {
	    .magic = VALUE_MAGIC,
	    .type = VALUE_GET,
	    .peer = ask->peer,
	    .id = id,
	    .sample = ask->task.sample,
	    .room = BASE_MIN(ask->task.room, VALUE_MOST),
	    .group = ask->group,
	};

	return say_of(ask->shared, &get, NULL);
}

/* Others who want it are to wait until it is made here. */
static void promise_it(const struct reader_shared *shared, uint64_t sample)
{
	pthread_mutex_lock(&peers.lock);
	if (is_own_locked(&shared->id, sample))
		promise_note(peers.promises, &shared->id, sample, PROMISE_SELF, base_now_ns());
	pthread_mutex_unlock(&peers.lock);
}

/* false: nobody answers it, and it is the caller's again. */
static bool wait_or_ask(const struct reader_ask *ask)
{
	const uint64_t id = reader_asks_add(ask);
	struct reader_ask *mine;

	if (!id)
		return false;
	if (ask->peer == PROMISE_SELF ? waits_here(ask, id) : ask_there(ask, id))
		return true;
	mine = reader_asks_take(id, ask->peer, &ask->group, ask->task.sample);
	if (!mine) /* given up meanwhile, and read by somebody else */
		return true;
	reader_asks_free(mine);
	return false;
}

bool reader_peers_ask(struct reader_lane *lane, struct reader_shared *shared,
		      const struct lane_task *task)
{
	struct reader_ask ask = {
	    .lane = lane, .task = *task, .group = shared->id, .shared = shared};
	uint32_t next;

	if (!is_on() || !task->make)
		return false;
	if (task->want != task->make) {
		promise_it(shared, task->sample);
		return false;
	}
	ask.peer = owner(&shared->id, task->sample, &next);
	ask.since_ns = base_now_ns();
	ask.until_ns = ask.since_ns + PEERS_PATIENCE_NS;
	reader_lane_keep(lane);
	if (wait_or_ask(&ask))
		return true;
	if (ask.peer == PROMISE_SELF && next != PROMISE_SELF) {
		ask.peer = next;
		ask.is_last = true;
		if (wait_or_ask(&ask))
			return true;
	}
	reader_lane_put(lane);
	return false;
}

/* ---- what was made here, from the keeper ---- */

bool reader_peers_made(struct reader_shared *shared, const struct tray_item *item)
{
	struct value_head put = {
	    .magic = VALUE_MAGIC,
	    .type = VALUE_PUT,
	    .bytes = item->bytes,
	    .sample = item->sample,
	    .form = shared->form,
	    .group = shared->id,
	};
	uint32_t next;

	if (!is_on() || item->bytes == 0 || item->bytes > VALUE_MOST)
		return false;
	put.peer = owner(&shared->id, item->sample, &next);
	if (put.peer != PROMISE_SELF) {
		say_of(shared, &put, item->data); /* without room it is made again, sometime */
		return true;
	}
	answer_all(&put, LAYOUT_FROM_MEMORY, item->data);
	return false;
}

/* ---- serving, in the peers' thread ---- */

static struct store *store_now(void)
{
	struct store *store;

	pthread_mutex_lock(&peers.lock);
	store = peers.store;
	pthread_mutex_unlock(&peers.lock);
	return store;
}

/* 0, STORE_E_NONE or STORE_E_ROOM. */
static int look_up(const struct reader_guest *guest, uint64_t sample, uint32_t room,
		   uint32_t *ret_bytes)
{
	size_t bytes;
	int r = reader_resident_copy(guest->resident, sample, peers.buffer, room, &bytes);

	if (r == STORE_E_NONE && guest->group)
		r = store_get(guest->group, sample, peers.buffer, room, &bytes);
	if (!r)
		*ret_bytes = (uint32_t)bytes;
	return r == 0 || r == STORE_E_ROOM ? r : STORE_E_NONE;
}

/* It is not here. The owner remembers who makes it; whoever is no owner does not. */
static bool must_wait(const struct promise_waiter *asker)
{
	bool waits;

	pthread_mutex_lock(&peers.lock);
	waits = is_own_locked(&asker->group, asker->sample) &&
		promise_ask(peers.promises, asker, base_now_ns()) == PROMISE_WAITS;
	pthread_mutex_unlock(&peers.lock);
	return waits;
}

/* Who may have as much as this gets it. */
static void serve_get(const struct value_head *get)
{
	const struct reader_guest *guest = reader_guests_find(store_now(), get);
	const struct promise_waiter asker = {.group = get->group,
					     .sample = get->sample,
					     .id = get->id,
					     .peer = get->peer,
					     .room = BASE_MIN(get->room, VALUE_MOST)};
	uint32_t bytes;
	int r;

	if (!guest) {
		answer_miss(&asker);
		return;
	}
	r = look_up(guest, get->sample, asker.room, &bytes);
	if (!r)
		answer_value(&asker, LAYOUT_FROM_STORE, guest->form, peers.buffer, bytes);
	else if (r == STORE_E_ROOM || !must_wait(&asker))
		answer_miss(&asker);
}

/* The next one, if there is room for its answer. */
static bool take_owed(struct value_head *ret)
{
	bool is_there;

	pthread_mutex_lock(&peers.lock);
	is_there = peers.owed_count > 0;
	if (is_there)
		*ret = peers.owed[peers.owed_first];
	pthread_mutex_unlock(&peers.lock);
	if (!is_there || !has_room_to_say(BASE_MIN(ret->room, VALUE_MOST)))
		return false;
	pthread_mutex_lock(&peers.lock);
	peers.owed_first = (peers.owed_first + 1) % PEERS_OWED;
	peers.owed_count--;
	pthread_mutex_unlock(&peers.lock);
	return true;
}

static void serve_owed(void)
{
	struct value_head get;

	while (take_owed(&get))
		serve_get(&get);
}

static void on_get(const struct value_head *get)
{
	const struct promise_waiter asker = {
	    .group = get->group, .sample = get->sample, .id = get->id, .peer = get->peer};

	if (!owe(get))
		answer_miss(&asker);
	serve_owed();
}

static void on_put(const struct value_head *put, const uint8_t *value)
{
	const struct reader_guest *guest = reader_guests_find(store_now(), put);
	uint32_t next;

	if (!guest || guest->form != put->form ||
	    owner(&put->group, put->sample, &next) != PROMISE_SELF)
		return;
	if (guest->group)
		store_put(guest->group, put->sample, value, put->bytes);
	reader_resident_keep(guest->resident, put->sample, value, put->bytes);
	answer_all(put, LAYOUT_FROM_PEER, value);
}

/* It came from who had it before its owner did: that one keeps it from now on. */
static void hand_on(const struct reader_ask *ask, const struct value_head *have,
		    const uint8_t *value)
{
	struct value_head put = *have;
	uint32_t next;

	put.type = VALUE_PUT;
	put.id = 0;
	put.peer = owner(&have->group, have->sample, &next);
	if (put.peer != PROMISE_SELF) {
		say_of(ask->shared, &put, value);
		return;
	}
	reader_lane_store(ask->lane, have->form, have->sample, value, have->bytes);
	answer_all(have, LAYOUT_FROM_PEER, value);
}

static void on_have(const struct value_head *have, const uint8_t *value)
{
	struct reader_ask *ask = reader_asks_take(have->id, have->peer, &have->group, have->sample);

	if (!ask)
		return;
	if (ask->is_last && have->form == ask->shared->form)
		hand_on(ask, have, value);
	come(ask, LAYOUT_FROM_PEER, have->form, value, have->bytes);
}

/* The owner has not got it: who was the owner before him may have. */
static void on_miss(const struct value_head *miss)
{
	struct reader_ask *ask = reader_asks_take(miss->id, miss->peer, &miss->group, miss->sample);
	struct reader_ask further;
	uint32_t next = PROMISE_SELF;

	if (!ask)
		return;
	if (!ask->is_last && owner(&ask->group, ask->task.sample, &next) != miss->peer)
		next = PROMISE_SELF; /* there are others now */
	further = *ask;
	further.peer = next;
	further.is_last = true;
	if (next == PROMISE_SELF || !wait_or_ask(&further))
		read_instead(ask);
	else
		reader_asks_free(ask);
}

/* No answer comes from there, and none goes there. */
static void on_gone(uint32_t peer)
{
	struct promise_waiter *list;
	unsigned kept = 0;

	pthread_mutex_lock(&peers.say_lock);
	peers.turn[peer]++;
	pthread_mutex_unlock(&peers.say_lock);
	read_all_instead(reader_asks_take_of(peer));
	pthread_mutex_lock(&peers.lock);
	list = promise_gone(peers.promises, peer);
	for (unsigned i = 0; i < peers.owed_count; i++) {
		const struct value_head *owed = &peers.owed[(peers.owed_first + i) % PEERS_OWED];

		if (owed->peer != peer)
			peers.owed[(peers.owed_first + kept++) % PEERS_OWED] = *owed;
	}
	peers.owed_count = kept;
	pthread_mutex_unlock(&peers.lock);
	answer_misses(list);
	reader_guests_gone(peer);
}

/* An item of the carrier's: hostile. */
static void take(const uint8_t *data, uint32_t bytes)
{
	struct value_head head;
	const uint8_t *behind = data + sizeof(head);

	if (bytes < sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	if (!value_head_check(&head) || head.bytes != bytes - sizeof(head))
		return;
	switch ((enum value_type)head.type) {
	case VALUE_GROUP:
		reader_guests_say(store_now(), &head, behind);
		break;
	case VALUE_GET:
		on_get(&head);
		break;
	case VALUE_HAVE:
		on_have(&head, behind);
		break;
	case VALUE_MISS:
		on_miss(&head);
		break;
	case VALUE_PUT:
		on_put(&head, behind);
		break;
	case VALUE_GONE:
		on_gone(head.peer);
		break;
	}
}

/* ---- the thread ---- */

/* What was made and waits to be found: it is in the store by now, or not yet. */
static void look_again(void)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&peers.lock);
	list = promise_kept(peers.promises);
	pthread_mutex_unlock(&peers.lock);
	if (!list)
		return;
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next) {
		struct value_head get = head_for(waiter, VALUE_GET);

		get.room = waiter->room;
		if (waiter->peer == PROMISE_SELF || !owe(&get))
			answer_miss(waiter); /* it is looked for where reading begins */
	}
	answered(list);
}

void reader_peers_tick(uint64_t now_ns)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&peers.lock);
	list = promise_expired(peers.promises, now_ns);
	pthread_mutex_unlock(&peers.lock);
	answer_misses(list);
	read_all_instead(reader_asks_take_late(now_ns));
	look_again();
	serve_owed();
}

/* A new carrier's trays, if there are any: what was said to the one before is lost. false: time to end. */
static bool take_carrier(void)
{
	struct tray old_to = {.head = NULL}, old_from = old_to, to = old_to;
	bool is_new, is_ending;
	uint32_t gone;

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
	gone = is_new ? (UINT32_C(1) << VALUE_MOST_PEERS) - 1 : peers.gone;
	peers.gone = 0;
	pthread_mutex_unlock(&peers.lock);
	if (is_new) {
		pthread_mutex_lock(&peers.say_lock);
		old_to = peers.to;
		peers.to = to;
		pthread_mutex_unlock(&peers.say_lock);
		tray_detach(&old_to);
		tray_detach(&old_from);
	}
	for (uint32_t peer = 0; gone >> peer; peer++)
		if (gone >> peer & 1)
			on_gone(peer);
	pthread_mutex_lock(&peers.lock);
	peers.is_taking = false;
	settle_locked();
	pthread_mutex_unlock(&peers.lock);
	return !is_ending;
}

/* Does anything wait, whose time may be over? */
static uint64_t nap_ns(void)
{
	unsigned promised, waiters, owed;

	pthread_mutex_lock(&peers.lock);
	promised = promise_count(peers.promises, &waiters);
	owed = peers.owed_count;
	pthread_mutex_unlock(&peers.lock);
	if (owed)
		return PEERS_SHORT_NS;
	return promised || reader_asks_count() ? PEERS_TICK_NS : PEERS_REST_NS;
}

static void tick_if_due(uint64_t now_ns)
{
	if (now_ns - peers.ticked_ns < PEERS_TICK_NS)
		return;
	peers.ticked_ns = now_ns;
	reader_peers_tick(now_ns);
}

bool reader_peers_turn(void)
{
	struct tray_item item;
	bool is_bad;

	if (!take_carrier())
		return false;
	peers.seen = tray_seq(&peers.from);
	while (tray_look(&peers.from, 0, &item, &is_bad)) {
		take(item.data, item.bytes);
		tray_pass(&peers.from, 0, &item);
		tick_if_due(base_now_ns());
	}
	if (is_bad)
		log_line(LOG_LEVEL_ERROR, "tray-bad", "of=carrier");
	serve_owed();
	tick_if_due(base_now_ns());
	return true;
}

static bool has_news(void)
{
	bool has;

	pthread_mutex_lock(&peers.lock);
	has = peers.is_new || peers.is_ending || peers.gone;
	pthread_mutex_unlock(&peers.lock);
	return has;
}

static void *peers_thread(void *unused)
{
	pthread_setname_np(pthread_self(), "peers");
	while (reader_peers_turn())
		if (!has_news())
			tray_sleep(&peers.from, peers.seen, nap_ns());
	reader_guests_end();
	return unused;
}

/* ---- from the main thread and the keeper ---- */

/* Under the lock. */
static void wake_thread(void)
{
	if (peers.from.head)
		tray_ring(&peers.from);
}

static bool make_ready(void)
{
	if (peers.is_ready)
		return true;
	peers.promises = promise_new(PEERS_PROMISES, PEERS_WAITERS, PEERS_PROMISED_NS);
	peers.owed = calloc(PEERS_OWED, sizeof(*peers.owed));
	peers.buffer = malloc(VALUE_MOST);
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		peers.turn[i] = 1;
	peers.is_ready = peers.promises && peers.owed && peers.buffer && reader_asks_init() == 0;
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

static bool is_one_ring(const struct tray *tray)
{
	return tray->n_rings == 1 && tray_most(tray) >= VALUE_MOST + sizeof(struct value_head);
}

bool reader_peers_carrier(uint64_t self, int to_fd, int from_fd)
{
	struct tray to = {.head = NULL}, from = to;

	if (tray_attach(to_fd, &to) || tray_attach(from_fd, &from) || !is_one_ring(&to) ||
	    !is_one_ring(&from)) {
		tray_detach(&to);
		tray_detach(&from);
		return false;
	}
	if (!make_ready())
		reader_say_fatal("memory", "not enough memory for values of other nodes");
	pthread_mutex_lock(&peers.lock);
	if (peers.is_new) { /* it was not taken yet, and never is */
		tray_detach(&peers.new_to);
		tray_detach(&peers.new_from);
	}
	peers.nodes[0].id = self;
	peers.n = 1;
	peers.new_to = to;
	peers.new_from = from;
	peers.is_new = true;
	settle_locked();
	wake_thread();
	pthread_mutex_unlock(&peers.lock);
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
	uint32_t before = 0, now = 0;

	if (!peers.is_ready || !are_members(members, n))
		return false;
	pthread_mutex_lock(&peers.lock);
	for (unsigned i = 1; i < peers.n; i++)
		before |= UINT32_C(1) << peers.number[i];
	peers.nodes[0].weight = weight;
	for (unsigned i = 0; i < n; i++) {
		peers.nodes[i + 1] = (struct owner_node){members[i].id, members[i].weight};
		peers.number[i + 1] = members[i].peer;
		now |= UINT32_C(1) << members[i].peer;
	}
	peers.n = n + 1;
	peers.gone |= before & ~now;
	settle_locked();
	wake_thread();
	pthread_mutex_unlock(&peers.lock);
	return true;
}

void reader_peers_store(struct store *store)
{
	pthread_mutex_lock(&peers.lock);
	peers.store = store;
	pthread_mutex_unlock(&peers.lock);
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
