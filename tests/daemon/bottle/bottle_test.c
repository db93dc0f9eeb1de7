/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lives of a node. Each has a data set, jobs and a machine drawn from its seed, and faults, and a time after them in which all
 * is well again. What must hold:
 *
 *   each job gets each sample of an epoch once, with its own bytes, in its order, and no instance twice, whoever was killed
 *   whenever, from its token on
 *   what has a checker is whole, after each turn; memory is counted right
 *   where all is well nobody starves, and each job comes to its end
 *   in the end accessd has what it had in the beginning: no stream, no connection, no memory, no descriptor
 *
 * A planted fault must break one of these. BOTTLE_SEED=NUMBER lives that life alone, BOTTLE_LIVES=NUMBER so many from there on;
 * BOTTLE_TRACE=1 says what happened, BOTTLE_MUTANT=NUMBER plants that fault.
 */

#include <check.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/tenant/domain.h"
#include "tests/daemon/bottle/bottle.h"
#include "tests/histories.h"
#include "tests/patience.h"

#define LIVES (HISTORIES_ARE_FEW ? 8U : 25U)
#define MUTANT_LIVES 30
#define RESTARTS 20
#define DEATHS 40
#define PARTS 10
#define WILD (180 * SECOND)

static const struct client_calls *client;
static uint64_t lived_ns, hits;

/* ---- who comes ---- */

/* Of ranks all are done, or none is. */
static bool is_free(const struct training *job)
{
	const struct training *first = &job->bottle->job[job->plan.leader];
	bool is_over = !job->fiber;

	for (unsigned i = 0; i < job->plan.ranks; i++)
		is_over &= first[i].is_done;
	return is_over;
}

static bool are_free(const struct bottle *bottle, uint64_t number, unsigned n)
{
	bool is_one = number + n <= BOTTLE_JOBS;

	for (unsigned i = 0; i < n && is_one; i++)
		is_one = is_free(&bottle->job[number + i]);
	return is_one;
}

/* A job of several ranks takes the places behind its own. */
static void begin_ranks(struct bottle *bottle, uint64_t number, struct job_plan *plan)
{
	plan->leader = (unsigned)number;
	plan->serial = ++bottle->serials;
	troop_begin(bottle, plan->leader, plan->ranks);
	for (plan->rank = 0; plan->rank < plan->ranks; plan->rank++) {
		plan->late_ns = plan->rank ? bottle_below(SECOND) : 0;
		training_begin(&bottle->job[number + plan->rank], plan);
	}
}

/* One training run after the other. */
static void on_join(void *arg, uint64_t number, uint64_t bad)
{
	struct bottle *bottle = arg;
	struct job_plan plan;

	if (bottle->joins[number] && is_free(&bottle->job[number])) {
		bottle->joins[number]--;
		plan_draw(&plan, (enum oa_bad)bad, are_free(bottle, number, BOTTLE_RANKS));
		begin_ranks(bottle, number, &plan);
	}
	if (bottle->joins[number])
		bottle_after(bottle_below(20 * SECOND), on_join, bottle, number, bad);
}

/* ---- what must hold ---- */

static bool is_done(const struct bottle *bottle)
{
	for (unsigned i = 0; i < BOTTLE_JOBS; i++)
		if (bottle->joins[i] || (bottle->job[i].plan.batch && !bottle->job[i].is_done))
			return false;
	return true;
}

static void check_empty(struct bottle *bottle)
{
	const struct node *node = bottle->node;
	const struct domain *domain;

	if (bottle->broken[0])
		return;
	LIST_FOREACH(domain, &node->domains, link)
		if (!LIST_EMPTY(&domain->streams) || !LIST_EMPTY(&domain->sources))
			bottle_break("a stream or a source is left");
	if (node->clients.n)
		bottle_break("%u connections are left", node->clients.n);
	if (node->memory.used != node->memory.catalogs)
		bottle_break("%llu bytes are left", (unsigned long long)node->memory.used);
	for (unsigned i = 0; i < BOTTLE_QUEUES; i++)
		if (bottle->queue[i].is_used)
			bottle_break("reader or workers still have a queue");
}

/* ---- a life ---- */

