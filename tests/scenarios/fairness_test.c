/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shares and quotas of tenants, with real uids, against a system accessd that has more to do than it can: who floods takes
 * nobody's share, apart and in the pool of public data, and what one user may have is said where it is refused. Compared
 * are counters of the same two looks, never times. Case 51 of the README's table.
 */

#include "tests/scenarios/folk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PICTURES 64
#define SIDE 640       /* some milliseconds each */
#define SMALL 96       /* some kilobytes: what is begun before the first look is soon read */
#define FLOOD 5        /* streams */
#define PACE (1 << 20) /* bytes a second of a slow disk: processors have little to do beside it */
#define WARM_S 0.25
#define LOOK_S 2.5 /* of CPU time, of both: a window of fairness is 0.1 s of all processors */
#define SLOW_S 1.5 /* the same where her part is far from the bound */
#define LOOKS 16   /* more, of half as much each, until her part has come */

/* ---- who works ---- */

/* Trains on a stream of its own (n: the side of its pictures) until it is told to end, as fast as it can. With an op at random, so that
 * each epoch is made anew. */
static int greedy(void *arg)
{
	struct town_errand *errand = arg;
	struct oa_options options = trainee_options(errand->dataset, 8, 100000);
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;
	struct oa_stream *stream = NULL;
	struct oa_batch *batch;
	char spec[256];

	snprintf(spec, sizeof(spec),
		 "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[%u,%u]},"
		 "{\"op\":\"hflip\"},{\"op\":\"layout\",\"order\":\"CHW\"}]}",
		 errand->n, errand->n);
	options.pipeline = spec;
	options.job = errand->job;
	errand->code = oa_connect(rig_host.socket, &client, &error);
	if (!errand->code)
		errand->code = oa_open(client, &options, &stream, &error);
	snprintf(errand->text, sizeof(errand->text), "%s", error.text);
	errand->holds = true;
	while (!errand->code && !errand->goes) {
		errand->code = oa_next(stream, PATIENCE_MS, &batch);
		if (!errand->code)
			oa_release(batch);
		errand->batches += !errand->code;
	}
	oa_close(stream);
	oa_disconnect(client);
	return 0;
}

struct worker {
	struct town_errand *errand;
	pid_t pid;
};

static struct worker start(const struct town_user *user, const char *dataset, unsigned side)
{
	struct worker worker = {.errand = town_errand_new(dataset, side, 1)};

	snprintf(worker.errand->job, sizeof(worker.errand->job), "greedy-%u", side);
	worker.pid = town_send(user, greedy, worker.errand);
	ck_assert(town_wait_holding(worker.errand, worker.pid));
	return worker;
}

/* How its last call ended. */
static int stop(struct worker *worker)
{
	int code;

	worker->errand->goes = true;
	ck_assert_int_eq(town_wait(worker->pid), 0);
	code = worker->errand->code;
	town_errand_free(worker->errand);
	return code;
}

static const char *waves(const char *name, const struct town_user *user, bool is_open,
			 unsigned side)
{
	static char path[2][512];
	static unsigned next;
	char *ret = path[next++ % 2];

	snprintf(ret, sizeof(path[0]), "%s", rig_path("%s", name));
	if (access(ret, F_OK) < 0) {
		ck_assert_int_eq(mkdir(ret, 0755), 0);
		ck_assert_int_eq(mkdir(rig_path("%s/class", name), 0755), 0);
		for (unsigned i = 0; i < PICTURES; i++)
			ck_assert_int_eq(
			    rig_write_waves(rig_path("%s/class/%02u.jpg", name, i), i, side), 0);
	}
	town_give(ret, user, user->gid, is_open ? 0755 : 0700, is_open ? 0644 : 0600);
	return ret;
}

/* ---- what each has ---- */

struct look {
	double anna, bert;
};

