/* SPDX-License-Identifier: Apache-2.0 */

/* What is worth another try, when, and how often. */

#include "bucket/http.h"

#define TRIES_MOST 5
#define TRIES_NS UINT64_C(30000000000) /* half a minute: then nothing is waited for any more */
#define TRIES_BACKOFF_NS UINT64_C(50000000)
#define TRIES_BACKOFF_MOST_NS UINT64_C(5000000000)

uint64_t http_backoff_ns(unsigned tries)
{
	const uint64_t most = tries >= 8
				  ? TRIES_BACKOFF_MOST_NS
				  : BASE_MIN(TRIES_BACKOFF_NS << tries, TRIES_BACKOFF_MOST_NS);
	uint64_t chance = 0;

	return base_random(&chance, sizeof(chance)) ? most : chance % (most + 1);
}

bool http_passes(long status)
{
	return status == 408 || status == 429 || (status >= 500 && status != 501);
}

bool http_is_busy(long status)
{
	return status == 429 || (status >= 502 && status <= 504);
}

bool http_is_over(unsigned tries, long status, uint64_t spent_ns)
{
	if (tries >= TRIES_MOST && !http_is_busy(status))
		return true;
	return tries > 1 && spent_ns >= TRIES_NS;
}
