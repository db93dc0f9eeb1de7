/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/group_pay.h"

#include "daemon/ending.h"
#include "daemon/map_end.h"
#include "daemon/net/conn.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "sched/carousel.h"
#include "shmring/plan_log.h"

bool group_pay(const struct conn *conn, struct domain **ret)
{
	struct stream *stream = conn->stream;
	const uint64_t bytes = plan_log_bytes(carousel_log_bytes(stream->carousel));

	while (tenant_free_bytes(conn->domain) < bytes)
		if (!tenant_make_room(conn->domain))
			return false;
	stream_account(stream, conn->domain, (int64_t)bytes);
	*ret = domain_ref(conn->domain);
	return true;
}

void group_pay_back(struct stream *stream, struct domain *payer)
{
	const uint64_t bytes = plan_log_bytes(carousel_log_bytes(stream->carousel));

	stream_account(stream, payer, -(int64_t)bytes);
	domain_unref(payer);
}

static bool end_some(void *log)
{
	struct carousel_log *left = log;

	return carousel_log_free_some(&left, GROUP_END_STEP);
}

static void end_rest(void *log)
{
	carousel_log_free(log);
}

void group_end_log(struct endings *endings, struct carousel_log *log)
{
	if (log && end_some(log))
		ending_begin(endings, end_some, end_rest, log);
}

void group_end_plan_log(struct endings *endings, struct plan_log *plan_log)
{
	uint64_t bytes;
	void *map = plan_log_take_map(plan_log, &bytes);

	map_end(endings, map, bytes);
}
