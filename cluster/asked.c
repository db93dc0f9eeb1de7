/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A GET is given up when its peer was silent for three times the median of his recent answers since it went out. One that
 * waits for a value that somebody makes is not silent: his carrier says each 25 ms that he is alive; that is believed for
 * as long as an owner may let one wait (1 s, and as long once more where who was to make the value gave up), and a little more.
 *
 * Those that are out are in a row by time, so the oldest is the first to be given up. An id is the number of its entry and,
 * above it, how many ids there were before.
 */

#include "cluster/asked.h"

#define NOBODY ASKED_MOST
#define MEDIAN_EACH 8 /* answers */
_Static_assert((ASKED_MOST & (ASKED_MOST - 1)) == 0, "ids hold the entry in their low bits");

int asked_init(struct asked *asked)
{
	*asked = (struct asked){
	    .get = calloc(ASKED_MOST, sizeof(struct asked_get)),
	    .oldest = NOBODY,
	    .newest = NOBODY,
	    .patience_ns = ASKED_LEAST_NS,
	};
	if (!asked->get)
		return -ENOMEM;
	for (uint32_t i = 0; i < ASKED_MOST; i++)
		asked->get[i].next = i + 1;
	return 0;
}

void asked_fini(struct asked *asked)
{
	free(asked->get);
	*asked = (struct asked){.get = NULL};
}

bool asked_is_full(const struct asked *asked)
{
	return asked->free == NOBODY;
}

uint64_t asked_add(struct asked *asked, const struct value_head *head, bool is_try, uint64_t now_ns,
		   uint64_t *serial)
{
	const uint32_t i = asked->free;
	struct asked_get *get = &asked->get[i];

	asked->free = get->next;
	*get = (struct asked_get){
	    .id = ++*serial * ASKED_MOST + i,
	    .reader_id = head->id,
	    .sample = head->sample,
	    .sent_ns = now_ns,
	    .group = head->group,
	    .room = head->room,
	    .next = NOBODY,
	    .previous = asked->newest,
	    .is_try = is_try,
	};
	if (asked->newest == NOBODY)
		asked->oldest = i;
	else
		asked->get[asked->newest].next = i;
	asked->newest = i;
	asked->n++;
	return get->id;
}

const struct asked_get *asked_find(const struct asked *asked, uint64_t id)
{
	const struct asked_get *get = &asked->get[id % ASKED_MOST];

	return id != 0 && get->id == id ? get : NULL;
}

void asked_drop(struct asked *asked, const struct asked_get *which)
{
	const uint32_t i = (uint32_t)(which - asked->get);
	struct asked_get *get = &asked->get[i];

	if (get->previous == NOBODY)
		asked->oldest = get->next;
	else
		asked->get[get->previous].next = get->next;
	if (get->next == NOBODY)
		asked->newest = get->previous;
	else
		asked->get[get->next].previous = get->previous;
	get->id = 0;
	get->next = asked->free;
	asked->free = i;
	asked->n--;
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void asked_note(struct asked *asked, uint64_t took_ns)
{
	const uint64_t us = BASE_MIN(took_ns / 1000, (uint64_t)UINT32_MAX);
	uint32_t sorted[ASKED_RECENT];
	size_t n;
	uint64_t patience;

	asked->recent_us[asked->answers++ % ASKED_RECENT] = (uint32_t)us;
	if (asked->answers % MEDIAN_EACH)
		return;
	n = BASE_MIN(asked->answers, (uint64_t)ASKED_RECENT);
	memcpy(sorted, asked->recent_us, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	patience = UINT64_C(3000) * sorted[n / 2];
	asked->patience_ns = BASE_MIN(BASE_MAX(patience, ASKED_LEAST_NS), ASKED_LONGEST_NS);
}

const struct asked_get *asked_oldest(const struct asked *asked)
{
	return asked->oldest == NOBODY ? NULL : &asked->get[asked->oldest];
}

static uint64_t silent_ns(const struct asked *asked, const struct asked_get *get, uint64_t heard_ns)
{
	return BASE_MAX(get->sent_ns, heard_ns) + asked->patience_ns;
}

uint64_t asked_until(const struct asked *asked, uint64_t heard_ns)
{
	const struct asked_get *get = &asked->get[asked->oldest];

	return BASE_MIN(silent_ns(asked, get, heard_ns),
			get->sent_ns + BASE_MAX(ASKED_ALIVE_NS, asked->patience_ns));
}

bool asked_is_silent(const struct asked *asked, const struct asked_get *get, uint64_t heard_ns,
		     uint64_t now_ns)
{
	return silent_ns(asked, get, heard_ns) <= now_ns;
}
