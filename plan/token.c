/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The resume token's bytes, format 2, little endian:
 *
 *     0  8  magic "oatoken\n"
 *     8  4  format
 *    12  4  size of the whole token
 *    16  8  n
 *    24  4  g
 *    28  4  order
 *    32 32  dataset version
 *    64  8  seed
 *    72  8  epoch
 *    80  8  epochs
 *    88  8  delivered
 *    96  4  ids in the tail
 *   100  4  nonces
 *   104  4  bytes an id has: 4 if n <= 2^32, else 8
 *   108  4  1: place and log are there, else 0
 *   112 16  sampler
 *   128     bitmap over ceil(n / g) blocks, in words of 8 bytes; none with a fixed plan
 *           tail: ids
 *           nonces, newest last, 8 bytes each
 *           place in a plan log, 8 bytes, and the log's name, 16 bytes
 *           XXH3-64 of all that is before
 *
 * Format 1 has no sampler, and is read as one of zeros. Format 3 is written where there are more than
 * 2^19 blocks: the need is in parts (token_parts.h), the rest is the same.
 *
 * Magic, format, size and the checksum at the end are the same in every format, so that damage is
 * told from a newer format. A token comes back from a client and may be forged: the checksum finds
 * damage, not malice, and every field is checked against the others before anything is allocated
 * that is not smaller than the token itself. What a forger gains is to see some samples twice and
 * some never, in his own job.
 */

#include "base/bits.h"
#include "base/hash.h"
#include "base/little.h"
#include "plan/permutation.h"
#include "plan/plan.h"
#include "plan/sort.h"
#include "plan/token.h"
#include "plan/token_parts.h"

#define TOKEN_FORMAT 2
#define TOKEN_FORMAT_PARTS 3
#define TOKEN_NEWEST TOKEN_FORMAT_PARTS
#define TOKEN_HEAD 128
#define TOKEN_HEAD_1 112 /* of format 1 */
#define TOKEN_SUM 8
#define TOKEN_MAX_BLOCK 32
#define TOKEN_ONE_BITMAP (UINT64_C(1) << 19)  /* blocks */
#define TOKEN_MAX_PARTS_N (UINT64_C(1) << 32) /* samples: their bitmap has 16 MiB at most */

static const uint8_t token_magic[8] = {'o', 'a', 't', 'o', 'k', 'e', 'n', '\n'};

/* numbers */

static uint64_t blocks_of(uint64_t n, uint32_t block)
{
	return n / block + (n % block != 0);
}

static size_t log_bytes(const struct token *token)
{
	return token->has_log ? 8 + sizeof(token->log) : 0;
}

static size_t need_words(const struct token *token)
{
	return plan_is_fixed(token->order) ? 0 : bits_words(blocks_of(token->n, token->block));
}

static uint32_t format_of(const struct token *token)
{
	bool is_large = 64 * (uint64_t)need_words(token) > TOKEN_ONE_BITMAP;

	return is_large && token->n <= TOKEN_MAX_PARTS_N ? TOKEN_FORMAT_PARTS : TOKEN_FORMAT;
}

/* All but head and need. */
static size_t rest_bytes(const struct token *token)
{
	return (size_t)plan_id_bytes(token->n) * token->n_tail + (size_t)8 * token->n_nonces +
	       log_bytes(token) + TOKEN_SUM;
}

/* writing */

size_t token_size(const struct token *token)
{
	size_t need = 8 * need_words(token);

	if (format_of(token) == TOKEN_FORMAT_PARTS)
		need = token_parts_size(token->need, blocks_of(token->n, token->block));
	return TOKEN_HEAD + need + rest_bytes(token);
}

static void write_head(const struct token *token, uint8_t *out, size_t size)
{
	memcpy(out, token_magic, sizeof(token_magic));
	little_put(out + 8, format_of(token), 4);
	little_put(out + 12, size, 4);
	little_put(out + 16, token->n, 8);
	little_put(out + 24, token->block, 4);
	little_put(out + 28, token->order, 4);
	memcpy(out + 32, token->dataset, sizeof(token->dataset));
	little_put(out + 64, token->seed, 8);
	little_put(out + 72, token->epoch, 8);
	little_put(out + 80, token->epochs, 8);
	little_put(out + 88, token->delivered, 8);
	little_put(out + 96, token->n_tail, 4);
	little_put(out + 100, token->n_nonces, 4);
	little_put(out + 104, plan_id_bytes(token->n), 4);
	little_put(out + 108, token->has_log, 4);
	memcpy(out + 112, token->sampler, sizeof(token->sampler));
}

