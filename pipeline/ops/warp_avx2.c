/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of warp_loops.h for machines with AVX2, where a vector of four doubles is one register.
 * No fused multiply-add: it would round otherwise than Pillow.
 */

#include "pipeline/ops/warp_loops.h"

#ifdef __x86_64__

WARP_LOOP(warp_avx2_bilinear, warp_bilinear_pixel, __attribute__((target("avx2"))))
WARP_LOOP(warp_avx2_bicubic, warp_bicubic_pixel, __attribute__((target("avx2"))))

static const struct warp_kernels warp_avx2_kernels = {
    .bilinear = warp_avx2_bilinear,
    .bicubic = warp_avx2_bicubic,
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