static void live_on(struct bottle *bottle)
{
	const unsigned jobs = 1 + (unsigned)bottle_below(BOTTLE_JOBS);
	const uint64_t bad = bottle_below(3);
	const uint64_t wild_ns = bottle_chance(4) ? 0 : bottle->clock.now_ns + bottle_below(WILD);

	for (unsigned i = 0; i < jobs; i++) {
		bottle->joins[i] = 1 + (unsigned)bottle_below(4);
		bottle_after(bottle_below(bottle_chance(2) ? SECOND : 60 * SECOND), on_join, bottle,
			     i, bad);
	}
	if (wild_ns)
		fault_begin(wild_ns);
	bottle_run(bottle->clock.now_ns + 60 * SECOND);
	while (!bottle->broken[0] && (!is_done(bottle) || bottle->is_wild || !bottle->node) &&
	       bottle->clock.now_ns < wild_ns + 10800 * SECOND)
		bottle_run(bottle->clock.now_ns + 10 * SECOND);
	if (!is_done(bottle))
		bottle_break("a job does not come to its end");
	bottle_run(bottle->clock.now_ns + 60 * SECOND);
	check_empty(bottle);
}

/* The sum of all that happened; what was broken is left in ret. */
static uint64_t live(uint64_t seed, enum mutant mutant, char ret[512])
{
	static struct bottle bottle;
	const unsigned descriptors = role_descriptors();
	char folder[] = "/tmp/node-bottle-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(folder)); /* what one leaves on disk is not the next one's */
	bottle_begin(&bottle, seed, mutant, client, folder);
	live_on(&bottle);
	lived_ns += bottle.clock.now_ns;
	hits += bottle.hits;
	snprintf(ret, 512, "%s", bottle.broken);
	if (bottle.broken[0] && getenv("BOTTLE_SEED"))
		bottle_show();
	if (getenv("BOTTLE_SEED"))
		printf("seed %llu: %u samples, %u faults, %u turns, %u forms came, %.0f s, sum "
		       "%016llx: %s\n",
		       (unsigned long long)seed, bottle.samples, bottle.faults, bottle.turns,
		       bottle.hits, (double)bottle.clock.now_ns / 1e9,
		       (unsigned long long)bottle.sum, bottle.broken[0] ? bottle.broken : "well");
	bottle_end(&bottle);
	role_remove(folder);
	if (!ret[0] && role_descriptors() != descriptors)
		snprintf(ret, 512, "%u descriptors were open, and %u are", descriptors,
			 role_descriptors());
	return bottle.sum;
}

/* ---- tests ---- */

START_TEST(what_must_hold_holds)
{
	const char *seed = getenv("BOTTLE_SEED"), *lives = getenv("BOTTLE_LIVES");
	const char *mutant = getenv("BOTTLE_MUTANT");
	const uint64_t usual = seed ? 1 : LIVES;
	const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	const uint64_t last = first + (lives ? strtoull(lives, NULL, 10) : usual) - 1;
	const uint64_t begun_ns = base_cpu_ns();
	char broken[512];

	for (uint64_t i = first; i <= last; i++) {
		live(i, mutant ? (enum mutant)atoi(mutant) : MUTANT_NONE, broken);
		ck_assert_msg(!broken[0], "BOTTLE_SEED=%llu: %s", (unsigned long long)i, broken);
	}
	ck_assert(hits > 0 || seed); /* or nothing is kept */
	printf("%llu lives, %.0f node-minutes in %.1f s of CPU\n",
	       (unsigned long long)(last - first + 1), (double)lived_ns / 60e9,
	       (double)(base_cpu_ns() - begun_ns) / 1e9);
}
END_TEST

START_TEST(a_seed_is_a_life)
{
	char broken[512];
	const uint64_t sum = live(1, MUTANT_NONE, broken);

	ck_assert_uint_eq(live(1, MUTANT_NONE, broken), sum);
	ck_assert_uint_ne(live(2, MUTANT_NONE, broken), sum);
}
END_TEST

static void run_until_batch_of(struct bottle *bottle, unsigned number, uint64_t batch)
{
	const struct training *job = &bottle->job[number];
	const uint64_t last_ns = bottle->clock.now_ns + 3600 * SECOND;

	while (!bottle->broken[0] && job->batches < batch && bottle->clock.now_ns < last_ns)
		bottle_run(bottle->clock.now_ns + MS);
	ck_assert_msg(job->batches >= batch, "%s", bottle->broken);
}

static void run_until_batch(struct bottle *bottle, uint64_t batch)
{
	run_until_batch_of(bottle, 0, batch);
}

