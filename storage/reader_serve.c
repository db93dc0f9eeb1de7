/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Values that are asked for, here and there, and who gets them.
 *
 * A task of this node that is to make a form is asked of who owns its sample: a reading thread writes the question and goes
 * on, the task waits in a table (reader_asks.c). An owner that has no such value says so to the first who asks, who makes it then and puts
 * it here; whoever asks meanwhile waits (cluster/promise.h), this node's own tasks among them. Whatever does not come,
 * or does not come in time, is read from the source.
 *
 * What comes from the carrier is hostile: a head is copied once and checked, and a value is looked at by sandboxed
 * workers alone. What it may do is to answer what was asked, or to give for groups that it named, of samples that
 * this node owns, what comes to lie under just that name.
 *
 * Questions for whose answer there is no room are kept, so that a peer with a slow wire gets all of them in its time.
 *
 * Rejected: to let the serving read right into the ring. Who asks would wait for this node's disk.
 */

#include "storage/reader_peers.h"

#include "cluster/promise.h"

#include <pthread.h>

#define PEERS_PROMISES 16384
#define PEERS_WAITERS 8192
#define PEERS_OWED 4096                        /* questions that wait for room in the ring */
#define PEERS_OWED_EACH 1024                   /* of one peer: the others have room, too */
#define PEERS_PROMISED_NS UINT64_C(4000000000) /* somebody who makes nothing makes this, either */
#define PEERS_AGAIN_NS UINT64_C(1000000000)    /* so long others wait till they ask again */
/* Who has nothing to do makes what others make, too: so many a tick of those that he waits for so long. */
#define PEERS_IDLE_NS UINT64_C(500000000)
#define PEERS_IDLE_MOST 8
/* Then a task is read from its source: longer than the two times that somebody's making may take (who waits for the
 * first one may find another promise), and than the carrier waits for an answer. */
#define PEERS_PATIENCE_NS UINT64_C(20000000000)
/* A ring that is full has no bell for who waits for room */
#define PEERS_SHORT_NS UINT64_C(1000000)
#define PEERS_REST_NS UINT64_C(1000000000)

struct owed {
	struct value_head get;
	bool is_looked; /* its source was looked at for it: it is not done again */
};

static struct {
	pthread_mutex_t lock;
	/* under the lock */
	struct promises *promises;
	struct owed *owed; /* a ring, [PEERS_OWED] */
	unsigned owed_first, owed_count;
	unsigned owed_to[VALUE_MOST_PEERS]; /* of those, to each */

	_Atomic uint32_t distrusted; /* peers, a bit each */

	/* the peers' thread's */
	uint8_t *buffer; /* VALUE_MOST bytes */
	uint32_t work_seen;
} serve = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool reader_serve_init(void)
{
	serve.promises = promise_new(PEERS_PROMISES, PEERS_WAITERS, PEERS_PROMISED_NS);
	serve.owed = calloc(PEERS_OWED, sizeof(*serve.owed));
	serve.buffer = malloc(VALUE_MOST);
	return serve.promises && serve.owed && serve.buffer && reader_asks_init() == 0;
}

static bool is_own(const struct hash_id *group, uint64_t sample)
{
	uint32_t next;

	return reader_peers_owner(group, sample, &next) == PROMISE_SELF;
}

static bool is_distrusted(uint32_t peer)
{
	return atomic_load_explicit(&serve.distrusted, memory_order_relaxed) >> peer & 1;
}

void reader_serve_distrust(uint32_t peer)
{
	atomic_fetch_or(&serve.distrusted, UINT32_C(1) << peer);
}

/* ---- answers ---- */

/* Its task is to be read from the source, by a reading thread. */
static void read_instead(struct reader_ask *ask)
{
	reader_queue_again(ask);
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
		reader_queue_bring(ask, from, value, bytes);
}

/* Under the lock. */
static bool owe_locked(const struct value_head *head, bool is_looked)
{
	if (serve.owed_count == PEERS_OWED || serve.owed_to[head->peer] == PEERS_OWED_EACH)
		return false;
	serve.owed_to[head->peer]++;
	serve.owed[(serve.owed_first + serve.owed_count++) % PEERS_OWED] =
	    (struct owed){.get = *head, .is_looked = is_looked};
	return true;
}

static bool owe(const struct value_head *head, bool is_looked)
{
	bool is_owed;

	pthread_mutex_lock(&serve.lock);
	is_owed = owe_locked(head, is_looked);
	pthread_mutex_unlock(&serve.lock);
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
		reader_tell(&miss, NULL); /* without room he runs out of patience */
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
	head.room = waiter->since_ns > 0;
	if (bytes > waiter->room || bytes > VALUE_MOST) {
		answer_miss(waiter);
	} else if (!reader_tell(&head, value)) {
		head = head_for(waiter, VALUE_GET); /* when there is room */
		head.room = waiter->room;
		owe(&head, false);
	}
}

