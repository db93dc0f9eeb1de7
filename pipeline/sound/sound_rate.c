/* SPDX-License-Identifier: Apache-2.0 */

/* Resampling by libsoxr at its usual quality (SOXR_HQ), which librosa's default is, too. The only file that includes soxr.h. */

#include "pipeline/sound/sound_rate.h"

#include <soxr.h>

int sound_rate_change(uint32_t from_rate, uint32_t to_rate, const float *in, size_t n, float *out,
		      size_t room, size_t *ret_n)
{
	const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
	const soxr_runtime_spec_t runtime = soxr_runtime_spec(1); /* threads: workers are many */
	size_t taken;

	return soxr_oneshot(from_rate, to_rate, 1, in, n, &taken, out, room, ret_n, NULL, &quality,
			    &runtime)
		   ? -ENOMEM
		   : 0;
}
