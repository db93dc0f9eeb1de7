/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Two hashes: SHA-256 (libmd) names things that must not collide (dataset versions, pipelines);
 * XXH3 (libxxhash) finds damage (checksums of tokens, index files). */

#include <stddef.h>
#include <stdint.h>

struct hash_id {
	uint8_t bytes[32];
};
struct hash;                     /* a SHA-256 under way */
int hash_new(struct hash **ret); /* heap; 0 or -ENOMEM */
void hash_free(struct hash *hash);
void hash_freep(struct hash **hash);
void hash_add(struct hash *hash, const void *data, size_t size);
void hash_add_u64(struct hash *hash, uint64_t value);     /* little endian */
void hash_finish(struct hash *hash, struct hash_id *ret); /* may be called once */
void hash_of(const void *data, size_t size, struct hash_id *ret);
/* HMAC-SHA256 (RFC 2104); ret may be the key. */
void hash_hmac(const void *key, size_t key_size, const void *data, size_t size,
	       struct hash_id *ret);
char *hash_hex(const struct hash_id *id, char ret[65]);
uint64_t hash_checksum(const void *data, size_t size); /* XXH3-64, seed 0 */