size_t token_write(const struct token *token, void *ret, size_t size)
{
	size_t total = token_size(token);
	unsigned width = plan_id_bytes(token->n);
	uint8_t *out = ret, *at = out + TOKEN_HEAD;

	if (size < total || total > UINT32_MAX)
		return 0;
	write_head(token, out, total);
	if (format_of(token) == TOKEN_FORMAT_PARTS) {
		token_parts_write(token->need, blocks_of(token->n, token->block), at);
		at = out + total - rest_bytes(token);
	} else {
		for (size_t i = 0; i < need_words(token); i++, at += 8)
			little_put(at, token->need[i], 8);
	}
	for (uint32_t i = 0; i < token->n_tail; i++, at += width)
		little_put(at, (uint64_t)token->tail[i], width);
	for (uint32_t i = 0; i < token->n_nonces; i++, at += 8)
		little_put(at, token->nonces[i], 8);
	if (token->has_log) {
		little_put(at, token->place, 8);
		memcpy(at + 8, token->log, sizeof(token->log));
		at += log_bytes(token);
	}
	little_put(at, hash_checksum(out, total - TOKEN_SUM), TOKEN_SUM);
	return total;
}

/* parsing */

static int bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, TOKEN_E_BAD,
			 "resume token: %s; give a token that oa_state() returned, unchanged, or "
			 "start the epoch without one",
			 what);
}

/* Of a frame that was checked: old tokens have shorter heads. */
static size_t head_bytes(const uint8_t *data)
{
	return little_32(data + 8) == 1 ? TOKEN_HEAD_1 : TOKEN_HEAD;
}

/* What is the same in every format. */
static int check_frame(const uint8_t *data, size_t size, struct diag *diag)
{
	if (size < 16 + TOKEN_SUM || memcmp(data, token_magic, sizeof(token_magic)) != 0)
		return bad(diag, "these bytes are no token");
	if (little_32(data + 12) != size)
		return bad(diag, "it was cut off or something was added");
	if (little_get(data + size - TOKEN_SUM, TOKEN_SUM) != hash_checksum(data, size - TOKEN_SUM))
		return bad(diag, "it is damaged (checksum)");
	if (little_32(data + 8) > TOKEN_NEWEST)
		return diag_fail(
		    diag, TOKEN_E_VERSION,
		    "resume token: format %u is newer than this version's %u; upgrade oneaccess",
		    little_32(data + 8), TOKEN_NEWEST);
	if (!little_32(data + 8) || size < head_bytes(data) + TOKEN_SUM)
		return bad(diag, "its format is none of ours");
	return 0;
}

static void read_head(const uint8_t *data, struct token *token)
{
	token->n = little_get(data + 16, 8);
	token->block = little_32(data + 24);
	token->order = little_32(data + 28);
	memcpy(token->dataset, data + 32, sizeof(token->dataset));
	token->seed = little_get(data + 64, 8);
	token->epoch = little_get(data + 72, 8);
	token->epochs = little_get(data + 80, 8);
	token->delivered = little_get(data + 88, 8);
	token->n_tail = little_32(data + 96);
	token->n_nonces = little_32(data + 100);
	token->has_log = little_32(data + 108) == 1;
	if (head_bytes(data) == TOKEN_HEAD)
		memcpy(token->sampler, data + 112, sizeof(token->sampler));
}

/* Bytes of the need, by the head and in format 3 by what follows it. False: they do not fit. */
static bool measure_need(const uint8_t *data, size_t size, const struct token *token, size_t *ret)
{
	size_t head = head_bytes(data), words = need_words(token);

	if (little_32(data + 8) == TOKEN_FORMAT_PARTS) {
		*ret = format_of(token) == TOKEN_FORMAT_PARTS
			   ? token_parts_measure(data + head, size - head,
						 blocks_of(token->n, token->block))
			   : 0;
		return *ret != 0;
	}
	*ret = 8 * words;
	return words <= size / 8;
}

