/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The clients keep to the protocol of DESIGN.md section 4: a rank takes grants in their order,
 * holds two slots at most, reads them in order, and answers a revocation that came too late by
 * reading on or by yielding. What they rely on is checked where they rely on it:
 *
 *   each sample of an epoch exactly once, the epochs one after the other without a gap;
 *   with a fixed plan, exactly the plan's sample at each place;
 *   "last" with the last chunk of an epoch and with no other;
 *   never the same instance in more epochs than it may be (reuse), whatever lies between, also where its samples
 *   come from what is kept, chunk by chunk; and no instance of another nonce to who must have the chunk's;
 *   of a chunk with samples of others, all that are the client's own, in their order; no such chunk for
 *   who has a random part, or wants none;
 *   no chunk that was not made in the variant that its pipeline is, also where the number was another's
 *   pipeline before;
 *   a held slot never changes, a granted one neither until it is revoked;
 *   who can go on does (no deadlock), whoever else stands still.
 *
 * A client killed in the middle of a chunk comes back with its token's bytes: the blocks of which
 * nothing was delivered, the rest of the begun ones as its tail, the instances it saw last.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "sched/instance.h"
#include "plan/population.h"
#include "plan/token.h"
#include "tests/sched/chaos.h"
#include "tests/invariants/invariants.h"

#define CHAOS_CLIENTS 6
#define CHAOS_SLOTS 24
#define CHAOS_NONCES 4096
#define CHAOS_PINS 2
#define CHAOS_PARTS 4
#define CHAOS_STEPS 100000 /* of the last phase: far more than any run needs */

struct grant {
	uint32_t slot;
	uint64_t instance, epoch;
	uint32_t first;
	bool last;
};

struct part {           /* of the samples */
	uint64_t *bits; /* over positions; NULL: all */
	uint64_t count;
	bool is_random;
};

#define CHAOS_SEEN (1u << 14)
struct seen { /* an instance of a sample */
	uint64_t id, nonce;
	uint32_t uses; /* 0: none here */
};

struct client {
	const struct part *part;
	bool is_narrow;
	uint32_t reuse;
	bool is_exact;
	struct seen *seen; /* CHAOS_SEEN of them; NULL: nothing is kept */
	bool joined, stopped, stops_for_good, finished, yields;
	uint32_t number, batch, ranks, variant;
	struct plan plan; /* order 0: none */
	uint64_t epoch, epochs, delivered;
	uint8_t *got; /* per sample, in this epoch */
	struct grant queue[CHAOS_SLOTS], held[CHAOS_PINS], yielding;
	uint32_t n_queue, n_held, cut; /* cut: samples of held[0] that were delivered */
	uint32_t tail_left;            /* samples of its tail that it was not granted */
	uint64_t nonces[CHAOS_NONCES]; /* the one seen last at the end */
	uint8_t uses[CHAOS_NONCES];
	uint32_t n_nonces;
};

struct world {
	struct carousel *carousel;
	const struct chaos_limits *limits;
	struct carousel_config config;
	struct philox_seq random;
	uint64_t now_ns;
	struct part parts[CHAOS_PARTS]; /* the first is all of them */
	uint32_t n_clients;
	struct client clients[CHAOS_CLIENTS];
	struct grant ghosts[CHAOS_SLOTS];
	uint32_t n_ghosts, making[CHAOS_SLOTS], n_making;
	uint32_t pipeline[CAROUSEL_MAX_VARIANTS]; /* which one the number is by now, from 1 */
	uint32_t made[CHAOS_SLOTS][CAROUSEL_MAX_VARIANTS]; /* what a slot was filled with */
	struct instance_book book;
	uint64_t *nonce[CHAOS_SLOTS]; /* of each sample in the slot */
	bool is_late[CHAOS_SLOTS];    /* its samples are kept when they are finished */
	uint64_t brought;
	uint64_t *need; /* scratch */
	int64_t *tail;
	const char *broken;
};

static uint64_t below(struct world *world, uint64_t bound)
{
	return philox_below(&world->random, bound);
}

static bool chance(struct world *world, unsigned percent)
{
	return below(world, 100) < percent;
}

static bool claim(struct world *world, bool holds, const char *otherwise)
{
	if (!holds && !world->broken)
		world->broken = otherwise;
	return holds;
}

