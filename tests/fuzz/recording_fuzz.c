/* SPDX-License-Identifier: Apache-2.0 */

/* Recorded plans that somebody made up: as they are, and once more with the checksums put right. What
 * is read stays within its bounds; what a batch says can be written and read again. */

#include "base/base.h"
#include "base/hash.h"
#include "plan/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *data;
	size_t size;
} input;

static int fuzz_read(int file, void *ret, uint64_t bytes, uint64_t at)
{
	if (file != 7 || at > input.size || bytes > input.size - at)
		abort();
	memcpy(ret, input.data + at, bytes);
	return 0;
}

static void fuzz_batch(const struct recording_batch *batch, uint64_t n)
{
	size_t room = recording_batch_bytes(batch->count);
	int64_t *ids = malloc((batch->count + (size_t)1) * sizeof(*ids));
	struct listing_key *keys = malloc((batch->count + (size_t)1) * sizeof(*keys));
	uint8_t *bytes = malloc(room);
	uint32_t at = 0;

	if (!ids || !keys || !bytes)
		abort();
	for (uint32_t run = 0; run < batch->n_runs; run++) {
		struct listing_key key;

		for (uint32_t end = at + recording_run(batch, run, &key); at < end; at++) {
			ids[at] = recording_id(batch, at);
			keys[at] = key;
			if ((uint64_t)ids[at] >= n)
				abort();
		}
	}
	if (at != batch->count || recording_write_batch(batch, n, ids, keys, bytes) > room)
		abort();
	free(ids);
	free(keys);
	free(bytes);
}

static void fuzz_plan(const uint8_t *data, size_t size)
{
	struct recording_reader reader = {.read = fuzz_read, .file = 7, .size = size};
	struct recording_batch batch;
	struct diag diag = {""};
	int r;

	input.data = data;
	input.size = size;
	r = recording_open(&reader, &diag);
	while (!r && !(r = recording_next(&reader, &batch, &diag)))
		fuzz_batch(&batch, reader.head.n);
	if ((r == RECORDING_E_BAD || r == RECORDING_E_VERSION) && !diag.text[0])
		abort();
	recording_fini(&reader);
}

/* Checksums of the head and, as far as their lengths lead, of the blocks. */
static void forge(uint8_t *data, size_t size)
{
	size_t at = RECORDING_HEAD;
	uint64_t sum;
	uint32_t bytes;

	if (size < RECORDING_HEAD)
		return;
	sum = hash_checksum(data, 120);
	memcpy(data + 120, &sum, sizeof(sum));
	while (size - at >= RECORDING_BLOCK_HEAD) {
		memcpy(&bytes, data + at + 4, sizeof(bytes));
		bytes = (uint32_t)BASE_MIN((uint64_t)bytes, size - at - RECORDING_BLOCK_HEAD);
		memcpy(data + at + 4, &bytes, sizeof(bytes));
		sum = hash_checksum(data + at, 16);
		memcpy(data + at + 16, &sum, sizeof(sum));
		sum = hash_checksum(data + at + RECORDING_BLOCK_HEAD, bytes);
		memcpy(data + at + 24, &sum, sizeof(sum));
		at += RECORDING_BLOCK_HEAD + bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *forged = malloc(size ? size : 1);

	fuzz_plan(data, size);
	if (!forged)
		return 0;
	memcpy(forged, data, size);
	forge(forged, size);
	fuzz_plan(forged, size);
	free(forged);
	return 0;
}
