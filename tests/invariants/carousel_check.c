/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The carousel's invariants as code. Tests call carousel_check() after every event; it goes through
 * whole bitmaps, so the daemon does not.
 */

#include "tests/invariants/invariants.h"

#include "base/bits.h"
#include "sched/carousel_log.h"
#include "sched/carousel_state.h"

static bool is_summed(const struct carousel *carousel, const struct carousel_member *member)
{
	for (size_t i = 0; i < carousel->words; i++) {
		uint64_t word = member->need[i];
		bool some = member->words_some[i / CAROUSEL_SPAN] >> (i % CAROUSEL_SPAN) & 1;
		bool whole = member->words_full[i / CAROUSEL_SPAN] >> (i % CAROUSEL_SPAN) & 1;

		if (some != (word != 0) || whole != (word == UINT64_MAX))
			return false;
	}
	return true;
}

static const char *check_need(const struct carousel *carousel, const struct carousel_member *member)
{
	struct carousel_member again = *member;
	bool is_over = member->epochs && member->epoch >= member->epochs;

	carousel_need_recount(carousel, &again);
	if (again.need_blocks != member->need_blocks || again.need_samples != member->need_samples)
		return "a job's need is not counted right";
	if (bits_count(member->need, carousel->words * 64) != member->need_blocks)
		return "a job needs a block past the end";
	if (!is_summed(carousel, member))
		return "what is known of a need's words is wrong";
	if (!carousel_is_placed(member) && !carousel_population_has_need(carousel, member))
		return "a job needs what is not its own";
	if (is_over && (member->need_samples || member->n_tail))
		return "a job that is granted everything needs something";
	if (!is_over && carousel_fixed_places(carousel, member) && !member->need_samples &&
	    !member->n_tail && !carousel_listed_awaits(member))
		return "a job's epoch is met and the next one did not begin";
	if (member->n_tail > member->tail_room)
		return "a tail has grown";
	return NULL;
}

static const char *check_chapters(const struct carousel *carousel,
				  const struct carousel_member *member)
{
	const size_t bytes = carousel->chapters * sizeof(*member->left);
	struct carousel_member again = *member;
	_cleanup_free_ uint32_t *left = malloc(bytes);

	if (carousel_is_placed(member))
		return NULL;
	if (!left)
		return "there is no memory to count chapters";
	again.left = left;
	carousel_chapter_recount(carousel, &again);
	if (memcmp(left, member->left, bytes) != 0)
		return "a chapter's need is not counted right";
	return again.begun == member->begun ? NULL : "a job's begun chapters are not counted right";
}

/* need, granted and consumed make up each epoch: by number, over all epochs since it joined */
static const char *check_sum(const struct carousel_member *member)
{
	uint64_t has = member->need_samples + member->n_tail;

	for (uint32_t i = 0; i < member->n_grants; i++)
		has += member->grants[i].samples;
	if (member->is_group)
		has += member->taken; /* by its log */
	return has + member->consumed + member->lost == member->given
		   ? NULL
		   : "a job's need, grants and consumed samples do not make up its epochs";
}

static bool share_block(const struct carousel *carousel, const struct carousel_member *member,
			const struct carousel_chunk *a, const struct carousel_chunk *b)
{
	uint32_t i = 0, k = 0;

	while (i < a->n_blocks && k < b->n_blocks) {
		if (a->blocks[i] == b->blocks[k] &&
		    carousel_population_has(carousel, member, a->blocks[i]))
			return true;
		if (a->blocks[i] <= b->blocks[k])
			i++;
		else
			k++;
	}
	return false;
}

/* no block twice in an epoch */
static const char *check_blocks(const struct carousel *carousel,
				const struct carousel_member *member)
{
	for (uint32_t i = 0; i < member->n_grants; i++) {
		const struct carousel_grant *grant = &member->grants[i];
		const struct carousel_chunk *chunk = &carousel->slots[grant->slot].chunk;

		for (uint32_t k = 0; k < chunk->n_blocks && grant->epoch == member->epoch &&
				     !carousel_is_placed(member);
		     k++)
			if (bits_test(member->need, chunk->blocks[k]))
				return "a job needs a block that it was granted";
		for (uint32_t k = 0; k < i; k++)
			if (member->grants[k].epoch == grant->epoch &&
			    share_block(carousel, member, chunk,
					&carousel->slots[member->grants[k].slot].chunk))
				return "a job was granted a block twice in an epoch";
	}
	return NULL;
}

