/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Buckets: values below 2^FINE have one each; above, the highest set bit and the FINE bits after it
 * number the bucket. Both schemes meet at 2^FINE without a gap.
 */

#include "tools/histogram.h"

unsigned histogram_bucket(uint64_t ns)
{
	unsigned shift;

	if (ns >= UINT64_C(1) << HISTOGRAM_TOP)
		return HISTOGRAM_BUCKETS - 1;
	if (ns < UINT64_C(1) << HISTOGRAM_FINE)
		return (unsigned)ns;
	shift = 63 - (unsigned)__builtin_clzll(ns) - HISTOGRAM_FINE;
	return (shift << HISTOGRAM_FINE) + (unsigned)(ns >> shift);
}

uint64_t histogram_middle(unsigned bucket)
{
	unsigned shift = bucket >> HISTOGRAM_FINE;
	uint64_t first;

	if (shift <= 1) /* buckets of one value each */
		return bucket;
	shift--;
	first = (uint64_t)(bucket - (shift << HISTOGRAM_FINE)) << shift;
	return first + (UINT64_C(1) << shift) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	histogram->bucket[histogram_bucket(ns)]++;
	histogram->count++;
}

uint64_t histogram_quantile(const struct histogram *histogram, double q)
{
	uint64_t total = 0, seen = 0;
	double target;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		total += histogram->bucket[i];
	target = q * (double)total;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->bucket[i];
		if (seen > 0 && (double)seen >= target)
			return histogram_middle(i);
	}
	return 0;
}
