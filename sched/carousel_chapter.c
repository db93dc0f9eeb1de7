/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chapters: how a large epoch is walked through (doc/decisions/100-chapters.md).
 *
 * Chapter c is the blocks from c * size on: a random part of the samples, for the permutation is a
 * permutation. A chunk is of one chapter, so that dealing one costs the same however large the
 * dataset is. A job may have begun a few chapters at a time and not more: those are what its token
 * has to tell block by block. So a job is granted chunks of chapters that it has begun, and of
 * others while there is room to begin one. Nothing else is different: the need is one bitmap over
 * all blocks, an epoch ends when it is empty, and a chunk that comes back reopens its chapter, room
 * or not.
 *
 * The next chunk's chapter is chosen for the hungriest job:
 *	the one from which most others can take that will, being hungry too or as quick as it;
 *	then one that the fewest slow and busy jobs have begun: they would miss part of it, and what a
 *		job misses it must find again with another, so the quick go on where the slow are not;
 *	then the one that most jobs have begun: so a job joins the chapter that others are in;
 *	then one that it has begun itself, the nearest to its end; then by lot.
 * What a job leaves open comes round with somebody's next epoch.
 *
 * With one chapter (up to 16.7 million samples) all of this is the constant answer.
 */

#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel_state.h"

/* Blocks up to which there is one chapter; else blocks a chapter, and how many a job may have
 * begun: their bitmaps are 64 KiB. */
#define CAROUSEL_ONE_CHAPTER (UINT64_C(1) << 19)
#define CAROUSEL_CHAPTER (UINT64_C(1) << 15)
#define CAROUSEL_MAX_BEGUN 16
#define CAROUSEL_KEEPS_UP 1.1 /* times the hungriest's pace */
/* "chap": apart from every use of (seed, nonce) */
#define CAROUSEL_STREAM_CHAPTER UINT32_C(0x63686170)

void carousel_chapter_init(struct carousel *carousel)
{
	uint64_t blocks = carousel->permutation.blocks;
	uint64_t size = carousel->config.chapter;

	if (!size)
		size = blocks <= CAROUSEL_ONE_CHAPTER ? CAROUSEL_ONE_CHAPTER : CAROUSEL_CHAPTER;
	carousel->chapter = size;
	carousel->chapters = (uint32_t)BASE_MAX((blocks + size - 1) / size, UINT64_C(1));
	carousel->max_begun = carousel->config.max_begun;
	if (!carousel->max_begun)
		carousel->max_begun = CAROUSEL_MAX_BEGUN;
}

static uint64_t size_of(const struct carousel *carousel, uint32_t chapter)
{
	uint64_t first = chapter * carousel->chapter;

	return BASE_MIN(carousel->chapter, carousel->permutation.blocks - first);
}

/* Bits of bitmap from first on, count of them; neither needs to be at the edge of a word. */
static uint64_t count_bits(const uint64_t *bits, uint64_t first, uint64_t count)
{
	uint64_t end = first + count, sum;
	size_t word = (size_t)(first / 64), last = (size_t)(end / 64);

	sum = bits_count(bits + word, end - 64 * (uint64_t)word);
	if (end % 64)
		sum -= (uint64_t)__builtin_popcountll(bits[last] >> (end % 64));
	if (first % 64)
		sum -= (uint64_t)__builtin_popcountll(bits[word] << (64 - first % 64));
	return sum;
}

static uint32_t count_chapter(const struct carousel *carousel, const uint64_t *bits,
			      uint32_t chapter)
{
	uint64_t size = size_of(carousel, chapter);

	return (uint32_t)(bits ? count_bits(bits, chapter * carousel->chapter, size) : size);
}

/* ---- of a job ---- */

int carousel_chapter_enter(const struct carousel *carousel, struct carousel_member *member)
{
	const struct carousel_population *population = carousel->population[member->population];

	member->left = calloc(carousel->chapters, 2 * sizeof(*member->left));
	if (!member->left)
		return -ENOMEM;
	member->whole = member->left + carousel->chapters;
	for (uint32_t i = 0; i < carousel->chapters; i++)
		member->whole[i] = count_chapter(carousel, population ? population->need : NULL, i);
	return 0;
}

void carousel_chapter_leave(struct carousel_member *member)
{
	free(member->left);
}

static bool is_begun(const struct carousel_member *member, uint32_t chapter)
{
	return member->left[chapter] && member->left[chapter] < member->whole[chapter];
}

void carousel_chapter_recount(const struct carousel *carousel, struct carousel_member *member)
{
	member->begun = 0;
	for (uint32_t i = 0; i < carousel->chapters; i++) {
		member->left[i] = count_chapter(carousel, member->need, i);
		member->begun += is_begun(member, i);
	}
}

void carousel_chapter_fill(const struct carousel *carousel, struct carousel_member *member)
{
	memcpy(member->left, member->whole, carousel->chapters * sizeof(*member->left));
	member->begun = 0;
}

void carousel_chapter_clear(const struct carousel *carousel, struct carousel_member *member)
{
	memset(member->left, 0, carousel->chapters * sizeof(*member->left));
	member->begun = 0;
}

static uint32_t chapter_of(const struct carousel *carousel, const struct carousel_chunk *chunk)
{
	return (uint32_t)(chunk->blocks[0] / carousel->chapter);
}

