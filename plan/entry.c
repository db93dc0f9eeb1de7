/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Entries of a plan log and what they leave. To cut a set inside an entry is: nothing of the entry's
 * samples is in it, then those from the cut on are put back, whole blocks as bits, others as single
 * samples. So cuts at growing places of one chunk may follow each other. That all samples which were
 * passed had been in the set is found by counting; the count goes along with the set, as a log has as many
 * entries as its writer likes and the set as many blocks as the dataset.
 */

#include "base/bits.h"
#include "plan/entry.h"
#include "plan/population.h"

static uint32_t block_size(const struct entry_set *set, uint64_t block)
{
	return set->bits ? population_of_block(set->permutation, set->bits, block)
			 : permutation_block_size(set->permutation, block);
}

static bool is_member(const struct entry_set *set, uint64_t position)
{
	return !set->bits || bits_test(set->bits, position);
}

void entry_samples(const struct entry_set *set, const struct entry *entry, int64_t *ret_ids)
{
	if (entry->n_blocks)
		permutation_members(set->permutation, set->bits, entry->seed, entry->nonce,
				    entry->blocks, entry->n_blocks, ret_ids);
	else
		memcpy(ret_ids, entry->ids, entry->count * sizeof(*ret_ids));
}

static bool are_blocks_good(const struct entry_set *set, const struct entry *entry)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < entry->n_blocks; i++) {
		uint32_t size;

		if (entry->blocks[i] >= set->permutation->blocks ||
		    (i && entry->blocks[i] <= entry->blocks[i - 1]))
			return false;
		size = block_size(set, entry->blocks[i]);
		if (!size)
			return false;
		samples += size;
	}
	return samples == entry->count;
}

bool entry_is_good(const struct entry_set *set, const struct entry *entry)
{
	uint64_t n = set->permutation->n;

	if (!entry->count || entry->place > n || entry->count > n - entry->place)
		return false;
	if (entry->n_blocks)
		return are_blocks_good(set, entry);
	for (uint32_t i = 0; i < entry->count; i++)
		if (entry->ids[i] < 0 || (uint64_t)entry->ids[i] >= n ||
		    !is_member(set,
			       permutation_position(set->permutation, (uint64_t)entry->ids[i])))
			return false;
	return true;
}

/* what is left */

static void need_all(const struct entry_set *set, struct entry_rest *rest)
{
	const struct permutation *permutation = set->permutation;

	if (!set->bits) {
		bits_fill(rest->need, permutation->blocks);
		rest->samples = permutation->n;
	} else if (set->blocks) {
		memcpy(rest->need, set->blocks,
		       bits_words(permutation->blocks) * sizeof(*rest->need));
		rest->samples = set->samples;
	} else {
		population_need(permutation, set->bits, 0, permutation->blocks, rest->need);
		rest->samples = population_samples(permutation, set->bits, rest->need);
	}
}

static int copy_tail(const struct entry_set *set, const int64_t *tail, struct entry_rest *rest)
{
	rest->tail = calloc((size_t)rest->n_tail + 1, sizeof(*rest->tail));
	rest->positions = calloc((size_t)rest->n_tail + 1, sizeof(*rest->positions));
	if (!rest->tail || !rest->positions)
		return -ENOMEM;
	if (rest->n_tail)
		memcpy(rest->tail, tail, rest->n_tail * sizeof(*tail));
	permutation_positions(set->permutation, tail, rest->n_tail, rest->positions);
	return 0;
}

int entry_rest_copy(const struct entry_set *set, const struct entry_rest *from,
		    struct entry_rest *ret)
{
	size_t words = bits_words(set->permutation->blocks) + 1;
	struct entry_rest rest = {
	    .epoch = ret->epoch,
	    .place = ret->place,
	    .need = calloc(words, sizeof(*rest.need)),
	    .samples = from->samples,
	    .n_tail = from->n_tail,
	};

	if (!rest.need || copy_tail(set, from->tail, &rest)) {
		entry_rest_fini(&rest);
		return -ENOMEM;
	}
	if (from->need)
		memcpy(rest.need, from->need, (words - 1) * sizeof(*rest.need));
	else
		need_all(set, &rest);
	*ret = rest;
	return 0;
}

