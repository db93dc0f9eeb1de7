/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a training run must be given: each sample of an epoch as often as its plan says, its own bytes, in its order, never one
 * instance more often than it allows. The ranks of a job share that: what one was given in a step is its own for good, whoever was
 * killed since; but where accessd had none of them for so long that it forgets their plan, all begin anew (training.c). What is drawn
 * comes again as it was.
 *
 * Where accessd's own log of a plan is lost, a rank that has less of it than others may go on with another version of it. That
 * one deals what it lacks, so samples that others had may come twice. Each version is held to be whole by itself, with
 * all that the rank that it began with knew; nobody who had more is let in.
 */

#include <string.h>

#include "tests/daemon/bottle/bottle.h"

static bool may_miss(const struct training *job, uint64_t sample)
{
	return job->bottle->is_bad[sample] || job->bottle->is_excused[sample];
}

/* Are places of the plan passed over? */
static bool has_holes(const struct training *job)
{
	return job->plan.bad == OA_BAD_SKIP;
}

bool model_may_fail(const struct training *job)
{
	bool is_any = false;

	for (unsigned i = 0; i < job->bottle->samples; i++)
		is_any |= may_miss(job, i);
	return is_any && job->plan.bad == OA_BAD_ERROR;
}

/* ---- epochs ---- */

static void begin_epoch(struct model *model, uint64_t epoch)
{
	model->epoch = epoch;
	model->step = 0;
	model->count = model->place = 0;
	memset(model->times, 0, sizeof(model->times));
}

static unsigned count_lost(const struct training *job)
{
	const struct picked *picked = &job->plan.picked;
	unsigned lost = 0;

	if (picked->has_weights) {
		for (unsigned i = 0; i < job->bottle->samples && has_holes(job); i++)
			if (picked->times[i] && may_miss(job, i))
				return 0; /* there is no saying */
		return picked->total - job->model.count;
	}
	for (unsigned i = 0; i < job->bottle->samples; i++)
		if (!has_holes(job) || !may_miss(job, i))
			lost += picked->times[i] - job->model.times[i];
	return lost;
}

/* Bad samples may leave too few for a batch of each rank: then an epoch has none. */
bool model_may_be_empty(const struct training *job)
{
	const struct job_plan *plan = &job->plan;
	unsigned n = 0;

	if (!(plan->flags & OA_DROP_LAST) || !has_holes(job))
		return false;
	for (unsigned i = 0; i < job->bottle->samples; i++)
		if (!may_miss(job, i))
			n += plan->picked.times[i];
	return plan->picked.has_weights || n < plan->batch * plan->ranks;
}

/* Do all ranks have one plan of that epoch? */
static bool is_of_all(const struct troop *troop, unsigned ranks, uint64_t epoch)
{
	bool is_one = true;

	for (unsigned i = 1; i < ranks; i++)
		is_one &= troop->of[i] == troop->of[0];
	return is_one || epoch < troop->parted;
}

/* When the last of them has ended it. */
static unsigned count_lost_of_ranks(const struct training *job)
{
	const uint64_t epoch = job->model.epoch;
	struct troop *troop = &job->bottle->troop[job->plan.leader];
	unsigned lost = 0;

	troop->ended[epoch] |= 1U << job->plan.rank;
	if (troop->ended[epoch] != (1U << job->plan.ranks) - 1 ||
	    !is_of_all(troop, job->plan.ranks, epoch))
		return 0;
	for (unsigned i = 0; i < job->bottle->samples; i++)
		lost += !troop->owner[troop->of[job->plan.rank]][epoch][i] &&
			(!has_holes(job) || !may_miss(job, i));
	return lost;
}

void model_end_epoch(struct training *job)
{
	const struct job_plan *plan = &job->plan;
	const unsigned lost = plan->ranks > 1 ? count_lost_of_ranks(job) : count_lost(job);

	if (lost && !(plan->flags & OA_DROP_LAST && lost < plan->batch * plan->ranks))
		bottle_break("job %u: %u samples of epoch %llu never came", job->number, lost,
			     (unsigned long long)job->model.epoch);
}

/* ---- versions of a plan ---- */

static unsigned find_plan(const struct troop *troop, const uint8_t plan[PLAN_LOG_ID])
{
	unsigned i = 0;

	while (i < troop->plans && memcmp(troop->id[i], plan, PLAN_LOG_ID) != 0)
		i++;
	return i;
}

