/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For whom a chunk is made: of which blocks, by who needs them, and who of these is granted it.
 *
 * Think of very many chunks an epoch, so that any set of needs has blocks enough. Every production
 * that the lead (carousel_lead.c) does not take is a loss; so all chunks are made of what the lead
 * needs, and a job of speed v is granted v of them and lets 1 - v pass. Two things can go wrong.
 *
 *   A chunk passes a job that needs it although the lead will not bring its blocks round again
 *   before the job's epoch ends. Then they are made once more, for want of the lead. Such a job
 *   is critical: its epoch ends before the lead's. A job that will not find enough in
 *   what is left of the lead's epoch has no slack, either.
 *
 *   Two critical jobs need too much, or too little, in common: then what the one must take passes
 *   the other. This is decided before, by which chunks passed both of them. When x's epoch ends
 *   first, y should need a share of x's need that is as large as y is fast; what the two let pass
 *   together from now on should make that up.
 *
 * So the choice weighs: how little is coming to a job that is granted the chunk; for one that lets it
 * pass, its lack of slack; for each two that do, whether their needs should have more in common or
 * less; and a chunk that passes a critical job. The needs are known from probes: blocks drawn
 * at random, and each set of jobs that need one of them is a candidate. What is weighed are sets of
 * positions alone, so a relabelling of the samples changes nothing.
 */

#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel_state.h"

/* "prob": apart from every use of (seed, nonce) */
#define STREAM_PROBE UINT32_C(0x70726f62)
#define MAX_TESTS 8192 /* of a probe's bit in a job's need: this bounds the time */
#define MIN_PROBES 128
#define MAX_CANDIDATES 64

/* the weights, in chunks that are coming to a job */
#define WEIGHT_HUNGRY 100.0 /* of feeding one that is */
#define WEIGHT_CRITICAL 6.0 /* of a chunk that passes critical jobs */
#define WEIGHT_TIE 40.0     /* of an epoch too much, or too little, in common */
#define ENOUGH_SLACK 0.2    /* of the lead's epoch */
#define LEVEL 2.0           /* chunks ahead that are neither too few nor too many */
#define SWEEPS 2

struct player {
	double level;
	double speed;      /* 1: the lead's */
	double need, left; /* epochs: what it needs, what the lead runs through meanwhile */
	double found;      /* of its need, what the lead needs, too */
	double passes;     /* share of that which it must let pass */
	double regret;     /* of letting a chunk pass */
	bool is_critical, may_pass;
};

struct table {
	struct carousel *carousel;
	struct carousel_probes *probes;
	uint32_t n, lead; /* players; which of them leads */
	double epoch;     /* probes that an epoch of the lead has */
	struct player player[CAROUSEL_PLAYERS];
};

/* probes */

static void draw_probes(struct carousel_probes *probes, const struct carousel *carousel,
			uint64_t nonce, uint32_t players)
{
	uint64_t blocks = carousel->permutation.blocks;
	uint32_t most = BASE_MAX(MAX_TESTS / players, (uint32_t)MIN_PROBES);
	struct philox_seq seq;

	most = BASE_MIN(most, (uint32_t)CAROUSEL_PROBES);
	probes->n = (uint32_t)BASE_MIN((uint64_t)most, blocks);
	philox_seq_init(&seq, carousel->config.seed, nonce, STREAM_PROBE);
	for (uint32_t i = 0; i < probes->n; i++)
		probes->block[i] = blocks <= most ? i : (uint32_t)philox_below(&seq, blocks);
	memset(probes->needed_by, 0, sizeof(probes->needed_by));
	memset(probes->need, 0, players * sizeof(probes->need[0]));
}

static void test_probes(struct carousel_probes *probes, const uint64_t *need, uint32_t player)
{
	for (uint32_t i = 0; i < probes->n; i++) {
		uint64_t bit = bits_test(need, probes->block[i]);

		probes->needed_by[i] |= bit << player;
		probes->need[player][i / 64] |= bit << (i % 64);
	}
}

/* Probes that all three need. */
static uint32_t in_common(const struct carousel_probes *probes, uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < (probes->n + 63) / 64; i++)
		count += (uint32_t)__builtin_popcountll(probes->need[a][i] & probes->need[b][i] &
							probes->need[c][i]);
	return count;
}

/* what is weighed */