/*
 * accessd is killed, and is back a second later. Where reading and decoding take next to nothing, what its job still waits for on
 * this clock are the pauses that somebody chose, in accessd and in libaccess: its next try comes within 50 ms and an eighth of that
 * second, and all the others together are less than that.
 */
START_TEST(a_restart_costs_few_pauses)
{
	static struct bottle bottle;
	char folder[] = "/tmp/node-bottle-XXXXXX", broken[512];
	struct job_plan plan;
	uint64_t since_ns;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	bottle_begin(&bottle, 1 + (uint64_t)_i, MUTANT_NONE, client, folder);
	bottle.read_us = 20;
	bottle.work_us = 100;
	plan_draw(&plan, OA_BAD_SKIP, false);
	plan.alone_of = 0;
	plan.epochs = BOTTLE_EPOCHS;
	plan.pace_ns = MS;
	training_begin(&bottle.job[0], &plan);
	run_until_batch(&bottle, 4);
	accessd_kill();
	bottle_run(bottle.clock.now_ns + SECOND);
	accessd_start();
	since_ns = bottle.clock.now_ns;
	run_until_batch(&bottle, bottle.job[0].batches + 1);
	ck_assert_uint_le(bottle.clock.now_ns - since_ns, 350 * MS);
	snprintf(broken, sizeof(broken), "%s", bottle.broken);
	bottle_end(&bottle);
	role_remove(folder);
	ck_assert_msg(!broken[0], "%s", broken);
}
END_TEST

static void draw_ranks_of_carousel(struct job_plan *plan)
{
	do
		plan_draw(plan, OA_BAD_SKIP, true);
	while (plan->ranks == 1 || plan->order != OA_ORDER_CAROUSEL);
}

/* From now on nothing goes wrong any more. */
static void end_well(struct bottle *bottle)
{
	bottle->is_wild = false;
	bottle->calm_ns = bottle->clock.now_ns + 45 * SECOND;
	while (!bottle->broken[0] && !is_done(bottle) &&
	       bottle->clock.now_ns < bottle->calm_ns + 3600 * SECOND)
		bottle_run(bottle->clock.now_ns + SECOND);
	if (!is_done(bottle))
		bottle_break("a rank does not come to its end");
}

/* Of a part: every eighth sample, so that many of others may follow the last one of a chunk. */
static void draw_of_carousel(struct job_plan *plan, bool has_part)
{
	struct picked *picked = &plan->picked;

	do
		plan_draw(plan, OA_BAD_SKIP, false);
	while (plan->order != OA_ORDER_CAROUSEL || plan->alone_of || picked->n);
	for (unsigned i = 0; i < bottle_now()->samples && has_part; i++) {
		picked->times[i] = i % 8 == 0;
		if (picked->times[i])
			picked->ids[picked->n++] = i;
	}
	picked->total = has_part ? picked->n : picked->total;
	plan->batch = has_part ? 30 : 1;
	plan->chunk = 40;
	plan->flags = 0;
	plan->holds = 1;
	plan->pace_ns = MS;
	plan->epochs = 3;
}

/* Behind its last sample of a chunk lie those of another job, which one slow worker makes: it does not wait for them. */
START_TEST(who_has_a_part_is_woken_at_the_end_of_his_own)
{
	static struct bottle bottle;
	char folder[] = "/tmp/node-bottle-XXXXXX", broken[512];
	struct job_plan plan;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	bottle_begin(&bottle, 4 * (1 + (uint64_t)_i), MUTANT_NONE, client, folder);
	bottle.read_us = 20;
	bottle.work_us = 20000;
	for (unsigned i = 0; i < 2; i++) {
		draw_of_carousel(&plan, i);
		begin_ranks(&bottle, i, &plan);
	}
	end_well(&bottle);
	snprintf(broken, sizeof(broken), "%s", bottle.broken);
	bottle_end(&bottle);
	role_remove(folder);
	ck_assert_msg(!broken[0], "%s", broken);
}
END_TEST

/* Rank 0 has no token, and dies again and again; now and then all die, or accessd. The others have tokens of their own, or not. */
static void die_often(struct bottle *bottle)
{
	struct training *first = &bottle->job[0];
	const unsigned deaths = (unsigned)bottle_between(2, 6);

	first->plan.saves = 0;
	for (unsigned n = 0; n < deaths && !bottle->broken[0]; n++) {
		const bool all_die = bottle_chance(3);

		run_until_batch(bottle, first->batches + bottle_between(1, 4));
		for (unsigned i = 0; i < (all_die ? first->plan.ranks : 1); i++)
			fault_kill_rank(&first[i]);
		if (!bottle_chance(3))
			continue;
		bottle_run(bottle->clock.now_ns + bottle_below(SECOND));
		accessd_kill();
		bottle_run(bottle->clock.now_ns + bottle_below(SECOND));
		accessd_start();
	}
	first->plan.saves = 1;
}