int entry_rest_init(const struct entry_set *set, const uint64_t *need, const int64_t *tail,
		    uint32_t n_tail, struct entry_rest *ret)
{
	const struct entry_rest from = {
	    .need = (uint64_t *)need,
	    .samples = need ? population_samples(set->permutation, set->bits, need) : 0,
	    .tail = (int64_t *)tail,
	    .n_tail = n_tail,
	};

	return entry_rest_copy(set, &from, ret);
}

void entry_rest_fini(struct entry_rest *rest)
{
	free(rest->need);
	free(rest->tail);
	free(rest->positions);
	rest->need = NULL;
	rest->tail = NULL;
	rest->positions = NULL;
	rest->n_tail = 0;
}

uint64_t entry_rest_count(const struct entry_rest *rest)
{
	return rest->samples + rest->n_tail;
}

void entry_rest_clear(const struct entry_set *set, struct entry_rest *rest)
{
	memset(rest->need, 0, bits_words(set->permutation->blocks) * sizeof(*rest->need));
	rest->samples = 0;
	rest->n_tail = 0;
}

void entry_rest_take_block(const struct entry_set *set, struct entry_rest *rest, uint64_t block)
{
	if (block >= set->permutation->blocks || !bits_test(rest->need, block))
		return;
	bits_clear(rest->need, block);
	rest->samples -= block_size(set, block);
}

/* There is room. */
static void put_one(const struct entry_set *set, struct entry_rest *rest, uint64_t position)
{
	rest->positions[rest->n_tail] = position;
	rest->tail[rest->n_tail++] = (int64_t)permutation_sample(set->permutation, position);
}

/* The i-th of the tail stays, as the kept-th. */
static void keep_one(struct entry_rest *rest, uint32_t i, uint32_t kept)
{
	rest->tail[kept] = rest->tail[i];
	rest->positions[kept] = rest->positions[i];
}

/* The places in the permutation of those ids that are of the set; from: what is in ret already. Returns how many there
 * are then, ascending. */
static uint32_t sorted_positions(const struct entry_set *set, const int64_t *ids, uint32_t count,
				 uint32_t from, uint64_t *ret)
{
	for (uint32_t i = 0; i < count; i++) {
		if ((uint64_t)ids[i] >= set->permutation->n)
			continue;
		ret[from] = permutation_position(set->permutation, (uint64_t)ids[i]);
		from += is_member(set, ret[from]);
	}
	qsort(ret, from, sizeof(*ret), base_compare_u64);
	return from;
}

/* Takes a whole block's bit out; its samples that are not among these positions stay, as single ones. */
static void break_block(const struct entry_set *set, struct entry_rest *rest, uint64_t block,
			const uint64_t *positions, uint32_t count)
{
	uint64_t first = permutation_block_first(set->permutation, block);
	uint64_t end = first + permutation_block_size(set->permutation, block);
	uint32_t at = 0;

	if (!bits_test(rest->need, block))
		return;
	entry_rest_take_block(set, rest, block);
	for (uint64_t position = first; position < end; position++) {
		while (at < count && positions[at] < position)
			at++;
		if ((at == count || positions[at] != position) && is_member(set, position))
			put_one(set, rest, position);
	}
}

static void take_out(const struct entry_set *set, struct entry_rest *rest,
		     const uint64_t *positions, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < rest->n_tail; i++)
		if (!bsearch(&rest->positions[i], positions, count, sizeof(*positions),
			     base_compare_u64))
			keep_one(rest, i, kept++);
	rest->n_tail = kept;
	for (uint32_t first = 0, end; first < count; first = end) {
		uint64_t block = positions[first] / set->permutation->block;

		for (end = first; end < count && positions[end] / set->permutation->block == block;)
			end++;
		break_block(set, rest, block, positions + first, end - first);
	}
}

/* The tail is these from now on, but for blocks that are whole. */
static void put_back(const struct entry_set *set, struct entry_rest *rest,
		     const uint64_t *positions, uint32_t count)
{
	rest->n_tail = 0;
	for (uint32_t first = 0, end; first < count; first = end) {
		const uint64_t block = positions[first] / set->permutation->block;
		const uint32_t tail = rest->n_tail;

		for (end = first; end < count && positions[end] / set->permutation->block == block;
		     end++)
			if (end == first || positions[end] != positions[end - 1])
				put_one(set, rest, positions[end]);
		if (!bits_test(rest->need, block) && rest->n_tail - tail < block_size(set, block))
			continue;
		rest->samples += bits_test(rest->need, block) ? 0 : block_size(set, block);
		bits_set(rest->need, block);
		rest->n_tail = tail;
	}
}

