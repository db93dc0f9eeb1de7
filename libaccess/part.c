/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a sampler's words to a set of samples. The names of classes and the number of samples come
 * from accessd's catalogue, so that what is wrong is found here, with the nearest right one named, and
 * accessd is sent a bitmap that needs no thought.
 */

#include "libaccess/part.h"

#include <stdio.h>
#include "libaccess/error.h"
#include "plan/listing.h"

#define PART_NAME 64 /* of a class's name, as much is compared with others and shown */
#define PART_NEAREST 3

void part_init(struct part *part)
{
	*part = (struct part){.fd = -1};
}

void part_forget(struct part *part)
{
	free(part->bits);
	free(part->members);
	part->bits = part->members = NULL;
}

void part_fini(struct part *part)
{
	part_forget(part);
	base_close(&part->fd);
	part_init(part);
}

bool part_is_asked(const struct sampler *sampler, bool with_ids)
{
	return sampler->n_classes || sampler->keep || sampler->drop ||
	       sampler->from != sampler->to || (with_ids && sampler->ids);
}

/* ---- classes ---- */

/* Edits that lead from a to b. */
static unsigned part_distance(const char *a, const char *b)
{
	size_t n = strnlen(a, PART_NAME), m = strnlen(b, PART_NAME);
	unsigned row[PART_NAME + 1];

	for (unsigned k = 0; k <= m; k++)
		row[k] = k;
	for (size_t i = 0; i < n; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i + 1;
		for (size_t k = 0; k < m; k++) {
			unsigned change = diagonal + (a[i] != b[k]);

			diagonal = row[k + 1];
			row[k + 1] = BASE_MIN(BASE_MIN(row[k], row[k + 1]) + 1, change);
		}
	}
	return row[m];
}

static const char *part_class(const struct catalog *catalog, uint64_t label)
{
	return catalog->names + catalog->start[label];
}

/* The labels of the names nearest to name, nearest first. Number of them. */
static unsigned part_nearest(const struct catalog *catalog, const char *name,
			     uint64_t ret[PART_NEAREST])
{
	unsigned distance[PART_NEAREST], found = 0;

	for (uint64_t label = 0; label < catalog->head.n_classes; label++) {
		unsigned d = part_distance(name, part_class(catalog, label));
		unsigned at = BASE_MIN(found, (unsigned)PART_NEAREST - 1);

		if (found == PART_NEAREST && d >= distance[at])
			continue;
		for (; at && d < distance[at - 1]; at--) {
			distance[at] = distance[at - 1];
			ret[at] = ret[at - 1];
		}
		distance[at] = d;
		ret[at] = label;
		found += found < PART_NEAREST;
	}
	return found;
}

static int part_no_class(const struct catalog *catalog, const char *name, struct diag *diag)
{
	char asked[PART_NAME + 4], near[PART_NAME + 4], list[PART_NEAREST * (PART_NAME + 8)] = "";
	uint64_t nearest[PART_NEAREST];
	unsigned n = part_nearest(catalog, name, nearest);
	size_t used = 0;

	base_quote(name, asked, sizeof(asked));
	if (n == 0)
		return error_open(diag,
				  "options.sampler.classes: the dataset has no classes, so no "
				  "\"%s\": its pictures lie in one folder",
				  asked);
	for (unsigned i = 0; i < n; i++) {
		base_quote(part_class(catalog, nearest[i]), near, sizeof(near));
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s\"%s\"",
					 i ? ", " : "", near);
	}
	return error_open(diag,
			  "options.sampler.classes: none of the dataset's %llu classes is called "
			  "\"%s\"; the nearest are %s",
			  (unsigned long long)catalog->head.n_classes, asked, list);
}

static uint64_t part_label(const struct catalog *catalog, const char *name)
{
	uint64_t label = 0;

	while (label < catalog->head.n_classes && strcmp(part_class(catalog, label), name) != 0)
		label++;
	return label;
}

static int part_keep_classes(struct part *part, const struct permutation *permutation,
			     const struct sampler *sampler, const struct catalog *catalog,
			     struct diag *diag)
{
	_cleanup_free_ bool *wanted = calloc(catalog->head.n_classes + 1, sizeof(*wanted));

