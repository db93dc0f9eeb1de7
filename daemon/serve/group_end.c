/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a dataset of 10^8 samples has a hundred megabytes, and no other process can free our memory. So it is done
 * in steps, one a turn of the loop; what a step frees of a short log goes at once.
 */
#include "daemon/serve/group_end.h"

#include <stdlib.h>

#include "daemon/loop.h"
#include "daemon/node.h"
#include "sched/carousel.h"

struct group_ending {
	LIST_ENTRY(group_ending) link;
	struct carousel_log *log;
	struct loop_watch *timer;
};

static void ending_free(struct group_ending *ending)
{
	LIST_REMOVE(ending, link);
	loop_unwatch(&ending->timer);
	carousel_log_free(ending->log);
	free(ending);
}

static void on_step(void *arg)
{
	struct group_ending *ending = arg;

	if (carousel_log_free_some(&ending->log, GROUP_END_STEP))
		loop_timer_set(ending->timer, 0);
	else
		ending_free(ending);
}

/* false: there is no memory for it. */
static bool begin(struct node *node, struct carousel_log *log)
{
	struct group_ending *ending = calloc(1, sizeof(*ending));

	if (!ending || loop_timer_new(node->loop, on_step, ending, &ending->timer)) {
		free(ending);
		return false;
	}
	ending->log = log;
	LIST_INSERT_HEAD(&node->group_endings, ending, link);
	loop_timer_set(ending->timer, 0);
	return true;
}

void group_end(struct node *node, struct carousel_log *log)
{
	if (log && carousel_log_free_some(&log, GROUP_END_STEP) && !begin(node, log))
		carousel_log_free(log);
}

void group_end_fini(struct node *node)
{
	while (!LIST_EMPTY(&node->group_endings))
		ending_free(LIST_FIRST(&node->group_endings));
}
