/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens that a client made up: as they are, and once more with size and checksum put right, for a
 * forger can do that, too. What is accepted has to be written as the same bytes again, and the
 * carousel has to take it. */

#include "base/base.h"
#include "base/hash.h"
#include "sched/carousel.h"
#include "plan/token.h"
#include "tests/invariants/invariants.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_join(const struct token *token)
{
	struct carousel_config config = {
	    .n = token->n,
	    .chunk = 64,
	    .slots = 4,
	    .max_slots = 4,
	    .producing = 1,
	};
	struct carousel_join join = {
	    .batch = 8,
	    .ranks = 1,
	    .epoch = token->epoch,
	    .epochs = token->epochs,
	    .need = token->need,
	    .tail = token->tail,
	    .n_tail = token->n_tail,
	    .nonces = token->nonces,
	    .n_nonces = token->n_nonces,
	};
	struct carousel_action action;
	struct carousel *carousel;
	uint32_t job;

	if (plan_is_fixed(token->order)) {
		if (token_has_sampler(token))
			return; /* whether the place is one is the sampler's to say */
		join.order = token->order;
		join.place = token->delivered;
		join.need = NULL;
	}
	if (token->block != permutation_block_of(token->n))
		return; /* token_fits() refuses it */
	memcpy(config.version, token->dataset, sizeof(config.version));
	if (carousel_new(&config, &carousel))
		return;
	if (carousel_join(carousel, &join, 1, &job))
		abort();
	for (int i = 0; i < 8; i++) {
		carousel_step(carousel, 1, &action);
		if (action.kind == CAROUSEL_PRODUCE)
			carousel_produced(carousel, action.slot);
	}
	if (carousel_check(carousel))
		abort();
	carousel_free(carousel);
}

static void fuzz_parse(const uint8_t *data, size_t size)
{
	struct diag diag = {0};
	struct token token;
	uint8_t *again;
	int r = token_parse(data, size, &token, &diag);

	if (r) {
		if (r > 0 && !diag.text[0])
			abort();
		return;
	}
	if (data[8] == 1 || (data[8] == 2 && token_size(&token) != size)) { /* an old one: written
							     in a newer way */
		fuzz_join(&token);
		token_fini(&token);
		return;
	}
	again = malloc(size);
	if (!again || token_size(&token) != size || token_write(&token, again, size) != size ||
	    memcmp(again, data, size) != 0)
		abort();
	free(again);
	fuzz_join(&token);
	token_fini(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t total = (uint32_t)size;
	uint64_t sum;
	uint8_t *forged;

	fuzz_parse(data, size);
	if (size < 24 || size > UINT32_MAX)
		return 0;
	forged = malloc(size);
	if (!forged)
		return 0;
	memcpy(forged, data, size);
	memcpy(forged + 12, &total, sizeof(total));
	sum = hash_checksum(forged, size - sizeof(sum));
	memcpy(forged + size - sizeof(sum), &sum, sizeof(sum));
	fuzz_parse(forged, size);
	free(forged);
	return 0;
}
