/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of warp_loops.h for machines with AVX2, where a vector of four doubles is one register.
 * No fused multiply-add: it would round otherwise than Pillow.
 */

#include "pipeline/ops/warp_loops.h"

#ifdef __x86_64__

#define WARP_AVX2 __attribute__((target("avx2")))

WARP_LOOP(warp_avx2_bilinear, warp_flat, warp_bilinear_pixel, WARP_AVX2)
WARP_LOOP(warp_avx2_bicubic, warp_flat, warp_bicubic_pixel, WARP_AVX2)
WARP_LOOP(warp_avx2_deep_nearest, warp_deep, warp_nearest_pixel, WARP_AVX2)
WARP_LOOP(warp_avx2_deep_bilinear, warp_deep, warp_bilinear_pixel, WARP_AVX2)
WARP_LOOP(warp_avx2_deep_bicubic, warp_deep, warp_bicubic_pixel, WARP_AVX2)

static const struct warp_kernels warp_avx2_kernels = {
    .bilinear = warp_avx2_bilinear,
    .bicubic = warp_avx2_bicubic,
    .perspective = {warp_avx2_deep_nearest, warp_avx2_deep_bilinear, warp_avx2_deep_bicubic},
};

const struct warp_kernels *warp_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? &warp_avx2_kernels : NULL;
}

#else

const struct warp_kernels *warp_avx2(void)
{
	return NULL;
}

#endif
