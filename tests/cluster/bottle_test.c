/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lives of clusters in a bottle (bottle.h): a few seconds in which all is well, a hundred in which nothing is, and some in
 * which all is well again. What must hold:
 *
 *   each job gets each sample of an epoch once, with the bytes of its name, within the time that a reader may wait
 *   while all is well each file is read about once in the cluster, and what is kept comes from who keeps it
 *   a GET is out no longer than its peer may be silent; breakers open, try and close; nobody is called in a storm
 *   owners move to who comes and from who goes, and between no others
 *   when all is well again each two nodes are connected, nothing is promised, nobody waits, and no memory is lost
 *
 * A planted fault must break one of these. BOTTLE_SEED=NUMBER lives that life alone, and says what happened.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cluster/bottle.h"
#include "tests/histories.h"
#include "tests/patience.h"

#define LIVES 265          /* of about 3.8 minutes */
#define LEAST_MINUTES 1000 /* that they must be together, where all are lived */
#define MUTANT_LIVES 20

static char folder[] = "/tmp/bottle-XXXXXX";
static uint64_t lived_ns;

/* ---- what must hold ---- */

static bool is_done(const struct bottle *bottle)
{
	for (unsigned i = 0; i < bottle->n_nodes; i++)
		for (unsigned k = 0; k < BOTTLE_JOBS; k++)
			if (bottle->node[i].job[k].delivered < BOTTLE_SAMPLES)
				return false;
	return true;
}

static void check_connected(struct bottle *bottle)
{
	for (unsigned i = 0; i < bottle->n_nodes; i++)
		for (unsigned k = 0; k < bottle->n_nodes; k++)
			if (i != k && !node_is_connected(&bottle->node[i], &bottle->node[k]))
				bottle_break(bottle, "node %u has no channel to node %u", i, k);
}

static void check_quiet(struct bottle *bottle)
{
	for (unsigned i = 0; i < bottle->n_nodes && !bottle->broken[0]; i++) {
		const struct node *node = &bottle->node[i];
		unsigned waiters, promises = node->reader->promises(&waiters);

		if (promises || waiters)
			bottle_break(bottle, "node %u holds %u promises, for %u", i, promises,
				     waiters);
		if (node->reader->asks() || node->busy)
			bottle_break(bottle, "node %u: %u tasks wait, and %u are read", i,
				     node->reader->asks(), node->busy);
		for (unsigned k = 0; k < BOTTLE_JOBS; k++)
			if (node->reader->busy(node->job[k].queue))
				bottle_break(bottle, "node %u: task queue %u is busy for ever", i,
					     k);
		for (unsigned k = 0; k < VALUE_MOST_PEERS; k++)
			if (node->carrier.channel[k].phase == CHANNEL_LIVES &&
			    (node->carrier.channel[k].asked.n ||
			     node->carrier.channel[k].outbox.bytes))
				bottle_break(bottle, "node %u: a channel is not idle", i);
	}
}

static unsigned files_of(struct bottle *bottle)
{
	unsigned files = 0;

	for (unsigned i = 0; i < bottle->n_nodes; i++) {
		files += bottle->node[i].files;
		bottle->node[i].files = 0;
	}
	return files;
}

/* An epoch of all, and then they rest. */
static void run_all(struct bottle *bottle, uint64_t pace_ns)
{
	const uint64_t until_ns = bottle->clock.now_ns + 60 * SECOND;

	for (unsigned i = 0; i < bottle->n_nodes; i++)
		for (unsigned k = 0; k < BOTTLE_JOBS; k++)
			job_run(&bottle->node[i].job[k], 1, pace_ns);
	while (!is_done(bottle) && bottle->clock.now_ns < until_ns && !bottle->broken[0])
		bottle_run(bottle, bottle->clock.now_ns + SECOND / 4);
	if (!is_done(bottle))
		bottle_break(bottle, "an epoch does not end");
	bottle_run(bottle, bottle->clock.now_ns + 9 * SECOND);
	check_quiet(bottle);
}

