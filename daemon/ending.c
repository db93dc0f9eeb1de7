/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ending.h"

#include "daemon/loop.h"

struct ending {
	LIST_ENTRY(ending) link;
	ending_some_fn some;
	ending_rest_fn rest;
	void *thing;
	struct loop_watch *timer;
};

static void ending_free(struct ending *ending)
{
	LIST_REMOVE(ending, link);
	loop_unwatch(&ending->timer);
	free(ending);
}

static void on_step(void *arg)
{
	struct ending *ending = arg;

	if (ending->some(ending->thing))
		loop_timer_set(ending->timer, 0);
	else
		ending_free(ending);
}

void ending_begin(struct endings *endings, ending_some_fn some, ending_rest_fn rest, void *thing)
{
	struct ending *ending = calloc(1, sizeof(*ending));

	if (!ending || loop_timer_new(endings->loop, on_step, ending, &ending->timer)) {
		free(ending);
		rest(thing);
		return;
	}
	ending->some = some;
	ending->rest = rest;
	ending->thing = thing;
	LIST_INSERT_HEAD(&endings->list, ending, link);
	loop_timer_set(ending->timer, 0);
}

void endings_fini(struct endings *endings)
{
	struct ending *ending;

	while ((ending = LIST_FIRST(&endings->list))) {
		ending->rest(ending->thing);
		ending_free(ending);
	}
}