static void describe(struct table *table, uint32_t index, uint32_t job, bool is_hungry)
{
	const struct carousel *carousel = table->carousel;
	const struct carousel_member *member = &carousel->jobs[job];
	struct player *player = &table->player[index];
	const struct player *lead = &table->player[table->lead];
	double slack;

	player->found = in_common(table->probes, index, index, table->lead) / table->epoch;
	player->need = in_common(table->probes, index, index, index) / table->epoch;
	player->left = player->need / player->speed;
	player->level = carousel_lead_level(carousel, member);
	if (member->is_group)
		player->level = is_hungry ? 0 : LEVEL; /* it is its ranks that have chunks */
	player->is_critical = index != table->lead && player->left < lead->need;
	player->may_pass = index != table->lead && index != 0;
	slack = player->found - player->speed * lead->need;
	if (player->found > 0)
		player->passes = BASE_MAX(slack, 0.0) / player->found;
	if (!player->is_critical)
		player->regret = BASE_MAX(1 - BASE_MAX(slack, 0.0) / ENOUGH_SLACK, 0.0);
}

/* What it is worth that a chunk passes both: x is the one whose epoch ends first. */
static double tie_of(const struct table *table, uint32_t a, uint32_t b)
{
	double lead = table->player[table->lead].need;
	double all = in_common(table->probes, a, b, b) / table->epoch;
	double found = in_common(table->probes, a, b, table->lead) / table->epoch;
	const struct player *x = &table->player[a], *y = &table->player[b];
	double common;

	if (x->left > y->left) {
		x = &table->player[b];
		y = &table->player[a];
	}
	if (x->is_critical || y->left - lead > 1)
		return 0; /* too late, or too early */
	common = y->speed * x->speed * (x->left - lead);
	return WEIGHT_TIE * (common - (all - found) - x->passes * y->passes * found);
}

static double worth(const struct player *player)
{
	return LEVEL - player->level + (player->level < 1 ? WEIGHT_HUNGRY : 0);
}

/* What letting it pass the player costs, beside the players that it passes already. */
static double cost_of_pass(const struct table *table, uint32_t index, uint64_t passed,
			   bool passes_critical)
{
	const struct player *player = &table->player[index];
	double cost = player->regret;

	if (player->is_critical && !passes_critical)
		cost += WEIGHT_CRITICAL;
	for (; passed; passed &= passed - 1)
		cost -= table->probes->tie[index][__builtin_ctzll(passed)];
	return cost;
}

static bool any_critical(const struct table *table, uint64_t players)
{
	for (; players; players &= players - 1)
		if (table->player[__builtin_ctzll(players)].is_critical)
			return true;
	return false;
}

/* Of those who need a chunk, whom should it pass? Who had better change sides, does, one by one. */
static uint64_t choose_passed(const struct table *table, uint64_t needed_by)
{
	uint64_t passed = 0;

	for (unsigned sweep = 0; sweep < SWEEPS; sweep++)
		for (uint64_t rest = needed_by; rest; rest &= rest - 1) {
			uint32_t index = (uint32_t)__builtin_ctzll(rest);
			uint64_t bit = UINT64_C(1) << index, others = passed & ~bit;
			const struct player *player = &table->player[index];
			double cost;

			if (!player->may_pass)
				continue;
			cost = cost_of_pass(table, index, others, any_critical(table, others));
			passed = cost < -worth(player) ? others | bit : others;
		}
	return passed;
}

static double weigh(const struct table *table, uint64_t needed_by, uint64_t passed)
{
	double weight = 0;
	uint64_t before = 0;

	for (uint64_t rest = needed_by; rest; rest &= rest - 1) {
		uint32_t index = (uint32_t)__builtin_ctzll(rest);
		uint64_t bit = UINT64_C(1) << index;

		if (!(passed & bit)) {
			weight += worth(&table->player[index]);
			continue;
		}
		weight -= cost_of_pass(table, index, before, any_critical(table, before));
		before |= bit;
	}
	return weight;
}

/* the candidates */

/* Different sets of players that need a probe, among them all of `whom`. */
static uint32_t list_candidates(const struct table *table, uint64_t whom, uint64_t *candidates)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->probes->n && n < MAX_CANDIDATES; i++) {
		uint64_t needed_by = table->probes->needed_by[i];
		uint32_t k = 0;

		if ((needed_by & whom) != whom)
			continue;
		while (k < n && candidates[k] != needed_by)
			k++;
		if (k == n)
			candidates[n++] = needed_by;
	}
	return n;
}

/* For the first player, and if it can be for the lead. False: no probe is needed by the first. */
static bool choose_best(const struct table *table, uint64_t *ret_needed_by, uint64_t *ret_passed)
{
	uint64_t candidates[MAX_CANDIDATES];
	uint32_t n = list_candidates(table, UINT64_C(1) << table->lead | 1, candidates);
	double best = 0;

	if (!n)
		n = list_candidates(table, 1, candidates);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t passed = choose_passed(table, candidates[i]);
		double weight = weigh(table, candidates[i], passed);

		if (i && weight <= best)
			continue;
		best = weight;
		*ret_needed_by = candidates[i];
		*ret_passed = passed;
	}
	return n;
}

