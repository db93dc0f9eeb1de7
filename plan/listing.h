/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An epoch as a list of places: which sample is at each, and which key (seed, nonce) its random ops
 * have. The client computes it, from its own ids or weights or from a recorded plan, and shows it to
 * accessd as sealed memory; accessd takes the entries from there, chunk by chunk.
 *
 *     0  8  magic "OA!LIST1"
 *     8  4  format, 1
 *    12  4  bytes of this head, 64
 *    16  8  places
 *    24  4  keys
 *    28 36  0
 *    64     entries, 8 bytes a place: id, 40 bits | number of its key, 24 bits
 *           keys, 16 bytes each: seed, nonce
 *
 * Little endian, frozen. The list is hostile to accessd: listing_attach() checks sizes, and each
 * entry is checked when it is used.
 */

#include "base/base.h"

#define LISTING_HEAD 64
#define LISTING_MAX_ID (UINT64_C(1) << 40) /* ids are below it */
#define LISTING_MAX_KEYS (UINT32_C(1) << 24)
#define LISTING_MAX_PLACES (UINT64_C(1) << 31)

enum { LISTING_E_BAD = 1 };

struct listing_key {
	uint64_t seed, nonce;
};

struct listing { /* a list that lies somewhere; a plain value that owns nothing */
	const uint64_t *entries;
	const struct listing_key *keys;
	uint64_t places;
	uint32_t n_keys;
};

static inline uint64_t listing_entry(uint64_t id, uint32_t key)
{
	return id | (uint64_t)key << 40;
}
static inline uint64_t listing_id(uint64_t entry)
{
	return entry & (LISTING_MAX_ID - 1);
}
static inline uint32_t listing_key_number(uint64_t entry)
{
	return (uint32_t)(entry >> 40);
}

/* A list of these bytes, aligned to 8, which it goes on pointing into. 0 or LISTING_E_BAD with
 * diag. A list without places is bad. */
int listing_attach(const void *bytes, uint64_t size, struct listing *ret, struct diag *diag);
/* Are the count entries from place on ones of a data set of n samples? The places exist. */
bool listing_is_good(const struct listing *listing, uint64_t place, uint32_t count, uint64_t n);

/* ---- making one ---- */

struct listing_draft { /* owns its arrays */
	uint64_t *entries;
	struct listing_key *keys;
	uint64_t places;
	uint32_t n_keys;
};
void listing_fini(struct listing_draft *draft);
uint64_t listing_bytes(const struct listing_draft *draft);
void listing_write(const struct listing_draft *draft, void *ret); /* listing_bytes() of them */

/* What the list of an epoch is computed from. */
struct listing_spec {
	uint64_t n;     /* of the data set */
	uint64_t seed;  /* of the job */
	bool is_seeded; /* a new order each epoch; else as given */
	uint8_t version[32];
	const int64_t *ids; /* NULL: all of the data set, 0 .. n - 1 */
	uint64_t n_ids;
	const double *weights; /* one for each of ids, or of n; NULL: each comes once */
	uint64_t samples;      /* drawn by weights; 0: as many as have weight, or as there are */
	bool with_replacement;
	const int64_t *blocks; /* the first sample of each, from 0 on, ascending; NULL: none */
	uint64_t n_blocks;
	uint32_t window; /* blocks that are mixed, at least 1 */
};

/* Places of an epoch. */
uint64_t listing_places(const struct listing_spec *spec);
/* Items that can be drawn: those whose weight is not 0. */
uint64_t listing_drawable(const double *weights, uint64_t count);
/*
 * The list of an epoch, a function of the spec and the epoch's number alone:
 *
 *   not seeded         ids as given
 *   seeded             ids, permuted as plan_samples() permutes so many samples
 *   with replacement   places drawn by weight, each for itself, by an alias table
 *   without            the places' worth of samples with the least draws of an exponential
 *                      distribution of their weight, permuted
 *
 * With blocks these are permuted, and samples that are in the same `window` of them in that order come together, in
 * the order that they have above among each other.
 *
 * The k-th time that a sample comes in an epoch its key's nonce is another function of (seed, epoch,
 * k), so that its random ops differ. 0, -EINVAL: none have weight, or fewer than are drawn, or -ENOMEM.
 */
int listing_build(const struct listing_spec *spec, uint64_t epoch, struct listing_draft *ret);
