/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bytes of keys, values and records of groups: man/access-cache.5. Pure. */

#include "storage/store.h"

#define STORE_RECORD_KEY 40   /* the group's id, the sample's number */
#define STORE_RECORD_SEAL 8   /* in front of each value: its checksum */
#define STORE_RECORD_FIXED 64 /* of a group's record; the note follows */
#define STORE_RECORD_MAX (STORE_RECORD_FIXED + STORE_NOTE_MAX)
#define STORE_RECORD_FORMAT 1
#define STORE_RECORD_FORMAT_KEY "format" /* among the groups' ids, which are longer */
#define STORE_RECORD_FORMAT_SIZE 16
#define STORE_RECORD_SAMPLES (UINT64_C(1) << 36)

void store_record_key(const struct hash_id *id, uint64_t sample, uint8_t ret[STORE_RECORD_KEY]);
uint64_t store_record_sample(const uint8_t key[STORE_RECORD_KEY]);
void store_record_seal(const uint8_t key[STORE_RECORD_KEY], const void *bytes, size_t size,
		       uint8_t ret[STORE_RECORD_SEAL]);
bool store_record_is_sealed(const uint8_t key[STORE_RECORD_KEY], const void *bytes, size_t size,
			    const uint8_t seal[STORE_RECORD_SEAL]);

struct store_record {
	uint64_t n_samples, last_use_s;
	uint64_t values, bytes; /* of it in the store */
	double us_per_mib;
	bool is_pinned;
	char note[STORE_NOTE_MAX + 1];
};
/* Unbelieved bytes: false when they are no record of this group. */
bool store_record_parse(const struct hash_id *id, const uint8_t *data, size_t size,
			struct store_record *ret);
/* Returns the bytes written. */
size_t store_record_write(const struct hash_id *id, const struct store_record *record,
			  uint8_t ret[STORE_RECORD_MAX]);

void store_record_format(uint8_t ret[STORE_RECORD_FORMAT_SIZE]);
bool store_record_is_format(const uint8_t *data, size_t size);
