/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the store's bytes mean.
 *
 * A value is found by its group's id and its sample's number, big endian, so that a group's values
 * lie one behind another in the order of samples. A checksum over key, size and bytes stands in front
 * of the bytes: one over the bytes alone would not notice a page of the tree that leads to another
 * sample's value, which is just as whole.
 *
 * A group's record has such a checksum, too. It is small and read once, when the store is opened; one
 * that is not believed costs the group. Every number in it is a claim: nothing is allocated, indexed
 * or multiplied by one that was not bounded here.
 */

#include "storage/store_record.h"

#include <math.h>

#include "base/little.h"

#define RECORD_PINNED 1u
#define RECORD_MAGIC UINT64_C(0x31524f545321414f) /* "OA!STOR1" */

void store_record_key(const struct hash_id *id, uint64_t sample, uint8_t ret[STORE_RECORD_KEY])
{
	memcpy(ret, id->bytes, sizeof(id->bytes));
	for (unsigned i = 0; i < 8; i++)
		ret[sizeof(id->bytes) + i] = (uint8_t)(sample >> (56 - 8 * i));
}

uint64_t store_record_sample(const uint8_t key[STORE_RECORD_KEY])
{
	uint64_t sample = 0;

	for (unsigned i = sizeof(struct hash_id); i < STORE_RECORD_KEY; i++)
		sample = sample << 8 | key[i];
	return sample;
}

static uint64_t record_sum(const uint8_t *key, size_t key_size, const void *bytes, size_t size)
{
	uint8_t all[STORE_RECORD_KEY + 16];

	memcpy(all, key, key_size);
	little_put(all + key_size, size, 8);
	little_put(all + key_size + 8, hash_checksum(bytes, size), 8);
	return hash_checksum(all, key_size + 16);
}

/* The checksum of a value's bytes at its key. */
static uint64_t store_record_sum(const uint8_t key[STORE_RECORD_KEY], const void *bytes,
				 size_t size)
{
	return record_sum(key, STORE_RECORD_KEY, bytes, size);
}

void store_record_seal(const uint8_t key[STORE_RECORD_KEY], const void *bytes, size_t size,
		       uint8_t ret[STORE_RECORD_SEAL])
{
	little_put(ret, store_record_sum(key, bytes, size), STORE_RECORD_SEAL);
}

bool store_record_is_sealed(const uint8_t key[STORE_RECORD_KEY], const void *bytes, size_t size,
			    const uint8_t seal[STORE_RECORD_SEAL])
{
	return little_get(seal, STORE_RECORD_SEAL) == store_record_sum(key, bytes, size);
}

/* ---- groups ---- */

static bool record_is_worth(double us_per_mib)
{
	return isfinite(us_per_mib) && us_per_mib >= 0;
}

bool store_record_parse(const struct hash_id *id, const uint8_t *data, size_t size,
			struct store_record *ret)
{
	struct store_record r = {.is_pinned = false};
	uint64_t note, worth;

	if (size < STORE_RECORD_FIXED || size > STORE_RECORD_MAX)
		return false;
	if (little_get(data, 8) != record_sum(id->bytes, sizeof(*id), data + 8, size - 8))
		return false;
	note = little_get(data + 56, 8);
	if (little_get(data + 8, 4) != STORE_RECORD_FORMAT || note != size - STORE_RECORD_FIXED)
		return false;
	r.is_pinned = little_get(data + 12, 4) & RECORD_PINNED;
	r.n_samples = little_get(data + 16, 8);
	r.last_use_s = little_get(data + 24, 8);
	worth = little_get(data + 32, 8);
	memcpy(&r.us_per_mib, &worth, sizeof(worth));
	r.values = little_get(data + 40, 8);
	r.bytes = little_get(data + 48, 8);
	if (r.n_samples < 1 || r.n_samples > STORE_RECORD_SAMPLES || r.values > r.n_samples ||
	    !record_is_worth(r.us_per_mib) || memchr(data + STORE_RECORD_FIXED, 0, note))
		return false;
	memcpy(r.note, data + STORE_RECORD_FIXED, note);
	*ret = r;
	return true;
}

size_t store_record_write(const struct hash_id *id, const struct store_record *record,
			  uint8_t ret[STORE_RECORD_MAX])
{
	const size_t note = strnlen(record->note, STORE_NOTE_MAX);
	const size_t size = STORE_RECORD_FIXED + note;
	uint64_t worth;

	memcpy(&worth, &record->us_per_mib, sizeof(worth));
	little_put(ret + 8, STORE_RECORD_FORMAT, 4);
	little_put(ret + 12, record->is_pinned ? RECORD_PINNED : 0, 4);
	little_put(ret + 16, record->n_samples, 8);
	little_put(ret + 24, record->last_use_s, 8);
	little_put(ret + 32, worth, 8);
	little_put(ret + 40, record->values, 8);
	little_put(ret + 48, record->bytes, 8);
	little_put(ret + 56, note, 8);
	memcpy(ret + STORE_RECORD_FIXED, record->note, note);
	little_put(ret, record_sum(id->bytes, sizeof(*id), ret + 8, size - 8), 8);
	return size;
}

/* ---- the format ---- */

void store_record_format(uint8_t ret[STORE_RECORD_FORMAT_SIZE])
{
	little_put(ret, RECORD_MAGIC, 8);
	little_put(ret + 8, STORE_RECORD_FORMAT, 8);
}

bool store_record_is_format(const uint8_t *data, size_t size)
{
	return size == STORE_RECORD_FORMAT_SIZE && little_get(data, 8) == RECORD_MAGIC &&
	       little_get(data + 8, 8) == STORE_RECORD_FORMAT;
}
