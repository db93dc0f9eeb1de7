/* SPDX-License-Identifier: Apache-2.0 */

/* What the caller of oa_open() says of an objective: read, each number checked, and copied. */

#include "libaccess/error.h"
#include "libaccess/objective/objective_batch.h"

#define MOST_TOKENS (INT64_C(1) << 32)

static int objective_share(const char *name, double value, struct diag *diag)
{
	if (value >= 0 && value <= 1)
		return 0;
	return error_open(diag, "options.objective.%s is %g, must be 0 to 1", name, value);
}

static int objective_token(const char *name, int64_t value, struct diag *diag)
{
	if (value >= 0)
		return 0;
	return error_open(diag, "options.objective.%s is %lld, no token: these are numbers from 0",
			  name, (long long)value);
}

/* NULL: there is no memory. */
static void *objective_copy(const void *from, uint64_t bytes)
{
	void *copy = malloc(bytes + 1);

	if (copy && bytes)
		memcpy(copy, from, bytes);
	return copy;
}

static int read_masked(struct objective_batch *to, const struct oa_objective *from,
		       struct diag *diag)
{
	const bool is_usual = from->probability == 0 && from->mask == 0 && from->random == 0;
	struct objective_masked masked = {
	    .probability = is_usual ? .15 : from->probability,
	    .mask = is_usual ? .8 : from->mask,
	    .random = is_usual ? .1 : from->random,
	    .mask_token = from->mask_token,
	    .vocabulary = from->vocabulary,
	    .n_what = from->n_what,
	};
	int r = objective_share("probability", masked.probability, diag);

	r = r ? r : objective_share("mask", masked.mask, diag);
	r = r ? r : objective_share("random", masked.random, diag);
	r = r ? r : objective_token("mask_token", masked.mask_token, diag);
	if (r)
		return r;
	if (masked.mask + masked.random > 1 + 1e-9)
		return error_open(diag,
				  "options.objective.mask and .random are %g and %g, and together "
				  "more than 1",
				  masked.mask, masked.random);
	if (masked.vocabulary < 1 || masked.vocabulary > MOST_TOKENS)
		return error_open(diag, "options.objective.vocabulary is %llu, must be 1 to 2^32",
				  (unsigned long long)masked.vocabulary);
	if (masked.n_what > MOST_TOKENS || !from->what != !from->n_what)
		return error_open(diag,
				  "options.objective.what and .n_what go together, 2^32 at most");
	masked.what = to->what = objective_copy(from->what, masked.n_what);
	to->objective.masked = masked;
	return to->what ? 0 : -ENOMEM;
}

static int read_spans(struct objective_batch *to, const struct oa_objective *from,
		      struct diag *diag)
{
	struct objective_spans spans = {
	    .density = from->density == 0 ? .15 : from->density,
	    .mean = from->mean_span == 0 ? 3 : from->mean_span,
	    .n_sentinels = from->n_sentinels,
	    .end = from->end,
	};
	int r = objective_share("density", spans.density, diag);

	if (r)
		return r;
	if (!(spans.mean >= 1 && spans.mean <= INT32_MAX))
		return error_open(diag,
				  "options.objective.mean_span is %g, must be at least 1 token",
				  spans.mean);
	if (!from->sentinels || spans.n_sentinels < 1 || spans.n_sentinels > MOST_TOKENS)
		return error_open(diag, "options.objective.sentinels: give one for each span");
	for (uint64_t i = 0; i < spans.n_sentinels && !r; i++)
		r = objective_token("sentinels", from->sentinels[i], diag);
	if (r)
		return r;
	spans.sentinel = to->sentinels =
	    objective_copy(from->sentinels, spans.n_sentinels * sizeof(int64_t));
	to->objective.spans = spans;
	return to->sentinels ? 0 : -ENOMEM;
}

static int read_middle(struct objective_batch *to, const struct oa_objective *from,
		       struct diag *diag)
{
	const struct objective_middle middle = {
	    .rate = from->rate == 0 ? .5 : from->rate,
	    .swapped = from->swapped,
	    .prefix = from->prefix,
	    .middle = from->middle,
	    .suffix = from->suffix,
	    .end = from->end,
	};
	int r = objective_share("rate", middle.rate, diag);

	r = r ? r : objective_share("swapped", middle.swapped, diag);
	r = r ? r : objective_token("prefix", middle.prefix, diag);
	r = r ? r : objective_token("middle", middle.middle, diag);
	to->objective.middle = middle;
	return r ? r : objective_token("suffix", middle.suffix, diag);
}

int objective_batch_read(struct objective_batch *objective_batch, const struct oa_objective *from,
			 struct diag *diag)
{
	static int (*const read[])(struct objective_batch *, const struct oa_objective *,
				   struct diag *) = {
	    [OA_OBJECTIVE_MASKED] = read_masked,
	    [OA_OBJECTIVE_SPANS] = read_spans,
	    [OA_OBJECTIVE_MIDDLE] = read_middle,
	};
	struct oa_objective mine;
	int r;

	if (!from)
		return 0;
	if (from->size < offsetof(struct oa_objective, probability))
		return error_open(diag,
				  "options.objective.size must be sizeof(struct oa_objective)");
	r = error_read(&mine, sizeof(mine), from, from->size, "oa_open(): options.objective", diag);
	if (r || mine.kind == OA_OBJECTIVE_NONE)
		return r;
	if ((unsigned)mine.kind >= BASE_ARRAY_LEN(read))
		return error_open(diag, "options.objective.kind is %d, must be an OA_OBJECTIVE_...",
				  (int)mine.kind);
	objective_batch->objective.kind = (enum objective_kind)mine.kind;
	return read[mine.kind](objective_batch, &mine, diag);
}