static const struct measure {
	const char *which; /* of a tenant in the status */
	double warm;       /* that each has before it is looked at */
	double most;       /* of both, that is looked at */
} cpu = {"cpu_seconds_used", WARM_S, LOOK_S}, slow_cpu = {"cpu_seconds_used", WARM_S, SLOW_S},
  bytes = {"bytes_used", PACE / 8, 2.5 * PACE};

static double of_tenant(const struct json_in *status, uid_t uid, const char *which)
{
	char path[96];

	for (unsigned i = 0; rig_number_at(status, "tenants") > i; i++) {
		snprintf(path, sizeof(path), "tenants.%u.uid", i);
		if (rig_number_at(status, path) != uid)
			continue;
		snprintf(path, sizeof(path), "tenants.%u.public", i);
		if (rig_number_at(status, path) != 0)
			continue;
		snprintf(path, sizeof(path), "tenants.%u.%s", i, which);
		return rig_number_at(status, path);
	}
	return -1;
}

/* When each has used so much more than at first, and both together so much. */
static struct look wait_used(const struct measure *measure, const struct look *first, double each,
			     double both)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;
	struct look now = {-1, -1};

	while (base_now_ns() < end_ns) {
		struct json_in *status = rig_whole_status();

		if (status)
			now = (struct look){
			    of_tenant(status, town_anna.uid, measure->which) - first->anna,
			    of_tenant(status, town_bert.uid, measure->which) - first->bert};
		json_in_free(status);
		if (now.anna >= each && now.bert >= each && now.anna + now.bert >= both)
			return now;
		rig_sleep_ms(20);
	}
	ck_abort_msg("%s: anna has %g, bert %g, and they wait for %g", measure->which, now.anna,
		     now.bert, both);
}

/* As he may, with his own. */
static void slow_down(uid_t uid)
{
	struct json_in *status = rig_whole_status();
	char path[64];

	for (unsigned i = 0; rig_number_at(status, "workers") > i; i++) {
		snprintf(path, sizeof(path), "workers.%u.uid", i);
		if (rig_number_at(status, path) != uid)
			continue;
		snprintf(path, sizeof(path), "workers.%u.pid", i);
		ck_assert_int_eq(setpriority(PRIO_PROCESS, (id_t)rig_number_at(status, path), 19),
				 0);
	}
	json_in_free(status);
}

/* What anna may have, as a part of what both used. */
struct bounds {
	double least, most;
};

static const struct bounds half = {0.85 * 0.5, 1.15 * 0.5},
			   three_quarters = {0.85 * 0.75, 1.15 * 0.75}, most_of_it = {0.65, 1};

static double part_of(const struct look *look)
{
	return look->anna / (look->anna + look->bert);
}

static bool within(const struct bounds *bounds, const struct look *look)
{
	return part_of(look) > bounds->least && part_of(look) < bounds->most;
}

/*
 * Anna has one stream, and bert a flood of them. Of what both use from then on she must come to have her part: on a
 * machine that does other things, too, that may take a while, and where shares are not kept it never comes.
 */
static void must_have(const struct measure *measure, const char *annas, const char *berts,
		      struct bounds bounds)
{
	const struct look none = {0, 0};
	struct worker anna = start(&town_anna, annas, 200), bert[FLOOD];
	struct look first, then;
	double both = measure->most;

	for (unsigned i = 0; i < FLOOD; i++)
		bert[i] = start(&town_bert, berts, 201 + i);
	ck_assert(rig_wait_status("streams", FLOOD + 1, FLOOD + 1));
	first = wait_used(measure, &none, measure->warm, 2 * measure->warm);
	if (measure == &slow_cpu)
		slow_down(town_bert.uid);
	then = wait_used(measure, &first, 0, both);
	for (unsigned i = 0; i < LOOKS && !within(&bounds, &then); i++)
		then = wait_used(measure, &first, 0, both += measure->most / 2);
	for (unsigned i = 0; i < FLOOD; i++)
		ck_assert_int_eq(stop(&bert[i]), 0);
	ck_assert_int_eq(stop(&anna), 0);
	printf("%s: anna %g, bert %g: %.3f\n", measure->which, then.anna, then.bert,
	       part_of(&then));
	fflush(stdout);
	ck_assert_msg(within(&bounds, &then), "she may have from %.3f to %.3f, and had %.3f",
		      bounds.least, bounds.most, part_of(&then));
}

