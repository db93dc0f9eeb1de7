/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The resume token of a mix: what it is of, where it stands in its epoch, and the parts' own tokens,
 * behind each other. Owned by the client, checksummed, hostile when it comes back.
 */

#include "plan/mix/blend.h"

enum { MIX_TOKEN_E_BAD = 1, MIX_TOKEN_E_VERSION = 2 };

struct mix_token {
	uint32_t n_parts, unit, end; /* enum oa_mix_unit, oa_mix_end */
	uint32_t batch;
	uint64_t seed, epoch, at; /* at: units given in the epoch */
	uint32_t weight[BLEND_MAX_PARTS];
	const uint8_t *part[BLEND_MAX_PARTS]; /* borrowed */
	uint32_t part_size[BLEND_MAX_PARTS];
};

size_t mix_token_size(const struct mix_token *token);
void mix_token_write(const struct mix_token *token, uint8_t *ret); /* mix_token_size() bytes */
/* Parts point into data. MIX_TOKEN_E_BAD, MIX_TOKEN_E_VERSION (a newer format) with diag. The parts'
 * own tokens are not looked into. */
int mix_token_parse(const void *data, size_t size, struct mix_token *ret, struct diag *diag);
