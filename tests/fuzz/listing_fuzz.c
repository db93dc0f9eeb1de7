/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists that a client made up, as they are and once more with a head that fits their size. What is accepted
 * goes to the carousel for two jobs, of which the second comes later: no chunk holds a sample that there is
 * not, however bad the entries are.
 */

#include "base/base.h"
#include "sched/carousel.h"
#include "plan/listing.h"
#include "tests/invariants/invariants.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 40
#define CHUNK 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static void check_chunk(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, slot);

	demand(chunk->count >= 1 && chunk->count <= CHUNK);
	for (uint32_t i = 0; i < chunk->count; i++)
		demand(chunk->ids[i] >= 0 && chunk->ids[i] < SAMPLES);
}

/* A chunk that is granted is consumed at once. */
static void turn(struct carousel *carousel)
{
	struct carousel_action action;

	for (unsigned i = 0; i < 32; i++) {
		carousel_step(carousel, 1, &action);
		if (action.kind == CAROUSEL_PRODUCE) {
			check_chunk(carousel, action.slot);
			carousel_produced(carousel, action.slot);
		} else if (action.kind == CAROUSEL_GRANT) {
			carousel_taken(carousel, action.job, action.slot, 1);
			carousel_done(carousel, action.job, action.slot, 1);
		} else if (action.kind == CAROUSEL_FAIL) {
			carousel_leave(carousel, action.job, 1);
		}
		demand(!carousel_check(carousel));
	}
}

static void enter(struct carousel *carousel, const struct listing *listing)
{
	const struct carousel_join join = {
	    .batch = 4, .ranks = 1, .epochs = 2, .order = PLAN_LIST, .place = listing->places / 4};
	uint32_t job;

	demand(carousel_join(carousel, &join, 1, &job) == 0);
	for (uint64_t epoch = 0; epoch < 2; epoch++)
		demand(carousel_list(carousel, job, epoch, listing) == 0);
	turn(carousel);
}

static void fuzz_carousel(const struct listing *listing)
{
	const struct carousel_config config = {
	    .n = SAMPLES, .chunk = CHUNK, .slots = 4, .max_slots = 4, .producing = 1, .seed = 1};
	struct carousel *carousel;

	demand(carousel_new(&config, &carousel) == 0);
	carousel_set_variant(carousel, 0, true);
	enter(carousel, listing);
	enter(carousel, listing);
	carousel_free(carousel);
}

static void fuzz_list(const uint8_t *bytes, size_t size)
{
	struct listing listing;
	struct diag diag = {""};

	if (listing_attach(bytes, size, &listing, &diag)) {
		demand(diag.text[0]);
		return;
	}
	demand(listing.places >= 1 && listing.n_keys >= 1);
	for (uint64_t i = 0; i < listing.places; i++)
		if (listing_is_good(&listing, i, 1, SAMPLES))
			demand(listing_id(listing.entries[i]) < SAMPLES &&
			       listing_key_number(listing.entries[i]) < listing.n_keys);
	fuzz_carousel(&listing);
}

/* The format is right; of what follows the head the last 16 bytes are a key, and the others places. */
static void forge(uint8_t *bytes, size_t size)
{
	const uint64_t key = 7;
	uint64_t entry = listing_entry(0, 0);
	struct listing_draft draft = {
	    .entries = &entry, .keys = &(struct listing_key){key, key}, .places = 1, .n_keys = 1};
	uint8_t head[LISTING_HEAD + 24];

	listing_write(&draft, head);
	draft.places = (size - LISTING_HEAD - 16) / 8;
	memcpy(head + 16, &draft.places, sizeof(draft.places));
	memcpy(bytes, head, LISTING_HEAD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t whole = size / 8 * 8;
	uint8_t *bytes = calloc(1, BASE_MAX(size, (size_t)1)); /* aligned, as mapped memory is */

	demand(bytes != NULL);
	if (size)
		memcpy(bytes, data, size);
	fuzz_list(bytes, size);
	if (whole >= LISTING_HEAD + 24) {
		forge(bytes, whole);
		fuzz_list(bytes, whole);
	}
	free(bytes);
	return 0;
}
