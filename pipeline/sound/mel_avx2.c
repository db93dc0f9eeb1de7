/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of mel_loops.h for machines with AVX2, where eight lanes are one register. No fused multiply-add: it would round
 * otherwise than other machines.
 */

#include "pipeline/sound/mel_loops.h"

#ifdef __x86_64__

#define MEL_AVX2 __attribute__((target("avx2")))

static MEL_LOOPS(mel_avx2_loops, MEL_AVX2)

    mel_fn *mel_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? mel_avx2_loops : NULL;
}

#else

mel_fn *mel_avx2(void)
{
	return NULL;
}

#endif