bool carousel_chapter_took(const struct carousel *carousel, struct carousel_member *member,
			   const struct carousel_chunk *chunk, uint32_t blocks)
{
	uint32_t chapter;

	if (!blocks)
		return false;
	chapter = chapter_of(carousel, chunk);
	member->begun -= is_begun(member, chapter);
	member->left[chapter] -= blocks;
	member->begun += is_begun(member, chapter);
	return carousel->chapters > 1 && !member->left[chapter];
}

void carousel_chapter_returned(const struct carousel *carousel, struct carousel_member *member,
			       const struct carousel_chunk *chunk, uint32_t blocks)
{
	uint32_t chapter;

	if (!blocks)
		return;
	chapter = chapter_of(carousel, chunk);
	member->begun -= is_begun(member, chapter);
	member->left[chapter] += blocks;
	member->begun += is_begun(member, chapter);
}

/* ---- the choice ---- */

static bool is_open(const struct carousel *carousel, const struct carousel_member *member,
		    uint32_t chapter)
{
	return member->left[chapter] &&
	       (member->begun < carousel->max_begun || is_begun(member, chapter));
}

bool carousel_chapter_allows(const struct carousel *carousel, const struct carousel_member *member,
			     const struct carousel_chunk *chunk)
{
	return carousel->chapters == 1 || !chunk->n_blocks ||
	       is_open(carousel, member, chapter_of(carousel, chunk));
}

struct merit {              /* of a chapter, compared from the first member to the last */
	uint32_t takers;    /* others that can take from it, hungry or as quick */
	uint32_t missers;   /* busy slow jobs that have begun it: what is dealt now they miss */
	uint32_t beginners; /* others that have begun it */
	bool is_begun;      /* by the hungriest itself */
	uint32_t left;      /* if it is begun: fewer are better */
};

/* Is the job about as quick as the other? One that is not known to be slow is. */
static bool keeps_up(const struct carousel_member *member, const struct carousel_member *other)
{
	return member->pace_ns <= CAROUSEL_KEEPS_UP * other->pace_ns || other->pace_ns <= 0;
}

static struct merit merit_of(const struct carousel *carousel, const uint32_t *order, uint32_t n,
			     uint32_t n_hungry, uint32_t chapter)
{
	const struct carousel_member *hungriest = &carousel->jobs[order[0]];
	struct merit merit = {
	    .is_begun = is_begun(hungriest, chapter),
	    .left = hungriest->left[chapter],
	};

	for (uint32_t i = 1; i < n; i++) {
		const struct carousel_member *member = &carousel->jobs[order[i]];
		bool begun = is_begun(member, chapter);

		if (member->scope != hungriest->scope)
			continue; /* it sees few of these chunks, if any */
		if (i < n_hungry || keeps_up(member, hungriest))
			merit.takers += is_open(carousel, member, chapter);
		else
			merit.missers += begun;
		merit.beginners += begun;
	}
	return merit;
}

/* Above 0: a is better; 0: they are alike. */
static int compare_merits(const struct merit *a, const struct merit *b)
{
	if (a->takers != b->takers)
		return a->takers > b->takers ? 1 : -1;
	if (a->missers != b->missers)
		return a->missers < b->missers ? 1 : -1;
	if (a->beginners != b->beginners)
		return a->beginners > b->beginners ? 1 : -1;
	if (a->is_begun != b->is_begun)
		return a->is_begun ? 1 : -1;
	if (a->is_begun && a->left != b->left)
		return a->left < b->left ? 1 : -1;
	return 0;
}

uint32_t carousel_chapter_choose(const struct carousel *carousel, uint64_t nonce,
				 const uint32_t *order, uint32_t n, uint32_t n_hungry)
{
	const struct carousel_member *first = &carousel->jobs[order[0]];
	struct merit best = {0};
	struct philox_seq seq;
	uint32_t chosen = 0, alike = 0;

	if (carousel->chapters == 1)
		return 0;
	philox_seq_init(&seq, carousel->config.seed, nonce, CAROUSEL_STREAM_CHAPTER);
	for (uint32_t i = 0; i < carousel->chapters; i++) {
		struct merit merit;
		int better;

		if (!is_open(carousel, first, i))
			continue;
		merit = merit_of(carousel, order, n, n_hungry, i);
		better = alike ? compare_merits(&merit, &best) : 1;
		alike = better > 0 ? 1 : alike + (better == 0);
		if (better > 0 || (better == 0 && philox_below(&seq, alike) == 0))
			chosen = i;
		if (better > 0)
			best = merit;
	}
	return chosen;
}

bool carousel_chapter_has_say(const struct carousel *carousel, const struct carousel_member *member,
			      uint32_t chapter)
{
	return carousel->chapters == 1 || is_open(carousel, member, chapter);
}

void carousel_chapter_window(const struct carousel *carousel, uint32_t chapter,
			     struct carousel_window *ret)
{
	uint64_t first = chapter * carousel->chapter, end = first + size_of(carousel, chapter);
	uint64_t word = first / 64 / CAROUSEL_SPAN * CAROUSEL_SPAN;

	*ret = (struct carousel_window){
	    .chapter = chapter,
	    .word = (size_t)word,
	    .words = (size_t)base_align_up(BASE_MAX(bits_words(end - 64 * word), (size_t)1),
					   CAROUSEL_SPAN),
	    .first = (unsigned)(first - 64 * word),
	    .end = end - 64 * word,
	};
}
