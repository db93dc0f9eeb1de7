/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups that peers ask about, whether a stream of this node has them or not. They are as open as a stream's, so what
 * is kept of them is found and what is made for them is taken; few are open at a time, and their tables are bounded: the
 * one that was used longest ago makes room. Its name stays known, as it is said once a connection, and the next word
 * about it opens it again.
 *
 * Whose names they are that are forgotten for others: those of the peer who has too many, else of any peer; last of all
 * those of this node's own streams. So nobody who says names without end makes this node forget those of others.
 *
 * A name is a hash, and how many samples there are and in which form is only said of it: who says it first is believed,
 * but this node's own streams always.
 *
 * In the resident memory such a group yields where there is a store: it uses what streams have there and keeps nobody
 * from it. Where memory is all there is, it is a user as any other.
 */

#include "base/hold.h"
#include "storage/reader_peers.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

#define GUESTS_MOST 512 /* names */
#define GUESTS_EACH    \
	(GUESTS_MOST / \
	 (VALUE_MOST_PEERS + 1)) /* of one peer's, who then gives up his own for another */
#define GUESTS_OPEN 64

static struct {
	pthread_mutex_t lock;
	/* under the lock */
	struct reader_guest one[GUESTS_MOST];
	uint64_t recheck_ns; /* 0: nothing is looked at */
	unsigned open;
	uint64_t turn, cells; /* samples of those that are open */
} guests = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void close_guest(struct reader_guest *guest)
{
	if (!guest->is_open)
		return;
	if (guest->group)
		reader_resident_yield(guest->resident, false);
	reader_resident_close(guest->resident);
	store_group_close(guest->group);
	free(guest->looked);
	guest->looked = NULL;
	guest->resident = NULL;
	guest->group = NULL;
	guest->is_open = false;
	guests.cells -= guest->samples;
	guests.open--;
}

static void forget_guest(struct reader_guest *guest)
{
	close_guest(guest);
	free(guest->note);
	*guest = (struct reader_guest){.form = 0};
}

static struct reader_guest *find(const struct hash_id *id)
{
	for (unsigned i = 0; i < GUESTS_MOST; i++)
		if (guests.one[i].form && memcmp(&guests.one[i].id, id, sizeof(*id)) == 0)
			return &guests.one[i];
	return NULL;
}

enum which { WHICH_OPEN, WHICH_OF, WHICH_UNSURE, WHICH_ANY };

/* of: peers, a bit each. */
static bool is_one(const struct reader_guest *guest, enum which which, uint32_t of)
{
	if (!guest->form || which == WHICH_ANY)
		return guest->form != 0;
	if (which == WHICH_OPEN)
		return guest->is_open;
	return !guest->is_sure && (which == WHICH_UNSURE || guest->peers == of);
}

/* The one of these that was used longest ago; NULL: there is none. */
static struct reader_guest *find_oldest(enum which which, uint32_t of, unsigned *ret_n)
{
	struct reader_guest *oldest = NULL;

	*ret_n = 0;
	for (unsigned i = 0; i < GUESTS_MOST; i++) {
		struct reader_guest *guest = &guests.one[i];

		if (!is_one(guest, which, of))
			continue;
		++*ret_n;
		if (!oldest || guest->turn < oldest->turn)
			oldest = guest;
	}
	return oldest;
}

/* A place for a name; if it must be, another one is forgotten for it. of: who says it, 0: this node. */
static struct reader_guest *find_place(uint32_t of)
{
	struct reader_guest *oldest;
	unsigned n;

	for (unsigned i = 0; i < GUESTS_MOST; i++)
		if (!guests.one[i].form)
			return &guests.one[i];
	oldest = find_oldest(WHICH_OF, of, &n);
	if (!of || n < GUESTS_EACH)
		oldest = find_oldest(WHICH_UNSURE, 0, &n);
	if (!oldest)
		oldest = find_oldest(WHICH_ANY, 0, &n);
	forget_guest(oldest);
	return oldest;
}

static void make_room(uint64_t samples)
{
	unsigned n;

	while (guests.open == GUESTS_OPEN || guests.cells + samples > READER_GUEST_SAMPLES)
		close_guest(find_oldest(WHICH_OPEN, 0, &n));
}

/* A note is for people, and a peer's: no more of it than one line of text. */
static char *note_of(const uint8_t *note, uint32_t bytes)
{
	char *text = calloc(1, (size_t)bytes + 1);

	for (uint32_t i = 0; text && i < bytes; i++) {
		if (note[i] < ' ' || note[i] == 0x7f) {
			text[0] = '\0';
			break;
		}
		text[i] = (char)note[i];
	}
	return text;
}

/* Once there is a store. */
static void open_in_store(struct store *store, struct reader_guest *guest)
{
	if (guest->group || !store ||
	    store_group_open_guest(store, &guest->id, guest->note, guest->samples, &guest->group))
		return;
	reader_resident_yield(guest->resident, true);
}

static void open_guest(struct store *store, struct reader_guest *guest)
{
	if (!guest->is_open) {
		make_room(guest->samples);
		guest->resident = reader_resident_open(&guest->id, guest->samples);
		guest->is_open = true;
		guests.cells += guest->samples;
		guests.open++;
	}
	open_in_store(store, guest);
}

/* The one with that name; a new one has no peers. of: as above. NULL: not enough memory. */
static struct reader_guest *find_or_add(const struct hash_id *id, uint32_t of, const uint8_t *note,
					uint32_t bytes)
{
	struct reader_guest *guest = find(id);
	char *text = guest ? NULL : note_of(note, bytes);

	if (!text)
		return guest;
	guest = find_place(of);
	*guest = (struct reader_guest){.id = *id, .note = text};
	return guest;
}