/* ---- shares ---- */

START_TEST(a_flood_takes_nobodys_share_of_a_pool)
{
	const char *all = waves("all", &town_anna, true, SIDE);

	town_start("workers=2", "cache_size=0", "variants=1", NULL);
	must_have(&cpu, all, all, half);
	town_end();
}
END_TEST

/* Not half, which the kernel would give to as many processes of each. */
START_TEST(nor_apart_and_a_share_is_what_it_is_set_to)
{
	const char *annas = waves("annas", &town_anna, false, SIDE),
		   *berts = waves("berts", &town_bert, false, SIDE);
	char share[64];

	snprintf(share, sizeof(share), "tenant.%u.share=3", (unsigned)town_anna.uid);
	town_start("workers=2", "cache_size=0", "variants=1", share, NULL);
	must_have(&cpu, annas, berts, three_quarters);
	town_end();
}
END_TEST

/* Else she would wait for what he has made slow. */
START_TEST(who_slows_down_his_own_holds_nobody_back)
{
	const char *annas = waves("annas", &town_anna, false, SIDE),
		   *berts = waves("berts", &town_bert, false, SIDE);

	town_start("workers=2", "cache_size=0", "variants=1", NULL);
	must_have(&slow_cpu, annas, berts, most_of_it);
	town_end();
}
END_TEST

/* ---- shares of a slow disk, in bytes ---- */

/* Not a sixth, which its threads give to one of six streams in turn. */
START_TEST(a_flood_takes_nobodys_share_of_a_disk)
{
	const char *all = waves("small", &town_anna, true, SMALL);

	town_pace = PACE;
	town_start("workers=2", "variants=1", NULL);
	must_have(&bytes, all, all, half);
	town_end();
}
END_TEST

/* Each has a reader and such a disk of his own, on what accessd takes to be one: not half. */
START_TEST(nor_apart_and_of_a_disk_a_share_is_what_it_is_set_to)
{
	const char *annas = waves("annas.small", &town_anna, false, SMALL),
		   *berts = waves("berts.small", &town_bert, false, SMALL);
	char share[64];

	snprintf(share, sizeof(share), "tenant.%u.share=3", (unsigned)town_anna.uid);
	town_pace = PACE;
	town_start("workers=2", "variants=1", share, NULL);
	must_have(&bytes, annas, berts, three_quarters);
	town_end();
}
END_TEST

/* ---- quotas ---- */

START_TEST(quotas_are_said_where_they_are_met)
{
	const char *annas = folk_secret("annas.few", &town_anna),
		   *berts = folk_secret("berts.few", &town_bert);
	char jobs[64], streams[64];
	struct worker first, more;

	snprintf(jobs, sizeof(jobs), "tenant.%u.jobs=1", (unsigned)town_bert.uid);
	snprintf(streams, sizeof(streams), "tenant.%u.streams=1", (unsigned)town_anna.uid);
	town_start("workers=1", "variants=1", jobs, streams, NULL);
	first = start(&town_bert, berts, 40);
	more = start(&town_bert, berts, 41);
	ck_assert_msg(strstr(more.errand->text, "1 jobs here") &&
			  strstr(more.errand->text, "greedy-40") &&
			  strstr(more.errand->text, ".jobs"),
		      "%s", more.errand->text);
	ck_assert_int_eq(stop(&more), OA_E_REFUSED);
	ck_assert_int_eq(stop(&first), 0);
	ck_assert(rig_wait_status("jobs", 0, 0));
	first = start(&town_anna, annas, 40);
	more = start(&town_anna, annas, 41);
	ck_assert_msg(strstr(more.errand->text, "1 streams") &&
			  strstr(more.errand->text, "greedy-40") &&
			  strstr(more.errand->text, ".streams"),
		      "%s", more.errand->text);
	ck_assert_int_eq(stop(&more), OA_E_REFUSED);
	ck_assert_int_eq(stop(&first), 0);
	town_end();
}
END_TEST