/* All of an entry that has whole blocks, in whatever order. Where all of them are whole in the set, too,
 * nothing of them is in the tail. */
static void take_blocks(const struct entry_set *set, struct entry_rest *rest,
			const struct entry *entry)
{
	uint64_t before = rest->samples;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < entry->n_blocks; i++)
		entry_rest_take_block(set, rest, entry->blocks[i]);
	if (before - rest->samples == entry->count)
		return;
	for (uint32_t i = 0; i < rest->n_tail; i++) {
		uint32_t block = (uint32_t)(rest->positions[i] / set->permutation->block);

		if (!bsearch(&block, entry->blocks, entry->n_blocks, sizeof(block),
			     base_compare_u32))
			keep_one(rest, i, kept++);
	}
	rest->n_tail = kept;
}

static int make_room(struct entry_rest *rest, uint32_t more)
{
	size_t room = (size_t)rest->n_tail + more + 1;
	int64_t *tail = realloc(rest->tail, room * sizeof(*tail));
	uint64_t *positions = realloc(rest->positions, room * sizeof(*positions));

	rest->tail = tail ? tail : rest->tail;
	rest->positions = positions ? positions : rest->positions;
	return tail && positions ? 0 : -ENOMEM;
}

int entry_rest_take(const struct entry_set *set, struct entry_rest *rest, const int64_t *ids,
		    uint32_t count)
{
	_cleanup_free_ uint64_t *positions = malloc(((size_t)count + 1) * sizeof(*positions));

	if (!positions || make_room(rest, count * set->permutation->block))
		return -ENOMEM;
	take_out(set, rest, positions, sorted_positions(set, ids, count, 0, positions));
	return 0;
}

int entry_rest_put(const struct entry_set *set, struct entry_rest *rest, const int64_t *ids,
		   uint32_t count)
{
	_cleanup_free_ uint64_t *positions =
	    malloc(((size_t)rest->n_tail + count + 1) * sizeof(*positions));

	if (!positions || make_room(rest, count))
		return -ENOMEM;
	memcpy(positions, rest->positions, rest->n_tail * sizeof(*positions));
	put_back(set, rest, positions, sorted_positions(set, ids, count, rest->n_tail, positions));
	return 0;
}

/* Of the entry's samples those from `from` on are in the rest afterwards, and no others. */
static int cut(const struct entry_set *set, struct entry_rest *rest, const struct entry *entry,
	       uint32_t from)
{
	_cleanup_free_ int64_t *ids = NULL;
	int r;

	if (entry->n_blocks && from == entry->count) {
		take_blocks(set, rest, entry);
		return 0;
	}
	ids = malloc(entry->count * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	entry_samples(set, entry, ids);
	r = entry_rest_take(set, rest, ids, entry->count);
	if (r || from == entry->count)
		return r;
	return entry_rest_put(set, rest, ids + from, entry->count - from);
}

void entry_rest_next_epoch(const struct entry_set *set, struct entry_rest *rest)
{
	need_all(set, rest);
	rest->epoch++;
	rest->place = 0;
}

int entry_rest_pass(const struct entry_set *set, struct entry_rest *rest, const struct entry *entry,
		    uint64_t to)
{
	uint64_t end = entry->place + entry->count, before = entry_rest_count(rest);
	int r;

	if (!before && entry->epoch == rest->epoch + 1) {
		entry_rest_next_epoch(set, rest);
		before = entry_rest_count(rest);
	}
	if (entry->epoch < rest->epoch || (entry->epoch == rest->epoch && to <= rest->place))
		return 0;
	if (entry->epoch != rest->epoch || entry->place > rest->place || to > end)
		return ENTRY_E_BAD;
	r = cut(set, rest, entry, (uint32_t)(to - entry->place));
	if (r)
		return r;
	if (before - entry_rest_count(rest) != to - rest->place)
		return ENTRY_E_BAD;
	rest->place = to;
	return 0;
}