START_TEST(a_rank_dies_often_before_its_first_token)
{
	static struct bottle bottle;
	char folder[] = "/tmp/node-bottle-XXXXXX", broken[512];
	struct job_plan plan;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	bottle_begin(&bottle, 1 + (uint64_t)_i, MUTANT_NONE, client, folder);
	draw_ranks_of_carousel(&plan);
	plan.epochs = 3;
	begin_ranks(&bottle, 0, &plan);
	bottle.is_wild = true;
	die_often(&bottle);
	end_well(&bottle);
	snprintf(broken, sizeof(broken), "%s", bottle.broken);
	bottle_end(&bottle);
	role_remove(folder);
	ck_assert_msg(!broken[0], "%s", broken);
}
END_TEST

/* ---- ranks that have met different accessds ---- */

#define LEAST 100 /* samples */
#define PARTED_LIVES 2
enum {
	PARTED_SHORT_FIRST = 1, /* who has less of the plan comes back first */
	PARTED_SHORT_DIES = 2,  /* it comes back with its token alone */
	PARTED_LONG_DIES = 4,
	PARTED_LOST = 8,    /* accessd's own log of the plan is lost */
	PARTED_LEAVES = 16, /* who comes back first has left again when the other comes */
	PARTED_KINDS = 32
};

/* What the first one brings is then not all of it, or it brings nothing. */
static bool is_refused(unsigned kind)
{
	return kind & PARTED_LOST && (kind & PARTED_SHORT_FIRST || kind & PARTED_LONG_DIES);
}

/* Whoever has more of the plan is told so when it brings its log, and not only when the others are there, too. With its token
 * alone it might be the first of all that are started again. */
static bool is_told_alone(unsigned kind)
{
	return kind & PARTED_LOST && kind & PARTED_SHORT_FIRST &&
	       !(kind & (PARTED_SHORT_DIES | PARTED_LONG_DIES));
}

/* As long as these, a bit each, work on what they hold, or are dead. */
static void run_without(struct bottle *bottle, unsigned away, uint64_t ns)
{
	const uint64_t until_ns = bottle->clock.now_ns + ns;

	while (!bottle->broken[0] && bottle->clock.now_ns < until_ns) {
		for (unsigned i = 0; i < BOTTLE_RANKS; i++)
			if (away >> i & 1)
				bottle->job[i].stopped_ns = bottle->clock.now_ns + SECOND;
		bottle_run(BASE_MIN(until_ns, bottle->clock.now_ns + SECOND / 2));
	}
}

static void kill_these(struct bottle *bottle, unsigned these)
{
	for (unsigned i = 0; i < BOTTLE_RANKS; i++)
		if (these >> i & 1)
			training_kill(&bottle->job[i]);
}

/* Those of them that were killed come back with their tokens. */
static void come(struct bottle *bottle, unsigned these)
{
	for (unsigned i = 0; i < BOTTLE_RANKS; i++)
		if (these >> i & 1 && bottle->job[i].is_killed)
			training_begin(&bottle->job[i], NULL);
}

static void begin_again(struct bottle *bottle, bool is_lost)
{
	char plans[96];

	accessd_kill();
	bottle_run(bottle->clock.now_ns + bottle_below(SECOND));
	snprintf(plans, sizeof(plans), "%s/plans", bottle->folder);
	if (is_lost)
		role_remove(plans);
	accessd_start();
}

/* Steps of so many quarters of an epoch. */
static unsigned steps_of(const struct bottle *bottle, unsigned quarters)
{
	const struct job_plan *plan = &bottle->job[0].plan;

	return 1 + quarters * bottle->samples / (4 * plan->ranks * plan->batch);
}

/* Has this accessd had one of them? */
static bool has_come(const struct bottle *bottle, unsigned these)
{
	bool has_one = false;

	for (unsigned i = 0; i < BOTTLE_RANKS; i++)
		has_one |= these >> i & 1 && bottle->job[i].life == bottle->life;
	return has_one;
}

