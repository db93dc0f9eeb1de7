/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of a disk.
 *
 * What waits for a processor can be seen; what waits for a disk looks like what comes from memory until it is slow. So one is bound
 * by the disk when more of its samples wait to be read than are read and wait for a processor, or were so a moment ago, for samples come
 * in bursts. Who is not, reads what lies in memory, or less than the disk has, and is held back for nobody; what it reads meanwhile
 * is no debt beyond a window. Who is held back has nothing under way to look at in the end, and stays what it was.
 *
 * Who wants something of the disk now is bound by it and has a sample that is not read, or had one until just now; one whose trainer is
 * slow has none for long, and one whose reads hang gets none; neither holds anybody back.
 */
#include "sched/fair_read.h"

#define MOMENT_NS UINT64_C(100000000)
#define PAUSE_NS UINT64_C(10000000) /* until it is fed again */
#define STILL_NS UINT64_C(2000000000)
#define LEAST_RATE 1e-3 /* bytes a ns: 1 MB/s */
#define LEAST_DEPTH 16  /* samples: enough for a disk to be busy until this is asked again */

void fair_read_look(struct fair_read *one, uint32_t unread, uint32_t ready, uint64_t now_ns)
{
	if (unread > 0)
		one->wants_ns = now_ns;
	if (unread > ready)
		one->bound_ns = now_ns;
}

bool fair_read_is_bound(const struct fair_read *one, uint64_t now_ns)
{
	return one->bound_ns > 0 && now_ns - one->bound_ns < MOMENT_NS;
}

bool fair_read_wants(const struct fair_read *one, uint64_t now_ns)
{
	return fair_read_is_bound(one, now_ns) && now_ns - one->wants_ns < PAUSE_NS &&
	       now_ns - one->moved_ns < STILL_NS;
}

void fair_read_add(struct fair_node *disk, const struct fair_read *one)
{
	disk->rate = (disk->rate > LEAST_RATE ? disk->rate : LEAST_RATE) + one->rate;
	disk->weight += one->fair.weight;
}

/* What was begun is not taken back: beside others it is some windows' worth. */
static uint32_t depth_left(const struct fair_read *one, const struct fair_node *disk,
			   uint32_t under_way)
{
	const uint32_t depth = fair_depth(&one->fair, disk);
	const uint32_t most = depth > LEAST_DEPTH ? depth : LEAST_DEPTH;

	return most > under_way ? most - under_way : 0;
}

uint32_t fair_read_room(struct fair_read *one, const struct fair_node *disk, double least,
			uint32_t under_way, uint64_t now_ns)
{
	uint32_t room, left;

	if (least < 0)
		return FAIR_ALL;
	if (!fair_read_is_bound(one, now_ns)) {
		fair_forgive(&one->fair, disk, least);
		return FAIR_ALL;
	}
	room = fair_room(&one->fair, disk, least);
	if (room == 0)
		one->bound_ns = now_ns;
	left = depth_left(one, disk, under_way);
	return room < left ? room : left;
}

void fair_read_settle(struct fair_read *one, uint64_t samples, uint64_t under_way, double bytes,
		      uint64_t now_ns)
{
	if (samples > 0 || under_way == 0)
		one->moved_ns = now_ns;
	fair_settle(&one->fair, samples, under_way, bytes);
	one->fresh += bytes;
}

void fair_read_tick(struct fair_read *one, double passed_ns)
{
	if (passed_ns > 0)
		one->rate = (one->rate + one->fresh / passed_ns) / 2;
	one->fresh = 0;
}
