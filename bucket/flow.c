/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/flow.h"

#define SECOND_NS UINT64_C(1000000000)
#define FLOW_FIRST 8
#define FLOW_ROUNDS 64
#define FLOW_KNOWN 16 /* answers, before which nothing is known */
#define FLOW_SAVED (8 * FLOW_HASTE)
#define FLOW_HASTE_NS UINT64_C(100000000)

void flow_init(struct flow *flow, uint64_t now_ns)
{
	*flow = (struct flow){.limit = FLOW_FIRST,
			      .is_starting = true,
			      .born_ns = now_ns,
			      .least_ns = UINT64_MAX,
			      .least_before_ns = UINT64_MAX};
}

/* Of the last n, or as many as there were. */
static uint64_t quantile(const struct flow *flow, unsigned n, unsigned percent)
{
	uint64_t sorted[FLOW_KEPT];

	n = BASE_MIN(BASE_MIN(n, flow->kept), (unsigned)FLOW_KEPT);
	if (n == 0)
		return 0;
	for (unsigned i = 0; i < n; i++)
		sorted[i] = flow->last[(flow->kept - 1 - i) % FLOW_KEPT];
	qsort(sorted, n, sizeof(*sorted), base_compare_u64);
	return sorted[(n - 1) * percent / 100];
}

static void round_ends(struct flow *flow)
{
	const uint64_t median_ns = quantile(flow, flow->answers, 50);
	uint64_t least_ns;

	flow->answers = 0;
	if (++flow->rounds == FLOW_ROUNDS) {
		flow->rounds = 0;
		flow->least_before_ns = flow->least_ns;
		flow->least_ns = median_ns;
	}
	flow->least_ns = BASE_MIN(flow->least_ns, median_ns);
	least_ns = BASE_MIN(flow->least_ns, flow->least_before_ns);
	if (median_ns > least_ns + least_ns / 2)
		flow->is_starting = false;
	else
		flow->limit = BASE_MIN(flow->is_starting ? 2 * flow->limit : flow->limit + 1,
				       (unsigned)FLOW_MOST);
}

void flow_good(struct flow *flow, uint64_t latency_ns, bool is_full)
{
	flow->last[flow->kept++ % FLOW_KEPT] = latency_ns;
	if (flow->kept == 2 * FLOW_KEPT)
		flow->kept = FLOW_KEPT; /* it does not overflow */
	flow->saved = BASE_MIN(flow->saved + 1, (unsigned)FLOW_SAVED);
	if (is_full && ++flow->answers >= flow->limit)
		round_ends(flow);
}

void flow_bad(struct flow *flow, uint64_t now_ns)
{
	if (flow->cut_ns && now_ns - flow->cut_ns < quantile(flow, FLOW_KEPT, 50))
		return;
	flow->cut_ns = now_ns;
	flow->is_starting = false;
	flow->answers = 0;
	flow->limit = BASE_MAX(flow->limit * 7 / 10, (unsigned)FLOW_LEAST);
}

uint64_t flow_patience_ns(const struct flow *flow, uint64_t now_ns)
{
	if (flow->kept < FLOW_KNOWN || now_ns - flow->born_ns < SECOND_NS)
		return 5 * SECOND_NS;
	return BASE_MAX(SECOND_NS, 4 * quantile(flow, FLOW_KEPT, 99));
}

uint64_t flow_haste_ns(const struct flow *flow)
{
	return BASE_MAX(FLOW_HASTE_NS, 3 * quantile(flow, FLOW_KEPT, 90));
}

bool flow_hasten(struct flow *flow)
{
	if (flow->saved < FLOW_HASTE)
		return false;
	flow->saved -= FLOW_HASTE;
	return true;
}
