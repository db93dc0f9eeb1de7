/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Span corruption (Raffel et al., "Exploring the limits of transfer learning", 2020), by the rules of t5's
 * random_spans_noise_mask(): so many tokens are taken out of a window, in so many spans, which is computed from
 * its length alone; how long the spans are, and the parts between them, is drawn, each way to cut them up with the same probability. The
 * first part stays, the last one is taken out.
 *
 *   inputs    part, sentinel 0, part, sentinel 1, ... [end]
 *   targets   sentinel 0, span 0, sentinel 1, span 1, ... [end]
 *
 * So both always have the same length. Spans and parts are drawn as they are needed, from streams of their own.
 */

#include "plan/objective/objective.h"

#include <math.h>

struct objective_noise objective_noise(const struct objective_spans *spans, uint32_t length)
{
	double tokens = rint(length * spans->density), count;

	tokens = BASE_MIN(BASE_MAX(tokens, 1.0), length - 1.0);
	count = BASE_MAX(rint(tokens / spans->mean), 1.0);
	return (struct objective_noise){(uint32_t)tokens, (uint32_t)BASE_MIN(count, 4294967295.0)};
}

static bool spans_shape(const struct objective *objective, const struct objective_from *from,
			struct objective_shape *ret)
{
	const struct objective_spans *spans = &objective->spans;
	struct objective_noise noise;

	if (from->is_packed || from->length < 2)
		return false;
	noise = objective_noise(spans, from->length);
	*ret = (struct objective_shape){
	    from->length + 2 * (uint64_t)noise.spans + 2 * (spans->end >= 0), 0};
	return noise.spans <= noise.tokens && noise.spans <= from->length - noise.tokens &&
	       noise.spans <= spans->n_sentinels;
}

/* Items in a row that are cut into parts of one at least. */
struct cuts {
	struct philox_seq seq;
	uint32_t places, wanted; /* between the items that are left; cuts among these */
};

static uint32_t next_part(struct cuts *cuts)
{
	uint32_t n = 1;

	while (cuts->wanted > 0) {
		if (philox_below(&cuts->seq, cuts->places--) < cuts->wanted) {
			cuts->wanted--;
			return n;
		}
		n++;
	}
	n += cuts->places;
	cuts->places = 0;
	return n;
}

static void spans_make(const struct objective *objective, const struct objective_from *from,
		       struct philox_seq *seq, const int64_t *sample, int64_t *ret)
{
	const struct objective_spans *spans = &objective->spans;
	const struct objective_noise noise = objective_noise(spans, from->length);
	const uint32_t kept = from->length - noise.tokens;
	struct cuts out = {.places = noise.tokens - 1, .wanted = noise.spans - 1};
	struct cuts stay = {.places = kept - 1, .wanted = noise.spans - 1};
	int64_t *input = ret, *target = ret + kept + noise.spans + (spans->end >= 0);

	philox_seq_init(&out.seq, seq->key, seq->a, 0);
	philox_seq_init(&stay.seq, seq->key, seq->a, 1);
	for (uint32_t i = 0; i < noise.spans; i++) {
		uint32_t part = next_part(&stay), span = next_part(&out);

		memcpy(input, sample, part * sizeof(*ret));
		input += part;
		*input++ = spans->sentinel[i];
		*target++ = spans->sentinel[i];
		memcpy(target, sample + part, span * sizeof(*ret));
		target += span;
		sample += part + span;
	}
	if (spans->end >= 0)
		*input = *target = spans->end;
}

const struct objective_ops objective_spans_ops = {spans_shape, spans_make};
