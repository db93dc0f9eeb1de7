/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What goes into a chunk.
 *
 * A pure chunk: every active job needs all of it or none of it, so nothing is made that somebody
 * must skip over. Start from the need of the hungriest job; go through the others in the order in
 * which they have their say (carousel_choose.c); each splits the candidates into those it needs and
 * the rest. Keep the half that was chosen for the job, if that half still fills half a chunk; else
 * the larger. From what is left, draw uniformly at random.
 *
 * Time: 64 jobs with bitmaps of 2^19 blocks are 4 MiB to go through, and a count of bits costs
 * more than the traffic. So a count stops as soon as half a chunk is found, which is near the
 * beginning unless the half is nearly empty; it adds up bytes over a span of words before it
 * adds the bytes, in loops of constant length that a compiler turns into vectors; when the
 * candidates lie thin they are listed, and the other jobs split the list; and of each word of a need it is
 * known whether it has any block and whether it has all 64 (words_some, words_full: two bits a word, kept with
 * each grant), so that a need is only read where it splits a word; and jobs with equal needs, known by
 * their hash, are asked once. None of this changes what is chosen.
 *
 * The draw never lists the candidates: sums over spans turn a rank into a block by bisection, and
 * Floyd's method gives a uniform subset of ranks with one draw a block. Nothing here looks at
 * a sample, only at sets of positions of the permutation.
 */

#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel_state.h"

/* "draw": apart from every use of (seed, nonce) */
#define CAROUSEL_STREAM_DRAW UINT32_C(0x64726177)
#define CAROUSEL_STREAM_FILL UINT32_C(0x66696c6c) /* "fill" */
/* Half a chunk found behind this share of the bitmap: few enough to list them, most likely. */
#define CAROUSEL_THIN 16
#define LISTED_NEEDED (UINT32_C(1) << 31) /* above every block that is listed */

/* bits, counted */

/* Two words at once: every 64-bit machine has registers for that. */
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

#define CAROUSEL_PAIRS (CAROUSEL_SPAN / 2) /* of a span */