static const struct carousel_chunk *chunk_of(struct world *world, const struct grant *grant)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(world->carousel, grant->slot);

	if (!claim(world, chunk && chunk->instance == grant->instance, "a slot in use changed"))
		return NULL;
	return chunk;
}

static bool may_see_again(const struct world *world, const struct client *client)
{
	return world->config.usable_again >> client->variant & 1;
}

static bool is_own(const struct world *world, const struct client *client, uint64_t id)
{
	return !client->part->bits ||
	       bits_test(client->part->bits,
			 permutation_position(carousel_permutation(world->carousel), id));
}

/* delivering */

static void begin_epoch(struct world *world, struct client *client, uint64_t epoch)
{
	claim(world, client->delivered == client->part->count,
	      "an epoch began before the last one's end");
	claim(world, epoch == client->epoch + 1, "an epoch was left out");
	client->epoch = epoch;
	client->delivered = 0;
	memset(client->got, 0, world->config.n);
}

static int64_t planned(const struct client *client)
{
	int64_t id;

	plan_samples(&client->plan, client->epoch, client->delivered, 1, &id);
	return id;
}

static void deliver(struct world *world, struct client *client, const struct grant *grant,
		    int64_t id)
{
	if (!claim(world, id >= 0 && (uint64_t)id < world->config.n,
		   "a sample that does not exist"))
		return;
	if (!is_own(world, client, (uint64_t)id)) {
		claim(world, !client->is_narrow && !client->part->is_random,
		      "a sample of others to who wants none");
		return;
	}
	if (grant->epoch != client->epoch)
		begin_epoch(world, client, grant->epoch);
	claim(world, !client->got[id], "a sample twice in an epoch");
	claim(world, !client->plan.order || id == planned(client),
	      "a sample out of the plan's order");
	client->got[id] = 1;
	client->delivered++;
}

static void leave(struct world *world, struct client *client, bool pinned);

static void end_chunk(struct world *world, struct client *client)
{
	struct grant grant = client->held[0];

	claim(world, grant.last == (client->delivered == client->part->count),
	      "the last chunk of an epoch is not the one marked so");
	client->held[0] = client->held[1];
	client->n_held--;
	client->cut = 0;
	carousel_done(world->carousel, client->number, grant.slot, world->now_ns);
	if (client->delivered == client->part->count && client->epoch + 1 == client->epochs) {
		client->finished = true;
		claim(world, !client->n_queue && !client->n_held, "more after the last epoch");
		leave(world, client, false);
	}
}

static bool try_deliver(struct world *world, struct client *client)
{
	const struct carousel_chunk *chunk;
	uint32_t count;

	if (!client->n_held)
		return false;
	chunk = chunk_of(world, &client->held[0]);
	if (!chunk || !chunk->ready)
		return false;
	client->cut = BASE_MAX(client->cut, client->held[0].first);
	count = 1 + (uint32_t)below(world, chunk->count);
	if (chance(world, 40))
		count = chunk->count;
	for (; count && client->cut < chunk->count; count--)
		deliver(world, client, &client->held[0], chunk->ids[client->cut++]);
	if (client->epoch == client->held[0].epoch && client->delivered == client->part->count)
		client->cut = chunk->count; /* what is left is others' */
	if (client->cut == chunk->count)
		end_chunk(world, client);
	return true;
}

/* taking */

static void drop_queue(struct client *client, uint32_t at)
{
	memmove(client->queue + at, client->queue + at + 1,
		(client->n_queue - at - 1) * sizeof(client->queue[0]));
	client->n_queue--;
}

static void see_nonce(struct world *world, struct client *client, uint64_t nonce)
{
	uint32_t at = 0, uses;

	while (at < client->n_nonces && client->nonces[at] != nonce)
		at++;
	if (at == CHAOS_NONCES)
		return;
	uses = at < client->n_nonces ? client->uses[at] + 1u : 1;
	claim(world, uses <= client->reuse || may_see_again(world, client),
	      "an instance in more epochs than it may be");
	client->n_nonces += at == client->n_nonces;
	memmove(client->nonces + at, client->nonces + at + 1,
		(client->n_nonces - at - 1) * sizeof(client->nonces[0]));
	memmove(client->uses + at, client->uses + at + 1, client->n_nonces - at - 1);
	client->nonces[client->n_nonces - 1] = nonce;
	client->uses[client->n_nonces - 1] = (uint8_t)BASE_MIN(uses, 200u);
}

