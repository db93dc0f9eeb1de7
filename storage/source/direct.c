/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a read past the page cache begins and ends, and whether it pays.
 *
 * It pays where it takes less of a processor: then nothing is copied, and what others have in the page cache stays there. But
 * where the page cache has the bytes already, the disk would be read for nothing. How long a batch takes is not asked: that
 * depends on what other threads read meanwhile.
 */

#include "storage/source/direct.h"

#define CHOICE_TRIALS 6   /* batches of each way, before it is chosen */
#define CHOICE_AGAIN 64   /* of so many batches one is read in the other way, at first ... */
#define CHOICE_SELDOM 512 /* ... and when that has changed nothing a few times */
#define CHOICE_KEEPS 12   /* batches of which a mean is made: then older ones count half */
#define CHOICE_MORE 1.1   /* times as much is no reason yet to change the way */
#define CHOICE_SAY_NS UINT64_C(60000000000)
#define CHOICE_CACHED \
	2 /* of what is read through the page cache one part of so many is there already */

bool direct_span(uint64_t at, uint32_t bytes, uint32_t align, uint64_t before, uint64_t behind,
		 struct direct_span *ret)
{
	const uint64_t mask = (uint64_t)align - 1;
	struct direct_span span;
	uint64_t end;

	if (!align || (align & mask) || !bytes || at > (uint64_t)INT64_MAX - align - bytes)
		return false;
	end = base_align_up(at + bytes, align);
	span.at = at & ~mask;
	span.before = (uint32_t)(at & mask);
	if (end - span.at > INT32_MAX || span.before > before || end - at - bytes > behind)
		return false;
	span.bytes = (uint32_t)(end - span.at);
	*ret = span;
	return true;
}

bool direct_choice_next(struct direct_choice *choice)
{
	if (!choice->is_settled)
		return choice->turn++ % 2 == 0;
	if (++choice->turn < choice->every)
		return choice->is_direct;
	choice->turn = 0;
	return !choice->is_direct;
}

/* Is direct reading better, or not worse by so much as to be left? */
static bool is_better(const struct direct_choice *choice)
{
	const struct direct_cost *pages = &choice->cost[0], *direct = &choice->cost[1];
	const double may = !choice->is_settled ? 1
			   : choice->is_direct ? CHOICE_MORE
					       : 1 / CHOICE_MORE;

	return direct->cpu_ns * pages->kib < may * pages->cpu_ns * direct->kib &&
	       CHOICE_CACHED * may * pages->disk_kib > pages->kib;
}

void direct_choice_note(struct direct_choice *choice, bool is_direct, uint64_t bytes,
			uint64_t cpu_ns, uint64_t disk_bytes)
{
	struct direct_cost *cost = &choice->cost[is_direct];
	bool is_best;

	if (cost->batches == CHOICE_KEEPS) {
		cost->batches /= 2;
		cost->kib /= 2;
		cost->cpu_ns /= 2;
		cost->disk_kib /= 2;
	}
	cost->batches++;
	cost->kib += (double)bytes / 1024;
	cost->cpu_ns += (double)cpu_ns;
	cost->disk_kib += (double)disk_bytes / 1024;
	if (choice->cost[0].batches < CHOICE_TRIALS || choice->cost[1].batches < CHOICE_TRIALS)
		return;
	is_best = is_better(choice);
	if (!choice->is_settled || is_best != choice->is_direct)
		choice->every = CHOICE_AGAIN;
	else if (is_direct != is_best)
		choice->every = BASE_MIN(2 * choice->every, CHOICE_SELDOM);
	choice->is_direct = is_best;
	choice->is_settled = true;
}

bool direct_choice_says(struct direct_choice *choice, uint64_t now_ns)
{
	if (!choice->is_settled || (choice->is_said && (choice->said_direct == choice->is_direct ||
							now_ns - choice->said_ns < CHOICE_SAY_NS)))
		return false;
	choice->is_said = true;
	choice->said_direct = choice->is_direct;
	choice->said_ns = now_ns;
	return true;
}

double direct_choice_us(const struct direct_choice *choice, bool is_direct)
{
	const struct direct_cost *cost = &choice->cost[is_direct];

	return cost->kib > 0 ? cost->cpu_ns / 1000 / cost->kib * 1024 : 0;
}