static inline pair bytes_of(pair words) /* bits set in each byte */
{
	words -= words >> 1 & UINT64_C(0x5555555555555555);
	words =
	    (words & UINT64_C(0x3333333333333333)) + (words >> 2 & UINT64_C(0x3333333333333333));
	return (words + (words >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}

static inline uint64_t sum_of_bytes(pair each) /* each byte at most 64 */
{
	uint64_t bytes = each[0] + each[1];

	bytes =
	    (bytes & UINT64_C(0x00ff00ff00ff00ff)) + (bytes >> 8 & UINT64_C(0x00ff00ff00ff00ff));
	return bytes * UINT64_C(0x0001000100010001) >> 48;
}

static inline bool is_empty(const pair *span)
{
	pair any = span[0];

	for (unsigned k = 1; k < CAROUSEL_PAIRS; k++)
		any |= span[k];
	return !(any[0] | any[1]);
}

static inline uint64_t count_span(const pair *span)
{
	pair bytes = bytes_of(span[0]);

	for (unsigned k = 1; k < CAROUSEL_PAIRS; k++)
		bytes += bytes_of(span[k]);
	return sum_of_bytes(bytes);
}

/* Of words that may have candidates (left), those that surely have none on the side that is asked for,
 * what the job needs or what it does not, and those whose candidates are surely all on it. */
struct sides {
	unsigned none, all; /* a bit a word */
};

static inline struct sides sides_of(const struct carousel *carousel,
				    const struct carousel_member *member, size_t span, bool needed)
{
	unsigned some, whole;

	span += carousel->window.word / CAROUSEL_SPAN;
	some = member->words_some[span];
	whole = member->words_full[span];
	return needed ? (struct sides){~some, whole} : (struct sides){whole, ~some};
}

/* A span of the window, in the job's need. */
static inline const pair *need_of(const struct carousel *carousel,
				  const struct carousel_member *member, size_t span)
{
	return (const pair *)(member->need + carousel->window.word + span * CAROUSEL_SPAN);
}

/* Candidates that the job needs, or does not, counted no further than the span in which limit is
 * reached; *ret_words: as far as it was counted. A job's need is not in the cache: it is not read
 * where what is known of whole words says it all. */
static uint64_t count_up_to(const struct carousel *carousel, const struct carousel_member *member,
			    bool needed, uint64_t limit, size_t *ret_words)
{
	uint64_t flip = needed ? 0 : UINT64_MAX;
	size_t spans = carousel->window.words / CAROUSEL_SPAN, i = 0;
	uint64_t count = 0;

	for (; i < spans && count < limit; i++) {
		const pair *s = (const pair *)(carousel->candidates + i * CAROUSEL_SPAN);
		const pair *o = need_of(carousel, member, i);
		struct sides sides = sides_of(carousel, member, i, needed);
		unsigned left = carousel->words_left[i];
		pair both[CAROUSEL_PAIRS];

		if (!(left & ~sides.none))
			continue;
		if (!(left & ~sides.all)) {
			count += count_span(s);
			continue;
		}
		for (unsigned k = 0; k < CAROUSEL_PAIRS; k++)
			both[k] = s[k] & (o[k] ^ flip);
		if (!is_empty(both))
			count += count_span(both);
	}
	*ret_words = i * CAROUSEL_SPAN;
	return count;
}

/* Keeps of the candidates those that the job needs, or does not. */
static void keep(struct carousel *carousel, const struct carousel_member *member, bool needed)
{
	uint64_t flip = needed ? 0 : UINT64_MAX;

	for (size_t i = 0; i < carousel->window.words / CAROUSEL_SPAN; i++) {
		pair *s = (pair *)(carousel->candidates + i * CAROUSEL_SPAN);
		const pair *o = need_of(carousel, member, i);
		struct sides sides = sides_of(carousel, member, i, needed);
		unsigned left = carousel->words_left[i];

		if (!(left & ~sides.all))
			continue;
		left &= ~sides.none;
		for (unsigned k = 0; k < CAROUSEL_PAIRS && left; k++)
			s[k] &= o[k] ^ flip;
		carousel->words_left[i] = left && !is_empty(s) ? (uint16_t)left : 0;
	}
}

/* Is the other half kept instead of the preferred one? Counts above half a chunk say no more. */
static bool prefers_other(uint64_t preferred, uint64_t other, uint64_t half)
{
	return !preferred || (preferred < half && preferred < other);
}

static uint64_t half_chunk(const struct carousel *carousel)
{
	return BASE_MAX(carousel->max_blocks / 2, 1u);
}

/* One job's split of the candidates. True: they lie thin now, for half a chunk was found late. */
static bool split(struct carousel *carousel, const struct carousel_member *member, bool is_wanted)
{
	uint64_t half = half_chunk(carousel), preferred = 0, other = 0;
	bool needed = is_wanted;
	size_t seen;

	if (needed && member->left[carousel->window.chapter] <
			  half) /* then the other half is it, most likely */
		other = count_up_to(carousel, member, !needed, half, &seen);
	if (other < half)
		preferred = count_up_to(carousel, member, needed, half, &seen);
	if (preferred < half && other < half)
		other = count_up_to(carousel, member, !needed, half, &seen);
	if (prefers_other(preferred, other, half))
		needed = !needed;
	keep(carousel, member, needed);
	return seen > carousel->window.words / CAROUSEL_THIN;
}

/* block: counted from the window's beginning. */
static inline bool needs(const struct carousel *carousel, const struct carousel_member *member,
			 uint32_t block)
{
	unsigned some;

	block += (uint32_t)(64 * carousel->window.word);
	some = member->words_some[block / (64 * CAROUSEL_SPAN)];
	return some >> (block / 64 % CAROUSEL_SPAN) & 1 && bits_test(member->need, block);
}

/* The same for candidates that are listed: returns how many of them are left. */
static uint32_t split_list(const struct carousel *carousel, const struct carousel_member *member,
			   bool is_wanted, uint32_t n)
{
	uint32_t *blocks = carousel->list;
	uint32_t needed = 0, kept = 0;
	bool wanted = is_wanted;

	for (uint32_t i = 0; i < n; i++)
		if (needs(carousel, member, blocks[i])) {
			blocks[i] |= LISTED_NEEDED;
			needed++;
		}
	if (!needed)
		return n;
	if (prefers_other(wanted ? needed : n - needed, wanted ? n - needed : needed,
			  half_chunk(carousel)))
		wanted = !wanted;
	for (uint32_t i = 0; i < n; i++)
		if ((blocks[i] >= LISTED_NEEDED) == wanted)
			blocks[kept++] = blocks[i] & ~LISTED_NEEDED;
	return kept;
}

/* Has one of the first n jobs, which had their say, the same need as the job? Then the candidates are all
 * on one side of it, and it splits nothing, whichever side it prefers. */
static bool is_said(const struct carousel *carousel, const uint32_t *order, uint32_t n,
		    const struct carousel_member *member)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct carousel_member *other = &carousel->jobs[order[i]];

		if (other->need_hash == member->need_hash &&
		    other->need_blocks == member->need_blocks &&
		    carousel_chapter_has_say(carousel, other, carousel->window.chapter) &&
		    carousel_population_is_within(carousel, carousel->jobs[order[0]].scope,
						  other->scope))
			return true;
	}
	return false;
}