static bool is_in_time(struct bottle *bottle)
{
	if (bottle->clock.now_ns > 600 * SECOND)
		bottle_break("no rank goes on");
	return !bottle->broken[0];
}

/* They go on for a little, and are away again, for less than a minute or for more: accessd ends, or they do. The others come. */
static void leave_again(struct bottle *bottle, unsigned first, unsigned others, unsigned kind)
{
	run_without(bottle, others, bottle_between(SECOND, 5 * SECOND));
	/* They had several plans themselves, and all begin anew. */
	if (is_refused(kind) && !bottle->may_part) {
		come(bottle, first | others);
		return;
	}
	if (bottle_chance(2)) {
		run_without(bottle, first | others, 1);
		begin_again(bottle, false);
	} else {
		kill_these(bottle, first);
	}
	run_without(bottle, first | others, bottle_between(5 * SECOND, 90 * SECOND));
	come(bottle, others);
	run_without(bottle, first, 30 * SECOND);
	if (bottle->may_part && is_told_alone(kind))
		bottle_break("a rank that had more of the plan was let in");
	come(bottle, first);
}

/* One rank is away while accessd is killed, and the others go on with the next one. Then they are away, too, that one is killed,
 * and for more than a minute nobody comes. */
static void part(struct bottle *bottle, unsigned kind)
{
	const unsigned ranks = bottle->job[0].plan.ranks, all = (1U << ranks) - 1;
	const unsigned number = (unsigned)bottle_below(ranks), other = number ? 0 : 1;
	const unsigned late = 1U << number;
	const unsigned first = kind & PARTED_SHORT_FIRST ? late : all & ~late;
	const uint64_t epoch = steps_of(bottle, 4);

	for (unsigned i = 0; i < ranks; i++)
		run_until_batch_of(bottle, i, 3);
	for (unsigned i = 0; i < ranks; i++)
		bottle->job[i].plan.ahead = steps_of(bottle, 6); /* the log keeps two epochs */
	kill_these(bottle, kind & PARTED_SHORT_DIES ? late : 0);
	run_without(bottle, late, 1);
	begin_again(bottle, false);
	while (bottle->job[other].model.steps < bottle->job[number].model.steps + epoch &&
	       is_in_time(bottle))
		run_without(bottle, late, 10 * MS);
	kill_these(bottle, kind & PARTED_LONG_DIES ? all & ~late : 0);
	run_without(bottle, all, 1);
	bottle->may_part = is_refused(kind);
	begin_again(bottle, kind & PARTED_LOST);
	run_without(bottle, all, 70 * SECOND);
	come(bottle, first);
	/* With what they hold they may get as far as they go without the others. */
	for (unsigned i = 0; i < 120 && !bottle->broken[0] && !has_come(bottle, first); i++)
		run_without(bottle, all & ~first, SECOND / 2);
	if (kind & PARTED_LEAVES)
		leave_again(bottle, first, all & ~first, kind);
	else
		come(bottle, all & ~first);
	bottle_run(bottle->clock.now_ns + 30 * SECOND);
}

static void live_parted(uint64_t seed, enum mutant mutant, unsigned kind, char ret[512])
{
	static struct bottle bottle;
	char folder[] = "/tmp/node-bottle-XXXXXX";
	struct job_plan plan;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	bottle_begin(&bottle, seed, mutant, client, folder);
	for (; bottle.samples < LEAST; seed += 1000) {
		bottle_end(&bottle);
		bottle_begin(&bottle, seed + 1000, mutant, client, folder);
	}
	draw_ranks_of_carousel(&plan);
	plan.saves = 1;
	plan.chunk = 2;
	plan.pace_ns = 50 * MS;
	plan.epochs = 5;
	begin_ranks(&bottle, 0, &plan);
	bottle.is_wild = true;
	part(&bottle, kind);
	end_well(&bottle);
	if (bottle.may_part)
		bottle_break("no rank was refused");
	snprintf(ret, 512, "%s", bottle.broken);
	bottle_end(&bottle);
	role_remove(folder);
}

/* Whoever comes first: all go on with the longest log, which accessd has kept. Where that was lost, one of them is refused. */
START_TEST(ranks_have_met_different_accessds)
{
	char broken[512];

	live_parted(1 + (uint64_t)_i, MUTANT_NONE, (unsigned)_i % PARTED_KINDS, broken);
	ck_assert_msg(!broken[0], "kind %u: %s", (unsigned)_i % PARTED_KINDS, broken);
}
END_TEST

