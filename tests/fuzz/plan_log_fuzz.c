/* SPDX-License-Identifier: Apache-2.0 */

/* A plan log that a client made up: whatever is read lies within it, and reading ends. What it says of the versions that it goes on
 * with it says of each up to one place, and so does a log that goes on with it. */

#include "base/base.h"
#include "shmring/plan_log.h"
#include "tests/fuzz/forge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t lent; /* so that the reads are not left out */

static void read_all(struct plan_log *plan_log)
{
	uint64_t offset = plan_log_first(plan_log), before;
	struct entry entry;
	int r;

	do {
		before = offset;
		r = plan_log_read(plan_log, &offset, &entry);
		if (r == 0 && offset <= before)
			abort();
		for (uint32_t i = 0; r == 0 && i < entry.count; i++)
			lent += entry.n_blocks ? entry.blocks[i % entry.n_blocks]
					       : (uint64_t)entry.ids[i];
	} while (r == 0);
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, PLAN_LOG_ID) == 0;
}

/* Has the log so much of the version, and no more? */
static void check_end(const struct plan_log *plan_log, const struct plan_log_before *before)
{
	const uint64_t epoch = before->epoch, place = before->place;

	if (!plan_log_has(plan_log, before->id, epoch, place) ||
	    !plan_log_has(plan_log, before->id, epoch, 0) ||
	    (epoch && !plan_log_has(plan_log, before->id, epoch - 1, UINT64_MAX)))
		abort();
	if ((place < UINT64_MAX && plan_log_has(plan_log, before->id, epoch, place + 1)) ||
	    (epoch < UINT64_MAX && plan_log_has(plan_log, before->id, epoch + 1, 0)))
		abort();
}

/* Is it the first one of its id, and another one than the log? */
static bool is_version(const struct plan_log *plan_log, const struct plan_log_before *all,
		       unsigned i)
{
	static const uint8_t none[PLAN_LOG_ID];

	for (unsigned k = 0; k < i; k++)
		if (is_same(all[k].id, all[i].id))
			return false;
	return !is_same(all[i].id, none) && !is_same(all[i].id, plan_log->id);
}

static void check_versions(const struct plan_log *plan_log)
{
	const struct plan_log_before *all = plan_log->map->before;

	if (!plan_log_has(plan_log, plan_log->id, UINT64_MAX, UINT64_MAX))
		abort();
	for (unsigned i = 0; i < PLAN_LOG_BEFORE; i++)
		if (is_version(plan_log, all, i))
			check_end(plan_log, &all[i]);
}

/* A log of that id goes on with it: as another version it names it, too, and the oldest one gives way. */
static void go_on(const struct plan_log *from, const uint8_t id[PLAN_LOG_ID])
{
	const struct plan_log_before end = from->map->before[0], *all = from->map->before;
	const bool is_other = !is_same(id, from->id);
	struct plan_log_before its = {.epoch = end.place, .place = end.epoch};
	struct plan_log plan_log;
	int fd;

	memcpy(its.id, from->id, sizeof(its.id));
	if (plan_log_new(1, from->n_samples, id, &plan_log, &fd))
		abort();
	plan_log_go_on(&plan_log, from, its.epoch, its.place);
	check_versions(&plan_log);
	if (is_other)
		check_end(&plan_log, &its);
	if (memcmp(plan_log.map->before + is_other, all,
		   (PLAN_LOG_BEFORE - is_other) * sizeof(*all)) != 0)
		abort();
	plan_log_detach(&plan_log);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t other[PLAN_LOG_ID] = "another version";
	int fd = forge_plan_log(data, size, 0);
	struct plan_log plan_log;

	if (plan_log_attach(fd, UINT64_MAX, &plan_log))
		abort();
	read_all(&plan_log);
	check_versions(&plan_log);
	go_on(&plan_log, plan_log.id);
	go_on(&plan_log, other);
	plan_log_detach(&plan_log);
	close(fd);
	return 0;
}
