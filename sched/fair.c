/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair queueing by weight, at the place where work is begun.
 *
 * Each has a count of what it was given, over its weight. Who is more than a window ahead of
 * somebody whose work waits for a processor begins nothing more, until the other has come up. So between any two who
 * always have work the counts differ by a window at most, however many they are and however much they ask for:
 * a share is kept to within window / time. Who has no work that waits holds nobody back, and is not paid for
 * that later (start-time fair queueing): the processors are never idle for the sake of somebody who does not
 * want them.
 *
 * Samples are charged when they are begun, by the mean of what they took so far. What was charged so is kept
 * beside (ahead), and given back in the parts in which they end, when the kernel's clocks have said what it was.
 *
 * What was begun is not taken back, so beside others nobody has more under way than some windows are worth
 * (fair_depth()), which is more than processors need to be busy. Who comes while one alone was ahead waits
 * for no more than what that one began.
 *
 * Rejected: a weight for the kernel (nice, cpu.weight). Nice cannot be lowered again without a capability,
 * and cgroups are there only where they are delegated; neither tells the streams of one pool of workers apart.
 */
#include "sched/fair.h"

#define WINDOW_NS 100e6 /* of all that there is in that time */
#define GUESS 5e6       /* of a sample, before one is finished: ns */
#define LEAST_COST 1
#define DEPTH_WINDOWS 3
#define BLOCKS 2 /* samples that one may be behind beside the window: it moves by whole ones */

double fair_window(const struct fair_node *node)
{
	return node->weight > 0 ? WINDOW_NS * node->rate / node->weight : 0;
}

/* What a sample costs, or is taken to cost. */
static double fair_cost(const struct fair *one)
{
	return one->cost > 0 ? one->cost : GUESS;
}

double fair_reached(const struct fair *one, uint64_t under_way)
{
	const double cost = (double)under_way * fair_cost(one);
	const double left = (cost < one->ahead ? cost : one->ahead) / one->weight;

	return one->done > left ? one->done - left : 0;
}

void fair_enter(struct fair *one, double least)
{
	if (one->done < least)
		one->done = least;
}

/* Where one who wants nothing is at least; its samples are whole ones, so the window is not all. */
static double until_of(const struct fair *other, const struct fair *one,
		       const struct fair_node *node)
{
	return one->done - fair_window(node) - BLOCKS * fair_cost(other) / other->weight;
}

void fair_look(const struct fair *other, double *least)
{
	if (*least < 0 || other->done < *least)
		*least = other->done;
}

void fair_pass(struct fair *other, const struct fair *one, const struct fair_node *node,
	       double least)
{
	const double until = until_of(other, one, node);
	const double to = least >= 0 && least < until ? least : until;

	if (other->done < to)
		other->done = to;
}

uint32_t fair_room(const struct fair *one, const struct fair_node *node, double least)
{
	const double left = least + fair_window(node) - one->done;
	double samples;

	if (least < 0)
		return FAIR_ALL;
	if (left <= 0)
		return 0;
	samples = left * one->weight / fair_cost(one) + 1;
	return samples < FAIR_ALL ? (uint32_t)samples : FAIR_ALL;
}

void fair_forgive(struct fair *one, const struct fair_node *node, double least)
{
	if (least >= 0 && one->done > least + fair_window(node))
		one->done = least + fair_window(node);
}

uint32_t fair_depth(const struct fair *one, const struct fair_node *node)
{
	const double samples = DEPTH_WINDOWS * fair_window(node) * one->weight / fair_cost(one);

	return samples < FAIR_ALL ? (uint32_t)samples : FAIR_ALL;
}

void fair_charge(struct fair *one, uint32_t samples)
{
	const double ahead = (double)samples * fair_cost(one);

	one->ahead += ahead;
	one->done += ahead / one->weight;
}

void fair_settle(struct fair *one, uint64_t samples, uint64_t under_way, double amount)
{
	const double begun = (double)samples + (double)under_way;
	const double part = begun > 0 ? one->ahead * (double)samples / begun : 0;
	double cost;

	one->ahead -= part;
	one->done += (amount - part) / one->weight;
	if (one->done < 0)
		one->done = 0;
	one->open += amount;
	if (samples == 0)
		return;
	cost = one->open / (double)samples;
	cost = one->cost > 0 ? (3 * one->cost + cost) / 4 : cost;
	one->cost = cost > LEAST_COST ? cost : LEAST_COST;
	one->open = 0;
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
