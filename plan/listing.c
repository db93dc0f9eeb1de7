/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists: their bytes, and how they come about. What is drawn by weight: weigh.c.
 *
 * How often each sample came so far in an epoch is counted in a table with open addressing, 8 bytes
 * an entry: id + 1 and the count, as in the list's entries.
 */

#include "plan/listing.h"

#include "base/philox.h"
#include "plan/plan.h"
#include "plan/weigh.h"

#define LISTING_FORMAT 1
/* Apart from every other use of a nonce. */
#define LISTING_STREAM_NONCE UINT64_C(0x7265700000000000)  /* "rep" */
#define LISTING_STREAM_BLOCKS UINT64_C(0x626c6b0000000000) /* "blk", of a seed */

_Static_assert(sizeof(struct listing_key) == 16, "frozen");

static const uint8_t listing_magic[8] = {'O', 'A', '!', 'L', 'I', 'S', 'T', '1'};

/* ---- bytes ---- */

static int bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, LISTING_E_BAD, "the list of an epoch: %s", what);
}

int listing_attach(const void *bytes, uint64_t size, struct listing *ret, struct diag *diag)
{
	const uint8_t *at = bytes;
	uint32_t format, head, keys;
	uint64_t places;

	if (size < LISTING_HEAD || memcmp(at, listing_magic, sizeof(listing_magic)) != 0)
		return bad(diag, "this memory holds none");
	memcpy(&format, at + 8, sizeof(format));
	memcpy(&head, at + 12, sizeof(head));
	memcpy(&places, at + 16, sizeof(places));
	memcpy(&keys, at + 24, sizeof(keys));
	if (format != LISTING_FORMAT || head != LISTING_HEAD)
		return bad(diag, "its format is none of ours");
	if (!places)
		return bad(diag, "it has no places");
	if (places > LISTING_MAX_PLACES || !keys || keys > LISTING_MAX_KEYS)
		return bad(diag, "it has more places or keys than can be, or no keys");
	if (size - LISTING_HEAD != places * 8 + (uint64_t)keys * sizeof(struct listing_key))
		return bad(diag, "its size is not that of its contents");
	*ret = (struct listing){
	    .entries = (const uint64_t *)(const void *)(at + LISTING_HEAD),
	    .keys = (const struct listing_key *)(const void *)(at + LISTING_HEAD + places * 8),
	    .places = places,
	    .n_keys = keys,
	};
	return 0;
}

bool listing_is_good(const struct listing *listing, uint64_t place, uint32_t count, uint64_t n)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t entry = listing->entries[place + i];

		if (listing_id(entry) >= n || listing_key_number(entry) >= listing->n_keys)
			return false;
	}
	return true;
}

void listing_fini(struct listing_draft *draft)
{
	free(draft->entries);
	free(draft->keys);
	*draft = (struct listing_draft){0};
}

uint64_t listing_bytes(const struct listing_draft *draft)
{
	return LISTING_HEAD + draft->places * 8 + draft->n_keys * sizeof(*draft->keys);
}

void listing_write(const struct listing_draft *draft, void *ret)
{
	uint8_t *out = ret;
	uint32_t format = LISTING_FORMAT, head = LISTING_HEAD;

	memset(out, 0, LISTING_HEAD);
	memcpy(out, listing_magic, sizeof(listing_magic));
	memcpy(out + 8, &format, sizeof(format));
	memcpy(out + 12, &head, sizeof(head));
	memcpy(out + 16, &draft->places, sizeof(draft->places));
	memcpy(out + 24, &draft->n_keys, sizeof(draft->n_keys));
	memcpy(out + LISTING_HEAD, draft->entries, draft->places * 8);
	memcpy(out + LISTING_HEAD + draft->places * 8, draft->keys,
	       draft->n_keys * sizeof(*draft->keys));
}

/* ---- how many ---- */

static uint64_t items_of(const struct listing_spec *spec)
{
	return spec->ids ? spec->n_ids : spec->n;
}

uint64_t listing_drawable(const double *weights, uint64_t count)
{
	uint64_t drawable = 0;

	for (uint64_t i = 0; i < count; i++)
		drawable += weights[i] > 0;
	return drawable;
}

uint64_t listing_places(const struct listing_spec *spec)
{
	if (!spec->weights)
		return items_of(spec);
	if (spec->samples)
		return spec->samples;
	return spec->with_replacement ? items_of(spec)
				      : listing_drawable(spec->weights, items_of(spec));
}

/* ---- orders ---- */

#define PERMUTE_STEP 1024

/* to: from (NULL: 0, 1, 2, ...), in the order of a seeded plan of so many samples. */
static void permute(const struct listing_spec *spec, uint64_t epoch, uint64_t places,
		    const uint64_t *from, uint64_t *to)
{
	int64_t order[PERMUTE_STEP];
	struct plan plan;

	plan_init(&plan, PLAN_SEEDED, places, spec->seed, spec->version, false);
	for (uint64_t first = 0; first < places; first += PERMUTE_STEP) {
		uint32_t count = (uint32_t)BASE_MIN(places - first, (uint64_t)PERMUTE_STEP);

		plan_samples(&plan, epoch, first, count, order);
		for (uint32_t i = 0; i < count; i++)
			to[first + i] = from ? from[order[i]] : (uint64_t)order[i];
	}
}

static struct weigh weigh_of(const struct listing_spec *spec, uint64_t epoch)
{
	return (struct weigh){spec->weights, items_of(spec), spec->seed, epoch};
}

static int choose_without(const struct listing_spec *spec, uint64_t epoch,
			  struct listing_draft *draft)
{
	_cleanup_free_ uint64_t *chosen = malloc((draft->places + 1) * sizeof(*chosen));
	struct weigh weigh = weigh_of(spec, epoch);
	int r = chosen ? weigh_without(&weigh, draft->places, chosen) : -ENOMEM;

