/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a language model is to learn of a sample of tokens, where that is not the next token: masked tokens (BERT), corrupted
 * spans (T5), a middle that was taken out (FIM). Each kind is a row of a table.
 *
 * What is drawn for a sample is a function of its own (seed, nonce), as of random ops, and of the epoch: resumed and replayed
 * runs, other batch sizes and other ranks draw the same. Frozen by known answers.
 *
 * Samples are in memory that others may write to: a token is whatever was loaded, and no address follows from it unchecked.
 */

#include "base/base.h"
#include "base/philox.h"

#define OBJECTIVE_IGNORED INT64_C(-100) /* a label that does not count */

enum objective_kind { /* Frozen: libaccess.h has the same */
		      OBJECTIVE_NONE = 0,
		      OBJECTIVE_MASKED = 1,
		      OBJECTIVE_SPANS = 2,
		      OBJECTIVE_MIDDLE = 3,
};

enum objective_token {                               /* what a token is: bits. Frozen */
		       OBJECTIVE_SPECIAL = 1 << 0,   /* never masked */
		       OBJECTIVE_CONTINUES = 1 << 1, /* the word of the token before it */
};

struct objective_masked {
	double probability; /* of a token, or of a word */
	double mask,
	    random; /* the shares of these that become mask_token, and any token; the rest stays */
	int64_t mask_token;
	uint64_t vocabulary; /* tokens that there are: 0 .. vocabulary - 1 */
	const uint8_t
	    *what; /* of each of the first n_what tokens: enum objective_token; borrowed */
	uint64_t n_what;
};

struct objective_spans {
	double density,
	    mean; /* the share of tokens that is taken out, in spans of that mean length */
	const int64_t *sentinel; /* one for each span at least; borrowed */
	uint64_t n_sentinels;
	int64_t end; /* behind inputs and targets; negative: none */
};

struct objective_middle {
	double rate, swapped;           /* of documents; of these, with the suffix first (SPM) */
	int64_t prefix, middle, suffix; /* sentinels */
	int64_t end;                    /* of a document; negative: each window is one */
};

struct objective {
	enum objective_kind kind;
	struct objective_masked masked;
	struct objective_spans spans;
	struct objective_middle middle;
};

/* A sample as it is read: length + 1 tokens; or packed: rows of length tokens, their labels, places and documents
 * (storage/source/source_packed.c). */
struct objective_from {
	uint32_t length;
	bool is_packed;
};

struct objective_key {
	uint64_t seed, nonce, epoch;
	int64_t sample;
};

/* int64 values of a sample; columns 0: rows is all of them. */
struct objective_shape {
	uint64_t rows, columns;
};

/* ---- objective.c ---- */
/* What samples become. false: none of this kind can be made of such. */
bool objective_shape(const struct objective *objective, const struct objective_from *from,
		     struct objective_shape *ret);
/* Makes one, of a shape that there is. */
void objective_make(const struct objective *objective, const struct objective_from *from,
		    const struct objective_key *key, const int64_t *sample, int64_t *ret);

/* ---- for the kinds ---- */
/* true in p of all draws. */
static inline bool objective_chance(struct philox_seq *seq, double p)
{
	return philox_u32(seq) < (uint64_t)(p * 4294967296.0);
}
/* The rows of a packed sample. */
enum { OBJECTIVE_TOKENS, OBJECTIVE_LABELS, OBJECTIVE_PLACES, OBJECTIVE_DOCUMENTS, OBJECTIVE_ROWS };
/* Is the token at that place the first of a part of a document? places: from the row OBJECTIVE_PLACES on. */
static inline bool objective_begins(const int64_t *places, uint32_t length, uint32_t at)
{
	return at == 0 || places[at] == 0 || places[length + at] != places[length + at - 1];
}

struct objective_ops {
	bool (*shape)(const struct objective *objective, const struct objective_from *from,
		      struct objective_shape *ret);
	void (*make)(const struct objective *objective, const struct objective_from *from,
		     struct philox_seq *seq, const int64_t *sample, int64_t *ret);
};
extern const struct objective_ops objective_masked_ops, objective_spans_ops, objective_middle_ops;

/* ---- objective_spans.c ---- */
/* Of a window of so many tokens: how many are taken out, in how many spans. */
struct objective_noise {
	uint32_t tokens, spans;
};
struct objective_noise objective_noise(const struct objective_spans *spans, uint32_t length);
