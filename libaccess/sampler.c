/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sampler of a job. Everything that can be wrong with it in itself is found before anybody is
 * asked, with a text that names the member; what depends on the data set (ids beyond it, a weight
 * for each sample) is found when it is open.
 *
 * Its hash is what a token remembers of it. It is taken over what the caller gave, not over what
 * comes out, so that saving costs nothing and two ways to say the same are two samplers.
 */

#include "libaccess/sampler.h"

#include <math.h>
#include "base/hash.h"
#include "libaccess/error.h"
#include "plan/listing.h"
#include "plan/plan.h"

#define SAMPLER_MOST (UINT64_C(1) << 31) /* ids, weights, samples of an epoch */
#define SAMPLER_MOST_CLASSES 65536
#define SAMPLER_MOST_REUSE 100

/* ---- checks ---- */

static int sampler_bad(struct diag *diag, const char *member, const char *why)
{
	return error_open(diag, "options.sampler.%s %s", member, why);
}

static int sampler_read(const struct oa_sampler *from, struct oa_sampler *ret, struct diag *diag)
{
	if (from->size < offsetof(struct oa_sampler, classes))
		return sampler_bad(diag, "size", "must be sizeof(struct oa_sampler)");
	return error_read(ret, sizeof(*ret), from, from->size, "oa_open(): options.sampler", diag);
}

static int sampler_check_ids(const struct oa_sampler *sampler, struct diag *diag)
{
	if (!sampler->ids && sampler->n_ids)
		return sampler_bad(diag, "ids", "is NULL, and n_ids is not 0");
	if (sampler->ids && !sampler->n_ids)
		return sampler_bad(diag, "n_ids",
				   "is 0: an epoch without samples; leave ids NULL for all");
	if (sampler->n_ids > SAMPLER_MOST)
		return sampler_bad(diag, "n_ids", "is more than 2^31");
	for (uint64_t i = 0; i < sampler->n_ids; i++)
		if (sampler->ids[i] < 0)
			return error_open(diag,
					  "options.sampler.ids[%llu] is %lld: ids count from 0",
					  (unsigned long long)i, (long long)sampler->ids[i]);
	return 0;
}

static int sampler_check_classes(const struct oa_sampler *sampler, struct diag *diag)
{
	if (!sampler->classes != !sampler->n_classes)
		return sampler_bad(diag, "classes",
				   "and n_classes go together: leave both zero for all");
	if (sampler->n_classes > SAMPLER_MOST_CLASSES)
		return sampler_bad(diag, "n_classes", "is more than 65536");
	for (uint32_t i = 0; i < sampler->n_classes; i++)
		if (!sampler->classes[i] || !*sampler->classes[i])
			return error_open(diag, "options.sampler.classes[%u] names no class", i);
	return 0;
}

static int sampler_check_split(const struct oa_sampler *sampler, struct diag *diag)
{
	if (sampler->from == 0 && sampler->to == 0)
		return 0;
	if (!(sampler->from >= 0 && sampler->from <= 1 && sampler->to >= 0 && sampler->to <= 1 &&
	      sampler->from != sampler->to))
		return error_open(
		    diag, "options.sampler.from and .to are %g and %g, must be 0 to 1, and differ",
		    sampler->from, sampler->to);
	return 0;
}

static int sampler_check_weight(const double *weights, uint64_t i, struct diag *diag)
{
	if (isfinite(weights[i]) && weights[i] >= 0)
		return 0;
	return error_open(diag,
			  "options.sampler.weights[%llu] is %g, must be finite and not negative",
			  (unsigned long long)i, weights[i]);
}

static int sampler_check_drawable(const struct oa_sampler *sampler, struct diag *diag)
{
	uint64_t drawable = listing_drawable(sampler->weights, sampler->n_weights);

	if (!drawable)
		return sampler_bad(diag, "weights", "are all 0: nothing can be drawn");
	if (sampler->flags & OA_REPLACEMENT || sampler->samples <= drawable)
		return 0;
	return error_open(diag,
			  "options.sampler.samples is %llu, but only %llu of %llu weights are not "
			  "0: draw fewer, or with OA_REPLACEMENT",
			  (unsigned long long)sampler->samples, (unsigned long long)drawable,
			  (unsigned long long)sampler->n_weights);
}

