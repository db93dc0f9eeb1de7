/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node.h"

#define TICK_NS UINT64_C(250000000)
#define TRIM_NS UINT64_C(2000000000)

void node_is_idle(struct node *node)
{
	if (node->place.is_private && node->param.idle_exit_s && !node->draining)
		loop_timer_set(node->timers[NODE_IDLE],
			       node->param.idle_exit_s * UINT64_C(1000000000));
}

void node_need_tick(struct node *node)
{
	if (!loop_timer_is_set(node->timers[NODE_TICK]))
		loop_timer_set(node->timers[NODE_TICK], TICK_NS);
}

void node_has_room(struct node *node)
{
	loop_timer_set(node->timers[NODE_TRIM], TRIM_NS);
}