/* A version of the one that the rank has begins with what the rank knows of it. */
static void begin_plan(struct troop *troop, const struct training *job, unsigned plan)
{
	const unsigned from = troop->of[job->plan.rank];
	const struct model *model = &job->model;

	for (uint64_t epoch = 0; epoch <= model->epoch; epoch++)
		for (unsigned i = 0; i < BOTTLE_SAMPLES; i++) {
			const uint32_t owner = troop->owner[from][epoch][i];
			const uint64_t step = owner ? (owner - 1) / job->plan.ranks : UINT64_MAX;

			if (owner && (epoch < model->epoch || step < model->step))
				troop->owner[plan][epoch][i] = owner;
		}
	if (plan == 1 || model->epoch < troop->parted)
		troop->parted = model->epoch;
}

/* What the rank had of its own plan must be its own in that one, too. */
static void join_plan(struct troop *troop, const struct training *job, unsigned plan)
{
	const unsigned from = troop->of[job->plan.rank], rank = job->plan.rank;

	for (uint64_t epoch = 0; epoch < BOTTLE_EPOCHS; epoch++)
		for (unsigned i = 0; i < BOTTLE_SAMPLES; i++) {
			const uint32_t own = troop->owner[from][epoch][i];
			uint32_t *its = &troop->owner[plan][epoch][i];

			if (!own || (own - 1) % job->plan.ranks != rank)
				continue;
			if (*its && *its != own)
				bottle_break("job %u is let in to a plan by which sample %u of "
					     "epoch %llu, which it had, is another's",
					     job->number, i, (unsigned long long)epoch);
			*its = own;
		}
}

void model_join(struct training *job, const uint8_t plan[PLAN_LOG_ID])
{
	struct troop *troop = &job->bottle->troop[job->plan.leader];
	const bool may_part = troop->plans > 1 || (troop->plans && job->bottle->may_part);
	const unsigned its = may_part ? find_plan(troop, plan) : 0;

	if (its == BOTTLE_PLANS) {
		bottle_break("job %u: its ranks have more than %u plans", job->number,
			     BOTTLE_PLANS);
		return;
	}
	if (its != troop->of[job->plan.rank] && its < troop->plans)
		join_plan(troop, job, its);
	else if (its == troop->plans && may_part)
		begin_plan(troop, job, its);
	troop->of[job->plan.rank] = its;
	troop->plans = BASE_MAX(troop->plans, its + 1);
	memcpy(troop->id[its], plan, PLAN_LOG_ID);
}

/* ---- samples ---- */

static void check_picture(struct training *job, int64_t id, const uint64_t mark[2], uint64_t label,
			  unsigned *substituted)
{
	struct model *model = &job->model;

	if (mark[0] != (uint64_t)id &&
	    !(job->plan.bad == OA_BAD_SUBSTITUTE && may_miss(job, (uint64_t)id)))
		bottle_break("job %u: sample %lld has the picture of %llu", job->number,
			     (long long)id, (unsigned long long)mark[0]);
	if (label != (mark[0] >= job->bottle->samples / 2))
		bottle_break("job %u: sample %lld has label %llu", job->number, (long long)id,
			     (unsigned long long)label);
	model->seen[id] = model->mark[id] == mark[1] ? (uint8_t)(model->seen[id] + 1) : 1;
	model->mark[id] = mark[1];
	if (job->plan.order == OA_ORDER_CAROUSEL && model->seen[id] > job->plan.reuse)
		bottle_break("job %u: sample %lld as it was in %u epochs before", job->number,
			     (long long)id, job->plan.reuse);
	*substituted += mark[0] != (uint64_t)id;
}

/* It is a rank's of a step, and no other's, if it is brought again. */
static void check_owner(struct training *job, int64_t id, uint64_t step)
{
	struct troop *troop = &job->bottle->troop[job->plan.leader];
	uint32_t *owner = &troop->owner[troop->of[job->plan.rank]][job->model.epoch][id];
	const uint32_t own = 1 + job->plan.rank + job->plan.ranks * (uint32_t)step;

	if (*owner && *owner != own)
		bottle_break("job %u: sample %lld of epoch %llu is rank %u's of step %llu, and was "
			     "rank %u's of step %u",
			     job->number, (long long)id, (unsigned long long)job->model.epoch,
			     job->plan.rank, (unsigned long long)step,
			     (*owner - 1) % job->plan.ranks, (*owner - 1) / job->plan.ranks);
	*owner = own;
}