static int sampler_check_draws(const struct oa_sampler *sampler, uint32_t order, struct diag *diag)
{
	if (sampler->flags & ~(uint32_t)OA_REPLACEMENT)
		return sampler_bad(diag, "flags", "has an unknown flag");
	if (!sampler->weights && sampler->n_weights)
		return sampler_bad(diag, "weights", "is NULL, and n_weights is not 0");
	if (!sampler->weights && sampler->samples)
		return sampler_bad(diag, "samples", "goes with weights alone");
	if (!sampler->weights && sampler->flags & OA_REPLACEMENT)
		return sampler_bad(diag, "flags", "has OA_REPLACEMENT, which goes with weights");
	if (!sampler->weights)
		return 0;
	if (!sampler->n_weights || sampler->n_weights > SAMPLER_MOST)
		return sampler_bad(diag, "n_weights", "must be 1 to 2^31");
	if (sampler->samples > SAMPLER_MOST)
		return sampler_bad(diag, "samples", "is more than 2^31");
	if (sampler->ids && sampler->n_ids != sampler->n_weights)
		return error_open(
		    diag,
		    "options.sampler has %llu ids and %llu weights: one weight for each of ids",
		    (unsigned long long)sampler->n_ids, (unsigned long long)sampler->n_weights);
	if (order != OA_ORDER_SEEDED)
		return sampler_bad(diag, "weights", "needs options.order OA_ORDER_SEEDED");
	for (uint64_t i = 0; i < sampler->n_weights; i++)
		if (sampler_check_weight(sampler->weights, i, diag))
			return OA_E_INVALID;
	return sampler_check_drawable(sampler, diag);
}

static int sampler_check_blocks(const struct oa_sampler *sampler, uint32_t order, struct diag *diag)
{
	if (!sampler->blocks && (sampler->n_blocks || sampler->window))
		return sampler_bad(diag, "blocks", "is NULL, and n_blocks or window is not 0");
	if (!sampler->blocks)
		return 0;
	if (order != OA_ORDER_SEEDED)
		return sampler_bad(diag, "blocks", "needs options.order OA_ORDER_SEEDED");
	if (!sampler->n_blocks || sampler->n_blocks > SAMPLER_MOST)
		return sampler_bad(diag, "n_blocks", "must be 1 to 2^31");
	if (!sampler->window)
		return sampler_bad(diag, "window", "is 0: that many blocks are mixed, 1 at least");
	if (sampler->blocks[0] != 0)
		return sampler_bad(diag, "blocks", "must begin with 0, the first sample");
	for (uint64_t i = 1; i < sampler->n_blocks; i++)
		if (sampler->blocks[i] <= sampler->blocks[i - 1])
			return error_open(
			    diag,
			    "options.sampler.blocks[%llu] is %lld, not behind the one before it",
			    (unsigned long long)i, (long long)sampler->blocks[i]);
	return 0;
}

static int sampler_check_members(const struct oa_sampler *from, uint32_t order, struct diag *diag)
{
	struct oa_sampler sampler;
	int r = sampler_read(from, &sampler, diag);

	r = r ? r : sampler_check_ids(&sampler, diag);
	r = r ? r : sampler_check_classes(&sampler, diag);
	r = r ? r : sampler_check_split(&sampler, diag);
	r = r ? r : sampler_check_draws(&sampler, order, diag);
	return r ? r : sampler_check_blocks(&sampler, order, diag);
}

static int sampler_check_reuse(const struct oa_options *options, struct diag *diag)
{
	if (options->reuse <= 1)
		return 0;
	if (options->reuse > SAMPLER_MOST_REUSE)
		return error_open(diag, "options.reuse is %u, must be at most %d", options->reuse,
				  SAMPLER_MOST_REUSE);
	if (plan_is_fixed((uint32_t)options->order) || options->order == OA_ORDER_REPLAY)
		return error_open(diag,
				  "options.reuse is %u: a fixed plan says itself which "
				  "augmentations there are; leave it 0, or take the usual order",
				  options->reuse);
	return 0;
}

static int sampler_check_files(const struct oa_options *options, struct diag *diag)
{
	if (options->record && !*options->record)
		return error_open(diag, "options.record names no file");
	if ((options->order == OA_ORDER_REPLAY) != (options->replay && *options->replay))
		return error_open(diag, "options.replay and OA_ORDER_REPLAY go together");
	if (options->replay && options->sampler)
		return error_open(
		    diag, "options.sampler: a replayed plan says itself which samples there are");
	if (options->replay && options->flags & OA_RESAMPLE)
		return error_open(diag, "options.flags has OA_RESAMPLE: a replayed plan says "
					"itself which samples there are");
	if (options->replay && options->seed)
		return error_open(diag, "options.seed: a replayed plan has its own");
	return 0;
}

int sampler_check(const struct oa_options *options, struct diag *diag)
{
	int r = sampler_check_files(options, diag);

	r = r ? r : sampler_check_reuse(options, diag);
	if (!r && options->sampler)
		r = sampler_check_members(options->sampler, options->order, diag);
	return r;
}

/* ---- the copy ---- */

static void *sampler_copy(const void *from, size_t bytes)
{
	void *copy = bytes ? malloc(bytes) : NULL;

	if (copy)
		memcpy(copy, from, bytes);
	return copy;
}

static int sampler_copy_classes(struct sampler *sampler, const struct oa_sampler *from)
{
	sampler->classes = calloc((size_t)from->n_classes + 1, sizeof(*sampler->classes));
	if (!sampler->classes)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_classes; i++) {
		sampler->classes[i] = strdup(from->classes[i]);
		if (!sampler->classes[i])
			return -ENOMEM;
		sampler->n_classes++;
	}
	return 0;
}