/* Lists the candidates; false: they do not fit the list. */
static bool list_candidates(struct carousel *carousel, uint32_t *ret_n)
{
	uint32_t n = 0;

	if (64 * carousel->window.words > LISTED_NEEDED)
		return false;
	for (size_t i = 0; i < carousel->window.words; i++) {
		uint64_t bits = carousel->candidates[i];

		if (!carousel->words_left[i / CAROUSEL_SPAN])
			continue;
		if (carousel->room_list - n < 64 &&
		    carousel->room_list - n < (unsigned)__builtin_popcountll(bits))
			return false;
		for (; bits; bits &= bits - 1)
			carousel->list[n++] = (uint32_t)(i * 64 + (unsigned)__builtin_ctzll(bits));
	}
	*ret_n = n;
	return true;
}

/* the draw */

static uint64_t sum_blocks(struct carousel *carousel)
{
	const uint64_t *set = carousel->candidates;
	size_t spans = carousel->window.words / CAROUSEL_SPAN;
	uint32_t sum = 0;

	for (size_t i = 0; i < spans; i++) {
		carousel->sums[i] = sum;
		if (carousel->words_left[i])
			sum += (uint32_t)count_span((const pair *)(set + i * CAROUSEL_SPAN));
	}
	carousel->sums[spans] = sum;
	return sum;
}

/* The rank-th of the candidates, from 0, in ascending order. */
static uint32_t block_of_rank(const struct carousel *carousel, uint32_t n_list, uint32_t rank)
{
	size_t low, word;
	uint64_t bits;

	if (n_list)
		return carousel->list[rank];
	low = BASE_LAST(at, carousel->window.words / CAROUSEL_SPAN, carousel->sums[at] <= rank);
	rank -= carousel->sums[low];
	for (word = low * CAROUSEL_SPAN;; word++) {
		uint32_t count = (uint32_t)__builtin_popcountll(carousel->candidates[word]);

		if (rank < count)
			break;
		rank -= count;
	}
	for (bits = carousel->candidates[word]; rank; rank--)
		bits &= bits - 1;
	return (uint32_t)(word * 64 + (unsigned)__builtin_ctzll(bits));
}

/* A uniform subset of most of the candidates, ascending; all of them if there are no more.
 * n_list: as many are listed; 0: none are, they stand in the bitmap. */
static uint32_t draw(struct carousel *carousel, uint64_t nonce, uint32_t n_list, uint32_t most,
		     uint32_t *blocks)
{
	uint32_t total = n_list ? n_list : (uint32_t)sum_blocks(carousel);
	uint32_t n = BASE_MIN(most, total);
	struct philox_seq seq;

	philox_seq_init(&seq, carousel->config.seed, nonce, CAROUSEL_STREAM_DRAW);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t newest = total - n + i;
		uint32_t rank = total > n ? (uint32_t)philox_below(&seq, newest + UINT64_C(1)) : i;
		uint32_t block = block_of_rank(carousel, n_list, rank);

		if (bits_test(carousel->drawn, block))
			block = block_of_rank(carousel, n_list, newest);
		bits_set(carousel->drawn, block);
		blocks[i] = block;
	}
	for (uint32_t i = 0; i < n; i++) {
		bits_clear(carousel->drawn, blocks[i]);
		blocks[i] += (uint32_t)(64 * carousel->window.word);
	}
	qsort(blocks, n, sizeof(*blocks), base_compare_u32);
	return n;
}

/* Of blocks drawn for a scope that has not all samples of a block, as many as fill the chunk: the
 * first of them in a random order. */
static uint32_t fill_chunk(const struct carousel *carousel, uint64_t nonce, uint32_t scope,
			   uint32_t n, uint32_t *blocks)
{
	uint32_t samples = 0, kept = 0;
	struct philox_seq seq;

	philox_seq_init(&seq, carousel->config.seed, nonce, CAROUSEL_STREAM_FILL);
	for (; kept < n; kept++) {
		uint32_t chosen = kept + (uint32_t)philox_below(&seq, n - kept);
		uint32_t block = blocks[chosen];

		samples += carousel_population_block(carousel, scope, block);
		if (samples > carousel->config.chunk)
			break;
		blocks[chosen] = blocks[kept];
		blocks[kept] = block;
	}
	qsort(blocks, kept, sizeof(*blocks), base_compare_u32);
	return kept;
}