/* A table that is full counts no more. */
static struct seen *find_seen(const struct client *client, uint64_t id, uint64_t nonce)
{
	uint64_t at = (id * UINT64_C(0x9e3779b97f4a7c15) ^ nonce) * UINT64_C(0xe9846af9b1a615d5);

	for (unsigned i = 0; i < 64; i++) {
		struct seen *seen = &client->seen[((at >> 40) + i) % CHAOS_SEEN];

		if (seen->uses == 0 || (seen->id == id && seen->nonce == nonce))
			return seen;
	}
	return NULL;
}

static void see_instances(struct world *world, const struct client *client, uint32_t slot,
			  const struct carousel_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		const uint64_t id = (uint64_t)chunk->ids[i], nonce = world->nonce[slot][i];
		struct seen *seen = find_seen(client, id, nonce);

		claim(world, nonce == chunk->nonce || !client->is_exact,
		      "an instance of another nonce to who must have the chunk's");
		if (!seen || may_see_again(world, client))
			continue;
		*seen = (struct seen){id, nonce, seen->uses + 1};
		claim(world, seen->uses <= client->reuse,
		      "what is kept of a sample in more epochs than it may be");
	}
}

static void hold_oldest(struct world *world, struct client *client)
{
	const struct carousel_chunk *chunk = chunk_of(world, &client->queue[0]);

	if (!chunk)
		return;
	claim(world,
	      world->made[client->queue[0].slot][client->variant] ==
		  world->pipeline[client->variant],
	      "a chunk without what the job's pipeline makes of it");
	if (!client->plan.order)
		see_nonce(world, client, chunk->nonce);
	if (client->seen && !client->plan.order)
		see_instances(world, client, client->queue[0].slot, chunk);
	client->held[client->n_held++] = client->queue[0];
	drop_queue(client, 0);
}

static bool can_take(const struct client *client)
{
	return client->joined && client->n_queue && client->n_held < CHAOS_PINS && !client->yields;
}

static bool try_take(struct world *world, struct client *client)
{
	const struct carousel_chunk *chunk;

	if (!can_take(client))
		return false;
	chunk = chunk_of(world, &client->queue[0]);
	if (!chunk || (!chunk->ready && chance(world, 70)))
		return false; /* it may also take what is still being filled */
	carousel_waiting(world->carousel, client->number, false);
	carousel_taken(world->carousel, client->number, client->queue[0].slot, world->now_ns);
	hold_oldest(world, client);
	return true;
}

/* A grant ends without a take: a tail's samples are to be granted again, before all else. */
static bool give_back(struct world *world, struct client *client, const struct grant *grant)
{
	const struct carousel_chunk *chunk = chunk_of(world, grant);

	if (chunk && chunk->is_private)
		client->tail_left += chunk->count;
	return chunk != NULL;
}

static bool try_yield(struct world *world, struct client *client)
{
	if (!client->yields)
		return false;
	client->yields = false;
	if (give_back(world, client, &client->yielding))
		carousel_reclaimed(world->carousel, client->number, client->yielding.slot,
				   world->now_ns);
	return true;
}

/* the carousel's actions */

static struct client *client_of(struct world *world, uint32_t number)
{
	for (uint32_t i = 0; i < world->n_clients; i++)
		if (world->clients[i].joined && world->clients[i].number == number)
			return &world->clients[i];
	claim(world, false, "an action for a job that is not there");
	return NULL;
}

static void claim_end(struct world *world, const struct client *client,
		      const struct carousel_chunk *chunk, uint32_t end)
{
	if (claim(world, end > 0 && end <= chunk->count, "nothing that is granted is the job's"))
		claim(world, is_own(world, client, (uint64_t)chunk->ids[end - 1]),
		      "the last of the job's samples is another's");
	for (uint32_t i = end; i < chunk->count; i++)
		claim(world, !is_own(world, client, (uint64_t)chunk->ids[i]),
		      "one of the job's samples is behind its last one");
}

static void grant(struct world *world, const struct carousel_action *action)
{
	struct client *client = client_of(world, action->job);
	struct grant new = {.slot = action->slot,
			    .instance = action->instance,
			    .epoch = action->epoch,
			    .first = action->first,
			    .last = action->last};

	const struct carousel_chunk *chunk = chunk_of(world, &new);

	if (!client || !chunk ||
	    !claim(world, client->n_queue < CHAOS_SLOTS, "more grants than slots"))
		return;
	claim(world, chunk->is_private || !client->tail_left,
	      "something was granted before the tail");
	claim(world, chunk->order == client->plan.order, "a chunk of another order");
	claim_end(world, client, chunk, action->end);
	if (chunk->is_private)
		client->tail_left -= chunk->count;
	client->queue[client->n_queue++] = new;
}

