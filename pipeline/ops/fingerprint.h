/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * What this machine's arithmetic comes to: a number made of draws, weights and pixels, by the kernels that are chosen here. It is the
 * same on all machines, which tests hold on each kind of them. Values that are computed by draws or kernels are named by it, so
 * that one whose arithmetic is another finds nobody's but its own. Takes some 10 ms. 0: not enough memory.
 */
uint64_t fingerprint_of_arithmetic(void);
