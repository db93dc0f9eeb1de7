/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resident memory's share of the budget, and its peace.
 *
 * What is granted counts against the budget, as slots and arenas do, and only as much is granted as is filled,
 * and a step more: a domain that keeps nothing in memory costs nothing. Streams come first. What they need is
 * taken from the grant at once, so no stream is refused for what could be read from the disk as
 * well; the reader gives the memory back when no worker reads it any more, which takes as long as the chunks in
 * production, and nothing is granted anew before. Under memory pressure and for a while after it only a share of it is.
 *
 * The reader does not know which of its tasks are still read: tasks belong to chunks, and the chunks' ends are
 * known here. So it asks, and each chunk that is in production then is marked; the answer goes when all of these
 * have ended, and when no worker is left that knows a stream which was let go of. That covers a reader
 * that died, too: its successor asks before it writes anything.
 */
#include "daemon/cache/ram_cache.h"

#include "base/log.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "shmring/resident.h"
#include "storage/store.h"

#define RAM_CACHE_SHARE 8        /* of the budget, where cache_memory does not say */
#define RAM_CACHE_TENANT_SHARE 4 /* of that, for one user */
#define RAM_CACHE_STEPS 8        /* in which a share is granted */

struct ram_cache {
	int fd;         /* -1: there is none */
	uint64_t made;  /* bytes of it */
	bool gives_way; /* the reader has not given back yet what it was told to */
	bool has_told;  /* what the reader that is there was told */
	uint64_t told_bytes;
	bool told_most;
	uint64_t question; /* the reader's, that waits; 0: none */
};

/* Of all domains together. */
static uint64_t most_of_all(const struct node *node)
{
	uint64_t bytes = node->param.cache_memory;

	return bytes ? BASE_MIN(bytes, node->memory.budget) : node->memory.budget / RAM_CACHE_SHARE;
}

static uint64_t most_by_rule(const struct domain *domain)
{
	uint64_t bytes = most_of_all(domain->node);

	if (domain->kind != DOMAIN_OWN)
		bytes /= RAM_CACHE_TENANT_SHARE;
	return bytes - bytes % RESIDENT_CHUNK;
}

/* The budget may grow while we run: the memory was made for what it was. */
uint64_t ram_cache_most(const struct domain *domain)
{
	return domain->ram_cache->fd < 0 ? 0
					 : BASE_MIN(most_by_rule(domain), domain->ram_cache->made);
}

int ram_cache_init(struct domain *domain)
{
	struct ram_cache *ram_cache = calloc(1, sizeof(*ram_cache));

	if (!ram_cache)
		return -ENOMEM;
	domain->ram_cache = ram_cache;
	ram_cache->fd = -1;
	ram_cache->made = most_by_rule(domain);
	if (domain->disk_cache.rings_fd < 0 || ram_cache->made == 0)
		return 0;
	return resident_new(ram_cache->made, &ram_cache->fd);
}

int ram_cache_fd(const struct domain *domain)
{
	return domain->ram_cache->fd;
}

static void set_granted(struct domain *domain, uint64_t bytes)
{
	memory_keep(&domain->node->memory, &domain->memory, bytes);
}

void ram_cache_fini(struct domain *domain)
{
	set_granted(domain, 0);
	if (domain->ram_cache)
		porter_close(&domain->node->porters, PORTER_OWN, &domain->ram_cache->fd);
	free(base_take_ptr(domain->ram_cache));
}

/* ---- grants ---- */

static void tell(struct domain *domain, bool is_most)
{
	struct ram_cache *ram_cache = domain->ram_cache;

	if (ram_cache->has_told && ram_cache->told_bytes == domain->memory.kept &&
	    ram_cache->told_most == is_most)
		return;
	ram_cache->has_told = true;
	ram_cache->told_bytes = domain->memory.kept;
	ram_cache->told_most = is_most;
	reading_memory(&domain->reading, domain->memory.kept, is_most);
}

/* What may be granted in addition. */
static uint64_t left_for(const struct domain *domain)
{
	const struct node *node = domain->node;
	uint64_t all = machine_share(&node->machine, most_of_all(node)),
		 his = ram_cache_most(domain);

	all -= BASE_MIN(all, node->memory.kept);
	his -= BASE_MIN(his, tenant_memory(domain).kept);
	return BASE_MIN(tenant_free_bytes(domain), BASE_MIN(all, his));
}

void ram_cache_said(struct domain *domain, const struct reader_state *state)
{
	struct ram_cache *ram_cache = domain->ram_cache;
	uint64_t most = ram_cache_most(domain), want, more;

	if (ram_cache->fd < 0 || state->mode == STORE_OFF)
		return;
	if (ram_cache->gives_way && state->memory_used > domain->memory.kept)
		return;
	ram_cache->gives_way = false;
	want = BASE_MIN(state->memory_used, most) +
	       base_align_up(most / RAM_CACHE_STEPS, RESIDENT_CHUNK);
	want = BASE_MIN(want, most);
	more = want - BASE_MIN(want, domain->memory.kept);
	more = BASE_MIN(more, left_for(domain));
	set_granted(domain, domain->memory.kept + more - more % RESIDENT_CHUNK);
	tell(domain, domain->memory.kept < want || domain->memory.kept == most);
}

void ram_cache_reader_died(struct domain *domain)
{
	domain->ram_cache->has_told = false;
	domain->ram_cache->question = 0;
}

bool ram_cache_give_way(struct node *node, const struct domain *payer)
{
	bool any = false;

	BASE_EACH(domain, &node->domains, link) {
		if (!domain->memory.kept || (payer && !tenant_is_same(payer, domain)))
			continue;
		log_line(LOG_LEVEL_INFO, "memory-gives-way", "uid=%u bytes=%llu",
			 (unsigned)domain->who.uid, (unsigned long long)domain->memory.kept);
		set_granted(domain, 0);
		domain->ram_cache->gives_way = true;
		tell(domain, true);
		any = true;
	}
	return any;
}

/* ---- peace ---- */

void ram_cache_asked(struct domain *domain, uint64_t question)
{
	domain->ram_cache->question = question;
	BASE_EACH(stream, &domain->streams, link)
		fill_watch(stream->fill);
	ram_cache_look(domain);
}

void ram_cache_look(struct domain *domain)
{
	if (!domain->ram_cache || !domain->ram_cache->question || domain->workers.leaving)
		return;
	BASE_EACH(stream, &domain->streams, link)
		if (stream->state == STREAM_RUNS && fill_is_watched(stream->fill))
			return;
	reading_unread(&domain->reading, domain->ram_cache->question);
	domain->ram_cache->question = 0;
}
