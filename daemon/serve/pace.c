/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/pace.h"

#define SECOND_NS UINT64_C(1000000000)

void pace_begin(struct pace *pace, uint64_t now_ns)
{
	pace->rate_ns = pace->moved_ns = now_ns;
}

void pace_moved(struct pace *pace, uint32_t samples, uint64_t now_ns)
{
	pace->moved_ns = now_ns;
	pace->rate_samples += samples;
	if (!samples || now_ns - pace->rate_ns < SECOND_NS)
		return;
	pace->rate = (double)pace->rate_samples * 1e9 / (double)(now_ns - pace->rate_ns);
	pace->rate_samples = 0;
	pace->rate_ns = now_ns;
}

/* Within a chunk its own word, which is for people alone, says that it goes on. */
void pace_said(struct pace *pace, uint64_t delivered, uint64_t now_ns)
{
	if (delivered != pace->delivered)
		pace->moved_ns = now_ns;
	pace->delivered = delivered;
}

/* Had it given back one more chunk just now, it would be as fast as this: no faster is it. Until it gave back its first
 * one, which a slow job holds for long, by what it says that it delivered. */
double pace_rate(const struct pace *pace, uint32_t chunk, uint64_t delivered, uint64_t now_ns)
{
	const uint64_t most = pace->rate_samples + chunk;
	const double elapsed_ns = (double)(now_ns - BASE_MIN(pace->rate_ns, now_ns));

	if (pace->rate == 0 && elapsed_ns > 0)
		return (double)BASE_MIN(delivered, most) * 1e9 / elapsed_ns;
	return elapsed_ns < 1e9 ? pace->rate
				: BASE_MIN(pace->rate, (double)most * 1e9 / elapsed_ns);
}

uint64_t pace_idle_ns(const struct pace *pace, uint64_t now_ns)
{
	return now_ns - BASE_MIN(pace->moved_ns, now_ns);
}
