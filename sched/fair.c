/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair queueing by weight, at the place where work is begun.
 *
 * Each has a count of what it was given, in CPU time over its weight. Who is more than a window ahead of
 * somebody whose work waits for a processor begins nothing more, until the other has come up. So between any two who
 * always have work the counts differ by a window at most, however many they are and however much they ask for:
 * a share is kept to within window / time. Who has no work that waits holds nobody back, and is not paid for
 * that later (start-time fair queueing): the processors are never idle for the sake of somebody who does not
 * want them.
 *
 * Samples are charged when they are begun, by the mean of what they took so far. What was charged so is kept
 * beside (ahead_ns), and given back in the parts in which they end, when the kernel's clocks have said what it was.
 *
 * What was begun is not taken back, so beside others nobody has more under way than some windows are worth
 * (fair_depth()), which is more than processors need to be busy. Who comes while one alone was ahead waits
 * for no more than what that one began.
 *
 * Rejected: a weight for the kernel (nice, cpu.weight). Nice cannot be lowered again without a capability,
 * and cgroups are there only where they are delegated; neither tells the streams of one pool of workers apart.
 */
#include "sched/fair.h"

#define WINDOW_NS 100e6 /* of all processors' time */
#define GUESS_NS 5e6    /* of a sample, before one is finished */
#define DEPTH_WINDOWS 3
#define GRAINS 2 /* samples that one may be behind beside the window: it moves by whole ones */

double fair_window_ns(const struct fair_node *node)
{
	return node->weight > 0 ? WINDOW_NS * node->cpus / node->weight : 0;
}

double fair_cost_ns(const struct fair *one)
{
	return one->cost_ns > 0 ? one->cost_ns : GUESS_NS;
}

double fair_reached_ns(const struct fair *one, uint64_t under_way)
{
	const double cost_ns = (double)under_way * fair_cost_ns(one);
	const double left_ns = (cost_ns < one->ahead_ns ? cost_ns : one->ahead_ns) / one->weight;

	return one->done_ns > left_ns ? one->done_ns - left_ns : 0;
}

void fair_enter(struct fair *one, double least_ns)
{
	if (one->done_ns < least_ns)
		one->done_ns = least_ns;
}

/* Where one who wants nothing is at least; its samples are whole ones, so the window is not all. */
static double until_ns(const struct fair *other, const struct fair *one,
		       const struct fair_node *node)
{
	return one->done_ns - fair_window_ns(node) - GRAINS * fair_cost_ns(other) / other->weight;
}

void fair_look(const struct fair *other, double *least_ns)
{
	if (*least_ns < 0 || other->done_ns < *least_ns)
		*least_ns = other->done_ns;
}

void fair_pass(struct fair *other, const struct fair *one, const struct fair_node *node,
	       double least_ns)
{
	const double until = until_ns(other, one, node);
	const double to_ns = least_ns >= 0 && least_ns < until ? least_ns : until;

	if (other->done_ns < to_ns)
		other->done_ns = to_ns;
}

uint32_t fair_room(const struct fair *one, const struct fair_node *node, double least_ns)
{
	const double left_ns = least_ns + fair_window_ns(node) - one->done_ns;
	double samples;

	if (least_ns < 0)
		return FAIR_ALL;
	if (left_ns <= 0)
		return 0;
	samples = left_ns * one->weight / fair_cost_ns(one) + 1;
	return samples < FAIR_ALL ? (uint32_t)samples : FAIR_ALL;
}

uint32_t fair_depth(const struct fair *one, const struct fair_node *node)
{
	const double samples =
	    DEPTH_WINDOWS * fair_window_ns(node) * one->weight / fair_cost_ns(one);

	return samples < FAIR_ALL ? (uint32_t)samples : FAIR_ALL;
}

void fair_charge(struct fair *one, uint32_t samples)
{
	const double ahead_ns = (double)samples * fair_cost_ns(one);

	one->ahead_ns += ahead_ns;
	one->done_ns += ahead_ns / one->weight;
}

void fair_settle(struct fair *one, uint64_t samples, uint64_t under_way, double cpu_ns)
{
	const double begun = (double)samples + (double)under_way;
	const double part_ns = begun > 0 ? one->ahead_ns * (double)samples / begun : 0;
	double cost_ns;

	one->ahead_ns -= part_ns;
	one->done_ns += (cpu_ns - part_ns) / one->weight;
	if (one->done_ns < 0)
		one->done_ns = 0;
	one->open_ns += cpu_ns;
	if (samples == 0)
		return;
	cost_ns = one->open_ns / (double)samples;
	one->cost_ns = one->cost_ns > 0 ? (3 * one->cost_ns + cost_ns) / 4 : cost_ns;
	one->open_ns = 0;
}

void fair_account_add(struct fair_account *account, const struct fair_account *more)
{
	account->cpu_ns += more->cpu_ns;
	account->bytes += more->bytes;
	account->alone_cpu_ns += more->alone_cpu_ns;
	account->alone_bytes += more->alone_bytes;
}

double fair_saved(double alone, double had)
{
	return alone > had ? alone - had : 0;
}
