/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens of mixes that a client made up: as they are, and once more with size and checksum put right.
 * What is accepted has to be written as the same bytes again, its parts inside. */

#include "base/base.h"
#include "base/hash.h"
#include "libaccess/mix_token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_parse(const uint8_t *data, size_t size)
{
	struct diag diag = {0};
	struct mix_token token;
	uint8_t *again;
	int r = mix_token_parse(data, size, &token, &diag);

	if (r) {
		if (!diag.text[0])
			abort();
		return;
	}
	for (uint32_t i = 0; i < token.n_parts; i++)
		if (token.part[i] < data || token.part[i] + token.part_size[i] > data + size)
			abort();
	again = malloc(size);
	if (!again || mix_token_size(&token) != size)
		abort();
	mix_token_write(&token, again);
	if (memcmp(again, data, size) != 0)
		abort();
	free(again);
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
