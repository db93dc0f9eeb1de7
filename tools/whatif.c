/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Operational analysis (P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models", ACM
 * Computing Surveys 10(3), 1978), as Plumber (M. Kuchnik et al., MLSys 2022) and DS-Analyzer (J. Mohan et al., "Analyzing and
 * Mitigating Data Stalls in DNN Training", VLDB 2021) apply it to input pipelines. Samples are made ahead of need, so the parts
 * work side by side and the slowest sets the pace:
 *
 *   rate = min(most)                          over read, decode, slots and the job itself
 *   most(part) = rate / used(part)            the utilization law: what a part gives when it is never idle
 *
 *   used(job)    = 1 - share of its time that it waits
 *   used(decode) = the greater of (made * work + others) / workers and (made * (work + read_cpu) + others) / cpus
 *   used(read)   = made * read / readers
 *   used(slots)  = 1 - share of its time that it waits for slots: no bound, where it does not
 *
 * with work, read and read_cpu the measured seconds of a sample, made the samples a second that are made for the job (once
 * for all who share them), others the workers that other streams keep busy. What the job waits for most is not idle,
 * whatever its costs say (another program may have the processors): its used is 1, and the change scales what was measured
 * in full, not what costs promise. So a prediction for the limit rests on the job's own rate, and costs say only where the next
 * limit is. A change scales most(part), and the new rate is the least again.
 *
 * Where other programs want the processors, workers wait for one, which is measured: granted is the share of their busy time that
 * they have one. A service, as a session, is one group to the kernel, whose weight is spread over the processors that it runs on:
 * n workers beside groups of the weight g on each processor have 1 / (1 + n * g). g follows from granted, and more workers
 * bring that much less. Other weights and quotas are not asked for.
 *
 * What it does not know: a disk that serves many threads no better than one (most(read) is then too high until reading is the limit),
 * and that two parts of nearly the same speed wait for each other now and then, which costs some percent.
 * That twice the slots leave nothing to be waited for them is a promise of the most.
 */

#include "tools/whatif.h"

#include <math.h>

#include "base/base.h"

#define WHATIF_OWN_LEAST 0.02 /* of its time: what is shorter cannot be told from waiting */
#define WHATIF_US 1e-6

const struct whatif_change whatif_none = {.cost = {-1, -1, -1}, .read = 1, .step = 1, .slots = 1};

/* Not a number, as what is negative, is 0. */
static double tame(double value, double most)
{
	if (!(value > 0))
		return 0;
	return value < most ? value : most;
}

static double at_least_one(double count)
{
	return count > 1 ? count : 1;
}

static double or_else(double value, double otherwise)
{
	return value >= 0 ? value : otherwise;
}

struct whatif_cost whatif_mixed(const struct whatif_cost *file, const struct whatif_cost *form,
				double share)
{
	const double kept = tame(share, 1), rest = 1 - kept;

	return (struct whatif_cost){
	    .work_us = rest * file->work_us + kept * form->work_us,
	    .read_us = rest * file->read_us + kept * form->read_us,
	    .read_cpu_us = rest * file->read_cpu_us + kept * form->read_cpu_us,
	};
}

/* ---- used shares, by what is measured or expected ---- */

static double used_decode(const struct whatif_input *in, const struct whatif_cost *cost,
			  double workers, double cpus)
{
	const double work = in->made * cost->work_us * WHATIF_US;
	const double read = in->made * tame(cost->read_cpu_us, INFINITY) * WHATIF_US;
	const double others = tame(in->others_busy, INFINITY);

	if (cost->work_us < 0)
		return -1;
	return BASE_MAX((work + others) / at_least_one(workers),
			(work + read + others) / at_least_one(cpus));
}

/* How much of a processor each of so many workers would have. */
static double granted_to(const struct whatif_input *in, double workers, double cpus)
{
	const double granted = tame(in->granted, 1);
	const double on = BASE_MIN(at_least_one(in->workers), at_least_one(in->cpus));
	double others;

	if (!(granted > 0 && granted < WHATIF_GRANTED))
		return 1;
	others = (1 / granted - 1) / on * at_least_one(in->cpus) / at_least_one(cpus);
	return 1 / (1 + BASE_MIN(at_least_one(workers), at_least_one(cpus)) * others);
}

static double used_read(const struct whatif_input *in, const struct whatif_cost *cost,
			double readers)
{
	return cost->read_us < 0 ? -1
				 : in->made * cost->read_us * WHATIF_US / at_least_one(readers);
}

static double waits_of(const struct whatif_input *in)
{
	double sum = 0;

	for (unsigned part = 0; part < WHATIF_PARTS; part++)
		sum += tame(in->waits[part], 1);
	return BASE_MIN(sum, 1.0);
}

/* ---- the limit ---- */

static enum whatif_part limit_of(const struct whatif_input *in)
{
	enum whatif_part most = WHATIF_READ;

	if (waits_of(in) < WHATIF_WAITS_LEAST)
		return WHATIF_JOB;
	for (enum whatif_part part = WHATIF_READ; part < WHATIF_PARTS; part++)
		if (in->waits[part] > in->waits[most])
			most = part;
	return most == WHATIF_JOB ? WHATIF_PARTS : most;
}

void whatif_look(const struct whatif_input *in, struct whatif *ret)
{
	ret->limit = limit_of(in);
	ret->used[WHATIF_READ] = used_read(in, &in->cost, in->readers);
	ret->used[WHATIF_DECODE] = used_decode(in, &in->cost, in->workers, in->cpus);
	ret->used[WHATIF_SLOTS] = 1 - tame(in->waits[WHATIF_SLOTS], 1 - WHATIF_OWN_LEAST);
	ret->used[WHATIF_JOB] = BASE_MAX(1 - waits_of(in), WHATIF_OWN_LEAST);
	if (ret->limit < WHATIF_PARTS)
		ret->used[ret->limit] = 1;
	for (unsigned part = 0; part < WHATIF_PARTS; part++) {
		double used = BASE_MIN(ret->used[part], 1.0);

		ret->most[part] = used > 0 ? tame(in->rate, INFINITY) / used : INFINITY;
		ret->used[part] = used;
	}
	ret->used[WHATIF_SLOTS] = tame(in->waits[WHATIF_SLOTS], 1);
	if (ret->used[WHATIF_SLOTS] <= 0)
		ret->most[WHATIF_SLOTS] = INFINITY;
}

/* ---- a change ---- */

/* How many times as fast a part is that took the one share and would take the other. */
static double quicker(double used, double would_use)
{
	if (!(used > 0) || would_use < 0)
		return 1;
	return would_use > 0 ? used / would_use : INFINITY;
}

static double slots_rate(const struct whatif *whatif, double times)
{
	return times > 1 ? INFINITY : whatif->most[WHATIF_SLOTS];
}

double whatif_rate(const struct whatif_input *in, const struct whatif *whatif,
		   const struct whatif_change *change)
{
	const struct whatif_cost cost = {
	    .work_us = or_else(change->cost.work_us, in->cost.work_us),
	    .read_us = or_else(change->cost.read_us, in->cost.read_us),
	    .read_cpu_us = or_else(change->cost.read_cpu_us, in->cost.read_cpu_us),
	};
	const double workers = in->workers + change->workers, cpus = in->cpus + change->cpus;
	const double decode = quicker(used_decode(in, &in->cost, in->workers, in->cpus),
				      used_decode(in, &cost, workers, cpus));
	const double granted =
	    granted_to(in, workers, cpus) / granted_to(in, in->workers, in->cpus);
	const double read =
	    quicker(used_read(in, &in->cost, in->readers), used_read(in, &cost, in->readers));
	double rate = whatif->most[WHATIF_DECODE] * decode * granted;

	if (whatif->limit == WHATIF_PARTS)
		return in->rate;
	rate = BASE_MIN(rate, whatif->most[WHATIF_READ] * read * change->read);
	rate = BASE_MIN(rate, whatif->most[WHATIF_JOB] * change->step);
	return BASE_MIN(rate, slots_rate(whatif, change->slots));
}