/* What an order that is computed has at a place it has there for good. */
static void check_again(struct training *job, int64_t id)
{
	uint16_t *was = &job->record[job->model.epoch][job->model.count];

	if (job->plan.order != OA_ORDER_SEEDED || has_holes(job) || job->plan.ranks > 1)
		return;
	if (*was && *was != id + 1)
		bottle_break("job %u: %lld at place %u of epoch %llu, where %d was", job->number,
			     (long long)id, job->model.count, (unsigned long long)job->model.epoch,
			     *was - 1);
	*was = (uint16_t)(id + 1);
}

/* Behind each sample of a sequence come those behind it, or bad ones were left out. */
static void check_place(struct training *job, int64_t id)
{
	const struct picked *picked = &job->plan.picked;
	struct model *model = &job->model;

	if (job->plan.order != OA_ORDER_SEQUENTIAL || job->plan.ranks > 1)
		return;
	for (; model->place < picked->total; model->place++) {
		const int64_t next = picked->n ? picked->ids[model->place] : model->place;

		if (next == id)
			break;
		if (!has_holes(job) || !may_miss(job, (uint64_t)next)) {
			bottle_break("job %u: %lld comes before %lld", job->number, (long long)id,
				     (long long)next);
			break;
		}
	}
	model->place++;
}

static void check_sample(struct training *job, int64_t id, uint64_t step)
{
	struct model *model = &job->model;

	if (model->times[id] == job->plan.picked.times[id] ||
	    model->count == job->plan.picked.total)
		bottle_break("job %u: sample %lld once more in epoch %llu", job->number,
			     (long long)id, (unsigned long long)model->epoch);
	if (job->bottle->broken[0])
		return;
	check_place(job, id);
	check_again(job, id);
	if (job->plan.ranks > 1)
		check_owner(job, id, step);
	model->times[id]++;
	model->count++;
}

/* ---- batches ---- */

/* Of ranks a hole makes it shorter, and there may be fewer samples left than ranks. */
static bool is_count_fine(const struct training *job, const struct oa_batch_info *info)
{
	const struct job_plan *plan = &job->plan;
	const bool is_short = info->count < plan->batch;

	if (info->count > plan->batch)
		return false;
	if (plan->ranks > 1)
		return !is_short || has_holes(job) ||
		       (info->is_last && !(plan->flags & OA_DROP_LAST));
	return info->count && (!is_short || (info->is_last && !(plan->flags & OA_DROP_LAST)));
}

static void check_rows(struct training *job, const struct oa_batch *batch,
		       const struct oa_batch_info *info)
{
	const struct client_calls *client = job->bottle->client;
	struct oa_field image = {.size = sizeof(image)}, label = {.size = sizeof(label)};
	unsigned substituted = 0;

	client->field(batch, 0, &image);
	client->field(batch, 1, &label);
	for (uint32_t i = 0; i < info->count && !job->bottle->broken[0]; i++) {
		const int64_t id = info->ids[i];
		uint64_t mark[2], its;

		if (id < 0 || (uint64_t)id >= job->bottle->samples) {
			bottle_break("job %u: there is no sample %lld", job->number, (long long)id);
			return;
		}
		memcpy(&its, (const uint8_t *)label.data + i * (size_t)label.strides[0],
		       sizeof(its));
		memcpy(mark, (const uint8_t *)image.data + i * (size_t)image.strides[0],
		       sizeof(mark));
		check_sample(job, id, info->step);
		check_picture(job, id, mark, its, &substituted);
	}
	if (substituted > info->substituted)
		bottle_break("job %u: %u samples are others, and %u are said to be", job->number,
			     substituted, info->substituted);
}

void model_take(struct training *job, const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};

	job->bottle->client->info(batch, &info);
	if (info.epoch == job->model.epoch + 1) {
		model_end_epoch(job);
		begin_epoch(&job->model, info.epoch);
	}
	if (info.epoch != job->model.epoch || info.epoch >= job->plan.epochs)
		bottle_break("job %u: a batch of epoch %llu in epoch %llu", job->number,
			     (unsigned long long)info.epoch, (unsigned long long)job->model.epoch);
	else if (!is_count_fine(job, &info))
		bottle_break("job %u: a batch of %u samples", job->number, info.count);
	else
		check_rows(job, batch, &info);
	job->model.steps++;
	job->model.step = info.step + 1;
	bottle_note('b', job->number, info.count ? (uint64_t)info.ids[0] << 16 | info.count : 0);
}