/* Those that have no form are read by each, and some are compared. */
static void check_files(struct bottle *bottle, const char *when, unsigned most)
{
	const unsigned files = files_of(bottle);
	const unsigned unfit = BOTTLE_JOBS * bottle->n_nodes * (BOTTLE_SAMPLES / 37 + 1);

	if (getenv("BOTTLE_SEED"))
		printf("%s: %u files, of %u at most\n", when, files, most + unfit);
	if (files > most + unfit)
		bottle_break(bottle, "%s %u files were read, of %u at most", when, files,
			     most + unfit);
}

/* ---- a life ---- */

static void live_well(struct bottle *bottle, uint64_t blocks[BOTTLE_NODES])
{
	for (unsigned i = 0; i < bottle->n_nodes; i++)
		node_begin(bottle, i, folder);
	bottle_run(bottle, bottle->clock.now_ns + 5 * SECOND);
	check_connected(bottle);
	run_all(bottle, 40 * MS);
	check_files(bottle, "at first",
		    BOTTLE_GROUPS * BOTTLE_SAMPLES * (bottle->is_slow ? 20 : 11) / 10);
	for (unsigned i = 0; i < bottle->n_nodes; i++)
		blocks[i] = bottle->node[i].blocks.n;
}

static void on_evicted(void *arg, uint64_t until_ns, uint64_t unused)
{
	struct bottle *bottle = arg;
	struct node *node = &bottle->node[bottle_below(bottle, bottle->n_nodes)];
	const uint64_t group = bottle_below(bottle, BOTTLE_GROUPS);
	struct kept *kept = &node->kept[group][bottle_below(bottle, BOTTLE_SAMPLES)];

	(void)unused;
	free(kept->value);
	kept->value = NULL;
	if (bottle->clock.now_ns < until_ns)
		bottle_at(bottle, bottle->clock.now_ns + 200 * MS, on_evicted, bottle, until_ns, 0);
}

static void live_ill(struct bottle *bottle)
{
	const uint64_t until_ns = bottle->clock.now_ns + 150 * SECOND;

	for (unsigned i = 0; i < bottle->n_nodes; i++)
		for (unsigned k = 0; k < BOTTLE_JOBS; k++)
			job_run(&bottle->node[i].job[k], 4, 4 * SECOND);
	on_evicted(bottle, until_ns, 0);
	fault_begin(bottle, until_ns);
	bottle_run(bottle, until_ns + 45 * SECOND); /* calls are half a minute apart at most */
	check_connected(bottle);
	for (unsigned i = 0; i < 40 && !is_done(bottle); i++)
		bottle_run(bottle, bottle->clock.now_ns + 5 * SECOND);
	if (!is_done(bottle))
		bottle_break(bottle, "a job's samples never came");
	files_of(bottle);
}

/* One value may be under comparison with its source. */
static void live_on(struct bottle *bottle, const uint64_t blocks[BOTTLE_NODES])
{
	run_all(bottle, 40 * MS);
	files_of(bottle);
	run_all(bottle, 40 * MS);
	check_files(bottle, "at last", BOTTLE_GROUPS * BOTTLE_SAMPLES / 10);
	for (unsigned i = 0; i < bottle->n_nodes; i++)
		if (bottle->node[i].blocks.n > blocks[i] + 1)
			bottle_break(bottle, "node %u has %llu blocks of memory, and had %llu", i,
				     (unsigned long long)bottle->node[i].blocks.n,
				     (unsigned long long)blocks[i]);
}

/* The sum of all that happened; what was broken is left in ret. */
static uint64_t live(uint64_t seed, enum bottle_mutant mutant, char ret[256])
{
	static struct bottle bottle;
	uint64_t blocks[BOTTLE_NODES];

	bottle_begin(&bottle, seed, mutant);
	live_well(&bottle, blocks);
	live_ill(&bottle);
	live_on(&bottle, blocks);
	lived_ns += bottle.clock.now_ns;
	if (getenv("BOTTLE_SEED"))
		printf("seed %llu: %u nodes, %u faults, %.0f s, sum %016llx: %s\n",
		       (unsigned long long)seed, bottle.n_nodes, bottle.faults,
		       (double)bottle.clock.now_ns / 1e9, (unsigned long long)bottle.sum,
		       bottle.broken[0] ? bottle.broken : "well");
	snprintf(ret, 256, "%s", bottle.broken);
	bottle_end(&bottle);
	return bottle.sum;
}

