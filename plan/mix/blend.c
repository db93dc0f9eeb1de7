/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The arithmetic is exact: within a period (S units, then all counts are w_i and everything begins
 * anew) all products stay below S^2. Numbers of whole periods are skipped, so a place in an epoch of
 * 10^12 samples is found as fast as one in 10^6.
 */

#include "base/philox.h"
#include "plan/mix/blend.h"

#define BLEND_STREAM_KEY UINT64_C(0x626c656e64000000) /* "blend" */

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int blend_init(struct blend *blend, const uint32_t *weights, uint32_t n)
{
	uint64_t period = 0;
	uint32_t divisor = 0;

	if (!n || n > BLEND_MAX_PARTS)
		return BLEND_E_BAD;
	*blend = (struct blend){.n = n};
	for (uint32_t i = 0; i < n; i++)
		divisor = common_divisor(weights[i], divisor);
	for (uint32_t i = 0; i < n; i++) {
		if (!weights[i])
			return BLEND_E_BAD;
		blend->weight[i] = weights[i] / divisor;
		period += blend->weight[i];
	}
	if (period > BLEND_MAX_PERIOD)
		return BLEND_E_BAD;
	blend->period = (uint32_t)period;
	return 0;
}

/* All parts at the end of so many periods. */
static void seek_period(const struct blend *blend, uint64_t periods, struct blend_place *ret)
{
	*ret = (struct blend_place){.units = periods * blend->period};
	for (uint32_t i = 0; i < blend->n; i++)
		ret->count[i] = periods * blend->weight[i];
}

void blend_seek(const struct blend *blend, uint64_t units, struct blend_place *ret)
{
	seek_period(blend, units / blend->period, ret);
	while (ret->units < units)
		blend_next(blend, ret);
}

uint32_t blend_peek(const struct blend *blend, const struct blend_place *place)
{
	uint64_t period = blend->period, periods = place->units / period;
	uint64_t here = place->units % period, earliest = UINT64_MAX;
	uint32_t chosen = 0;

	for (uint32_t i = 0; i < blend->n; i++) {
		uint64_t weight = blend->weight[i];
		uint64_t count = place->count[i] - periods * weight;
		uint64_t opens = count * period / weight;
		uint64_t ends = ((count + 1) * period + weight - 1) / weight;

		if (opens > here || ends >= earliest)
			continue;
		earliest = ends;
		chosen = i;
	}
	return chosen;
}

uint32_t blend_next(const struct blend *blend, struct blend_place *place)
{
	uint32_t chosen = blend_peek(blend, place);

	place->count[chosen]++;
	place->units++;
	return chosen;
}

/* ---- the length of an epoch ---- */

static uint64_t length_first(const struct blend *blend, const uint64_t *units)
{
	struct blend_place place;
	uint64_t periods = UINT64_MAX;

	for (uint32_t i = 0; i < blend->n; i++)
		periods = BASE_MIN(periods, units[i] / blend->weight[i]);
	seek_period(blend, periods, &place);
	for (;;) {
		uint32_t next = blend_peek(blend, &place);

		if (place.count[next] == units[next])
			return place.units;
		blend_next(blend, &place);
	}
}

static bool is_done(const struct blend_place *place, const uint64_t *units, uint32_t first,
		    uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (place->count[i] < units[i])
			return false;
	return true;
}

/* Until all of parts first .. end - 1 have been at their end. */
static uint64_t length_all(const struct blend *blend, const uint64_t *units, uint32_t first,
			   uint32_t end)
{
	struct blend_place place;
	uint64_t periods = 0;

	for (uint32_t i = first; i < end; i++)
		periods = BASE_MAX(periods, (units[i] - 1) / blend->weight[i]);
	seek_period(blend, periods, &place);
	while (!is_done(&place, units, first, end))
		blend_next(blend, &place);
	return place.units;
}

uint64_t blend_length(const struct blend *blend, const uint64_t *units, enum blend_end end)
{
	uint32_t longest = 0;

	if (end == BLEND_FIRST)
		return length_first(blend, units);
	if (end == BLEND_ALL)
		return length_all(blend, units, 0, blend->n);
	for (uint32_t i = 1; i < blend->n; i++)
		if (units[i] > units[longest])
			longest = i;
	return length_all(blend, units, longest, longest + 1);
}

/* ---- inside a batch ---- */

void blend_scatter(uint64_t seed, uint64_t epoch, uint64_t units, uint32_t *parts, uint32_t count)
{
	struct philox key = philox_block(seed, epoch, BLEND_STREAM_KEY);
	struct philox_seq random;

	philox_seq_init(&random, philox_half(&key, 0), units, 0);
	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = (uint32_t)philox_below(&random, i), part = parts[i - 1];

		parts[i - 1] = parts[other];
		parts[other] = part;
	}
}
