/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of the quick JPEG decoder that are for x86-64 machines only. */

#include <stddef.h>
#include <stdint.h>

#define BASELINE_AVX2 __attribute__((target("avx2,bmi2")))
#define BASELINE_AVX512 __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512vnni")))

/* baseline_packed_avx2.c; as baseline_kernels.packed_unit */
const uint8_t *baseline_packed_unit_avx2(const struct baseline_packed *packed, const uint8_t *at,
					 size_t n, unsigned wanted);
/* baseline_avx512.c; as baseline_kernels.h2v2, where the machine has what that takes */
void baseline_h2v2_avx512(const uint8_t *y, const uint8_t *const near[2],
			  const uint8_t *const far[2], uint8_t *const to[3], size_t count);
/* baseline_idct_avx2.c; as baseline_kernels.idct */
int baseline_idct_avx2(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
		       uint8_t *to, size_t stride);
/* baseline_scaled_avx2.c; as baseline_kernels.idct4 and idct2 */
int baseline_idct4_avx2(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
			uint8_t *to, size_t stride);
int baseline_idct2_avx2(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
			uint8_t *to, size_t stride);
