/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/clock.h"

#include <stdlib.h>

#include "base/base.h"

static bool is_before(const struct clock_event *a, const struct clock_event *b)
{
	return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->serial < b->serial;
}

void clock_at(struct clock *clock, uint64_t when_ns, clock_fn *fn, void *arg, uint64_t a,
	      uint64_t b)
{
	const struct clock_event event = {
	    BASE_MAX(when_ns, clock->now_ns), ++clock->serial, fn, arg, a, b};
	unsigned i = clock->n++;

	if (clock->n > clock->room) {
		clock->room = 2 * clock->room + 64;
		clock->heap = realloc(clock->heap, clock->room * sizeof(*clock->heap));
		if (!clock->heap)
			abort();
	}
	for (; i > 0 && is_before(&event, &clock->heap[(i - 1) / 2]); i = (i - 1) / 2)
		clock->heap[i] = clock->heap[(i - 1) / 2];
	clock->heap[i] = event;
}

static struct clock_event take(struct clock *clock)
{
	const struct clock_event first = clock->heap[0], last = clock->heap[--clock->n];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child + 1 < clock->n && is_before(&clock->heap[child + 1], &clock->heap[child]))
			child++;
		if (child >= clock->n || !is_before(&clock->heap[child], &last))
			break;
		clock->heap[i] = clock->heap[child];
		i = child;
	}
	clock->heap[i] = last;
	return first;
}

bool clock_go(struct clock *clock, uint64_t until_ns)
{
	struct clock_event event;

	if (!clock->n || clock->heap[0].when_ns > until_ns) {
		clock->now_ns = BASE_MAX(clock->now_ns, until_ns);
		return false;
	}
	event = take(clock);
	clock->now_ns = BASE_MAX(clock->now_ns, event.when_ns);
	event.fn(event.arg, event.a, event.b);
	return true;
}

void clock_end(struct clock *clock)
{
	free(clock->heap);
	*clock = (struct clock){0};
}