	if (!r)
		permute(spec, epoch, draft->places, chosen, draft->entries);
	return r;
}

/* Entries become numbers of items. */
static int choose_items(const struct listing_spec *spec, uint64_t epoch,
			struct listing_draft *draft)
{
	struct weigh weigh = weigh_of(spec, epoch);

	if (spec->weights && spec->with_replacement)
		return weigh_with(&weigh, draft->places, draft->entries);
	if (spec->weights)
		return choose_without(spec, epoch, draft);
	if (spec->is_seeded)
		permute(spec, epoch, draft->places, NULL, draft->entries);
	for (uint64_t i = 0; i < draft->places && !spec->is_seeded; i++)
		draft->entries[i] = i;
	return 0;
}

/* ---- blocks ---- */

/* For each block the window in which its samples come. */
static uint32_t *windows_of(const struct listing_spec *spec, uint64_t epoch)
{
	struct philox key = philox_block(spec->seed, 0, LISTING_STREAM_BLOCKS);
	struct listing_spec other = *spec;
	_cleanup_free_ uint64_t *order = malloc(spec->n_blocks * sizeof(*order));
	uint32_t *window = malloc(spec->n_blocks * sizeof(*window));

	if (!order || !window) {
		free(window);
		return NULL;
	}
	other.seed = philox_half(&key, 0);
	permute(&other, epoch, spec->n_blocks, NULL, order);
	for (uint64_t i = 0; i < spec->n_blocks; i++)
		window[order[i]] = (uint32_t)(i / spec->window);
	return window;
}

static uint64_t block_of(const struct listing_spec *spec, uint64_t id)
{
	return BASE_LAST(at, spec->n_blocks, (uint64_t)spec->blocks[at] <= id);
}

/* Entries, which are ids, window by window; within one they stay in order. */
static int gather(const struct listing_spec *spec, uint64_t epoch, struct listing_draft *draft)
{
	const uint64_t n = (spec->n_blocks - 1) / spec->window + 1;
	_cleanup_free_ uint32_t *window = windows_of(spec, epoch);
	_cleanup_free_ uint64_t *at = calloc(n + 1, sizeof(*at));
	uint64_t *gathered = malloc((draft->places + 1) * sizeof(*gathered));

	if (!window || !at || !gathered) {
		free(gathered);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < draft->places; i++)
		at[window[block_of(spec, draft->entries[i])] + 1]++;
	for (uint64_t w = 0; w < n; w++)
		at[w + 1] += at[w];
	for (uint64_t i = 0; i < draft->places; i++)
		gathered[at[window[block_of(spec, draft->entries[i])]]++] = draft->entries[i];
	free(draft->entries);
	draft->entries = gathered;
	return 0;
}

/* ---- repeats ---- */

/* How often the id came before; counts it. table: id + 1 | count << 40, 0: free. */
static uint32_t count_one(uint64_t *table, uint64_t mask, uint64_t id)
{
	uint64_t at = (id + 1) * UINT64_C(0x9e3779b97f4a7c15);

	for (at = (at ^ at >> 32) & mask; table[at]; at = (at + 1) & mask)
		if (listing_id(table[at]) == id + 1) {
			table[at] += UINT64_C(1) << 40;
			return listing_key_number(table[at]);
		}
	table[at] = id + 1;
	return 0;
}

/* Gives the entries the numbers of their keys: how often their sample came before. After 2^24 times
 * the numbers begin again. */
static int count_repeats(struct listing_draft *draft)
{
	uint64_t room = UINT64_C(1) << (64 - __builtin_clzll(2 * draft->places));
	_cleanup_free_ uint64_t *table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint64_t i = 0; i < draft->places; i++) {
		uint32_t before = count_one(table, room - 1, draft->entries[i]);

		draft->entries[i] = listing_entry(draft->entries[i], before);
		draft->n_keys = BASE_MAX(draft->n_keys, before + 1);
	}
	return 0;
}

static int make_keys(const struct listing_spec *spec, uint64_t epoch, struct listing_draft *draft)
{
	struct plan plan;
	uint64_t nonce;

	plan_init(&plan, PLAN_SEEDED, spec->n, spec->seed, spec->version, false);
	nonce = plan_nonce(&plan, epoch);
	draft->keys = malloc(draft->n_keys * sizeof(*draft->keys));
	if (!draft->keys)
		return -ENOMEM;
	for (uint32_t k = 0; k < draft->n_keys; k++) {
		struct philox block = philox_block(nonce, k, LISTING_STREAM_NONCE);

		draft->keys[k] = (struct listing_key){
		    .seed = spec->seed,
		    .nonce = k ? philox_half(&block, 0) : nonce,
		};
	}
	return 0;
}

int listing_build(const struct listing_spec *spec, uint64_t epoch, struct listing_draft *ret)
{
	struct listing_draft draft = {.places = listing_places(spec), .n_keys = 1};
	int r = 0;

	draft.entries = malloc((draft.places + 1) * sizeof(*draft.entries));
	if (!draft.entries)
		r = -ENOMEM;
	r = r ? r : choose_items(spec, epoch, &draft);
	for (uint64_t i = 0; i < draft.places && spec->ids && !r; i++)
		draft.entries[i] = (uint64_t)spec->ids[draft.entries[i]];
	if (!r && spec->blocks)
		r = gather(spec, epoch, &draft);
	if (!r && (spec->ids || spec->with_replacement))
		r = count_repeats(&draft);
	r = r ? r : make_keys(spec, epoch, &draft);
	if (r) {
		listing_fini(&draft);
		return r;
	}
	*ret = draft;
	return 0;
}