/* ---- tests ---- */

START_TEST(what_must_hold_holds)
{
	const char *seed = getenv("BOTTLE_SEED");
	const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	const uint64_t last = seed ? first : HISTORIES_OF(HISTORIES_OF(LIVES));
	char broken[256];

	for (uint64_t i = first; i <= last; i++) {
		live(i, MUTANT_NONE, broken);
		ck_assert_msg(!broken[0], "BOTTLE_SEED=%llu: %s", (unsigned long long)i, broken);
	}
	if (last - first + 1 >= LIVES)
		ck_assert_uint_ge(lived_ns, LEAST_MINUTES * 60 * SECOND);
}
END_TEST

START_TEST(a_seed_is_a_life)
{
	char broken[256];

	const uint64_t sum = live(1, MUTANT_NONE, broken);

	ck_assert_uint_eq(live(1, MUTANT_NONE, broken), sum);
	ck_assert_uint_ne(live(2, MUTANT_NONE, broken), sum);
}
END_TEST

START_TEST(a_planted_fault_is_found)
{
	char broken[256] = "";
	uint64_t seed = 0;

	while (!broken[0] && ++seed <= MUTANT_LIVES)
		live(seed, (enum bottle_mutant)_i, broken);
	ck_assert_msg(broken[0], "mutant %d was not found", _i);
	printf("mutant %d: %llu lives: %s\n", _i, (unsigned long long)seed, broken);
}
END_TEST

/* ---- a module for each node, as its variables are its own ---- */

static const char *module_path(void)
{
	static char path[512];
	const char *build = getenv("top_builddir");

	snprintf(path, sizeof(path), "%s/tests/cluster/.libs/bottle_reader.so",
		 build ? build : ".");
	return path;
}

static bool copy_module(unsigned number)
{
	const char *from = module_path();
	char to[64], data[65536];
	FILE *in, *out;
	bool is_good;
	size_t n;

	snprintf(to, sizeof(to), "%s/%u.so", folder, number);
	in = fopen(from, "r");
	out = fopen(to, "w");
	is_good = in && out;
	while (is_good && (n = fread(data, 1, sizeof(data), in)) > 0)
		is_good = fwrite(data, 1, n, out) == n;
	if (in)
		fclose(in);
	if (out)
		is_good &= fclose(out) == 0;
	if (!is_good)
		fprintf(stderr, "cannot copy %s to %s\n", from, to);
	return is_good;
}

static bool make_folder(void)
{
	bool is_good = mkdtemp(folder) != NULL;

	for (unsigned i = 0; i < BOTTLE_NODES && is_good; i++)
		is_good = copy_module(i);
	return is_good;
}

static void remove_folder(void)
{
	char path[64];

	for (unsigned i = 0; i < BOTTLE_NODES; i++) {
		snprintf(path, sizeof(path), "%s/%u.so", folder, i);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	Suite *suite = suite_create("bottle");
	TCase *tcase = tcase_create("bottle");
	SRunner *runner = srunner_create(suite);
	int failed = 1;

	if (access(module_path(), F_OK) < 0) {
		printf("skipped: this build has no shared libraries\n");
		return 77;
	}
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_test(tcase, what_must_hold_holds);
	tcase_add_test(tcase, a_seed_is_a_life);
	if (!HISTORIES_ARE_FEW) /* a sanitizer has nothing to see in them */
		tcase_add_loop_test(tcase, a_planted_fault_is_found, 1, MUTANTS);
	if (seal_init() == 0 && make_folder()) {
		srunner_run_all(runner, CK_NORMAL);
		failed = srunner_ntests_failed(runner);
	}
	remove_folder();
	srunner_free(runner);
	return failed ? 1 : 0;
}
