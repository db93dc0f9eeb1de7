/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of reading (tenant.USER.read_bandwidth), where work is begun: in fill_feed(). Each tenant who has one has a bucket
 * (sched/bucket.h). What was read for a stream is charged in equal parts to the tenants who have jobs in it, before it begins
 * more; what a sample will need is what samples of the stream needed so far, nothing of those that are kept in memory.
 *
 * A stream that several share goes on while one of them may: who has no limit is not held back by one who has. The
 * other owes no more for it than a moment.
 */
#include "daemon/serve/fill_parts.h"

#include "daemon/node.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"

#define LEAST_RETRY_NS UINT64_C(10000000)

/* Of its samples so far; before one is finished, of all of its files. */
static double mean_bytes(const struct stream *stream)
{
	const struct dataset *dataset = stream->source->dataset;
	double mean = (double)dataset_bytes(dataset) / (double)dataset_count(dataset);

	if (stream->samples_done > 0)
		mean = (double)stream->bytes_read / (double)stream->samples_done;
	return BASE_MAX(mean, 1.0);
}

/* *wait_ns: until the first of them may go on. */
static uint32_t room_of(struct domain *tenant, double size, uint32_t under_way, double charge,
			bool is_shared, uint64_t now_ns, uint64_t *wait_ns)
{
	const uint64_t rate = tenant_read_most(tenant);

	if (!rate)
		return FAIR_ALL;
	bucket_look(&tenant->bucket, (double)rate, now_ns);
	bucket_take(&tenant->bucket, charge, is_shared);
	*wait_ns = BASE_MIN(*wait_ns, bucket_wait_ns(&tenant->bucket));
	return bucket_room(&tenant->bucket, size, under_way);
}

/* Charges what was read since, and says what may be begun. */
static uint32_t look(struct stream *stream, uint64_t now_ns, uint64_t *wait_ns)
{
	struct domain *tenants[CAROUSEL_MAX_JOBS];
	const unsigned n = fill_tenants_of(stream, tenants);
	const double read = (double)(stream->bytes_read - stream->charged_bytes);
	uint32_t room = 0;

	for (unsigned i = 0; i < n; i++) {
		const uint32_t his =
		    room_of(tenants[i], mean_bytes(stream) / n, fill_under_way(stream), read / n,
			    n > 1, now_ns, wait_ns);

		room = BASE_MAX(room, his);
	}
	return room;
}

uint32_t fill_read_room(struct stream *stream, uint64_t *ret_until_ns)
{
	uint64_t wait_ns = UINT64_MAX, now_ns;
	uint32_t room = FAIR_ALL;

	if (quota_is_set(&stream->node->param.quotas, QUOTA_read_bandwidth)) {
		now_ns = base_now_ns();
		room = look(stream, now_ns, &wait_ns);
		if (room != FAIR_ALL)
			*ret_until_ns = now_ns + BASE_MAX(wait_ns, LEAST_RETRY_NS);
	}
	stream->charged_bytes = stream->bytes_read;
	stream->is_read_limited = room == 0;
	stream->read_held += room == 0;
	return room;
}
