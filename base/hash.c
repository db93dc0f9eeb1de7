/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two hashes, and the only file that sees libmd and libxxhash.
 *
 * A name made of several parts adds each part's length before the part (the callers do), so that
 * no two lists of parts run together into the same bytes.
 */

#include "base/hash.h"

#include <endian.h>
#include <errno.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct hash {
	SHA2_CTX context;
};

int hash_new(struct hash **ret)
{
	struct hash *hash = malloc(sizeof(*hash));

	if (!hash)
		return -ENOMEM;
	SHA256Init(&hash->context);
	*ret = hash;
	return 0;
}

void hash_free(struct hash *hash)
{
	free(hash);
}

void hash_freep(struct hash **hash)
{
	hash_free(*hash);
}

void hash_add(struct hash *hash, const void *data, size_t size)
{
	SHA256Update(&hash->context, data, size);
}

void hash_add_u64(struct hash *hash, uint64_t value)
{
	uint64_t little = htole64(value);

	hash_add(hash, &little, sizeof(little));
}

void hash_finish(struct hash *hash, struct hash_id *ret)
{
	SHA256Final(ret->bytes, &hash->context);
}

void hash_of(const void *data, size_t size, struct hash_id *ret)
{
	struct hash hash;

	SHA256Init(&hash.context);
	hash_add(&hash, data, size);
	hash_finish(&hash, ret);
}

void hash_hmac(const void *key, size_t key_size, const void *data, size_t size, struct hash_id *ret)
{
	uint8_t inner[SHA256_BLOCK_LENGTH] = {0}, outer[SHA256_BLOCK_LENGTH];
	struct hash_id id;
	struct hash hash;

	if (key_size > sizeof(inner))
		hash_of(key, key_size, (struct hash_id *)inner);
	else
		memcpy(inner, key, key_size);
	for (size_t i = 0; i < sizeof(inner); i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	SHA256Init(&hash.context);
	hash_add(&hash, inner, sizeof(inner));
	hash_add(&hash, data, size);
	hash_finish(&hash, &id);
	SHA256Init(&hash.context);
	hash_add(&hash, outer, sizeof(outer));
	hash_add(&hash, &id, sizeof(id));
	hash_finish(&hash, ret);
	explicit_bzero(inner, sizeof(inner));
	explicit_bzero(outer, sizeof(outer));
}

char *hash_hex(const struct hash_id *id, char ret[65])
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < sizeof(id->bytes); i++) {
		ret[2 * i] = digit[id->bytes[i] >> 4];
		ret[2 * i + 1] = digit[id->bytes[i] & 15];
	}
	ret[64] = '\0';
	return ret;
}

uint64_t hash_checksum(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}
