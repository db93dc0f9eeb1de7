/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Documents of any length into sequences of one: of a group of neighbouring documents, which go where. It follows from the
 * lengths alone, so that whoever computes it gets the same, and each token is in one sequence. Pure.
 *
 * A document's whole lengths are sequences of their own, which come first, in the order of the documents. What is left of
 * each, the rests, are put together: the longest first, of two of one length the earlier one, each to the sequence that it
 * leaves least room in. Two parts of one document are never in one sequence.
 */

#include <stdint.h>

#define PACKING_GROUP 4096 /* documents; more leave less room unused, and take longer */
#define PACKING_MOST_LENGTH (UINT32_C(1) << 22)

struct packing {
	unsigned n;
	uint32_t length;
	uint64_t whole;     /* sequences of one document each */
	uint64_t sequences; /* these, and those of rests */
	uint32_t size[PACKING_GROUP];
	uint64_t whole_before[PACKING_GROUP +
			      1];          /* of each document: whole lengths of those before it */
	unsigned first[PACKING_GROUP + 1]; /* of each sequence of rests: where its list begins */
	uint16_t rest[PACKING_GROUP];      /* the lists: documents, as they lie */
};
struct packing_part {
	unsigned document; /* in the group */
	uint32_t at, tokens;
};

/* Of n documents, at most PACKING_GROUP of them; length: 1 .. PACKING_MOST_LENGTH. 0 or -ENOMEM. */
int packing_make(const uint32_t *size, unsigned n, uint32_t length, struct packing *ret);
/* What a sequence has, one part behind the other. Returns how many parts. */
unsigned packing_parts(const struct packing *packing, uint64_t sequence,
		       struct packing_part ret[PACKING_GROUP]);