/* ---- a limit of reading ---- */

#define LIMIT_TEXT "tenant.65202.read_bandwidth=2M"
#define LIMIT (2 << 20)
#define READ (4 << 20)                     /* that is looked at */
#define UNDER_WAY (LIMIT / 10 + (1 << 20)) /* what a bucket holds, and what was begun before */

/* Never more than the limit allows in the time that passed from before the first look until after the last one; a slow machine
 * reads less. */
START_TEST(a_limit_of_reading_is_kept)
{
	const char *berts = waves("limited", &town_bert, false, SIDE);
	struct worker bert;
	uint64_t begun_ns;
	double first, then, s;

	town_start("workers=1", "linger_s=0", LIMIT_TEXT, NULL);
	bert = start(&town_bert, berts, 32);
	begun_ns = base_now_ns();
	first = rig_status("node.bytes_read");
	ck_assert(rig_wait_status("node.bytes_read", first + READ, 1e15));
	then = rig_status("node.bytes_read");
	s = (double)(base_now_ns() - begun_ns) / 1e9;
	ck_assert_msg(then - first <= s * LIMIT + UNDER_WAY, "%.0f bytes in %.3f s", then - first,
		      s);
	ck_assert(rig_status("streams.0.read_held") > 0);
	ck_assert_double_eq(rig_status("tenants.0.read_bandwidth"), LIMIT);
	ck_assert_int_eq(stop(&bert), 0);
	town_end();
}
END_TEST

/* Who has no limit is not held back by one who has and shares his stream, nor by one who reads beside him. */
START_TEST(a_limit_is_its_users_alone)
{
	const char *all = waves("pool", &town_anna, true, SIDE),
		   *annas = waves("annas", &town_anna, false, SIDE);
	struct worker bert, anna, own;

	town_start("workers=1", "linger_s=0", LIMIT_TEXT, NULL);
	anna = start(&town_anna, all, 32);
	bert = start(&town_bert, all, 32);
	own = start(&town_anna, annas, 32);
	ck_assert_double_eq(rig_status("streams"), 2);
	ck_assert(rig_wait_status("node.bytes_read", rig_status("node.bytes_read") + READ, 1e15));
	ck_assert_double_eq(rig_status("streams.0.read_held"), 0);
	ck_assert_double_eq(rig_status("streams.1.read_held"), 0);
	ck_assert_int_eq(stop(&anna), 0);
	ck_assert_int_eq(stop(&own), 0);
	ck_assert(rig_wait_status("streams.0.read_held", 1, 1e15)); /* bert alone */
	ck_assert_int_eq(stop(&bert), 0);
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_limit_of_reading_is_kept);
	tcase_add_test(tcase, a_limit_is_its_users_alone);
	tcase_add_test(tcase, a_flood_takes_nobodys_share_of_a_pool);
	tcase_add_test(tcase, nor_apart_and_a_share_is_what_it_is_set_to);
	tcase_add_test(tcase, who_slows_down_his_own_holds_nobody_back);
	if (town_can_be_slow()) {
		tcase_add_test(tcase, a_flood_takes_nobodys_share_of_a_disk);
		tcase_add_test(tcase, nor_apart_and_of_a_disk_a_share_is_what_it_is_set_to);
	}
	tcase_add_test(tcase, quotas_are_said_where_they_are_met);
}

int main(void)
{
	return folk_main("fairness", add);
}
