/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What holds for every job, whoever runs beside it, wherever it is cut: all ranks are given equally
 * many batches, of the same epochs and steps; a batch is short in an epoch's last step alone, and
 * is_last says which that is; no sample comes twice in an epoch; with a fixed plan the samples of
 * an epoch, life after life, step after step, rank after rank, are the plan's, from its first place
 * on. At the end each sample of each epoch has come, but for those that drop_last left out.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "plan/population.h"
#include "tests/scenarios/mixture.h"

const unsigned mixture_samples[MIXTURE_DATASETS] = {1, 2, 13, 64, 151, MIXTURE_N};
const struct oa_sampler mixture_half = {
    .size = sizeof(mixture_half), .from = 0, .to = 0.5, .split_seed = 7};

/* With how many ranks an order is run. */
static const struct mixture_order {
	enum oa_order order;
	uint32_t ranks[8]; /* ends with 0 */
} orders[] = {
    {OA_ORDER_CAROUSEL, {1, 2, 3, 4, 8}},
    {OA_ORDER_ANY, {1, 2, 3, 4, 8}},
    {OA_ORDER_SEEDED, {1, 2, 3, 4, 8}},
    {OA_ORDER_SEQUENTIAL, {1, 2, 3, 4, 8}},
};

/* ---- drawing ---- */

static uint32_t draw_ranks(struct philox_seq *random, const struct mixture_order *order,
			   unsigned most)
{
	uint32_t n = 0;

	while (order->ranks[n] && order->ranks[n] <= most)
		n++;
	return n ? order->ranks[philox_below(random, n)] : 1;
}

static uint32_t draw_batch(struct philox_seq *random, unsigned n)
{
	switch (philox_below(random, 4)) {
	case 0:
		return 1 + (uint32_t)philox_below(random, 4);
	case 1:
		return 1 + (uint32_t)philox_below(random, n + 5);
	default:
		return 1 + (uint32_t)philox_below(random, 32);
	}
}

