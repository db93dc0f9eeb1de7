/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A sound at another rate. */

#include "base/base.h"

/* One channel, all of it. *ret_n: how many of out, which has room for so many, were written. 0 or -ENOMEM. */
int sound_rate_change(double from_rate, double to_rate, const float *in, size_t n, float *out,
		      size_t room, size_t *ret_n);