/* A life in which the fault may be found. */
static void live_with(uint64_t seed, enum mutant mutant, char ret[512])
{
	if (mutant == MUTANT_PLAN_UNNAMED)
		live_parted(seed, mutant, PARTED_SHORT_FIRST, ret);
	else if (mutant == MUTANT_PLAN_PARTED)
		live_parted(seed, mutant, PARTED_SHORT_FIRST | PARTED_LOST, ret);
	else
		live(seed, mutant, ret);
}

/* The lives in which they were found are lived first: that is what they cost. */
START_TEST(a_planted_fault_is_found)
{
	static const unsigned found[MUTANTS] = {
	    [MUTANT_TASK_LOST] = 10,    [MUTANT_SHOWN_EARLY] = 9,      [MUTANT_HANG_UNSEEN] = 12,
	    [MUTANT_FORM_FINAL] = 2,    [MUTANT_ROOM_FORGOTTEN] = 2,   [MUTANT_WAKE_LOST] = 3,
	    [MUTANT_PLAN_LATE] = 75,    [MUTANT_PLAN_REMOVED] = 11,    [MUTANT_LOSS_UNSAID] = 4,
	    [MUTANT_RUN_UNENDED] = 169, [MUTANT_INSTANCE_TWICE] = 4,   [MUTANT_NEED_UNASKED] = 4,
	    [MUTANT_PLACE_LOST] = 2,    [MUTANT_GRANT_FORGOTTEN] = 14, [MUTANT_REWIND_LOST] = 20};
	const uint64_t first = BASE_MAX(found[_i], 1U), begun_ns = base_cpu_ns();
	char broken[512] = "";
	uint64_t lives = 0;

	for (; !broken[0] && lives < MUTANT_LIVES; lives++)
		live_with(first + lives, (enum mutant)_i, broken);
	ck_assert_msg(broken[0], "mutant %d was not found", _i);
	printf("mutant %d: %llu lives, %.1f s of CPU: %s\n", _i, (unsigned long long)lives,
	       (double)(base_cpu_ns() - begun_ns) / 1e9, broken);
}
END_TEST

/* ---- main ---- */

static const char *module_path(void)
{
	static char path[512];
	const char *build = getenv("top_builddir");

	snprintf(path, sizeof(path), "%s/tests/daemon/bottle/.libs/client.so", build ? build : ".");
	return path;
}

static bool load(void)
{
	void *module = dlopen(module_path(), RTLD_NOW | RTLD_LOCAL);

	client = module ? dlsym(module, CLIENT_CALLS) : NULL;
	if (!client)
		fprintf(stderr, "%s\n", dlerror());
	return client;
}

int main(void)
{
	Suite *suite = suite_create("node bottle");
	TCase *lives = tcase_create("lives"), *tcase = tcase_create("bottle");
	TCase *parted = tcase_create("parted");
	SRunner *runner = srunner_create(suite);
	int failed = 1;

	if (access(module_path(), F_OK) < 0) {
		printf("skipped: this build has no shared libraries\n");
		return 77;
	}
	suite_add_tcase(suite, lives);
	suite_add_tcase(suite, tcase);
	suite_add_tcase(suite, parted);
	tcase_set_timeout(lives, PATIENCE_OF_A_TEST_S);
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_set_timeout(parted, PATIENCE_OF_A_TEST_S);
	tcase_add_test(lives, what_must_hold_holds);
	tcase_add_test(tcase, a_seed_is_a_life);
	if (!HISTORIES_ARE_FEW) { /* a sanitizer has nothing to see in them, but jobs that are cut off */
		tcase_add_loop_test(tcase, a_restart_costs_few_pauses, 0, RESTARTS);
		tcase_add_loop_test(tcase, who_has_a_part_is_woken_at_the_end_of_his_own, 0, PARTS);
		tcase_add_loop_test(tcase, a_rank_dies_often_before_its_first_token, 0, DEATHS);
		tcase_add_loop_test(parted, ranks_have_met_different_accessds, 0,
				    PARTED_LIVES * PARTED_KINDS);
		tcase_add_loop_test(tcase, a_planted_fault_is_found, 1, MUTANTS);
	}
	if (load()) {
		srunner_run_all(runner, CK_NORMAL);
		failed = srunner_ntests_failed(runner);
	}
	srunner_free(runner);
	return failed ? 1 : 0;
}
