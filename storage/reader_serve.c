/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What peers say and ask for, and what this node gives them.
 *
 * What comes from the carrier is hostile: a head is copied once and checked, and a value is looked at by sandboxed
 * workers alone. What it may do is to answer what was asked (reader_fetch.c), or to give for groups that it named, of samples
 * that this node owns, what comes to lie under just that name. Whoever asks for what is not here yet may wait for it
 * (reader_answer.c); questions for whose answer there is no room are kept (reader_owed.c).
 *
 * Rejected: to let the serving read right into the ring. Who asks would wait for this node's disk.
 */

#include "storage/reader_peers.h"

/* A ring that is full has no bell for who waits for room */
#define PEERS_SHORT_NS UINT64_C(1000000)
#define PEERS_REST_NS UINT64_C(1000000000)

static struct {
	_Atomic uint32_t distrusted; /* peers, a bit each */

	/* the peers' thread's */
	uint8_t *buffer; /* VALUE_MOST bytes */
	bool is_gone;    /* somebody, since the last tick */
} serve;

bool reader_serve_init(void)
{
	serve.buffer = malloc(VALUE_MOST);
	return serve.buffer && reader_answer_init() && reader_owed_init() &&
	       reader_asks_init() == 0;
}

bool reader_serve_distrusts(uint32_t peer)
{
	return atomic_load_explicit(&serve.distrusted, memory_order_relaxed) >> peer & 1;
}

void reader_serve_distrust(uint32_t peer)
{
	atomic_fetch_or(&serve.distrusted, UINT32_C(1) << peer);
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
static bool waits(const struct promise_waiter *asker)
{
	return reader_answer_owns(&asker->group, asker->sample) && reader_answer_waits(asker);
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
		reader_answer_miss(&asker);
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
		reader_answer_miss(&asker);
	else if (!r)
		reader_answer_value(&asker, LAYOUT_FROM_STORE, form, serve.buffer, bytes);
	else if (!is_due && (r == STORE_E_ROOM || !waits(&asker)))
		reader_answer_miss(&asker);
}

void reader_serve_looked(const struct value_head *get, bool is_same)
{
	const struct promise_waiter asker = {
	    .group = get->group, .sample = get->sample, .id = get->id, .peer = get->peer};

	if (is_same)
		reader_guests_looked(&get->group, get->sample);
	if (is_same && reader_owed_add(get, true))
		reader_peers_wake();
	else
		reader_answer_miss(&asker);
}

void reader_serve_owed(void)
{
	struct reader_owed owed;

	while (reader_owed_take(&owed))
		serve_get(&owed.get, owed.is_looked);
}

static void on_get(const struct value_head *get)
{
	const struct promise_waiter asker = {
	    .group = get->group, .sample = get->sample, .id = get->id, .peer = get->peer};

	if (!reader_owed_add(get, false))
		reader_answer_miss(&asker);
	reader_serve_owed();
}

/* false: it is not to be kept here, or not before this node has made it, too. */
static bool keep_put(const struct value_head *put, const uint8_t *value)
{
	const struct reader_guest *guest = reader_guests_find(reader_peers_store_now(), put);
	bool is_kept;

	if (!guest)
		return false;
	is_kept = guest->form == put->form && reader_answer_owns(&put->group, put->sample) &&
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
	if (reader_serve_distrusts(put->peer))
		return;
	if (put->bytes && keep_put(put, value))
		reader_answer_all(put, LAYOUT_FROM_PEER, value);
	else if (!put->bytes || reader_checks_waits(&put->group, put->sample))
		reader_answer_none(&put->group, put->sample);
}

/* No answer comes from there, and none goes there. */
void reader_serve_gone(uint32_t peer)
{
	reader_tell_anew(peer);
	atomic_fetch_and(&serve.distrusted, ~(UINT32_C(1) << peer));
	reader_fetch_gone(peer);
	reader_owed_gone(peer);
	reader_answer_gone(peer);
	reader_guests_gone(peer);
	reader_spread_gone(peer);
	/* A new channel may have that number already, and has to be told spreads. Or nobody has: what is told then is
	 * answered by the next GONE. */
	serve.is_gone = true;
}

/* It is one of the nodes among which a job's samples are spread. */
static void on_spread(const struct value_head *head)
{
	if (reader_guests_is_named(head))
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
		reader_fetch_have(&head, behind);
		break;
	case VALUE_MISS:
		reader_fetch_miss(&head);
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

void reader_serve_tick(uint64_t now_ns)
{
	reader_answer_tick(now_ns);
	reader_fetch_tick(now_ns);
	reader_serve_owed();
	if (serve.is_gone)
		reader_peers_tell_spreads();
	serve.is_gone = false;
}

/* Does anything wait, whose time may be over? */
uint64_t reader_serve_nap_ns(void)
{
	if (reader_owed_count())
		return PEERS_SHORT_NS;
	return serve.is_gone || reader_answer_is_awaited() || reader_asks_count() ? PEERS_TICK_NS
										  : PEERS_REST_NS;
}