/* The need of the hungriest job in the window's chapter. */
static void begin(struct carousel *carousel, const struct carousel_member *hungriest)
{
	const struct carousel_window *window = &carousel->window;
	uint64_t *set = carousel->candidates;
	size_t first = window->first / 64, last = (size_t)(window->end / 64);

	memcpy(set, hungriest->need + window->word, window->words * sizeof(*set));
	memcpy(carousel->words_left, hungriest->words_some + window->word / CAROUSEL_SPAN,
	       window->words / CAROUSEL_SPAN * sizeof(*carousel->words_left));
	for (size_t i = 0; i < first; i++)
		set[i] = 0;
	set[first] &= UINT64_MAX << (window->first % 64);
	if (last < window->words)
		set[last] &= ~(UINT64_MAX << (window->end % 64));
	for (size_t i = last + 1; i < window->words; i++)
		set[i] = 0;
}

/* Chooses blocks for the hungriest job, order[0], and whoever can share them. A job of a scope within
 * the chunk's has no say (carousel_population.c); one of a wider scope, which will not be granted the
 * chunk, would rather have it made of what it has had. */
static uint32_t find_blocks(struct carousel *carousel, uint64_t nonce, uint32_t chapter,
			    const struct carousel_choice *choice, uint32_t *blocks)
{
	const struct carousel_member *first = &carousel->jobs[choice->job[0]];
	uint32_t scope = first->scope, n_list = 0, n;
	bool is_whole = !scope || carousel->permutation.block == 1;

	carousel_chapter_window(carousel, chapter, &carousel->window);
	begin(carousel, first);
	for (uint32_t i = 1; i < choice->n; i++) {
		const struct carousel_member *member = &carousel->jobs[choice->job[i]];
		bool is_wanted = choice->is_wanted[i];

		if (!carousel_chapter_has_say(carousel, member, chapter) ||
		    member->left[chapter] == carousel->window.end - carousel->window.first ||
		    !carousel_population_is_within(carousel, scope, member->scope) ||
		    is_said(carousel, choice->job, i, member))
			continue; /* it needs all there is, or has no say: all are kept */
		if (n_list)
			n_list = split_list(carousel, member, is_wanted, n_list);
		else if (split(carousel, member, is_wanted) && !list_candidates(carousel, &n_list))
			n_list = 0;
	}
	if (is_whole)
		return draw(carousel, nonce, n_list, carousel->max_blocks, blocks);
	n = draw(carousel, nonce, n_list, carousel->config.chunk, blocks);
	return fill_chunk(carousel, nonce, scope, n, blocks);
}

void carousel_deal_chunk(struct carousel *carousel, const uint32_t *order, uint32_t n,
			 uint32_t n_hungry, struct carousel_slot *slot)
{
	struct carousel_chunk *chunk = &slot->chunk;
	struct carousel_choice choice;
	uint32_t chapter = carousel_chapter_choose(carousel, chunk->nonce, order, n, n_hungry);

	carousel_choose(carousel, chunk->nonce, order, n, n_hungry, &choice);
	slot->meant = choice.meant;
	chunk->scope = carousel->jobs[order[0]].scope;
	carousel_population_ref(carousel, chunk->scope);
	chunk->n_blocks = find_blocks(carousel, chunk->nonce, chapter, &choice, slot->blocks);
	chunk->count = permutation_members(
	    &carousel->permutation, carousel_population_bits(carousel, chunk->scope),
	    carousel->config.seed, chunk->nonce, slot->blocks, chunk->n_blocks, slot->ids);
	chunk->ids = slot->ids;
	chunk->blocks = slot->blocks;
}

void carousel_deal_tail(struct carousel *carousel, uint32_t job, struct carousel_slot *slot)
{
	struct carousel_member *member = &carousel->jobs[job];
	struct carousel_chunk *chunk = &slot->chunk;

	chunk->count = BASE_MIN(member->n_tail, carousel->config.chunk);
	for (uint32_t i = 0; i < chunk->count; i++)
		slot->ids[i] = member->tail[--member->n_tail];
	permutation_shuffle(carousel->config.seed, chunk->nonce, slot->ids, chunk->count);
	chunk->ids = slot->ids;
	chunk->blocks = NULL;
	chunk->n_blocks = 0;
	chunk->is_private = true;
	slot->owner = job;
}