static void answered(struct promise_waiter *list)
{
	pthread_mutex_lock(&serve.lock);
	promise_answered(serve.promises, list);
	pthread_mutex_unlock(&serve.lock);
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

	pthread_mutex_lock(&serve.lock);
	list = promise_made(serve.promises, &put->group, put->sample, base_now_ns());
	pthread_mutex_unlock(&serve.lock);
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

	pthread_mutex_lock(&serve.lock);
	waits = promise_ask(serve.promises, &self, base_now_ns()) == PROMISE_WAITS;
	pthread_mutex_unlock(&serve.lock);
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

	return reader_tell_of(ask->shared, &get, NULL);
}

/* Others who want it are to wait until it is made here. false: somebody makes it. */
static bool promise_it(const struct reader_shared *shared, uint64_t sample)
{
	bool is_first;

	pthread_mutex_lock(&serve.lock);
	is_first = promise_note(serve.promises, &shared->id, sample, PROMISE_SELF, base_now_ns());
	pthread_mutex_unlock(&serve.lock);
	return is_first;
}

bool reader_peers_makes_ahead(struct reader_shared *shared, uint64_t sample)
{
	return reader_peers_is_on() && reader_peers_makes(&shared->id, sample) &&
	       promise_it(shared, sample);
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

bool reader_peers_ask(struct reader_queue *queue, struct reader_shared *shared,
		      const struct queue_task *task)
{
	struct reader_ask ask = {
	    .queue = queue, .task = *task, .group = shared->id, .shared = shared};
	uint32_t next;

	if (!reader_peers_is_on() || !task->make)
		return false;
	if (task->want != task->make || reader_checks_waits(&shared->id, task->sample)) {
		if (is_own(&shared->id, task->sample))
			promise_it(shared, task->sample);
		return false;
	}
	ask.peer = reader_peers_owner(&shared->id, task->sample, &next);
	ask.since_ns = base_now_ns();
	ask.until_ns = ask.since_ns + PEERS_PATIENCE_NS;
	reader_queue_keep(queue);
	if (wait_or_ask(&ask))
		return true;
	if (ask.peer == PROMISE_SELF && next != PROMISE_SELF) {
		ask.peer = next;
		ask.is_last = true;
		if (wait_or_ask(&ask))
			return true;
	}
	reader_queue_put(queue);
	return false;
}

/* Somebody makes it, and that takes its time. */
static void ask_again(struct reader_ask *ask)
{
	struct reader_ask further = *ask;

	further.has_waited = true;
	if (wait_or_ask(&further))
		reader_asks_free(ask);
	else
		read_instead(ask);
}

/* ---- what was made here, from the keeper ---- */

bool reader_peers_made(struct reader_shared *shared, const struct rings_item *item)
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

	reader_checks_made(&shared->id, item);
	if (!reader_peers_is_on() || item->bytes == 0 || item->bytes > VALUE_MOST)
		return false;
	put.peer = reader_peers_owner(&shared->id, item->sample, &next);
	if (put.peer != PROMISE_SELF) {
		reader_tell_of(shared, &put,
			       item->data); /* without room it is made again, sometime */
		return true;
	}
	answer_all(&put, LAYOUT_FROM_MEMORY, item->data);
	return false;
}

/* Each who waits looks for himself. */
static void answer_none(const struct hash_id *group, uint64_t sample)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&serve.lock);
	list = promise_unmade(serve.promises, group, sample, base_now_ns());
	pthread_mutex_unlock(&serve.lock);
	answer_misses(list);
}

void reader_peers_not_made(struct reader_shared *shared, uint64_t sample)
{
	struct value_head put = {.magic = VALUE_MAGIC,
				 .type = VALUE_PUT,
				 .sample = sample,
				 .form = shared->form,
				 .group = shared->id};
	uint32_t next;

	reader_checks_not_made(&shared->id, sample);
	if (!reader_peers_is_on())
		return;
	put.peer = reader_peers_owner(&shared->id, sample, &next);
	if (put.peer == PROMISE_SELF)
		answer_none(&shared->id, sample);
	else
		reader_tell_of(shared, &put, NULL);
}

/* ---- serving, in the peers' thread ---- */

/* 0, STORE_E_NONE or STORE_E_ROOM. */
static int look_up(const struct reader_guest *guest, uint64_t sample, uint32_t room,
		   uint32_t *ret_bytes)
{
	size_t bytes;
	int r = reader_resident_copy(guest->resident, sample, serve.buffer, room, &bytes);

	if (r == STORE_E_NONE && guest->group)
		r = store_get(guest->group, sample, serve.buffer, room, &bytes);
	if (!r)
		*ret_bytes = (uint32_t)bytes;
	return r == 0 || r == STORE_E_ROOM ? r : STORE_E_NONE;
}

