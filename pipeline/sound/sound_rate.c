/* SPDX-License-Identifier: Apache-2.0 */

/* Resampling by libsoxr at its usual quality (SOXR_HQ), which librosa's default is, too. The only file that includes soxr.h. */

#include "pipeline/sound/sound_rate.h"

#include <soxr.h>

/* Frames that are given at a time: libsoxr copies them, and does not look whether there was memory. */
#define RATE_AT_ONCE 65536

int sound_rate_change(double from_rate, double to_rate, const float *in, size_t n, float *out,
		      size_t room, size_t *ret_n)
{
	const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
	const soxr_runtime_spec_t runtime = soxr_runtime_spec(1); /* threads: workers are many */
	size_t done = 0, taken, made = 1;
	soxr_error_t error = NULL;
	soxr_t resampler = soxr_create(from_rate, to_rate, 1, &error, NULL, &quality, &runtime);

	if (!resampler)
		return -ENOMEM;
	for (; !error && n > 0 && done < room; in += taken, n -= taken, done += made)
		error = soxr_process(resampler, in, BASE_MIN(n, (size_t)RATE_AT_ONCE), &taken,
				     out + done, room - done, &made);
	for (made = 1; !error && made > 0 && done < room; done += made)
		error = soxr_process(resampler, NULL, 0, NULL, out + done, room - done, &made);
	soxr_delete(resampler);
	*ret_n = done;
	return error ? -ENOMEM : 0;
}
