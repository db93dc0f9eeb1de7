/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernels of convolve.c: each makes one row of pixels of the rows around it. */

#include "base/base.h"

#define CONVOLVE_MOST 99        /* taps along a side */
#define CONVOLVE_MEDIAN_MOST 15 /* the same of a median, which counts in 8 bits */

struct convolve_tap {
	unsigned row;  /* from the uppermost */
	size_t offset; /* bytes from the leftmost pixel's */
	float weight;
};

struct convolve_taps {
	unsigned n;
	struct convolve_tap tap[CONVOLVE_MOST];
};

/* row: pointers to pixels of four bytes, as many before and behind the n bytes of out as the taps need. Out may be written up to the
 * next multiple of 32 bytes, and rows read as far. */
typedef void convolve_taps_fn(const struct convolve_taps *taps, const uint8_t *const *row,
			      uint8_t *out, size_t n);
typedef void convolve_median_fn(unsigned size, const uint8_t *const *row, uint8_t *out, size_t n);

struct convolve_kernels {
	/* Sums in float32, in the order of the taps, each product and sum rounded once; rounded half to even. A weight is a
	 * multiple of 2^-40, so that a double holds both. */
	convolve_taps_fn *taps;
	convolve_median_fn *median; /* of size x size values */
};

extern const struct convolve_kernels convolve_plain;
/* NULL where the machine lacks AVX2 or FMA. */
const struct convolve_kernels *convolve_avx2(void);

typedef uint8_t convolve_bytes __attribute__((vector_size(32), aligned(1), may_alias));

/* The largest value that more than half of all values reach, bit by bit. */
#define CONVOLVE_MEDIAN(name, attribute)                                                        \
	attribute static void name(unsigned size, const uint8_t *const *row, uint8_t *out,      \
				   size_t n)                                                    \
	{                                                                                       \
		const uint8_t half = (uint8_t)(size * size / 2);                                \
                                                                                                \
		for (size_t x = 0; x < n; x += sizeof(convolve_bytes)) {                        \
			convolve_bytes least = {0};                                             \
                                                                                                \
			for (unsigned bit = 128; bit > 0; bit /= 2) {                           \
				const convolve_bytes tried = least | (uint8_t)bit;              \
				convolve_bytes count = {0};                                     \
                                                                                                \
				for (unsigned i = 0; i < size; i++)                             \
					for (unsigned k = 0; k < size; k++)                     \
						count -=                                        \
						    (convolve_bytes)(*(const convolve_bytes     \
									   *)(row[i] + x +      \
									      4 * (size_t)k) >= \
								     tried);                    \
				least |= (convolve_bytes)(count > half) & (uint8_t)bit;         \
			}                                                                       \
			*(convolve_bytes *)(out + x) = least;                                   \
		}                                                                               \
	}
