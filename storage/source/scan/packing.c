/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Best fit, decreasing: for each room that a sequence may have left there is a list of those which have it, and a bit that
 * says whether any has, so that the smallest room that is enough is found by looking at words of bits.
 */

#include "storage/source/scan/packing.h"

#include "base/base.h"

#define NONE UINT16_MAX

struct bins {                          /* sequences of rests, under construction */
	uint64_t *is_there;            /* owned: bits, by room left */
	uint16_t *top;                 /* owned: by room left, the one begun last */
	uint16_t below[PACKING_GROUP]; /* of each, the next of its list */
	uint16_t of[PACKING_GROUP];    /* of each rest in its order, the sequence */
	unsigned n;
};

struct rest {
	uint32_t tokens;
	uint16_t document;
};

static int compare(const void *a, const void *b)
{
	const struct rest *one = a, *two = b;

	if (one->tokens != two->tokens)
		return one->tokens > two->tokens ? -1 : 1;
	return one->document < two->document ? -1 : 1;
}

static void bins_put(struct bins *bins, uint32_t room, uint16_t bin)
{
	bins->below[bin] = bins->is_there[room / 64] >> room % 64 & 1 ? bins->top[room] : NONE;
	bins->top[room] = bin;
	bins->is_there[room / 64] |= UINT64_C(1) << room % 64;
}

/* One with the least room that is enough, or a new one; *ret_room: what it has. */
static uint16_t bins_take(struct bins *bins, uint32_t tokens, uint32_t length, uint32_t *ret_room)
{
	uint64_t bits = bins->is_there[tokens / 64] & (~UINT64_C(0) << tokens % 64);
	uint32_t word = tokens / 64, room;
	uint16_t bin;

	while (!bits && word < length / 64)
		bits = bins->is_there[++word];
	*ret_room = length;
	if (!bits)
		return (uint16_t)bins->n++;
	room = word * 64 + (uint32_t)__builtin_ctzll(bits);
	bin = bins->top[room];
	bins->top[room] = bins->below[bin];
	if (bins->below[bin] == NONE)
		bins->is_there[room / 64] &= ~(UINT64_C(1) << room % 64);
	*ret_room = room;
	return bin;
}

/* The lists of the sequences, from where each rest went. */
static void list_rests(struct packing *packing, const struct bins *bins, const struct rest *rest,
		       unsigned n)
{
	unsigned next[PACKING_GROUP] = {0};

	memset(packing->first, 0, sizeof(packing->first));
	for (unsigned i = 0; i < n; i++)
		packing->first[bins->of[i] + 1]++;
	for (unsigned bin = 0; bin < bins->n; bin++) {
		packing->first[bin + 1] += packing->first[bin];
		next[bin] = packing->first[bin];
	}
	for (unsigned i = 0; i < n; i++)
		packing->rest[next[bins->of[i]]++] = rest[i].document;
}

static unsigned split(struct packing *packing, const uint32_t *size, struct rest *rest)
{
	unsigned n = 0;

	packing->whole_before[0] = 0;
	for (unsigned i = 0; i < packing->n; i++) {
		const uint32_t left = size[i] % packing->length;

		packing->size[i] = size[i];
		packing->whole_before[i + 1] = packing->whole_before[i] + size[i] / packing->length;
		if (left)
			rest[n++] = (struct rest){left, (uint16_t)i};
	}
	packing->whole = packing->whole_before[packing->n];
	return n;
}

static void fill(struct bins *bins, const struct rest *rest, unsigned n, uint32_t length)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t room;

		bins->of[i] = bins_take(bins, rest[i].tokens, length, &room);
		if (room > rest[i].tokens)
			bins_put(bins, room - rest[i].tokens, bins->of[i]);
	}
}

int packing_make(const uint32_t *size, unsigned n, uint32_t length, struct packing *ret)
{
	_cleanup_free_ struct rest *rest = calloc(PACKING_GROUP, sizeof(*rest));
	_cleanup_free_ struct bins *bins = calloc(1, sizeof(*bins));
	_cleanup_free_ uint64_t *is_there = calloc(length / 64 + 1, sizeof(*is_there));
	_cleanup_free_ uint16_t *top = calloc(length + 1, sizeof(*top));
	unsigned rests;

	if (!rest || !bins || !is_there || !top)
		return -ENOMEM;
	bins->is_there = is_there;
	bins->top = top;
	ret->n = n;
	ret->length = length;
	rests = split(ret, size, rest);
	qsort(rest, rests, sizeof(*rest), compare);
	fill(bins, rest, rests, length);
	list_rests(ret, bins, rest, rests);
	ret->sequences = ret->whole + bins->n;
	return 0;
}

/* The document with that whole length. */
static unsigned whole_of(const struct packing *packing, uint64_t sequence)
{
	return (unsigned)BASE_LAST(at, packing->n, packing->whole_before[at] <= sequence);
}

unsigned packing_parts(const struct packing *packing, uint64_t sequence,
		       struct packing_part ret[PACKING_GROUP])
{
	const uint32_t length = packing->length;
	unsigned n = 0;

	if (sequence < packing->whole) {
		const unsigned document = whole_of(packing, sequence);
		const uint64_t piece = sequence - packing->whole_before[document];

		ret[0] = (struct packing_part){document, (uint32_t)(piece * length), length};
		return 1;
	}
	sequence -= packing->whole;
	for (unsigned i = packing->first[sequence]; i < packing->first[sequence + 1]; i++) {
		const unsigned document = packing->rest[i];
		const uint32_t left = packing->size[document] % length;

		ret[n++] = (struct packing_part){document, packing->size[document] - left, left};
	}
	return n;
}
