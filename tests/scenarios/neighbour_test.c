/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two honest users beside a hostile one (neighbour.h): whatever he does, each of their samples comes as often as it
 * must, with the right pixels, accessd is the same process as before, their readers and workers were never
 * replaced, and what he makes the node keep is his share. Case 54 of the README's table; how fast they are beside
 * him: bench/neighbour.
 */

#include "tests/scenarios/neighbour.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/scenarios/folk.h"
#include "tests/scenarios/honest.h"

#define ATTACKS 1500
#define EPOCHS 30 /* of a run */
#define STEP_MS 4
#define CACHE_MIB 256
#define TENANT_CACHE_MIB 64
#define OTHER_DISK_MIB 64 /* indexes, plan logs */
#define MEMORY_MIB 768
#define TENANT_MEMORY_MIB 192
/* Of accessd's own, more than before. A sanitizer keeps what was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ANON_MIB 2048
#else
#define ANON_MIB 96
#endif

/* ---- what he makes the node keep ---- */

struct seen { /* the most that was seen */
	double memory, anon_kib, disk, status_ms;
	unsigned fds;
};

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

static void look(const struct neighbour *neighbour, struct seen *seen)
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

/* ---- beside him ---- */

#define STRING_OF(number) #number
#define MIB(number) STRING_OF(number) "M"

static void start_accessd(void)
{
	town_start("workers=1", "linger_s=0", "tenant_idle_s=1", "tenants=16", "max_clients=256",
		   "memory=" MIB(MEMORY_MIB), "tenant_memory=" MIB(TENANT_MEMORY_MIB),
		   "cache_size=" MIB(CACHE_MIB), "tenant_cache=" MIB(TENANT_CACHE_MIB),
		   "cache_force=1", NULL);
	folk_must_train(&town_anna, folk_secret("anna", &town_anna), 1);
	ck_assert(rig_wait_status("streams", 0, 0));
	ck_assert(rig_wait_status("tenants", 0, 0)); /* what there is before */
}

/* He is gone, and so is what was his. */
static void must_settle(const struct seen *before)
{
	ck_assert(rig_wait_status("jobs", 0, 0));
	ck_assert(rig_wait_status("streams", 0, 0));
	ck_assert(rig_wait_status("tenants", 0, 1)); /* the public one stays */
	ck_assert(rig_wait_status("node.memory_used", before->memory, before->memory));
	ck_assert_uint_le(rig_settled_fds(before->fds), before->fds);
}

START_TEST(he_harms_nobody)
{
	struct seen seen = {.memory = 0}, before;
	struct neighbour neighbour;
	struct honest anna, carl;

	start_accessd();
	before = (struct seen){.anon_kib = anon_kib(), .fds = rig_settled_fds(0)};
	neighbour_init(&neighbour, ATTACKS);
	honest_start(&anna, &town_anna, folk_secret("anna", &town_anna), FOLK_PICTURES, EPOCHS,
		     OA_ORDER_CAROUSEL, STEP_MS);
	honest_start(&carl, &town_carl, folk_secret("carl", &town_carl), FOLK_PICTURES, EPOCHS,
		     OA_ORDER_SEEDED, STEP_MS);
	neighbour_start(&neighbour);
	while (!town_has_ended(neighbour.pid)) {
		look(&neighbour, &seen);
		rig_sleep_ms(50);
	}
	neighbour_wait(&neighbour);
	neighbour_tell(&neighbour);
	honest_end(&anna);
	honest_end(&carl);
	printf("at most: his memory %.0f MiB, accessd's own %.1f MiB (%.1f before), disk %.1f MiB, "
	       "descriptors %u (%u before), "
	       "a status took %.0f ms\n",
	       seen.memory / 1048576, seen.anon_kib / 1024, before.anon_kib / 1024,
	       seen.disk / 1048576, seen.fds, before.fds, seen.status_ms);
	fflush(stdout);
	ck_assert(seen.memory <= TENANT_MEMORY_MIB * 1048576.0);
	ck_assert(seen.anon_kib <= before.anon_kib + ANON_MIB * 1024);
	ck_assert(seen.disk <= (TENANT_CACHE_MIB * 3 + OTHER_DISK_MIB) * 1048576.0);
	folk_must_train(&town_carl, folk_secret("carl", &town_carl), 1);
	must_settle(&before);
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, he_harms_nobody);
}

int main(void)
{
	return folk_main("neighbour", add);
}
