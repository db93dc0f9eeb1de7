/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Format 1, little endian:
 *
 *     0  8  magic "oamixes\n"
 *     8  4  format
 *    12  4  size of the whole token
 *    16  4  parts
 *    20  4  unit
 *    24  4  end
 *    28  4  batch
 *    32  8  seed
 *    40  8  epoch
 *    48  8  units given in the epoch
 *    56     for each part: 4 weight, 4 size of its token
 *           the parts' tokens, behind each other
 *           XXH3-64 of all that is before
 *
 * Magic, format, size and the checksum at the end are the same in every format, as in the tokens of
 * streams, so that damage is told from a newer format. The checksum finds damage, not malice: each
 * field is checked against the others here, and against the parts when they have been opened.
 */

#include "libaccess/mix_token.h"

#include "base/hash.h"
#include "base/little.h"

#define MIX_TOKEN_FORMAT 1
#define MIX_TOKEN_HEAD 56
#define MIX_TOKEN_SUM 8

static const uint8_t mix_token_magic[8] = {'o', 'a', 'm', 'i', 'x', 'e', 's', '\n'};

size_t mix_token_size(const struct mix_token *token)
{
	size_t size = MIX_TOKEN_HEAD + (size_t)8 * token->n_parts + MIX_TOKEN_SUM;

	for (uint32_t i = 0; i < token->n_parts; i++)
		size += token->part_size[i];
	return size;
}

void mix_token_write(const struct mix_token *token, uint8_t *ret)
{
	size_t size = mix_token_size(token);
	uint8_t *at = ret + MIX_TOKEN_HEAD;

	memcpy(ret, mix_token_magic, sizeof(mix_token_magic));
	little_put(ret + 8, MIX_TOKEN_FORMAT, 4);
	little_put(ret + 12, size, 4);
	little_put(ret + 16, token->n_parts, 4);
	little_put(ret + 20, token->unit, 4);
	little_put(ret + 24, token->end, 4);
	little_put(ret + 28, token->batch, 4);
	little_put(ret + 32, token->seed, 8);
	little_put(ret + 40, token->epoch, 8);
	little_put(ret + 48, token->at, 8);
	for (uint32_t i = 0; i < token->n_parts; i++, at += 8) {
		little_put(at, token->weight[i], 4);
		little_put(at + 4, token->part_size[i], 4);
	}
	for (uint32_t i = 0; i < token->n_parts; at += token->part_size[i++])
		memcpy(at, token->part[i], token->part_size[i]);
	little_put(at, hash_checksum(ret, size - MIX_TOKEN_SUM), MIX_TOKEN_SUM);
}

static int bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, MIX_TOKEN_E_BAD,
			 "resume token of a mix: %s; give a token that oa_mix_state() returned, "
			 "unchanged, or begin without one",
			 what);
}

/* Magic, size, checksum, format. */
static int check_frame(const uint8_t *in, size_t size, struct diag *diag)
{
	uint32_t format;

	if (size < MIX_TOKEN_HEAD + MIX_TOKEN_SUM ||
	    memcmp(in, mix_token_magic, sizeof(mix_token_magic)) != 0)
		return bad(diag, "it is none");
	if (little_get(in + 12, 4) != size)
		return bad(diag, "it is cut off");
	if (little_get(in + size - MIX_TOKEN_SUM, MIX_TOKEN_SUM) !=
	    hash_checksum(in, size - MIX_TOKEN_SUM))
		return bad(diag, "it is damaged");
	format = (uint32_t)little_get(in + 8, 4);
	if (format == MIX_TOKEN_FORMAT)
		return 0;
	return diag_fail(
	    diag, MIX_TOKEN_E_VERSION,
	    "resume token of a mix: it has format %u, this libaccess knows %d: upgrade libaccess",
	    format, MIX_TOKEN_FORMAT);
}

/* The parts' weights, sizes and tokens fill the rest exactly. */
static int read_parts(const uint8_t *in, size_t size, struct mix_token *ret, struct diag *diag)
{
	size_t left = size - MIX_TOKEN_HEAD - MIX_TOKEN_SUM;
	const uint8_t *at = in + MIX_TOKEN_HEAD, *token;

	if (left < (size_t)8 * ret->n_parts)
		return bad(diag, "it has no room for its parts");
	left -= (size_t)8 * ret->n_parts;
	token = at + (size_t)8 * ret->n_parts;
	for (uint32_t i = 0; i < ret->n_parts; i++, at += 8) {
		ret->weight[i] = (uint32_t)little_get(at, 4);
		ret->part_size[i] = (uint32_t)little_get(at + 4, 4);
		if (ret->part_size[i] > left || !ret->part_size[i])
			return bad(diag, "a part's token does not fit");
		ret->part[i] = token;
		token += ret->part_size[i];
		left -= ret->part_size[i];
	}
	return left ? bad(diag, "it has more than its parts") : 0;
}

int mix_token_parse(const void *data, size_t size, struct mix_token *ret, struct diag *diag)
{
	const uint8_t *in = data;
	struct mix_token token = {0};
	struct blend blend;
	int r = check_frame(in, size, diag);

	if (r)
		return r;
	token.n_parts = (uint32_t)little_get(in + 16, 4);
	token.unit = (uint32_t)little_get(in + 20, 4);
	token.end = (uint32_t)little_get(in + 24, 4);
	token.batch = (uint32_t)little_get(in + 28, 4);
	token.seed = little_get(in + 32, 8);
	token.epoch = little_get(in + 40, 8);
	token.at = little_get(in + 48, 8);
	if (token.n_parts < 1 || token.n_parts > BLEND_MAX_PARTS)
		return bad(diag, "its number of parts cannot be");
	if (token.unit > 1 || token.end > BLEND_LONGEST || !token.batch)
		return bad(diag, "its unit, end or batch cannot be");
	r = read_parts(in, size, &token, diag);
	if (r)
		return r;
	if (blend_init(&blend, token.weight, token.n_parts))
		return bad(diag, "its weights cannot be");
	*ret = token;
	return 0;
}
