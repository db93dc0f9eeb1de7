/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups that peers ask about, whether a stream of this node has them or not. They are as open as a stream's, so what
 * is kept of them is found and what is made for them is taken; there are few, and their tables are bounded: the one
 * that was used longest ago makes room.
 *
 * In the resident memory such a group yields where there is a store: it uses what streams have there and keeps nobody
 * from it. Where memory is all there is, it is a user as any other.
 */

#include "storage/reader_peers.h"

#include <stdlib.h>
#include <string.h>

#define GUESTS_MOST 64
#define GUESTS_TABLES (UINT64_C(64) << 20) /* bytes, of all tables together */
#define GUESTS_CELL 12                     /* bytes that a sample has in tables */

static struct {
	struct reader_guest one[GUESTS_MOST];
	uint64_t turn, cells;
} guests;

static void close_guest(struct reader_guest *guest)
{
	if (!guest->form)
		return;
	if (guest->group)
		reader_resident_yield(guest->resident, false);
	reader_resident_close(guest->resident);
	store_group_close(guest->group);
	guests.cells -= guest->samples;
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

/* One that is not in use; if it must be, the one that was used longest ago is closed for it. */
static struct reader_guest *find_room(uint64_t samples)
{
	const uint64_t most = GUESTS_TABLES / GUESTS_CELL;
	struct reader_guest *room = NULL, *oldest;

	if (samples > most)
		return NULL;
	do {
		oldest = NULL;
		for (unsigned i = 0; i < GUESTS_MOST; i++) {
			struct reader_guest *guest = &guests.one[i];

			if (!guest->form)
				room = guest;
			else if (!oldest || guest->turn < oldest->turn)
				oldest = guest;
		}
		if (!room || guests.cells + samples > most)
			close_guest(oldest);
	} while (!room || guests.cells + samples > most);
	return room;
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
	    store_group_open(store, &guest->id, guest->note, guest->samples, &guest->group))
		return;
	reader_resident_yield(guest->resident, true);
}

bool reader_guests_say(struct store *store, const struct value_head *head, const uint8_t *note)
{
	struct reader_guest *guest = find(&head->group);

	if (head->form == LAYOUT_FORM_AUGMENTED)
		return false;
	if (!guest) {
		guest = find_room(head->samples);
		if (!guest)
			return false;
		*guest = (struct reader_guest){.id = head->group,
					       .samples = head->samples,
					       .form = head->form,
					       .note = note_of(note, head->bytes)};
		if (!guest->note) {
			guest->form = 0;
			return false;
		}
		guests.cells += guest->samples;
		guest->resident = reader_resident_open(&guest->id, guest->samples);
	}
	if (guest->samples != head->samples || guest->form != head->form)
		return false; /* a name says both, so one of the two lies */
	open_in_store(store, guest);
	guest->peers |= UINT32_C(1) << head->peer;
	guest->turn = ++guests.turn;
	return true;
}

struct reader_guest *reader_guests_find(struct store *store, const struct value_head *head)
{
	struct reader_guest *guest = find(&head->group);

	if (!guest || !(guest->peers >> head->peer & 1) || head->sample >= guest->samples)
		return NULL;
	open_in_store(store, guest);
	guest->turn = ++guests.turn;
	return guest;
}

void reader_guests_gone(uint32_t peer)
{
	for (unsigned i = 0; i < GUESTS_MOST; i++) {
		struct reader_guest *guest = &guests.one[i];

		guest->peers &= ~(UINT32_C(1) << peer);
		if (!guest->peers)
			close_guest(guest);
	}
}

void reader_guests_end(void)
{
	for (unsigned i = 0; i < GUESTS_MOST; i++)
		close_guest(&guests.one[i]);
}