	if (!wanted)
		return -ENOMEM;
	for (uint32_t i = 0; i < sampler->n_classes; i++) {
		uint64_t label = part_label(catalog, sampler->classes[i]);

		if (label == catalog->head.n_classes)
			return part_no_class(catalog, sampler->classes[i], diag);
		wanted[label] = true;
	}
	population_keep_classes(permutation, catalog->label, wanted, part->bits);
	return 0;
}

/* ---- the pipeline's filter ---- */

static int part_bad_class(const struct catalog *catalog, int32_t class, const char *list,
			  struct diag *diag)
{
	if (catalog->head.n_classes == 0)
		return diag_fail(diag, OA_E_PIPELINE,
				 "pipeline: filter: %s has class %d, and the dataset has no "
				 "classes: its pictures lie in one folder",
				 list, class);
	return diag_fail(diag, OA_E_PIPELINE,
			 "pipeline: filter: %s has class %d; the dataset's are 0 to %llu", list,
			 class, (unsigned long long)catalog->head.n_classes - 1);
}

static int part_mark_classes(const struct catalog *catalog, const int32_t *classes, uint32_t n,
			     const char *list, bool value, bool *wanted, struct diag *diag)
{
	for (uint32_t i = 0; i < n; i++) {
		if (classes[i] < 0 || (uint64_t)classes[i] >= catalog->head.n_classes)
			return part_bad_class(catalog, classes[i], list, diag);
		wanted[classes[i]] = value;
	}
	return 0;
}

static int part_keep_filter(struct part *part, const struct permutation *permutation,
			    const struct sampler *sampler, const struct catalog *catalog,
			    struct diag *diag)
{
	_cleanup_free_ bool *wanted = malloc(catalog->head.n_classes + 1);
	int r;

	if (!wanted)
		return -ENOMEM;
	memset(wanted, sampler->keep == NULL, catalog->head.n_classes + 1);
	r = part_mark_classes(catalog, sampler->keep, sampler->n_keep, "keep", true, wanted, diag);
	if (!r)
		r = part_mark_classes(catalog, sampler->drop, sampler->n_drop, "drop", false,
				      wanted, diag);
	if (!r)
		population_keep_classes(permutation, catalog->label, wanted, part->bits);
	return r;
}

/* ---- the set ---- */

static int part_bad_id(const struct sampler *sampler, uint64_t at, uint64_t n, struct diag *diag)
{
	long long id = sampler->ids[at];

	if (id < 0 || (uint64_t)id >= n)
		return error_open(
		    diag, "options.sampler.ids[%llu] is %lld: the dataset has samples 0 to %lld",
		    (unsigned long long)at, id, (long long)n - 1);
	return error_open(
	    diag,
	    "options.sampler.ids[%llu] is %lld, for the second time: under this order ids are a "
	    "set; OA_ORDER_SEEDED and OA_ORDER_SEQUENTIAL repeat samples",
	    (unsigned long long)at, id);
}

static int part_begin(struct part *part, const struct permutation *permutation,
		      const struct sampler *sampler, bool with_ids, struct diag *diag)
{
	uint64_t bad;

	part->bits = calloc(bits_words(permutation->n) + 1, sizeof(*part->bits));
	part->members = calloc(bits_words(permutation->n) + 1, sizeof(*part->members));
	if (!part->bits || !part->members)
		return -ENOMEM;
	if (!with_ids || !sampler->ids) {
		bits_fill(part->bits, permutation->n);
		return 0;
	}
	bad = population_add_ids(permutation, sampler->ids, sampler->n_ids, part->bits);
	return bad ? part_bad_id(sampler, bad - 1, permutation->n, diag) : 0;
}

int part_make(struct part *part, const struct sampler *sampler, bool with_ids,
	      const struct catalog *catalog, struct diag *diag)
{
	struct permutation permutation;
	int r;

	part->n = catalog->head.n;
	memcpy(part->version, catalog->head.version, sizeof(part->version));
	permutation_init(&permutation, part->n, part->version);
	r = part_begin(part, &permutation, sampler, with_ids, diag);
	if (!r && sampler->n_classes)
		r = part_keep_classes(part, &permutation, sampler, catalog, diag);
	if (!r && (sampler->keep || sampler->drop))
		r = part_keep_filter(part, &permutation, sampler, catalog, diag);
	if (r)
		return r;
	part->split = (struct population_split){sampler->from, sampler->to, sampler->split_seed};
	if (population_is_split(&part->split)) {
		population_keep_split(&permutation, part->version, &part->split, part->bits);
		part->is_random = !sampler->n_classes && !sampler->keep && !sampler->drop &&
				  !(with_ids && sampler->ids);
	}
	part->count = bits_count(part->bits, permutation.n);
	for (uint64_t id = 0; id < permutation.n; id++)
		if (bits_test(part->bits, permutation_position(&permutation, id)))
			bits_set(part->members, id);
	if (part->count)
		return 0;
	return error_open(
	    diag,
	    "options.sampler: none of the dataset's %llu samples is left by its classes, split and "
	    "ids and the pipeline's filter together; ask for a larger part",
	    (unsigned long long)permutation.n);
}

