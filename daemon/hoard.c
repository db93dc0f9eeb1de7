/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resident memory's share of the budget, and its peace.
 *
 * What is granted counts against the budget, as slots and arenas do, and only as much is granted as is filled,
 * and a step more: a domain that keeps nothing in memory costs nothing. Streams come first. What they need is
 * taken from the grant at once, so no stream is refused for what could be read from the disk as
 * well; the reader gives the memory back when no worker reads it any more, which takes as long as the hands in
 * production, and nothing is granted anew before.
 *
 * The reader does not know which of its tasks are still read: tasks belong to hands, and the hands' ends are
 * known here. So it asks, and each hand that is in production then is marked; the answer goes when all of these
 * have ended, and when no worker is left that knows a stream which was let go of. That covers a reader
 * that died, too: its successor asks before it writes anything.
 */
#include "daemon/hoard.h"

#include <unistd.h>

#include "base/log.h"
#include "daemon/domain.h"
#include "daemon/node.h"
#include "daemon/stream.h"
#include "shmring/resident.h"
#include "storage/store.h"

#define HOARD_SHARE 8        /* of the budget, where cache_memory does not say */
#define HOARD_TENANT_SHARE 4 /* of that, for one user */
#define HOARD_STEPS 8        /* in which a share is granted */

/* Of all domains together. */
static uint64_t most_of_all(const struct node *node)
{
	uint64_t bytes = node->param.cache_memory;

	return bytes ? BASE_MIN(bytes, node->memory_budget) : node->memory_budget / HOARD_SHARE;
}

uint64_t hoard_most(const struct domain *domain)
{
	uint64_t bytes = most_of_all(domain->node);

	if (domain->kind != DOMAIN_OWN)
		bytes /= HOARD_TENANT_SHARE;
	return bytes - bytes % RESIDENT_CHUNK;
}

int hoard_init(struct hoard *hoard, const struct domain *domain)
{
	*hoard = (struct hoard){.fd = -1};
	if (domain->shelf.tray_fd < 0 || hoard_most(domain) == 0)
		return 0;
	return resident_new(hoard_most(domain), &hoard->fd);
}

static void set_granted(struct domain *domain, uint64_t bytes)
{
	struct node *node = domain->node;

	node->memory_kept = node->memory_kept - domain->hoard.granted + bytes;
	domain->hoard.granted = bytes;
}

void hoard_fini(struct domain *domain)
{
	set_granted(domain, 0);
	base_close(&domain->hoard.fd);
}

/* ---- grants ---- */

static void tell(struct domain *domain, bool is_most)
{
	struct hoard *hoard = &domain->hoard;

	if (hoard->has_told && hoard->told_bytes == hoard->granted && hoard->told_most == is_most)
		return;
	hoard->has_told = true;
	hoard->told_bytes = hoard->granted;
	hoard->told_most = is_most;
	reading_memory(&domain->reading, hoard->granted, is_most);
}

/* What may be granted in addition. */
static uint64_t left_for(const struct domain *domain)
{
	const struct node *node = domain->node;
	uint64_t all = most_of_all(node);

	return BASE_MIN(stream_free_bytes(domain), all - BASE_MIN(all, node->memory_kept));
}

void hoard_said(struct domain *domain, const struct reader_state *state)
{
	struct hoard *hoard = &domain->hoard;
	uint64_t most = hoard_most(domain), want, more;

	if (hoard->fd < 0 || state->mode == STORE_OFF)
		return;
	if (hoard->gives_way && state->memory_used > hoard->granted)
		return;
	hoard->gives_way = false;
	want =
	    BASE_MIN(state->memory_used, most) + base_align_up(most / HOARD_STEPS, RESIDENT_CHUNK);
	want = BASE_MIN(want, most);
	more = want - BASE_MIN(want, hoard->granted);
	more = BASE_MIN(more, left_for(domain));
	set_granted(domain, hoard->granted + more - more % RESIDENT_CHUNK);
	tell(domain, hoard->granted < want || hoard->granted == most);
}

void hoard_reader_died(struct domain *domain)
{
	domain->hoard.has_told = false;
	domain->hoard.question = 0;
}

bool hoard_give_way(struct node *node, const struct domain *payer)
{
	struct domain *domain;
	bool any = false;

	LIST_FOREACH(domain, &node->domains, link)
	{
		if (!domain->hoard.granted || (payer && !tenant_is_same(payer, domain)))
			continue;
		log_line(LOG_LEVEL_INFO, "memory-gives-way", "uid=%u bytes=%llu",
			 (unsigned)domain->who.uid, (unsigned long long)domain->hoard.granted);
		set_granted(domain, 0);
		domain->hoard.gives_way = true;
		tell(domain, true);
		any = true;
	}
	return any;
}

/* ---- peace ---- */

void hoard_asked(struct domain *domain, uint64_t question)
{
	struct stream *stream;

	domain->hoard.question = question;
	LIST_FOREACH(stream, &domain->streams, link)
	fill_watch(stream);
	hoard_look(domain);
}

void hoard_look(struct domain *domain)
{
	const struct stream *stream;

	if (!domain->hoard.question || domain->workers.leaving)
		return;
	LIST_FOREACH(stream, &domain->streams, link)
	if (stream->state == STREAM_RUNS && fill_is_watched(stream))
		return;
	reading_unread(&domain->reading, domain->hoard.question);
	domain->hoard.question = 0;
}
