/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be the record of a group of the store. The first byte of the input says whether the
 * checksum is put right first, so that what is behind it is met, too. A record that is believed is within
 * bounds, and written again it is the same one.
 */

#include <stdlib.h>
#include <string.h>

#include "base/little.h"
#include "storage/store_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_seal(const struct hash_id *id, uint8_t *record, size_t size)
{
	uint8_t all[sizeof(*id) + 16];

	memcpy(all, id, sizeof(*id));
	little_put(all + sizeof(*id), size - 8, 8);
	little_put(all + sizeof(*id) + 8, hash_checksum(record + 8, size - 8), 8);
	little_put(record, hash_checksum(all, sizeof(all)), 8);
}

static void fuzz_check(const struct hash_id *id, const uint8_t *bytes, size_t size)
{
	static struct store_record record, again;
	static uint8_t written[STORE_RECORD_MAX];

	if (!store_record_parse(id, bytes, size, &record))
		return;
	if (record.n_samples < 1 || record.n_samples > STORE_RECORD_SAMPLES ||
	    record.values > record.n_samples || !(record.us_per_mib >= 0) ||
	    strlen(record.note) != size - STORE_RECORD_FIXED)
		abort();
	if (store_record_write(id, &record, written) != size ||
	    memcmp(written + 16, bytes + 16, size - 16) != 0)
		abort();
	if (!store_record_parse(id, written, size, &again) || again.is_pinned != record.is_pinned ||
	    strcmp(again.note, record.note) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hash_id id = {.bytes = {1, 2, 3}};
	uint8_t *bytes;

	if (size < 1)
		return 0;
	store_record_is_format(data + 1, size - 1);
	bytes = malloc(size);
	if (!bytes)
		abort();
	memcpy(bytes, data + 1, size - 1);
	if (data[0] & 1 && size > 8)
		fuzz_seal(&id, bytes, size - 1);
	fuzz_check(&id, bytes, size - 1);
	free(bytes);
	return 0;
}