static int check_head(const uint8_t *data, size_t size, const struct token *token, size_t *ret_need,
		      struct diag *diag)
{
	uint32_t block = token->block;

	if (!block || block > TOKEN_MAX_BLOCK || (block & (block - 1)))
		return bad(diag, "its block is not a power of two from 1 to 32");
	if (token->order < PLAN_CAROUSEL || token->order > PLAN_LIST)
		return bad(diag, "its order is none of ours");
	if (token->order == PLAN_LIST && !token_has_sampler(token))
		return bad(diag, "it is of a list and does not say which");
	if (token->n > INT64_MAX || !measure_need(data, size, token, ret_need))
		return bad(diag, "it is too short for its number of samples");
	if (plan_is_fixed(token->order) && (token->n_tail || token->n_nonces || token->has_log))
		return bad(diag, "its head is inconsistent");
	if (token->n_nonces > TOKEN_MAX_NONCES || token->n_tail > token->n)
		return bad(diag, "it lists too much");
	if (token->epochs && token->epoch > token->epochs)
		return bad(diag, "its epoch is past its last one");
	if (little_32(data + 104) != plan_id_bytes(token->n) || little_32(data + 108) > 1)
		return bad(diag, "its head is inconsistent");
	if (*ret_need + rest_bytes(token) != size - head_bytes(data))
		return bad(diag, "its size is not that of its contents");
	return 0;
}

static int read_need(const uint8_t *at, bool in_parts, struct token *token, struct diag *diag)
{
	uint64_t blocks = blocks_of(token->n, token->block);
	size_t words = need_words(token);

	token->need = calloc(words + 1, sizeof(*token->need));
	if (!token->need)
		return -ENOMEM;
	if (in_parts && !token_parts_read(at, blocks, token->need))
		return bad(diag, "a part of its need is not written as it should be");
	for (size_t i = 0; i < words && !in_parts; i++)
		token->need[i] = little_get(at + 8 * i, 8);
	if (words && blocks % 64 && token->need[words - 1] >> (blocks % 64))
		return bad(diag, "it needs blocks past the end of the dataset");
	return 0;
}

/* The ids are below n. */
static int check_tail(const struct token *token, struct diag *diag)
{
	const uint32_t n = token->n_tail;
	_cleanup_free_ uint64_t *positions = calloc((size_t)n + 1, 2 * sizeof(*positions));
	struct permutation permutation;

	if (!positions)
		return -ENOMEM;
	permutation_init(&permutation, token->n, token->dataset);
	permutation_positions(&permutation, token->tail, n, positions);
	for (uint32_t i = 0; i < n; i++)
		if (bits_test(token->need, positions[i] / token->block))
			return bad(diag, "its tail names a sample of a block that it needs whole");
	sort_values(positions, positions + n, n);
	for (uint32_t i = 1; i < n; i++)
		if (positions[i] == positions[i - 1])
			return bad(diag, "its tail names a sample twice");
	return 0;
}

static int read_tail(const uint8_t *at, struct token *token, struct diag *diag)
{
	unsigned width = plan_id_bytes(token->n);

	token->tail = calloc((size_t)token->n_tail + 1, sizeof(*token->tail));
	if (!token->tail)
		return -ENOMEM;
	for (uint32_t i = 0; i < token->n_tail; i++, at += width) {
		uint64_t id = little_get(at, width);

		if (id >= token->n)
			return bad(diag, "its tail names a sample that the dataset does not have");
		token->tail[i] = (int64_t)id;
	}
	return check_tail(token, diag);
}

