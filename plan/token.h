/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The resume token (DESIGN.md section 10): where a job stands in its plan, owned by the client,
 * stable across versions, checksummed, hostile when it comes back.
 *
 * Little endian: head (magic, format, sizes, n, g, dataset version, epoch, delivered, sampler),
 * bitmap of blocks of which nothing was delivered, tail (undelivered samples of begun blocks),
 * recent nonces, checksum. With a fixed plan the head says it all: 136 bytes.
 */

#include "base/base.h"

#define TOKEN_MAX_NONCES 64
#define TOKEN_SAMPLER 16
#define TOKEN_LOG 16

enum { TOKEN_E_BAD = 1, TOKEN_E_FOREIGN = 2, TOKEN_E_VERSION = 3 };

struct token {
	uint64_t n;
	uint32_t block;
	uint32_t order; /* enum plan_order */
	uint8_t dataset[32];
	uint64_t seed;   /* of the fixed plan; else of the stream whose instances `nonces` names */
	uint64_t epoch;  /* epoch it is in */
	uint64_t epochs; /* total asked for, 0: without end */
	uint64_t delivered; /* samples of this epoch; fixed: the next place, skipped ones counted */
	/* Bitmap over ceil(n/g) blocks, of no meaning with a fixed plan; the token's own after
	 * token_parse(). */
	uint64_t *need;
	int64_t *tail;
	uint32_t n_tail;
	uint64_t nonces[TOKEN_MAX_NONCES]; /* newest last */
	uint32_t n_nonces;
	uint8_t sampler[TOKEN_SAMPLER]; /* hash of which samples an epoch has; zeros: all of them */
	/* Of a job of several ranks under the carousel: its plan log, and the place in its epoch. */
	bool has_log;
	uint8_t log[TOKEN_LOG];
	uint64_t place;
};

size_t token_size(const struct token *token); /* bytes of token_write() */
/* Writes into ret (size >= token_size()). Returns bytes written. */
size_t token_write(const struct token *token, void *ret, size_t size);
/* Parses hostile bytes: 0, TOKEN_E_BAD, TOKEN_E_VERSION (newer format), -ENOMEM; diag says what.
 * Everything is checked: bits past the end, ids < n, ids distinct, in blocks whose bit is 0, ... */
int token_parse(const void *data, size_t size, struct token *ret, struct diag *diag);
/* The same of its head alone: need and tail are NULL, and nothing is to be ended. Takes time by the size of
 * the bytes, where token_parse() takes some by the dataset that they say they are of. */
int token_look(const void *data, size_t size, struct token *ret, struct diag *diag);
/* TOKEN_E_FOREIGN with text when the token is of another dataset version, n or g. */
int token_fits(const struct token *token, uint64_t n, uint32_t block, const uint8_t dataset[32],
	       struct diag *diag);
/* The same when it is of another sampler. */
int token_fits_sampler(const struct token *token, const uint8_t sampler[TOKEN_SAMPLER],
		       struct diag *diag);
bool token_has_sampler(const struct token *token);
void token_fini(struct token *token);