static const char *check_order(const struct carousel_member *member)
{
	uint64_t epoch = 0;

	for (uint32_t i = 0; i < member->n_grants; i++) {
		const struct carousel_grant *grant = &member->grants[i];

		if (grant->epoch < epoch || grant->epoch > member->epoch)
			return "a job's grants are not in the order of epochs";
		if (grant->epoch == epoch && i && member->grants[i - 1].last)
			return "a job was granted more of an epoch after its last chunk";
		if (grant->last && grant->epoch == member->epoch)
			return "a job was told the last chunk of an epoch that goes on";
		epoch = grant->epoch;
	}
	return NULL;
}

static const char *check_counts(const struct carousel *carousel, uint32_t job)
{
	const struct carousel_member *member = &carousel->jobs[job];
	uint64_t coming = 0;
	uint32_t revoked = 0, pins = 0;

	for (uint32_t i = 0; i < member->n_grants; i++) {
		const struct carousel_grant *grant = &member->grants[i];
		const struct carousel_slot *s = &carousel->slots[grant->slot];

		if (!s->chunk.instance ||
		    carousel_population_of_chunk(carousel, member, &s->chunk) !=
			grant->first + grant->samples)
			return "a job was granted a slot that holds something else";
		if (!carousel_population_is_within(carousel, member->scope, s->chunk.scope))
			return "a job was granted a chunk that was drawn for others alone";
		if (!s->uses[job])
			return "a slot does not count a grant";
		if (!bits_test(s->seen.word, job))
			return "a slot does not know of a grant";
		coming += grant->state == CAROUSEL_GRANTED ? grant->samples : 0;
		revoked += grant->state == CAROUSEL_REVOKED;
		pins += grant->state != CAROUSEL_GRANTED;
	}
	if (coming != member->coming || revoked != member->revoked || pins != member->pins)
		return "a job's grants are not counted right";
	return NULL;
}

static const char *check_job(const struct carousel *carousel, uint32_t job)
{
	const struct carousel_member *member = &carousel->jobs[job];
	const char *broken = NULL;

	if (!member->used)
		return member->need || member->grants ? "a job that left still owns something"
						      : NULL;
	if (!broken)
		broken = check_chapters(carousel, member);
	if (!broken)
		broken = check_need(carousel, member);
	if (!broken)
		broken = check_sum(member);
	if (!broken)
		broken = check_counts(carousel, job);
	if (!broken)
		broken = check_order(member);
	if (!broken)
		broken = check_blocks(carousel, member);
	if (!broken)
		broken = carousel_log_check(carousel, job);
	return broken;
}

static const char *check_chunk(const struct carousel *carousel, const struct carousel_slot *s)
{
	const struct carousel_chunk *chunk = &s->chunk;
	uint32_t samples = 0;

	if (chunk->instance > carousel->instances || !chunk->count ||
	    chunk->count > carousel->config.chunk)
		return "a slot's chunk is none that was dealt";
	for (uint32_t i = 0; i < chunk->n_blocks; i++) {
		if (chunk->blocks[i] >= carousel->permutation.blocks ||
		    (i && chunk->blocks[i] <= chunk->blocks[i - 1]))
			return "a chunk's blocks are not distinct, ascending blocks of the "
			       "permutation";
		samples += carousel_population_block(carousel, chunk->scope, chunk->blocks[i]);
		if (chunk->blocks[i] / carousel->chapter != chunk->blocks[0] / carousel->chapter)
			return "a chunk's blocks are of two chapters";
	}
	if (!chunk->is_private && !chunk->order && samples != chunk->count)
		return "a chunk's samples are not those of its blocks";
	return NULL;
}