/* The rank was quicker than the daemon: it keeps the chunk, or sees the mark and yields. */
static void lose_race(struct world *world, struct client *client)
{
	struct grant taken = client->queue[0];

	if (chance(world, 50)) {
		if (chance(world, 50)) /* else its end tells */
			carousel_taken(world->carousel, client->number, taken.slot, world->now_ns);
		hold_oldest(world, client);
		return;
	}
	client->yields = true;
	client->yielding = taken;
	drop_queue(client, 0);
}

static void revoke(struct world *world, const struct carousel_action *action)
{
	struct client *client = client_of(world, action->job);
	uint32_t at = 0;

	if (!client)
		return;
	while (at < client->n_queue && client->queue[at].slot != action->slot)
		at++;
	if (!claim(world, at < client->n_queue, "a grant revoked that was not made"))
		return;
	if (at == 0 && can_take(client) && !client->stopped && chance(world, 40)) {
		lose_race(world, client);
		return;
	}
	give_back(world, client, &client->queue[at]);
	drop_queue(client, at);
	carousel_reclaimed(world->carousel, action->job, action->slot, world->now_ns);
}

static void empty(struct world *world, uint32_t slot)
{
	for (uint32_t i = 0; i < world->n_ghosts; i++)
		claim(world, world->ghosts[i].slot != slot, "a slot evicted under a ghost's pin");
	for (uint32_t i = 0; i < world->n_clients; i++) {
		const struct client *client = &world->clients[i];

		for (uint32_t k = 0; k < client->n_held; k++)
			claim(world, client->held[k].slot != slot, "a slot evicted under a pin");
		for (uint32_t k = 0; k < client->n_queue; k++)
			claim(world, client->queue[k].slot != slot, "a granted slot evicted");
		claim(world, !client->yields || client->yielding.slot != slot,
		      "a slot evicted before its return");
	}
	claim(world, !carousel_chunk_of(world->carousel, slot), "an evicted slot holds something");
}

static void check(struct world *world)
{
	const char *broken = carousel_check(world->carousel);

	if (broken && !world->broken)
		world->broken = broken;
}

/* Some samples come from what is kept, others are kept, now or when they are finished. Where nothing random is
 * common to all pipelines, there is nothing of that. */
static void bring_instances(struct world *world, uint32_t slot, const struct carousel_chunk *chunk)
{
	const unsigned most = carousel_allows(world->carousel);
	uint32_t number = 1;

	world->is_late[slot] = chance(world, 50);
	for (uint32_t i = 0; i < chunk->count; i++)
		world->nonce[slot][i] = chunk->nonce;
	if (most < 2 || world->config.usable_again || chance(world, 10) ||
	    !carousel_number(world->carousel, slot, number))
		return;
	for (uint32_t i = 0; i < chunk->count; i++) {
		const uint64_t id = (uint64_t)chunk->ids[i];
		unsigned own = 0;

		if (chance(world, 80)) /* else it is not there any more */
			own = instance_bring(&world->book, id, most, &world->nonce[slot][i]);
		if (own == 0 && !world->is_late[slot] && chance(world, 60))
			instance_made(&world->book, id, chunk->nonce);
		world->brought += own > 0;
		number = BASE_MAX(number, own);
	}
	claim(world, carousel_number(world->carousel, slot, number), "a chunk has no number");
}

static void keep_instances(struct world *world, uint32_t slot, const struct carousel_chunk *chunk)
{
	for (uint32_t i = 0; chunk->number && world->is_late[slot] && i < chunk->count; i++)
		if (world->nonce[slot][i] == chunk->nonce && chance(world, 60))
			instance_made(&world->book, (uint64_t)chunk->ids[i], chunk->nonce);
}

/* Fills the slot, as accessd: in the variants that the chunk has now. */
static void begin_chunk(struct world *world, uint32_t slot)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(world->carousel, slot);
	uint32_t variants = chunk->variants;

	claim(world, variants && variants >> CAROUSEL_MAX_VARIANTS == 0, "a chunk of no variant");
	for (uint32_t i = 0; i < CAROUSEL_MAX_VARIANTS; i++)
		world->made[slot][i] = variants >> i & 1 ? world->pipeline[i] : 0;
	world->making[world->n_making++] = slot;
	if (world->limits->keeps)
		bring_instances(world, slot, chunk);
}

