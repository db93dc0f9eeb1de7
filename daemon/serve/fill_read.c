/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of reading (tenant.USER.read_bandwidth), where work is begun: in fill_feed(). Each tenant who has one has a bucket
 * (sched/throttle.h). What was read for a stream is charged in equal parts to the tenants who have jobs in it, before it begins
 * more; what a sample will need is what samples of the stream needed so far, nothing of those that are kept in memory.
 *
 * A stream that several share goes on while one of them may: who has no limit is not held back by one who has. The
 * other owes no more for it than a moment. Where all have limits, what is read is owed, so that the stream has the
 * limits' sum; but of two limits far apart the lower one's tenant would owe ever more, so there it is some seconds'
 * worth, or the piece.
 */
#include "daemon/serve/fill_parts.h"

#include <math.h>

#include "daemon/node.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"

#define LEAST_RETRY_NS UINT64_C(10000000)
#define OWED_MOMENT_S 0.1 /* beside somebody without a limit */
#define OWED_MOST_S 10.0  /* beside others with limits */

double fill_mean_bytes(const struct stream *stream)
{
	const struct dataset *dataset = stream->source->dataset;
	double mean = (double)dataset_head(dataset)->sum_bytes / (double)dataset_count(dataset);

	if (fill_samples(stream) > 0)
		mean = (double)stream->figures.bytes_read / (double)fill_samples(stream);
	return BASE_MAX(mean, 1.0);
}

static bool have_all_limits(struct domain *const *tenants, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!tenant_read_most(tenants[i]))
			return false;
	return true;
}

/* What a tenant may owe of a stream that he shares with others, or does not. */
static double most_owed(double rate, double charge, unsigned n, bool are_limited)
{
	if (n == 1)
		return INFINITY;
	return are_limited ? BASE_MAX(rate * OWED_MOST_S, charge) : rate * OWED_MOMENT_S;
}

/* Charges what was read since, and says what may be begun. *wait_ns: until the first of them may go on. */
static uint32_t look(struct stream *stream, uint64_t now_ns, uint64_t *wait_ns)
{
	struct domain *tenants[CAROUSEL_MAX_JOBS];
	const unsigned n = fill_tenants_of(stream, tenants);
	const bool are_limited = have_all_limits(tenants, n);
	const double charge =
	    (double)(stream->figures.bytes_read - stream->share.charged_bytes) / n;
	uint32_t room = are_limited ? 0 : FAIR_ALL;

	for (unsigned i = 0; i < n; i++) {
		const double rate = (double)tenant_read_most(tenants[i]);
		struct throttle *throttle = &tenants[i]->share.throttle;

		if (rate <= 0)
			continue;
		throttle_look(throttle, rate, now_ns);
		throttle_take(throttle, charge, most_owed(rate, charge, n, are_limited));
		*wait_ns = BASE_MIN(*wait_ns, throttle_wait_ns(throttle));
		room = BASE_MAX(room, throttle_room(throttle, fill_mean_bytes(stream) / n,
						    fill_under_way(stream->fill)));
	}
	return room;
}

uint32_t fill_read_room(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns)
{
	uint64_t wait_ns = UINT64_MAX;
	uint32_t room = FAIR_ALL;

	if (quota_is_set(&stream->node->param.quotas, QUOTA_read_bandwidth)) {
		room = look(stream, now_ns, &wait_ns);
		if (room != FAIR_ALL)
			*ret_until_ns = now_ns + BASE_MAX(wait_ns, LEAST_RETRY_NS);
	}
	stream->share.charged_bytes = stream->figures.bytes_read;
	stream->share.is_read_limited |= room == 0;
	stream->share.read_held += room == 0;
	return room;
}
