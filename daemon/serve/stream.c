/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/stream.h"

#include "daemon/node.h"
#include "daemon/tenant/domain.h"

struct stream *stream_of_queue(struct domain *domain, uint32_t queue)
{
	BASE_EACH(stream, &domain->streams, link)
		if (stream->shared.queue.number == queue && !stream->shared.is_leaving)
			return stream;
	return NULL;
}

void stream_account(struct stream *stream, struct domain *payer, int64_t bytes)
{
	stream->bytes.all += (uint64_t)bytes;
	domain_account(payer, bytes);
}

void stream_turn_soon(struct stream *stream)
{
	if (stream->state == STREAM_RUNS)
		loop_timer_set(stream->pump_timer, 0);
}