/* Does all that the carousel decides. Returns its time to wake. */
static uint64_t settle(struct world *world)
{
	struct carousel_action action;

	do {
		carousel_step(world->carousel, world->now_ns, &action);
		check(world);
		if (action.kind == CAROUSEL_GRANT)
			grant(world, &action);
		else if (action.kind == CAROUSEL_REVOKE)
			revoke(world, &action);
		else if (action.kind == CAROUSEL_EMPTY)
			empty(world, action.slot);
		else if (action.kind == CAROUSEL_PRODUCE)
			begin_chunk(world, action.slot);
		claim(world, world->n_making <= world->config.producing + world->config.overtaken,
		      "too much in production");
		check(world);
	} while (action.kind != CAROUSEL_NONE && !world->broken);
	return action.wake_ns;
}

static bool try_finish_chunk(struct world *world)
{
	uint32_t at;

	if (!world->n_making)
		return false;
	at = (uint32_t)below(world, world->n_making);
	if (world->limits->keeps)
		keep_instances(world, world->making[at],
			       carousel_chunk_of(world->carousel, world->making[at]));
	carousel_produced(world->carousel, world->making[at]);
	world->making[at] = world->making[--world->n_making];
	return true;
}

/* joining and leaving */

static bool try_unghost(struct world *world)
{
	if (!world->n_ghosts)
		return false;
	chunk_of(world, &world->ghosts[--world->n_ghosts]);
	carousel_unpin(world->carousel, world->ghosts[world->n_ghosts].slot);
	return true;
}

static void leave(struct world *world, struct client *client, bool pinned)
{
	for (uint32_t i = 0; i < client->n_held && pinned; i++)
		world->ghosts[world->n_ghosts++] = client->held[i];
	if (client->yields && pinned)
		world->ghosts[world->n_ghosts++] = client->yielding;
	if (pinned)
		carousel_leave_pinned(world->carousel, client->number, world->now_ns);
	else
		carousel_leave(world->carousel, client->number, world->now_ns);
	client->joined = client->stopped = client->yields = false;
	client->n_queue = client->n_held = client->cut = 0;
}

static bool is_needed_whole(const struct world *world, const struct client *client, uint64_t block)
{
	const struct permutation *permutation = carousel_permutation(world->carousel);
	uint64_t first = permutation_block_first(permutation, block);

	for (uint32_t i = 0; i < permutation_block_size(permutation, block); i++) {
		uint64_t id = permutation_sample(permutation, first + i);

		if (is_own(world, client, id) && client->got[id])
			return false;
	}
	return true;
}

/* Need and tail of a token, in the world's scratch. Returns the tail's length. */
static uint32_t make_token(struct world *world, const struct client *client)
{
	const struct permutation *permutation = carousel_permutation(world->carousel);
	uint32_t n_tail = 0;

	memset(world->need, 0, (bits_words(permutation->blocks) + 1) * sizeof(*world->need));
	for (uint64_t id = 0; id < permutation->n; id++) {
		uint64_t block;

		if (client->got[id] || !is_own(world, client, id))
			continue;
		block = permutation_position(permutation, id) / permutation->block;
		if (is_needed_whole(world, client, block))
			bits_set(world->need, block);
		else
			world->tail[n_tail++] = (int64_t)id;
	}
	return n_tail;
}

/* The client's token, written and read again. */
static bool write_and_read(struct world *world, const struct client *client, struct token *ret)
{
	bool is_fixed = plan_is_fixed(client->plan.order);
	struct token token = {
	    .n = world->config.n,
	    .block = permutation_block_of(world->config.n),
	    .order = is_fixed ? client->plan.order : PLAN_CAROUSEL,
	    .seed = is_fixed ? client->plan.seed : world->config.seed,
	    .epoch = client->epoch,
	    .epochs = client->epochs,
	    .delivered = client->delivered,
	    .need = is_fixed ? NULL : world->need,
	    .tail = world->tail,
	    .n_tail = is_fixed ? 0 : make_token(world, client),
	    .n_nonces = is_fixed ? 0 : BASE_MIN(client->n_nonces, (uint32_t)TOKEN_MAX_NONCES),
	};
	size_t size = token_size(&token);
	_cleanup_free_ uint8_t *bytes = malloc(size);
	struct diag diag;

	memcpy(token.nonces, client->nonces + client->n_nonces - token.n_nonces,
	       token.n_nonces * sizeof(token.nonces[0]));
	return claim(world, bytes && token_write(&token, bytes, size) == size,
		     "a token is not written") &&
	       claim(world, token_parse(bytes, size, ret, &diag) == 0, "a token is not read") &&
	       claim(world,
		     token_fits(ret, world->config.n, token.block, world->config.version, &diag) ==
			 0,
		     "a token does not fit");
}