static int check_sum(const struct token *token, struct diag *diag)
{
	uint64_t blocks = blocks_of(token->n, token->block);
	uint64_t rest;

	if (plan_is_fixed(token->order) && token_has_sampler(token))
		return 0; /* its epochs have as many places as the sampler says */
	if (plan_is_fixed(token->order))
		return token->delivered <= token->n ? 0 : bad(diag, "its place is past the end");
	rest = bits_count(token->need, blocks) * token->block;
	if (blocks && bits_test(token->need, blocks - 1))
		rest -= blocks * token->block - token->n;
	rest += token->n_tail;
	if (rest > token->n || token->delivered > token->n - rest || token->place > token->n - rest)
		return bad(diag, "it accounts for more samples than the dataset has");
	return 0;
}

static void read_log(const uint8_t *at, struct token *token)
{
	if (!token->has_log)
		return;
	token->place = little_get(at, 8);
	memcpy(token->log, at + 8, sizeof(token->log));
}

static int read_body(const uint8_t *data, size_t need_bytes, struct token *token, struct diag *diag)
{
	const uint8_t *need = data + head_bytes(data), *tail = need + need_bytes;
	bool in_parts = little_32(data + 8) == TOKEN_FORMAT_PARTS;
	const uint8_t *nonces = tail + (size_t)plan_id_bytes(token->n) * token->n_tail;
	int r = read_need(need, in_parts, token, diag);

	read_log(nonces + (size_t)8 * token->n_nonces, token);
	r = r ? r : read_tail(tail, token, diag);
	r = r ? r : check_sum(token, diag);
	for (uint32_t i = 0; i < token->n_nonces; i++)
		token->nonces[i] = little_get(nonces + 8 * i, 8);
	return r;
}

int token_look(const void *data, size_t size, struct token *ret, struct diag *diag)
{
	struct token token = {0};
	size_t need_bytes;
	int r = check_frame(data, size, diag);

	if (r)
		return r;
	read_head(data, &token);
	r = check_head(data, size, &token, &need_bytes, diag);
	if (!r)
		*ret = token;
	return r;
}

int token_parse(const void *data, size_t size, struct token *ret, struct diag *diag)
{
	struct token token = {0};
	size_t need_bytes;
	int r = token_look(data, size, &token, diag);

	if (r)
		return r;
	measure_need(data, size, &token, &need_bytes);
	r = read_body(data, need_bytes, &token, diag);
	if (r) {
		token_fini(&token);
		return r;
	}
	*ret = token;
	return 0;
}

int token_fits(const struct token *token, uint64_t n, uint32_t block, const uint8_t dataset[32],
	       struct diag *diag)
{
	if (token->n == n && token->block == block &&
	    memcmp(token->dataset, dataset, sizeof(token->dataset)) == 0)
		return 0;
	if (token->n != n)
		diag_set(diag,
			 "resume token: it is of a dataset of %llu samples, this one has %llu; "
			 "resume with the dataset it was saved with, or start without a token",
			 (unsigned long long)token->n, (unsigned long long)n);
	else
		diag_set(diag, "resume token: it is of another version of the dataset (files, "
			       "sizes, times or labels changed since); resume with the dataset it "
			       "was saved with, or start without a token");
	return TOKEN_E_FOREIGN;
}

bool token_has_sampler(const struct token *token)
{
	static const uint8_t none[TOKEN_SAMPLER];

	return memcmp(token->sampler, none, sizeof(none)) != 0;
}

int token_fits_sampler(const struct token *token, const uint8_t sampler[TOKEN_SAMPLER],
		       struct diag *diag)
{
	static const uint8_t none[TOKEN_SAMPLER];

	if (memcmp(token->sampler, sampler, sizeof(token->sampler)) == 0)
		return 0;
	return diag_fail(
	    diag, TOKEN_E_FOREIGN,
	    "resume token: %s; resume with the sampler (ids, weights, classes, split, or replayed "
	    "plan) that it was saved with, or start without a token",
	    !token_has_sampler(token) ? "it is of a job without a sampler, this one has one"
	    : memcmp(sampler, none, sizeof(none)) == 0
		? "it is of a job with a sampler, this one has none"
		: "it is of a job with another sampler: other samples, weights or plan");
}

void token_fini(struct token *token)
{
	free(token->need);
	free(token->tail);
	token->need = NULL;
	token->tail = NULL;
	token->n_tail = 0;
}
