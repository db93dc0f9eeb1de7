/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* torchvision's gaussian kernel, for the ops that blur. */

#include "base/base.h"

#define BLUR_MAX_TAPS 255

/* The weights of an odd number of points, at most BLUR_MAX_TAPS; sigma above 0. */
void blur_weights(unsigned taps, double sigma, float *weight);
/* Reflected without the border itself, as often as it takes. */
uint32_t blur_reflect(int64_t at, uint32_t size);
/* total += weight x row, both of n. */
void blur_add(float *restrict total, const float *restrict row, float weight, size_t n);