int part_seal(struct part *part)
{
	part->fd =
	    base_memfd_of("access-part", part->bits, bits_words(part->n) * sizeof(*part->bits));
	return BASE_MIN(part->fd, 0);
}

int part_list(const struct part *part, int64_t **ret_ids)
{
	int64_t *ids = malloc((part->count + 1) * sizeof(*ids));
	uint64_t count = 0;

	if (!ids)
		return -ENOMEM;
	for (uint64_t id = 0; id < part->n; id++)
		if (bits_test(part->members, id))
			ids[count++] = (int64_t)id;
	*ret_ids = ids;
	return 0;
}

/* ---- for fixed plans ---- */

/* The sampler's ids, or all of the part. 0 or -ENOMEM. */
static int part_ids(const struct part *part, struct sampler *sampler)
{
	int r = sampler->ids ? 0 : part_list(part, &sampler->ids);

	if (!r && !sampler->n_ids)
		sampler->n_ids = part->count;
	return r;
}

/* Without ids weights are by sample: they become those of the ids. 0 or -ENOMEM. */
static int part_weights(struct sampler *sampler)
{
	double *weights = malloc((sampler->n_ids + 1) * sizeof(*weights));

	if (!weights)
		return -ENOMEM;
	for (uint64_t i = 0; i < sampler->n_ids; i++)
		weights[i] = sampler->weights[sampler->ids[i]];
	free(sampler->weights);
	sampler->weights = weights;
	sampler->n_weights = sampler->n_ids;
	return 0;
}

/* Fewer may have weight than in the whole dataset. */
static int part_check_drawable(const struct sampler *sampler, struct diag *diag)
{
	uint64_t drawable = listing_drawable(sampler->weights, sampler->n_weights);

	if (!drawable)
		return error_open(diag,
				  "options.sampler.weights are 0 for all %llu samples that its "
				  "ids, classes and split and the pipeline's filter leave: nothing "
				  "can be drawn",
				  (unsigned long long)sampler->n_weights);
	if (sampler->flags & OA_REPLACEMENT || sampler->samples <= drawable)
		return 0;
	return error_open(diag,
			  "options.sampler.samples is %llu, but only %llu of the samples that its "
			  "ids, classes and split and the pipeline's filter leave have a weight "
			  "that is not 0: draw fewer, or with OA_REPLACEMENT",
			  (unsigned long long)sampler->samples, (unsigned long long)drawable);
}

int part_filter(const struct part *part, struct sampler *sampler, struct diag *diag)
{
	bool by_sample = sampler->weights && !sampler->ids;
	uint64_t kept = 0;
	int r;

	if (by_sample && sampler->n_weights != part->n)
		return error_open(
		    diag, "options.sampler.n_weights is %llu, the dataset has %llu samples",
		    (unsigned long long)sampler->n_weights, (unsigned long long)part->n);
	r = part_ids(part, sampler);
	if (!r && by_sample)
		r = part_weights(sampler);
	if (r)
		return r;
	for (uint64_t i = 0; i < sampler->n_ids; i++) {
		if ((uint64_t)sampler->ids[i] >= part->n)
			return part_bad_id(sampler, i, part->n, diag);
		if (!part_has(part, sampler->ids[i]))
			continue;
		if (sampler->weights)
			sampler->weights[kept] = sampler->weights[i];
		sampler->ids[kept++] = sampler->ids[i];
	}
	sampler->n_ids = kept;
	sampler->n_weights = sampler->weights ? kept : 0;
	if (kept)
		return sampler->weights ? part_check_drawable(sampler, diag) : 0;
	return error_open(diag, "options.sampler: none of its ids is in its classes and split and "
				"the pipeline's filter");
}