static void sampler_hash_double(struct hash *hash, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	hash_add_u64(hash, bits);
}

/* Nothing where there is none: names that are in tokens stay. */
static void sampler_hash_filter(struct hash *hash, const struct sampler *sampler)
{
	if (!sampler->keep && !sampler->drop)
		return;
	hash_add(hash, "filter", sizeof("filter"));
	hash_add_u64(hash, sampler->n_keep);
	hash_add(hash, sampler->keep, sampler->n_keep * sizeof(*sampler->keep));
	hash_add_u64(hash, sampler->n_drop);
	hash_add(hash, sampler->drop, sampler->n_drop * sizeof(*sampler->drop));
}

static void sampler_hash_blocks(struct hash *hash, const struct sampler *sampler)
{
	if (!sampler->blocks)
		return;
	hash_add(hash, "blocks", sizeof("blocks"));
	hash_add_u64(hash, sampler->window);
	hash_add_u64(hash, sampler->n_blocks);
	for (uint64_t i = 0; i < sampler->n_blocks; i++)
		hash_add_u64(hash, (uint64_t)sampler->blocks[i]);
}

static int sampler_name(struct sampler *sampler)
{
	_cleanup_(hash_freep) struct hash *hash = NULL;
	struct hash_id id;

	if (!sampler_is_used(sampler))
		return 0;
	if (hash_new(&hash))
		return -ENOMEM;
	hash_add(hash, "oneaccess sampler", sizeof("oneaccess sampler"));
	hash_add_u64(hash, sampler->n_ids);
	for (uint64_t i = 0; i < sampler->n_ids; i++)
		hash_add_u64(hash, (uint64_t)sampler->ids[i]);
	hash_add_u64(hash, sampler->n_classes);
	for (uint32_t i = 0; i < sampler->n_classes; i++)
		hash_add(hash, sampler->classes[i], strlen(sampler->classes[i]) + 1);
	sampler_hash_double(hash, sampler->from);
	sampler_hash_double(hash, sampler->to);
	hash_add_u64(hash, sampler->split_seed);
	hash_add_u64(hash, sampler->n_weights);
	for (uint64_t i = 0; i < sampler->n_weights; i++)
		sampler_hash_double(hash, sampler->weights[i]);
	hash_add_u64(hash, sampler->samples);
	hash_add_u64(hash, sampler->flags);
	sampler_hash_filter(hash, sampler);
	sampler_hash_blocks(hash, sampler);
	hash_finish(hash, &id);
	memcpy(sampler->hash, id.bytes, sizeof(sampler->hash));
	return 0;
}

int sampler_init(struct sampler *sampler, const struct oa_sampler *from)
{
	struct oa_sampler mine = {0};

	*sampler = (struct sampler){0};
	if (!from)
		return 0;
	memcpy(&mine, from, BASE_MIN(from->size, sizeof(mine)));
	sampler->from = mine.from;
	sampler->to = mine.to;
	sampler->split_seed = mine.from != mine.to ? mine.split_seed : 0;
	sampler->samples = mine.samples;
	sampler->flags = mine.flags;
	sampler->ids = sampler_copy(mine.ids, mine.n_ids * sizeof(*mine.ids));
	sampler->weights = sampler_copy(mine.weights, mine.n_weights * sizeof(*mine.weights));
	sampler->blocks = sampler_copy(mine.blocks, mine.n_blocks * sizeof(*mine.blocks));
	if ((mine.ids && !sampler->ids) || (mine.weights && !sampler->weights) ||
	    (mine.blocks && !sampler->blocks) || sampler_copy_classes(sampler, &mine))
		return -ENOMEM;
	sampler->n_blocks = mine.n_blocks;
	sampler->window = mine.window;
	sampler->n_ids = mine.n_ids;
	sampler->n_weights = mine.n_weights;
	return sampler_name(sampler);
}

void sampler_fini(struct sampler *sampler)
{
	for (uint32_t i = 0; i < sampler->n_classes; i++)
		free(sampler->classes[i]);
	free(sampler->classes);
	free(sampler->ids);
	free(sampler->weights);
	free(sampler->blocks);
	free(sampler->keep);
	free(sampler->drop);
	*sampler = (struct sampler){0};
}

int sampler_set_filter(struct sampler *sampler, int32_t **keep, uint32_t n_keep, int32_t **drop,
		       uint32_t n_drop)
{
	sampler->keep = base_take_ptr(*keep);
	sampler->drop = base_take_ptr(*drop);
	sampler->n_keep = n_keep;
	sampler->n_drop = n_drop;
	return sampler_name(sampler);
}

bool sampler_is_used(const struct sampler *sampler)
{
	return sampler->ids || sampler->n_classes || sampler->from != sampler->to ||
	       sampler->weights || sampler->blocks || sampler->keep || sampler->drop;
}