static void set_up(struct table *table, uint64_t nonce, const uint32_t *players, uint32_t n_hungry)
{
	struct carousel *carousel = table->carousel;
	uint32_t lead = table->lead;

	draw_probes(table->probes, carousel, nonce, table->n);
	table->epoch =
	    table->probes->n *
	    ((double)carousel_population_count(carousel, &carousel->jobs[players[lead]]) /
	     (double)carousel->permutation.n);
	for (uint32_t i = 0; i < table->n; i++) {
		test_probes(table->probes, carousel->jobs[players[i]].need, i);
		table->player[i].speed = carousel_lead_speed(carousel, players[i], players[lead]);
	}
	describe(table, lead, players[lead], lead < n_hungry);
	for (uint32_t i = 0; i < table->n; i++)
		if (i != lead)
			describe(table, i, players[i], i < n_hungry);
	for (uint32_t a = 0; a < table->n; a++)
		for (uint32_t b = 0; b < a; b++) {
			double tie = 0;

			if (a != table->lead && b != table->lead)
				tie = tie_of(table, a, b);
			table->probes->tie[a][b] = table->probes->tie[b][a] = tie;
		}
}

/* the choice */

static void add(struct carousel_choice *choice, uint32_t job, bool is_wanted)
{
	choice->job[choice->n] = job;
	choice->is_wanted[choice->n++] = is_wanted;
}

/* What the hungry ones need, and what the others do not. */
static void choose_by_hunger(const struct carousel *carousel, const uint32_t *order, uint32_t n,
			     uint32_t n_hungry, struct carousel_choice *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct carousel_member *member = &carousel->jobs[order[i]];
		bool is_same = member->scope == carousel->jobs[order[0]].scope;
		bool is_wanted = is_same && (i < n_hungry || member->leads);

		add(ret, order[i], is_wanted);
		if (is_wanted)
			bits_set(ret->meant.word, order[i]);
	}
}

static void take_over(const struct table *table, const uint32_t *players, uint64_t needed_by,
		      uint64_t passed, struct carousel_choice *ret)
{
	uint64_t takes = needed_by & ~passed;

	add(ret, players[0], true);
	if (table->lead)
		add(ret, players[table->lead], needed_by >> table->lead & 1);
	for (unsigned pass = 0; pass < 2; pass++) /* who takes it before the others */
		for (uint32_t i = 1; i < table->n; i++)
			if (i != table->lead && (takes >> i & 1) == !pass)
				add(ret, players[i], needed_by >> i & 1);
	for (uint32_t i = 0; i < table->n; i++)
		if (takes >> i & 1)
			bits_set(ret->meant.word, players[i]);
}

/* Jobs of another scope, and those that were too many to be players. */
static void take_rest(const struct carousel *carousel, const uint32_t *order, uint32_t n,
		      uint32_t n_hungry, struct carousel_choice *ret)
{
	uint32_t players = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool is_same = carousel->jobs[order[i]].scope == carousel->jobs[order[0]].scope;
		bool is_wanted = is_same && i < n_hungry;

		if (is_same && players++ < CAROUSEL_PLAYERS)
			continue;
		add(ret, order[i], is_wanted);
		if (is_wanted)
			bits_set(ret->meant.word, order[i]);
	}
}

void carousel_choose(struct carousel *carousel, uint64_t nonce, const uint32_t *order, uint32_t n,
		     uint32_t n_hungry, struct carousel_choice *ret)
{
	struct table table = {.carousel = carousel, .probes = carousel->probes};
	uint32_t players[CAROUSEL_PLAYERS], hungry = 0;
	uint64_t needed_by, passed;

	*ret = (struct carousel_choice){0};
	for (uint32_t i = 0; i < n && table.n < CAROUSEL_PLAYERS; i++) {
		const struct carousel_member *member = &carousel->jobs[order[i]];

		if (member->scope != carousel->jobs[order[0]].scope)
			continue;
		if (member->leads)
			table.lead = table.n;
		hungry += i < n_hungry;
		players[table.n++] = order[i];
	}
	if (table.n > 1 && carousel_has_lead(carousel)) {
		set_up(&table, nonce, players, hungry);
		if (choose_best(&table, &needed_by, &passed)) {
			take_over(&table, players, needed_by, passed, ret);
			take_rest(carousel, order, n, n_hungry, ret);
			return;
		}
	}
	choose_by_hunger(carousel, order, n, n_hungry, ret);
}