/* At once, after a step, at the end of the epoch, anywhere in two epochs, at the end of all. */
static uint32_t draw_steps(struct philox_seq *random, const struct mixture_life *life, unsigned n)
{
	uint32_t epoch = (n + life->batch * life->ranks - 1) / (life->batch * life->ranks);

	switch (philox_below(random, 8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return epoch;
	case 3:
		return MIXTURE_TO_THE_END;
	default:
		return (uint32_t)philox_below(random, 2 * epoch + 1);
	}
}

static void draw_life(struct philox_seq *random, const struct mixture_order *order, unsigned n,
		      unsigned most_ranks, struct mixture_life *ret)
{
	ret->ranks = draw_ranks(random, order, most_ranks);
	ret->batch = draw_batch(random, n);
	ret->steps = draw_steps(random, ret, n);
	ret->teller = (uint32_t)philox_below(random, ret->ranks);
	ret->drops_last = philox_below(random, 4) == 0 && ret->batch <= n;
	ret->copies = philox_below(random, 3) == 0;
	ret->is_brief = philox_below(random, 2);
}

static void draw_job(struct philox_seq *random, unsigned most_ranks, struct mixture_job *ret)
{
	const struct mixture_order *order = &orders[philox_below(random, BASE_ARRAY_LEN(orders))];
	bool is_fixed = plan_is_fixed(order->order);

	*ret = (struct mixture_job){
	    .dataset = (unsigned)philox_below(random, MIXTURE_DATASETS),
	    .n_lives = 1 + (unsigned)philox_below(random, MIXTURE_LIVES),
	    .order = order->order,
	    .is_random = philox_below(random, 2) && order->order != OA_ORDER_ANY,
	    .seed = is_fixed ? 1 + philox_below(random, 3) : 0,
	    .epochs = 1 + philox_below(random, MIXTURE_EPOCHS),
	    .chunk = philox_below(random, 2) ? 1 + (uint32_t)philox_below(random, 48) : 0,
	};
	for (unsigned i = 0; i < ret->n_lives; i++)
		draw_life(random, order, mixture_samples[ret->dataset], most_ranks, &ret->life[i]);
	ret->life[0].is_brief = false;
	ret->life[ret->n_lives - 1].steps = MIXTURE_TO_THE_END;
}

/* Some of those that share have a part; dropping a last batch must leave some. */
static void draw_half(struct philox_seq *random, struct mixture_job *job)
{
	unsigned n = mixture_samples[job->dataset];

	job->is_half = !plan_is_fixed(job->order) && n > 4 && philox_below(random, 3) == 0;
	for (unsigned i = 0; i < job->n_lives && job->is_half; i++)
		job->life[i].drops_last = job->life[i].drops_last && job->life[i].batch < n / 2;
}

void mixture_draw(struct mixture *mixture, uint64_t seed, uint64_t number, unsigned most_ranks)
{
	struct philox_seq random;

	philox_seq_init(&random, seed, number, 0);
	*mixture = (struct mixture){.seed = seed, .number = number};
	mixture->n_jobs = 1 + (unsigned)philox_below(&random, MIXTURE_JOBS);
	if (philox_below(&random, 8) == 0)
		mixture->kill_after = 1 + (unsigned)philox_below(&random, 60);
	for (unsigned i = 0; i < mixture->n_jobs; i++)
		draw_job(&random, BASE_MAX(most_ranks / mixture->n_jobs, 1), &mixture->job[i]);
	/* Sharers, not only neighbours. */
	for (unsigned i = 1; i < mixture->n_jobs; i++)
		if (philox_below(&random, 2) && mixture_samples[mixture->job[0].dataset] ==
						    mixture_samples[mixture->job[i].dataset])
			mixture->job[i].is_random =
			    mixture->job[0].is_random && mixture->job[i].order != OA_ORDER_ANY;
	for (unsigned i = 0; i < mixture->n_jobs; i++)
		draw_half(&random, &mixture->job[i]);
}

void mixture_print(const struct mixture *mixture, FILE *file)
{
	fprintf(file, "to repeat it: ACCESS_TEST_SEED=%" PRIu64 " ACCESS_TEST_CASE=%" PRIu64 "\n",
		mixture->seed, mixture->number);
	if (mixture->kill_after)
		fprintf(file, "accessd is killed after %u batches\n", mixture->kill_after);
	for (unsigned i = 0; i < mixture->n_jobs; i++) {
		const struct mixture_job *job = &mixture->job[i];

		fprintf(file,
			"job %u: %s%u samples, %s, seed %" PRIu64 ", %s, %" PRIu64
			" epochs, chunk %" PRIu32 "\n",
			i, job->is_half ? "half of " : "", mixture_samples[job->dataset],
			plan_name(job->order), job->seed,
			job->is_random ? "random ops" : "no random op", job->epochs, job->chunk);
		for (unsigned k = 0; k < job->n_lives; k++) {
			const struct mixture_life *life = &job->life[k];

			fprintf(file,
				"  life %u: R %" PRIu32 ", B %" PRIu32 ", %" PRIu32
				" steps, the token of rank %" PRIu32 "%s%s%s\n",
				k, life->ranks, life->batch, life->steps, life->teller,
				life->drops_last ? ", drop_last" : "",
				life->copies ? ", copies" : "", life->is_brief ? ", brief" : "");
		}
	}
}

/* ---- what a rank was given ---- */

void mixture_given_fini(struct mixture_given *given)
{
	free(given->batch);
	free(given->ids);
	*given = (struct mixture_given){.batch = NULL};
}

int mixture_given_add(struct mixture_given *given, const struct oa_batch_info *info)
{
	void *batch = realloc(given->batch, (given->n_batches + 1) * sizeof(*given->batch));
	void *ids;

	if (!batch)
		return -ENOMEM;
	given->batch = batch;
	ids = realloc(given->ids, (given->n_ids + info->count + 1) * sizeof(*given->ids));
	if (!ids)
		return -ENOMEM;
	given->ids = ids;
	memcpy(given->ids + given->n_ids, info->ids, info->count * sizeof(*info->ids));
	given->n_ids += info->count;
	given->batch[given->n_batches++] = (struct mixture_batch){
	    .epoch = info->epoch,
	    .step = info->step,
	    .count = info->count,
	    .is_last = info->is_last,
	};
	return 0;
}

/* ---- the ledger ---- */

#define wrong(diag, ...) (diag_set(diag, __VA_ARGS__), false)

static bool ranks_agree(const struct mixture_life *life, const struct mixture_given *given,
			struct diag *diag)
{
	for (uint32_t r = 1; r < life->ranks; r++) {
		if (given[r].n_batches != given[0].n_batches ||
		    given[r].has_ended != given[0].has_ended)
			return wrong(diag, "rank 0 has %zu batches, rank %" PRIu32 " has %zu",
				     given[0].n_batches, r, given[r].n_batches);
		for (size_t i = 0; i < given->n_batches; i++) {
			const struct mixture_batch *a = &given[0].batch[i];
			const struct mixture_batch *b = &given[r].batch[i];

			if (a->epoch != b->epoch || a->step != b->step ||
			    a->is_last != b->is_last || b->count > a->count ||
			    a->count - b->count > 1)
				return wrong(diag,
					     "step %zu is epoch %" PRIu64 " step %" PRIu64
					     " count %" PRIu32 " on rank 0, epoch %" PRIu64
					     " step %" PRIu64 " count %" PRIu32 " on rank %" PRIu32,
					     i, a->epoch, a->step, a->count, b->epoch, b->step,
					     b->count, r);
		}
	}
	return true;
}

/* Of rank 0, as the ranks agree. */
static bool steps_follow(const struct mixture_life *life, const struct mixture_given *given,
			 struct diag *diag)
{
	for (size_t i = 0; i < given->n_batches; i++) {
		const struct mixture_batch *here = &given->batch[i], *next = here + 1;
		bool has_next = i + 1 < given->n_batches;

		if (here->count > life->batch || (here->count < life->batch && !here->is_last) ||
		    (here->count < life->batch && life->drops_last))
			return wrong(diag, "batch %zu of the life has %" PRIu32 " samples", i,
				     here->count);
		if (here->is_last
			? has_next && next->epoch <= here->epoch
			: has_next && (next->epoch != here->epoch || next->step != here->step + 1))
			return wrong(diag,
				     "after epoch %" PRIu64 " step %" PRIu64
				     "%s comes epoch %" PRIu64 " step %" PRIu64,
				     here->epoch, here->step, here->is_last ? ", the last," : "",
				     next->epoch, next->step);
		if (!has_next && given->has_ended && !here->is_last)
			return wrong(diag, "the end after a batch that is not its epoch's last");
	}
	return true;
}

void mixture_begin(struct mixture_ledger *ledger)
{
	const struct population_split split = {mixture_half.from, mixture_half.to,
					       mixture_half.split_seed};
	unsigned n = mixture_samples[ledger->job->dataset];
	struct permutation permutation;

	permutation_init(&permutation, n, ledger->version);
	ledger->n = 0;
	for (unsigned id = 0; id < n; id++) {
		uint64_t block = permutation_position(&permutation, id) / permutation.block;

		ledger->is_member[id] =
		    !ledger->job->is_half ||
		    population_has_block(&permutation, ledger->version, &split, block);
		ledger->n += ledger->is_member[id];
	}
}

static bool add_sample(struct mixture_ledger *ledger, uint64_t epoch, int64_t id,
		       const int64_t *planned, struct diag *diag)
{
	unsigned n = mixture_samples[ledger->job->dataset];
	uint64_t at = ledger->count[epoch]++;

	if (id < 0 || id >= (int64_t)n)
		return wrong(diag, "sample %" PRId64 " of %u", id, n);
	if (!ledger->is_member[id])
		return wrong(diag, "sample %" PRId64 " is not of its half", id);
	if (ledger->seen[epoch][id]++)
		return wrong(diag, "epoch %" PRIu64 ": sample %" PRId64 " came twice", epoch, id);
	if (planned && planned[at] != id)
		return wrong(diag,
			     "epoch %" PRIu64 ", place %" PRIu64 ": sample %" PRId64
			     ", and the plan says %" PRId64,
			     epoch, at, id, planned[at]);
	return true;
}

static const int64_t *plan_of(const struct mixture_ledger *ledger, uint64_t epoch, int64_t *room)
{
	const struct mixture_job *job = ledger->job;
	unsigned n = mixture_samples[job->dataset];
	struct plan plan;

	if (!plan_is_fixed(job->order))
		return NULL;
	plan_init(&plan, (enum plan_order)job->order, n, job->seed, ledger->version,
		  !job->is_random);
	plan_samples(&plan, epoch, 0, n, room);
	return room;
}

/* A step: the batch of rank 0, 1, ... */
static bool add_step(struct mixture_ledger *ledger, const struct mixture_life *life,
		     const struct mixture_given *given, size_t step, size_t *at, struct diag *diag)
{
	uint64_t epoch = given->batch[step].epoch;
	int64_t room[MIXTURE_N];
	const int64_t *planned;

	if (epoch >= ledger->job->epochs || epoch < ledger->epoch)
		return wrong(diag, "a batch of epoch %" PRIu64, epoch);
	ledger->epoch = epoch;
	planned = plan_of(ledger, epoch, room);
	for (uint32_t r = 0; r < life->ranks; r++)
		for (uint32_t i = 0; i < given[r].batch[step].count; i++)
			if (!add_sample(ledger, epoch, given[r].ids[at[r]++], planned, diag))
				return false;
	return true;
}

static uint64_t step_samples(const struct mixture_life *life)
{
	return (uint64_t)life->batch * life->ranks;
}

/* What a life that drops last batches may have left out: less than a step of each epoch it saw. */
static void note_dropped(struct mixture_ledger *ledger, const struct mixture_life *life,
			 struct mixture_place from, struct mixture_place to)
{
	for (uint64_t e = from.epoch; e <= to.epoch && e < ledger->job->epochs; e++)
		if (life->drops_last)
			ledger->may_lack[e] = BASE_MAX(ledger->may_lack[e], step_samples(life) - 1);
}

/* Epochs that lie in this life as a whole lack exactly what drop_last says. */
static bool epochs_are_whole(const struct mixture_ledger *ledger, const struct mixture_life *life,
			     struct mixture_place from, struct mixture_place to, struct diag *diag)
{
	uint64_t n = ledger->n;
	uint64_t due = life->drops_last ? n - n % step_samples(life) : n;

	for (uint64_t e = from.epoch + (from.delivered > 0); e < to.epoch; e++)
		if (ledger->count[e] != due)
			return wrong(diag,
				     "epoch %" PRIu64 " has %" PRIu64 " of %" PRIu64 " samples", e,
				     ledger->count[e], due);
	return true;
}

bool mixture_add(struct mixture_ledger *ledger, const struct mixture_life *life,
		 const struct mixture_given *given, struct mixture_place from,
		 struct mixture_place to, struct diag *diag)
{
	size_t at[MIXTURE_RANKS] = {0};

	if (!ranks_agree(life, given, diag) || !steps_follow(life, given, diag))
		return false;
	if (!given->has_ended && given->n_batches != life->steps)
		return wrong(diag, "%zu steps of %" PRIu32 " and no end", given->n_batches,
			     life->steps);
	for (size_t step = 0; step < given->n_batches; step++)
		if (!add_step(ledger, life, given, step, at, diag))
			return false;
	note_dropped(ledger, life, from, to);
	return epochs_are_whole(ledger, life, from, to, diag);
}

bool mixture_is_whole(const struct mixture_ledger *ledger, struct diag *diag)
{
	for (uint64_t e = 0; e < ledger->job->epochs; e++)
		if (ledger->count[e] + ledger->may_lack[e] < ledger->n)
			return wrong(diag,
				     "epoch %" PRIu64 " has %" PRIu64 " of %" PRIu64 " samples", e,
				     ledger->count[e], ledger->n);
	return true;
}
