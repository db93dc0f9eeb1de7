/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures are the kernel's pressure stall information (PSI): averages over ten seconds, that decay for half a
 * minute after the pressure has ended, and a call when stalls come thick. So a rise is looked at
 * again only after what was given back had time to show, and calm needs an average near nothing.
 *
 * Rejected: free memory as a sign. A node that trains has its memory full of page cache, and is well.
 */
#include "daemon/machine/pressure.h"

#define HARD_SOME 10.0
#define HARD_FULL 5.0 /* then all are waiting: the second step at once */
#define CALM_SOME 1.0
#define SECOND_NS UINT64_C(1000000000)
#define RISE_NS (2 * SECOND_NS)
#define LEAST_PATIENCE_NS (10 * SECOND_NS)
#define MOST_PATIENCE_NS (160 * SECOND_NS)
#define FORGET_TIMES 6 /* patiences without pressure, and it is the least again */

static bool is_hard(const struct pressure_look *look)
{
	return look->is_triggered || look->some >= HARD_SOME || look->full >= HARD_FULL;
}

static bool is_calm(const struct pressure_look *look)
{
	return !look->is_triggered && look->some < CALM_SOME;
}

/* It came back: was what has been taken again since too much? */
static void note_return(struct pressure *pressure, uint64_t now_ns)
{
	const bool is_soon = pressure->level != PRESSURE_NONE ||
			     (pressure->patience_ns &&
			      now_ns - pressure->relaxed_ns < FORGET_TIMES * pressure->patience_ns);

	if (!is_soon || !pressure->patience_ns)
		pressure->patience_ns = LEAST_PATIENCE_NS;
	else if (pressure->patience_ns < MOST_PATIENCE_NS)
		pressure->patience_ns *= 2;
}

static struct pressure_act rise(struct pressure *pressure, const struct pressure_look *look)
{
	struct pressure_act act = {.caches = false};
	const bool is_time = look->now_ns - pressure->risen_ns >= RISE_NS;

	pressure->calm_ns = 0;
	if (pressure->withheld < PRESSURE_EIGHTHS) {
		note_return(pressure, look->now_ns);
		pressure->level = look->full >= HARD_FULL ? PRESSURE_SLOTS : PRESSURE_CACHES;
		pressure->withheld = PRESSURE_EIGHTHS;
		act.caches = act.is_moved = true;
		act.slots = pressure->level == PRESSURE_SLOTS;
	} else if (look->full >= HARD_FULL || is_time) {
		act.slots = pressure->level != PRESSURE_SLOTS || is_time;
		act.is_moved = pressure->level != PRESSURE_SLOTS;
		pressure->level = PRESSURE_SLOTS;
	}
	if (act.caches || act.slots)
		pressure->risen_ns = look->now_ns;
	return act;
}

static struct pressure_act fall(struct pressure *pressure, uint64_t now_ns)
{
	if (!pressure->calm_ns)
		pressure->calm_ns = now_ns;
	if (now_ns - pressure->calm_ns < pressure->patience_ns)
		return (struct pressure_act){.is_moved = false};
	pressure->calm_ns = now_ns;
	if (pressure->level == PRESSURE_SLOTS) {
		pressure->level = PRESSURE_CACHES;
	} else if (--pressure->withheld == 0) {
		pressure->level = PRESSURE_NONE;
		pressure->relaxed_ns = now_ns;
		pressure->calm_ns = 0;
	}
	return (struct pressure_act){.is_moved = true};
}

struct pressure_act pressure_step(struct pressure *pressure, const struct pressure_look *look)
{
	if (is_hard(look))
		return rise(pressure, look);
	if (pressure->level != PRESSURE_NONE && is_calm(look))
		return fall(pressure, look->now_ns);
	pressure->calm_ns = 0;
	return (struct pressure_act){.is_moved = false};
}