/* It is not here. The owner remembers who makes it; whoever is no owner does not. */
static bool must_wait(const struct promise_waiter *asker)
{
	bool waits;

	if (!is_own(&asker->group, asker->sample))
		return false;
	pthread_mutex_lock(&serve.lock);
	waits = promise_ask(serve.promises, asker, base_now_ns()) == PROMISE_WAITS;
	pthread_mutex_unlock(&serve.lock);
	return waits;
}

/* Who may have as much as this gets it; what is here and due, when its source was looked at. */
static void serve_get(const struct value_head *get, bool is_looked)
{
	struct reader_guest *guest = reader_guests_find(reader_peers_store_now(), get);
	const struct promise_waiter asker = {.group = get->group,
					     .sample = get->sample,
					     .id = get->id,
					     .peer = get->peer,
					     .room = BASE_MIN(get->room, VALUE_MOST)};
	int r = STORE_E_ROOM, looks = 0;
	uint32_t bytes;
	unsigned form;
	bool is_due;

	if (!guest) {
		answer_miss(&asker);
		return;
	}
	form = guest->form;
	if (!is_looked)
		r = look_up(guest, get->sample, 0, &bytes);
	is_due = r == STORE_E_ROOM && !is_looked && reader_guests_is_due(guest, get->sample);
	if (r == STORE_E_ROOM && !is_due)
		r = look_up(guest, get->sample, asker.room, &bytes);
	reader_guests_leave();
	if (is_due)
		looks = reader_queue_look(get);
	if (is_due && looks == 0)
		serve_get(get, true); /* nobody can look */
	else if (looks < 0)
		answer_miss(&asker);
	else if (!r)
		answer_value(&asker, LAYOUT_FROM_STORE, form, serve.buffer, bytes);
	else if (!is_due && (r == STORE_E_ROOM || !must_wait(&asker)))
		answer_miss(&asker);
}

void reader_serve_looked(const struct value_head *get, bool is_same)
{
	const struct promise_waiter asker = {
	    .group = get->group, .sample = get->sample, .id = get->id, .peer = get->peer};

	if (is_same)
		reader_guests_looked(&get->group, get->sample);
	if (is_same && owe(get, true))
		reader_peers_wake();
	else
		answer_miss(&asker);
}

/* The next one, if there is room for its answer. */
static bool take_owed(struct owed *ret)
{
	bool is_there;

	pthread_mutex_lock(&serve.lock);
	is_there = serve.owed_count > 0;
	if (is_there)
		*ret = serve.owed[serve.owed_first];
	pthread_mutex_unlock(&serve.lock);
	if (!is_there || !reader_tell_has_room(BASE_MIN(ret->get.room, VALUE_MOST)))
		return false;
	pthread_mutex_lock(&serve.lock);
	serve.owed_first = (serve.owed_first + 1) % PEERS_OWED;
	serve.owed_count--;
	serve.owed_to[ret->get.peer]--;
	pthread_mutex_unlock(&serve.lock);
	return true;
}

void reader_serve_owed(void)
{
	struct owed owed;

	while (take_owed(&owed))
		serve_get(&owed.get, owed.is_looked);
}

static void on_get(const struct value_head *get)
{
	const struct promise_waiter asker = {
	    .group = get->group, .sample = get->sample, .id = get->id, .peer = get->peer};

	if (!owe(get, false))
		answer_miss(&asker);
	reader_serve_owed();
}

/* false: it is not to be kept here, or not before this node has made it, too. */
static bool keep_put(const struct value_head *put, const uint8_t *value)
{
	const struct reader_guest *guest = reader_guests_find(reader_peers_store_now(), put);
	bool is_kept;

	if (!guest)
		return false;
	is_kept = guest->form == put->form && is_own(&put->group, put->sample) &&
		  !(guest->is_sure && reader_checks_begin(put, value));
	if (is_kept && guest->group)
		store_put(guest->group, put->sample, value, put->bytes);
	if (is_kept)
		reader_resident_keep(guest->resident, put->sample, value, put->bytes);
	reader_guests_leave();
	return is_kept;
}

static void on_put(const struct value_head *put, const uint8_t *value)
{
	if (is_distrusted(put->peer))
		return;
	if (put->bytes && keep_put(put, value))
		answer_all(put, LAYOUT_FROM_PEER, value);
	else if (!put->bytes || reader_checks_waits(&put->group, put->sample))
		answer_none(&put->group, put->sample);
}