/* Adds the job's grant of the slot, if it has one, to the counts. */
static const char *check_holder(const struct carousel *carousel, uint32_t slot, uint32_t job,
				uint32_t *granted, uint32_t *pins)
{
	const struct carousel_slot *s = &carousel->slots[slot];
	const struct carousel_member *member = &carousel->jobs[job];
	int index = member->used ? carousel_need_find(member, slot) : -1;

	if (!member->used)
		return "a slot remembers a job that left";
	if (index < 0)
		return NULL;
	if (s->chunk.is_private && s->owner != job && s->owner != CAROUSEL_NOBODY &&
	    !(carousel_is_rank(member) && s->owner == carousel_log_group(member->log)))
		return "a private chunk was granted to somebody else";
	*granted += member->grants[index].state == CAROUSEL_GRANTED;
	*pins += member->grants[index].state != CAROUSEL_GRANTED;
	return NULL;
}

static const char *check_slot(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_slot *s = &carousel->slots[slot];
	uint32_t granted = 0, pins = 0;

	for (uint32_t i = 0; i < BASE_ARRAY_LEN(s->seen.word); i++)
		for (uint64_t bits = s->seen.word[i]; bits; bits &= bits - 1) {
			uint32_t job = i * 64 + (unsigned)__builtin_ctzll(bits);
			const char *broken = check_holder(carousel, slot, job, &granted, &pins);

			if (broken)
				return broken;
		}
	if (granted != s->granted || pins != s->pins)
		return "a slot's grants and pins are not those of the jobs";
	if (!s->chunk.instance)
		return s->granted || s->pins || s->ghosts ? "an empty slot is held" : NULL;
	return check_chunk(carousel, s);
}

static const char *check_variants(const struct carousel *carousel)
{
	uint32_t members[CAROUSEL_MAX_VARIANTS] = {0};

	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		const struct carousel_member *member = &carousel->jobs[job];
		const uint32_t most =
		    carousel_is_placed(member) || member->is_group || member->is_exact
			? 1
			: member->reuse;

		if (!member->used)
			continue;
		members[member->variant]++;
		for (uint32_t i = 0; i < member->n_grants; i++) {
			const struct carousel_slot *s = &carousel->slots[member->grants[i].slot];

			if (!(s->chunk.variants >> member->variant & 1))
				return "a job was granted a chunk that is not of its variant";
			if (s->chunk.number && !carousel_variant_again(carousel, member) &&
			    (s->uses[job] != 1 || s->chunk.number > most))
				return "a job was granted what is kept once more than it allows";
		}
	}
	for (uint32_t i = 0; i < CAROUSEL_MAX_VARIANTS; i++)
		if (members[i] != carousel->members[i])
			return "a variant's jobs are not counted right";
	for (uint32_t i = 0; i < carousel->n_slots; i++)
		if (carousel->slots[i].chunk.variants >> CAROUSEL_MAX_VARIANTS)
			return "a chunk is of a variant that cannot be";
	return NULL;
}

const char *carousel_check(const struct carousel *carousel)
{
	const char *broken = NULL;
	uint32_t unfinished = 0, overtaken = 0, unstamped = 0, n_free = 0;

	for (uint32_t job = 0; job < carousel->jobs_end && !broken; job++)
		broken = check_job(carousel, job);
	for (uint32_t job = carousel->jobs_end; job < CAROUSEL_MAX_JOBS && !broken; job++)
		broken = carousel->jobs[job].used ? "a job is used above the last" : NULL;
	for (uint32_t slot = 0; slot < carousel->n_slots && !broken; slot++) {
		const struct carousel_slot *s = &carousel->slots[slot];

		broken = check_slot(carousel, slot);
		n_free += !s->chunk.instance;
		unfinished += s->chunk.instance && !s->chunk.ready;
		overtaken += s->overtaken;
		unstamped += s->chunk.instance && s->chunk.ready && !s->stamped;
	}
	if (!broken)
		broken = check_variants(carousel);
	if (broken)
		return broken;
	if (unfinished != carousel->unfinished || overtaken != carousel->overtaken ||
	    overtaken > unfinished ||
	    unfinished >
		carousel->config.producing + BASE_MIN(overtaken, carousel->config.overtaken))
		return "chunks in production are not counted right, or too many";
	if (n_free != carousel->n_free)
		return "free slots are not counted right";
	if (unstamped != carousel->unstamped)
		return "finished chunks are not counted right";
	for (size_t i = 0; i < carousel->room_window; i++)
		if (carousel->drawn[i])
			return "a draw left its marks";
	return NULL;
}
