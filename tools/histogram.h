/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Times in nanoseconds, counted in buckets whose width is 1/32 of their value: a quantile is within
 * 1.6 % of the true one. Plain memory of fixed size, so that it can lie in shared memory and be
 * filled by one process and read by another; no operation but adding.
 */

#include "base/base.h"

#define HISTOGRAM_FINE 5 /* 2^5 buckets for each power of two */
#define HISTOGRAM_TOP 42 /* 2^42 ns: 73 minutes; longer ones count as this */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_TOP - HISTOGRAM_FINE + 1) << HISTOGRAM_FINE)

struct histogram {
	uint64_t count;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

unsigned histogram_bucket(uint64_t ns);     /* the bucket of a value */
uint64_t histogram_middle(unsigned bucket); /* the value that stands for a bucket */
void histogram_add(struct histogram *histogram, uint64_t ns);
/* The value that a share of q (0 .. 1) of all values does not exceed; 0 when there is none. */
uint64_t histogram_quantile(const struct histogram *histogram, double q);