/* It came from who had it before its owner did: that one keeps it from now on. */
static void hand_on(const struct reader_ask *ask, const struct value_head *have,
		    const uint8_t *value)
{
	struct value_head put = *have;
	uint32_t next;

	put.type = VALUE_PUT;
	put.id = 0;
	put.room = 0;
	put.peer = reader_peers_owner(&have->group, have->sample, &next);
	if (put.peer != PROMISE_SELF) {
		reader_tell_of(ask->shared, &put, value);
		return;
	}
	reader_queue_store(ask->queue, have->form, have->sample, value, have->bytes);
	answer_all(have, LAYOUT_FROM_PEER, value);
}

static void on_have(const struct value_head *have, const uint8_t *value)
{
	struct reader_ask *ask = reader_asks_take(have->id, have->peer, &have->group, have->sample);

	if (!ask)
		return;
	if (is_distrusted(have->peer) || reader_checks_begin(have, value)) {
		read_instead(ask);
		return;
	}
	ask->has_waited |= have->room > 0;
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
	if (miss->room) {
		ask_again(ask);
		return;
	}
	if (!ask->is_last && reader_peers_owner(&ask->group, ask->task.sample, &next) != miss->peer)
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
void reader_serve_gone(uint32_t peer)
{
	struct promise_waiter *list;
	unsigned kept = 0;

	reader_tell_anew(peer);
	atomic_fetch_and(&serve.distrusted, ~(UINT32_C(1) << peer));
	read_all_instead(reader_asks_take_of(peer));
	pthread_mutex_lock(&serve.lock);
	list = promise_gone(serve.promises, peer, base_now_ns());
	for (unsigned i = 0; i < serve.owed_count; i++) {
		const struct owed *owed = &serve.owed[(serve.owed_first + i) % PEERS_OWED];

		if (owed->get.peer != peer)
			serve.owed[(serve.owed_first + kept++) % PEERS_OWED] = *owed;
	}
	serve.owed_count = kept;
	serve.owed_to[peer] = 0;
	pthread_mutex_unlock(&serve.lock);
	answer_misses(list);
	reader_guests_gone(peer);
	reader_spread_gone(peer);
	reader_peers_tell_spreads(); /* a new channel may have that number already */
}

/* It is one of the nodes among which a job's samples are spread. */
static void on_spread(const struct value_head *head)
{
	if (!reader_guests_find(NULL, head))
		return; /* it did not name that group */
	reader_guests_leave();
	reader_spread_heard(head);
}

/* An item of the carrier's: hostile. */
void reader_serve_take(const uint8_t *data, uint32_t bytes)
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
		reader_guests_say(&head, behind);
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
		reader_serve_gone(head.peer);
		break;
	case VALUE_SPREAD:
		on_spread(&head);
		break;
	}
}

/* ---- in time ---- */

/* What was made and waits to be found: it is in the store by now, or not yet. */
static void look_again(void)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&serve.lock);
	list = promise_kept(serve.promises);
	pthread_mutex_unlock(&serve.lock);
	if (!list)
		return;
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next) {
		struct value_head get = head_for(waiter, VALUE_GET);

		get.room = waiter->room;
		if (waiter->peer == PROMISE_SELF || !owe(&get, false))
			answer_miss(waiter); /* it is looked for where reading begins */
	}
	answered(list);
}

/* Who waits is told that he still does. */
static void tell_patient(uint64_t now_ns)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&serve.lock);
	list = promise_patient(serve.promises, now_ns - PEERS_AGAIN_NS);
	pthread_mutex_unlock(&serve.lock);
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next) {
		struct value_head miss = head_for(waiter, VALUE_MISS);
		struct reader_ask *ask = NULL;

		miss.room = 1;
		if (waiter->peer != PROMISE_SELF)
			reader_tell(&miss, NULL);
		else
			ask = reader_asks_take(waiter->id, PROMISE_SELF, &waiter->group,
					       waiter->sample);
		if (ask)
			ask_again(ask);
	}
	if (list)
		answered(list);
}

void reader_serve_tick(uint64_t now_ns)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&serve.lock);
	list = promise_expired(serve.promises, now_ns);
	pthread_mutex_unlock(&serve.lock);
	answer_misses(list);
	if (now_ns > PEERS_AGAIN_NS)
		tell_patient(now_ns);
	read_all_instead(reader_asks_take_late(now_ns));
	if (reader_queue_idles(&serve.work_seen) && now_ns > PEERS_IDLE_NS)
		read_all_instead(reader_asks_take_old(now_ns - PEERS_IDLE_NS, PEERS_IDLE_MOST));
	look_again();
	reader_serve_owed();
}

/* Does anything wait, whose time may be over? */
uint64_t reader_serve_nap_ns(void)
{
	unsigned promised, waiters, owed;

	pthread_mutex_lock(&serve.lock);
	promised = promise_count(serve.promises, &waiters);
	owed = serve.owed_count;
	pthread_mutex_unlock(&serve.lock);
	if (owed)
		return PEERS_SHORT_NS;
	return promised || reader_asks_count() ? PEERS_TICK_NS : PEERS_REST_NS;
}