/* Another pipeline gets the number, if nobody has it. */
static void try_change_variant(struct world *world)
{
	uint32_t variant = (uint32_t)below(world, world->limits->variants);
	bool again = chance(world, 40), is_there = false;
	int r;

	for (uint32_t i = 0; i < world->n_clients; i++)
		is_there |= world->clients[i].joined && world->clients[i].variant == variant;
	r = carousel_set_variant(world->carousel, variant, again);
	if (!claim(world, r == (is_there ? CAROUSEL_E_BAD : 0), "a variant in use was changed") ||
	    r)
		return;
	world->pipeline[variant]++;
	if (world->limits->keeps)
		memset(world->book.number, 0, world->config.n); /* it was of other pipelines */
	world->config.usable_again &= ~(UINT32_C(1) << variant);
	world->config.usable_again |= (uint32_t)again << variant;
}

/* From the token, but for a job that never ran. */
static void join(struct world *world, struct client *client)
{
	struct token token = {.epoch = client->epoch};
	struct carousel_join join = {
	    .variant = client->variant,
	    .batch = client->batch,
	    .ranks = client->ranks,
	    .epochs = client->epochs,
	    .order = client->plan.order,
	    .seed = client->plan.seed,
	};

	if ((client->delivered || client->n_nonces) && !write_and_read(world, client, &token))
		return;
	join.population = client->part->bits;
	join.is_random = client->part->is_random;
	join.is_narrow = client->is_narrow;
	join.reuse = client->reuse;
	join.is_exact = client->is_exact;
	join.epoch = token.epoch;
	join.place = join.order ? token.delivered : 0;
	join.need = join.order ? NULL : token.need;
	join.tail = token.tail;
	join.n_tail = token.n_tail;
	join.nonces = token.nonces;
	join.n_nonces = token.n_nonces;
	claim(world, carousel_join(world->carousel, &join, world->now_ns, &client->number) == 0,
	      "a job was not let in");
	client->joined = true;
	client->tail_left = join.n_tail;
	client->ranks = 1 + (uint32_t)below(world, 2); /* next time */
	client->batch = 1 + (uint32_t)below(world, world->config.chunk);
	token_fini(&token);
}

static bool try_join(struct world *world, struct client *client)
{
	uint32_t present = (world->n_ghosts + 1) / CHAOS_PINS;

	for (uint32_t i = 0; i < world->n_clients; i++)
		present += world->clients[i].joined;
	if (client->joined || client->finished || present >= world->n_clients)
		return false; /* as admission: slots for all who may pin */
	if (world->limits->variants && chance(world, 25))
		client->variant = (uint32_t)below(world, world->limits->variants);
	join(world, client);
	return true;
}

/* setting up */

/* A job of a large dataset needs few blocks: all else counts as delivered. */
static void shrink_need(struct world *world, struct client *client)
{
	const struct permutation *permutation = carousel_permutation(world->carousel);

	memset(client->got, 1, world->config.n);
	client->delivered = client->part->count;
	for (uint32_t i = 0; i < world->limits->max_need; i++) {
		uint64_t block = i ? below(world, permutation->blocks) : permutation->blocks - 1;

		for (uint32_t k = 0; k < permutation_block_size(permutation, block); k++) {
			uint64_t id = permutation_sample(
			    permutation, permutation_block_first(permutation, block) + k);

			if (!is_own(world, client, id))
				continue;
			client->delivered -= client->got[id];
			client->got[id] = 0;
		}
	}
}

static bool set_up_keeps(struct world *world, struct client *client)
{
	client->seen = calloc(CHAOS_SEEN, sizeof(*client->seen));
	if (chance(world, 90))
		client->reuse = 2 + (uint32_t)below(world, 4);
	if (chance(world, 70))
		client->plan = (struct plan){.order = 0};
	client->is_exact = chance(world, 5);
	return client->seen != NULL;
}

