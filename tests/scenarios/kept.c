/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/scenarios/kept.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static uint64_t disk_bytes;

static int count_blocks(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)type;
	(void)ftw;
	disk_bytes += (uint64_t)st->st_blocks * 512;
	return 0;
}

static double disk_used(void)
{
	disk_bytes = 0;
	nftw(rig_path("cache"), count_blocks, 16, FTW_PHYS); /* files may go while it looks */
	return (double)disk_bytes;
}

/* Memory of accessd's own: neither files nor what it shares. */
static double anon_kib(void)
{
	char path[64], line[128];
	double kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)rig_host.pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %lf", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* All of his lines say the sum of all that he has. */
static double memory_of(const struct json_in *status, uid_t uid)
{
	double memory = 0;
	char path[64];

	for (unsigned i = 0; rig_number_at(status, "tenants") > i; i++) {
		snprintf(path, sizeof(path), "tenants.%u.uid", i);
		if (rig_number_at(status, path) != uid)
			continue;
		snprintf(path, sizeof(path), "tenants.%u.memory", i);
		memory = BASE_MAX(memory, rig_number_at(status, path));
	}
	return memory;
}

void kept_look(const struct neighbour *neighbour, struct kept *seen)
{
	const unsigned long long at = atomic_load(&neighbour->toll->next);
	const uint64_t begin_ns = base_now_ns();
	struct json_in *status = rig_whole_status();
	double ms;

	while (!status && base_now_ns() - begin_ns < PATIENCE_NS && host_is_alive(&rig_host))
		status = rig_whole_status();
	ms = (double)(base_now_ns() - begin_ns) / 1e6;
	ck_assert_msg(status != NULL, "no status at attack %llu of NEIGHBOUR_SEED=%llu, see %s", at,
		      (unsigned long long)neighbour->seed, rig_path("accessd.log"));
	ck_assert_msg(rig_number_at(status, "pid") == rig_host.pid,
		      "another accessd at attack %llu", at);
	seen->memory = BASE_MAX(seen->memory, memory_of(status, neighbour->user.uid));
	seen->status_ms = BASE_MAX(seen->status_ms, ms);
	json_in_free(status);
	seen->anon_kib = BASE_MAX(seen->anon_kib, anon_kib());
	seen->disk = BASE_MAX(seen->disk, disk_used());
	seen->fds = BASE_MAX(seen->fds, rig_count_fds(rig_host.pid));
}

struct kept kept_now(void)
{
	return (struct kept){.anon_kib = anon_kib(), .fds = rig_settled_fds(0)};
}