/* Two that give one name to different things: what the one says, and what is known of others. */
static void tell_dispute(uint32_t peer, uint64_t samples, unsigned form,
			 const struct reader_guest *known)
{
	char who[32] = "this node";

	if (!known->is_sure)
		snprintf(who, sizeof(who), "%016" PRIx64,
			 reader_peers_id((uint32_t)__builtin_ctz(known->peers | 1U << 31)));
	log_line(LOG_LEVEL_WARN, "peer-group",
		 "node=%.16" PRIx64 " samples=%" PRIu64
		 " form=%u other=\"%s\" other_samples=%" PRIu64
		 " other_form=%u text=\"they give one name to different data, so what the node has "
		 "of them is "
		 "not taken: are both of one version of OneAccess?\"",
		 reader_peers_id(peer), samples, form, who, known->samples, known->form);
}

/* *ret_known: what is known of it, where that is something else; form 0: nothing is. */
static bool say_locked(const struct value_head *head, const uint8_t *note,
		       struct reader_guest *ret_known)
{
	const uint32_t of = UINT32_C(1) << head->peer;
	struct reader_guest *guest = find_or_add(&head->group, of, note, head->bytes);

	if (!guest)
		return false;
	if (!guest->form) {
		guest->samples = head->samples;
		guest->form = head->form;
	}
	if (guest->samples != head->samples || guest->form != head->form) {
		*ret_known = *guest; /* a name says both, so one of the two lies */
		return false;
	}
	guest->peers |= of;
	guest->turn = ++guests.turn;
	return true;
}

bool reader_guests_say(const struct value_head *head, const uint8_t *note)
{
	struct reader_guest known = {.form = 0};
	bool is_had;

	if (head->form == LAYOUT_FORM_AUGMENTED || head->samples > READER_GUEST_SAMPLES)
		return false;
	pthread_mutex_lock(&guests.lock);
	is_had = say_locked(head, note, &known);
	pthread_mutex_unlock(&guests.lock);
	if (known.form)
		tell_dispute(head->peer, head->samples, head->form, &known);
	return is_had;
}

void reader_guests_claim(const struct hash_id *id, uint64_t samples, unsigned form,
			 const char *note)
{
	struct reader_guest *guest, lied = {.form = 0}, own;

	pthread_mutex_lock(&guests.lock);
	guest = find_or_add(id, 0, (const uint8_t *)note, (uint32_t)strnlen(note, VALUE_MOST_NOTE));
	if (guest && (guest->samples != samples || guest->form != form)) {
		close_guest(guest);
		lied = *guest;
		guest->samples = samples;
		guest->form = form;
		guest->peers = 0; /* they lied */
	}
	if (guest) {
		guest->is_sure = true;
		guest->turn = ++guests.turn;
		own = *guest;
	}
	pthread_mutex_unlock(&guests.lock);
	for (uint32_t peer = 0; lied.form && peer < VALUE_MOST_PEERS; peer++)
		if (lied.peers >> peer & 1)
			tell_dispute(peer, lied.samples, lied.form, &own);
}

/* The group of the head, if its peer named it. */
static struct reader_guest *find_named(const struct value_head *head)
{
	struct reader_guest *guest = find(&head->group);

	return guest && (guest->peers >> head->peer & 1) ? guest : NULL;
}

bool reader_guests_is_named(const struct value_head *head)
{
	BASE_HOLD(&guests.lock);
	return find_named(head);
}

struct reader_guest *reader_guests_find(struct store *store, const struct value_head *head)
{
	struct reader_guest *guest;

	pthread_mutex_lock(&guests.lock);
	guest = find_named(head);
	if (!guest || head->sample >= guest->samples) {
		pthread_mutex_unlock(&guests.lock);
		return NULL;
	}
	open_guest(store, guest);
	guest->turn = ++guests.turn;
	return guest;
}

void reader_guests_leave(void)
{
	pthread_mutex_unlock(&guests.lock);
}

void reader_guests_recheck(uint64_t every_ns)
{
	BASE_HOLD(&guests.lock);
	guests.recheck_ns = every_ns;
}

/* So a sample is looked at once in that time, and no look is older. Without memory for that it is each time. */
bool reader_guests_is_due(struct reader_guest *guest, uint64_t sample)
{
	const uint64_t now_ns = base_now_ns();

	if (guests.recheck_ns == 0)
		return false;
	if (!guest->looked || now_ns - guest->looked_ns >= guests.recheck_ns) {
		free(guest->looked);
		guest->looked = calloc(1, guest->samples / 8 + 1);
		guest->looked_ns = now_ns;
	}
	return !guest->looked || !(guest->looked[sample / 8] >> sample % 8 & 1);
}

void reader_guests_looked(const struct hash_id *group, uint64_t sample)
{
	struct reader_guest *guest;

	BASE_HOLD(&guests.lock);
	guest = find(group);
	if (guest && guest->looked && sample < guest->samples)
		guest->looked[sample / 8] |= (uint8_t)(1 << sample % 8);
}

void reader_guests_gone(uint32_t peer)
{
	BASE_HOLD(&guests.lock);
	for (unsigned i = 0; i < GUESTS_MOST; i++) {
		struct reader_guest *guest = &guests.one[i];

		guest->peers &= ~(UINT32_C(1) << peer);
		if (!guest->peers)
			close_guest(guest);
		if (!guest->peers && !guest->is_sure)
			forget_guest(guest);
	}
}

void reader_guests_end(void)
{
	BASE_HOLD(&guests.lock);
	for (unsigned i = 0; i < GUESTS_MOST; i++)
		forget_guest(&guests.one[i]);
}