static bool set_up_client(struct world *world, struct client *client)
{
	uint64_t n = world->config.n;

	client->got = calloc(n + 1, 1);
	if (!client->got)
		return false;
	client->batch = 1 + (uint32_t)below(world, world->config.chunk);
	client->ranks = 1;
	client->epochs = 1 + below(world, 4);
	client->epoch = chance(world, 20) ? below(world, client->epochs) : 0;
	client->stops_for_good = chance(world, 10);
	if (chance(world, 30) && !world->limits->max_need)
		plan_init(&client->plan, chance(world, 70) ? PLAN_SEEDED : PLAN_SEQUENTIAL, n,
			  below(world, 2), world->config.version, may_see_again(world, client));
	client->part = &world->parts[0];
	if (!client->plan.order && chance(world, 50))
		client->part = &world->parts[below(world, CHAOS_PARTS)];
	client->is_narrow = chance(world, 20);
	client->reuse = chance(world, 70) ? 1 : 1 + (uint32_t)below(world, 3);
	if (world->limits->keeps && !set_up_keeps(world, client))
		return false;
	client->finished = client->part->count == 0;
	if (world->limits->variants)
		client->variant = (uint32_t)below(world, world->limits->variants);
	if (world->limits->max_need && client->part->count) {
		client->epoch = 0;
		client->epochs = 1;
		shrink_need(world, client);
	}
	return true;
}

/* A random part, one that is any set, and a set within that one. */
static bool set_up_parts(struct world *world)
{
	const struct permutation *permutation = carousel_permutation(world->carousel);
	struct population_split split = {.seed = below(world, 3)};
	unsigned percent = 1 + (unsigned)below(world, 99);

	split.from = (double)below(world, 90) / 100;
	split.to = split.from + .1;
	world->parts[0].count = permutation->n;
	for (unsigned i = 1; i < CHAOS_PARTS; i++) {
		world->parts[i].bits = calloc(bits_words(permutation->n) + 1, sizeof(uint64_t));
		if (!world->parts[i].bits)
			return false;
	}
	bits_fill(world->parts[1].bits, permutation->n);
	world->parts[1].is_random = true;
	population_keep_split(permutation, world->config.version, &split, world->parts[1].bits);
	for (uint64_t i = 0; i < permutation->n; i++) {
		if (chance(world, percent))
			bits_set(world->parts[2].bits, i);
		if (bits_test(world->parts[2].bits, i) && chance(world, 50))
			bits_set(world->parts[3].bits, i);
	}
	for (unsigned i = 1; i < CHAOS_PARTS; i++)
		world->parts[i].count = bits_count(world->parts[i].bits, permutation->n);
	return true;
}

static bool set_up(struct world *world)
{
	struct carousel_config *config = &world->config;
	const struct chaos_limits *limits = world->limits;

	config->n = limits->n ? limits->n : below(world, limits->max_n + 1);
	config->chunk = permutation_block_of(config->n) + (uint32_t)below(world, 40);
	world->n_clients = 1 + (uint32_t)below(world, CHAOS_CLIENTS);
	config->slots = BASE_MAX(4u, 2 * world->n_clients) + (uint32_t)below(world, 4);
	config->max_slots = CHAOS_SLOTS;
	config->producing = 1 + (uint32_t)below(world, 4);
	config->seed = philox_u64(&world->random);
	config->overtaken = (uint32_t)(config->seed / 8 % (5 - config->producing));
	config->first_nonce = philox_u64(&world->random);
	config->usable_again = chance(world, 30);
	if (config->seed % 3 && !limits->n) { /* chapters of a few blocks, few of them begun */
		config->chapter = 1 + config->seed / 3 % 17;
		config->max_begun = 1 + (uint32_t)(config->seed / 64 % 4);
	}
	if (limits->variants)
		config->usable_again = (uint32_t)below(world, UINT64_C(1) << limits->variants);
	for (uint32_t i = 0; i < CAROUSEL_MAX_VARIANTS; i++)
		world->pipeline[i] = 1;
	world->now_ns = 1;
	world->need = calloc(config->n / 64 + 2, sizeof(*world->need));
	world->tail = calloc(config->n + 1, sizeof(*world->tail));
	for (unsigned i = 0; i < CHAOS_SLOTS; i++) {
		world->nonce[i] = calloc(config->chunk, sizeof(*world->nonce[i]));
		if (!world->nonce[i])
			return false;
	}
	if (limits->keeps && instance_init(&world->book, config->n, config->first_nonce))
		return false;
	if (!world->need || !world->tail || carousel_new(config, &world->carousel) ||
	    !set_up_parts(world))
		return false;
	for (uint32_t i = 0; i < world->n_clients; i++)
		if (!set_up_client(world, &world->clients[i]))
			return false;
	return true;
}

