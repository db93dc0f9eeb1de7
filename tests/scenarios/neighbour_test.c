/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two honest users beside a hostile one (neighbour.h): whatever he does, each of their samples comes as often as it
 * must, with the right pixels, accessd is the same process as before, their readers and workers were never
 * replaced, and what he makes the node keep is his share. Case 76 of the README's table; how fast they are beside
 * him: bench/neighbour.
 */

#include "tests/scenarios/neighbour.h"

#include <stdio.h>

#include "tests/scenarios/folk.h"
#include "tests/scenarios/honest.h"
#include "tests/scenarios/kept.h"

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

/* ---- beside him ---- */

#define STRING_OF(number) #number
#define MIB(number) STRING_OF(number) "M"

static void start_accessd(void)
{
	neighbour_names();
	town_start("workers=1", "linger_s=0", "tenant_idle_s=1", "tenants=16", "max_clients=256",
		   "memory=" MIB(MEMORY_MIB), "tenant_memory=" MIB(TENANT_MEMORY_MIB),
		   "cache_size=" MIB(CACHE_MIB), "tenant_cache=" MIB(TENANT_CACHE_MIB),
		   "cache_force=1", NULL);
	folk_must_train(&town_anna, folk_secret("anna", &town_anna), 1);
	ck_assert(rig_wait_status("streams", 0, 0));
	ck_assert(rig_wait_status("tenants", 0, 0)); /* what there is before */
}

/* He is gone, and so is what was his. */
static void must_settle(const struct kept *before)
{
	ck_assert(rig_wait_status("jobs", 0, 0));
	ck_assert(rig_wait_status("streams", 0, 0));
	ck_assert(rig_wait_status("tenants", 0, 1)); /* the public one stays */
	ck_assert(rig_wait_status("node.memory_used", before->memory, before->memory));
	ck_assert_uint_le(rig_settled_fds(before->fds), before->fds);
}

START_TEST(he_harms_nobody)
{
	struct kept seen = {.memory = 0}, before;
	struct neighbour neighbour;
	struct honest anna, carl;

	start_accessd();
	before = kept_now();
	neighbour_init(&neighbour, ATTACKS);
	honest_start(&anna, &town_anna, folk_secret("anna", &town_anna), FOLK_PICTURES, EPOCHS,
		     OA_ORDER_CAROUSEL, STEP_MS);
	honest_start(&carl, &town_carl, folk_secret("carl", &town_carl), FOLK_PICTURES, EPOCHS,
		     OA_ORDER_SEEDED, STEP_MS);
	neighbour_start(&neighbour);
	while (!town_has_ended(neighbour.pid)) {
		kept_look(&neighbour, &seen);
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