static void tear_down(struct world *world)
{
	carousel_free(world->carousel);
	free(world->need);
	free(world->tail);
	instance_fini(&world->book);
	for (unsigned i = 0; i < CHAOS_SLOTS; i++)
		free(world->nonce[i]);
	for (uint32_t i = 0; i < CHAOS_CLIENTS; i++) {
		free(world->clients[i].got);
		free(world->clients[i].seen);
	}
	for (unsigned i = 0; i < CHAOS_PARTS; i++)
		free(world->parts[i].bits);
}

/* the phases */

static void act(struct world *world, struct client *client)
{
	if (!client->joined) {
		try_join(world, client);
	} else if (client->stopped) {
		client->stopped = chance(world, 80);
	} else if (chance(world, 3)) {
		leave(world, client, chance(world, 50));
	} else if (chance(world, 3)) {
		client->stopped = true;
	} else if (!try_yield(world, client) && !(chance(world, 50) && try_take(world, client)) &&
		   !try_deliver(world, client)) {
		carousel_waiting(world->carousel, client->number, true);
	}
}

static void run_wild(struct world *world)
{
	for (unsigned i = 0; i < world->limits->events && !world->broken; i++) {
		world->now_ns += below(world, 200000000);
		if (chance(world, 2))
			world->now_ns += below(world, 30000000000);
		if (chance(world, 30))
			try_finish_chunk(world);
		else if (chance(world, 4))
			try_unghost(world);
		else if (world->limits->variants && chance(world, 4))
			try_change_variant(world);
		else
			act(world, &world->clients[below(world, world->n_clients)]);
		check(world);
		settle(world);
	}
}

/* Anything that a world with some jobs stopped for good can do. */
static bool go_on(struct world *world)
{
	bool moved = try_finish_chunk(world);

	for (uint32_t i = 0; i < world->n_clients; i++) {
		struct client *client = &world->clients[i];

		if (client->finished || (client->stopped && client->stops_for_good))
			continue;
		client->stopped = false;
		if (!client->joined) {
			moved |= try_join(world, client);
			continue;
		}
		moved |= try_yield(world, client);
		moved |= try_take(world, client);
		if (client->n_held)
			moved |= try_deliver(world, client);
		else
			carousel_waiting(world->carousel, client->number, !client->n_queue);
	}
	return moved;
}

static bool is_over(const struct world *world)
{
	for (uint32_t i = 0; i < world->n_clients; i++) {
		const struct client *client = &world->clients[i];

		if (!client->finished && !(client->stopped && client->stops_for_good))
			return false;
	}
	return true;
}

/* Everybody who is not stopped for good comes to his end. When nothing moves, time does. */
static void run_out(struct world *world)
{
	unsigned still = 0;

	for (unsigned i = 0; i < CHAOS_STEPS && !world->broken && !is_over(world); i++) {
		uint64_t wake_ns = settle(world);

		world->now_ns += 1000000;
		still = go_on(world) ? 0 : still + 1;
		if (still < 3)
			continue;
		if (try_unghost(world))
			continue;
		if (!claim(world, wake_ns && still < 20, "a job is never given what it needs"))
			return;
		world->now_ns = BASE_MAX(world->now_ns, wake_ns);
	}
	claim(world, is_over(world), "the run does not end");
}

const char *chaos_run(uint64_t seed, const struct chaos_limits *limits, uint64_t *ret_brought)
{
	struct world *world = calloc(1, sizeof(*world));
	struct carousel_totals totals;
	const char *broken = "out of memory";

	if (!world)
		return broken;
	world->limits = limits;
	philox_seq_init(&world->random, seed, 0, 0);
	if (set_up(world)) {
		run_wild(world);
		if (!world->broken)
			run_out(world);
		carousel_totals(world->carousel, &totals);
		claim(world, totals.waits_on_dead == 0, "a living job waited on the dead");
		broken = world->broken;
	}
	if (ret_brought)
		*ret_brought = world->brought;
	tear_down(world);
	free(world);
	return broken;
}
