/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is worth keeping. Cachew's autocache (D. Graur et al., "Cachew: Machine Learning Input Data
 * Processing as a Service", USENIX ATC 2022) measures three ways to serve a job, all of the work, from
 * a kept source, from a kept result, and takes the quickest. Here there are several forms between
 * file and result, and a store that may hold only a part of the samples:
 *
 *   elapsed(cpu, read) = max(cpu / cores, read / reader threads)
 *   serve(p, s) = elapsed of the mix: share s of the samples comes in form p, the rest as files
 *   step(p)     = share of the samples that the writer takes in an epoch, at most all that fits
 *   pass(p, s)  = elapsed of an epoch that begins with share s in form p, and in which step(p) more is
 *                 read from files, made, and used
 *   total(p)    = the least of the mean over all uses, of which (fits - kept) / step are passes and the
 *                 rest serve(p, fits), and of serve(p, kept)
 *
 * Means are mixed before the greatest is taken, since processors and storage work side by
 * side, ahead of need, on samples in random order: over some hundreds of them the one that has most to
 * do sets the pace. The writer sets none: what it does not take in time is not kept then, and made again in
 * another epoch. So a slow one makes the filling of a store longer, not the epochs. What it needs of a
 * processor is in make_us.
 *
 * What is kept already costs nothing to make, so the point that was chosen before has an advantage
 * which grows while it is filled; and another is chosen only if it saves POINT_MARGIN of the
 * time. Between the two a choice does not swing; nor does it while little of it was served, as it is left
 * only for what saves POINT_MARGIN_NEW.
 *
 * Nothing is extrapolated: a point that was not measured is not chosen (but what is kept of it is used
 * until both it and the file are known), and one that was never made here is used as far as it is
 * kept. doc/decisions/171-point.md has the reasons, and what else was thought of.
 */

#include "sched/point.h"

#include <math.h>

#include "base/base.h"

#define POINT_LONG_US 1e12     /* a sample does not take longer: 11 days */
#define POINT_ABOUT 0.1        /* of the samples */
#define POINT_NEAR 1.25        /* times the best: may be the best yet */
#define POINT_TRIALS_NEAR 0.75 /* of the time for trials, for those that may be the best */
#define POINT_TRIALS_FIRST 3   /* before a form's price is believed: the first warms memory */
#define POINT_TRIAL_PASSES 2   /* samples */
#define POINT_DEAR 8 /* times the file's work: what a trial may cost, nothing being known */

struct spent { /* by a sample, in the mean */
	double cpu, read;
};

/* ---- inputs ---- */

/* Not a number, as what is negative, is least. */
static double tame(double value, double least, double most)
{
	if (!(value > least))
		return least;
	return value < most ? value : most;
}

static void tame_input(struct point_input *in)
{
	in->n = BASE_MAX(1u, BASE_MIN(in->n, (unsigned)POINT_MAX));
	for (unsigned p = 0; p < in->n; p++) {
		in->cost[p].work_us = tame(in->cost[p].work_us, 0, POINT_LONG_US);
		in->cost[p].read_us = tame(in->cost[p].read_us, 0, POINT_LONG_US);
		in->cost[p].read_cpu_us = tame(in->cost[p].read_cpu_us, 0, POINT_LONG_US);
		in->cost[p].make_us = tame(in->cost[p].make_us, 0, POINT_LONG_US);
		in->cost[p].write_us = tame(in->cost[p].write_us, 0, POINT_LONG_US);
		in->cost[p].bytes = tame(in->cost[p].bytes, 0, 1e18);
		if (in->most_uses[p] != 0)
			in->most_uses[p] = tame(in->most_uses[p], 1, 1e9);
		in->cached[p] = p > 0 ? tame(in->cached[p], 0, 1) : 0;
	}
	in->cores = tame(in->cores, 0.01, 1e6);
	in->reader_threads = tame(in->reader_threads, 1, 1e6);
	in->uses = tame(in->uses, 1, 1e9);
	in->past = tame(in->past, 0, 1e9);
	in->current = in->current < in->n ? in->current : 0;
}

static bool is_measured(const struct point_input *in, unsigned p)
{
	const struct point_cost *cost = &in->cost[p];

	if (p > 0 && cost->made < POINT_TRIALS_LEAST && !(in->cached[p] > 0))
		return false;
	return cost->samples >= POINT_TRIALS_LEAST;
}

/* ---- expectations ---- */

static double elapsed(const struct point_input *in, struct spent spent)
{
	return BASE_MAX(spent.cpu / in->cores, spent.read / in->reader_threads);
}

static struct spent mixed(const struct point_input *in, unsigned p, double share)
{
	const struct point_cost *file = &in->cost[0], *form = &in->cost[p];
	struct spent spent = {
	    .cpu = (1 - share) * (file->work_us + file->read_cpu_us) +
		   share * (form->work_us + form->read_cpu_us),
	    .read = (1 - share) * file->read_us + share * form->read_us,
	};

	return spent;
}

static double fits_of(const struct point_input *in, unsigned p)
{
	const struct point_cost *cost = &in->cost[p];
	double whole = cost->bytes * (double)in->n_samples, room = (double)in->room[p];

	if (cost->made < POINT_TRIALS_LEAST)
		return in->cached[p];
	if (whole <= room)
		return in->n_samples > 0;
	return BASE_MAX(room / whole, in->cached[p]);
}

/* An epoch that begins with share kept in form p, and makes another share of it. */
static double pass_of(const struct point_input *in, unsigned p, double kept, double made)
{
	const struct point_cost *cost = &in->cost[p];
	struct spent spent = mixed(in, p, kept);

	spent.cpu += made * (cost->make_us + cost->work_us - in->cost[0].work_us);
	return elapsed(in, spent);
}

/* The mean of all epochs to come, in which what fits is made as fast as the writer takes it. What is made anew after
 * some of them has the mean of those. */
static double filled_of(const struct point_input *in, unsigned p, double fits)
{
	const double kept = in->cached[p], write_us = in->cost[p].write_us, made = fits - kept;
	const double serve = elapsed(in, mixed(in, p, fits));
	const double epoch = (elapsed(in, mixed(in, p, kept)) + serve) / 2;
	const double step = made * write_us > epoch ? epoch / write_us : made;
	const double uses = in->most_uses[p] > 0 ? BASE_MIN(in->uses, in->most_uses[p]) : in->uses;
	const double passes = BASE_MIN(step < made ? made / step : 1, uses);
	const double first = pass_of(in, p, kept, step),
		     last = pass_of(in, p, kept + (passes - 1) * step, step);

	return (passes * (first + last) / 2 + (uses - passes) * serve) / uses;
}

/* Fills ret's arrays at p. Whether making what is not kept shortens the time. */
static bool expect(const struct point_input *in, unsigned p, struct point_choice *ret)
{
	double fits = p > 0 ? fits_of(in, p) : 1, made, unmade;

	ret->fits[p] = fits;
	ret->whole_us[p] = ret->serve_us[p] = ret->total_us[p] = INFINITY;
	if (!is_measured(in, p))
		return false;
	ret->whole_us[p] = elapsed(in, mixed(in, p, 1));
	ret->serve_us[p] = elapsed(in, mixed(in, p, fits));
	unmade = elapsed(in, mixed(in, p, in->cached[p]));
	made = p > 0 ? filled_of(in, p, fits) : unmade;
	ret->total_us[p] = BASE_MIN(made, unmade);
	return fits > in->cached[p] && made < unmade;
}

/* ---- the choice ---- */

/* Least of values but that of not_this; among equals the first. not_this when there is no other. */
static unsigned least(const double *values, unsigned first, unsigned n, unsigned not_this)
{
	unsigned best = not_this;

	for (unsigned p = first; p < n; p++)
		if (p != not_this && isfinite(values[p]) &&
		    (best == not_this || values[p] < values[best]))
			best = p;
	return best;
}

static bool saves(double challenger, double holder, double margin)
{
	return challenger < (1 - margin) * holder;
}

static bool is_unknown(const struct point_input *in, unsigned p)
{
	return in->cached[p] > 0 && !is_measured(in, p);
}

/* A kept form of which nothing is known, the current one before others, else the most kept one, else the
 * one behind most of the work; 0: there is none. */
static unsigned find_unknown(const struct point_input *in)
{
	unsigned best = 0;

	if (is_unknown(in, in->current))
		return in->current;
	for (unsigned p = 1; p < in->n; p++)
		if (is_unknown(in, p) && in->cached[p] >= in->cached[best])
			best = p;
	return best;
}

/* Without the file's costs: the quickest of the forms that are kept about as much as any. */
static unsigned find_kept(const struct point_input *in, const struct point_choice *costs)
{
	double most = 0;
	unsigned best = 0;

	for (unsigned p = 1; p < in->n; p++)
		most = BASE_MAX(most, in->cached[p]);
	for (unsigned p = 1; p < in->n; p++)
		if (in->cached[p] > 0 && in->cached[p] >= most - POINT_ABOUT &&
		    (best == 0 || costs->whole_us[p] < costs->whole_us[best]))
			best = p;
	return best;
}

static void choose_blindly(const struct point_input *in, struct point_choice *ret)
{
	unsigned unknown = find_unknown(in);

	ret->point = ret->rival = unknown ? unknown : find_kept(in, ret);
	ret->reason = POINT_UNMEASURED;
}

/* Is there something that must be used before it can be judged? Of another than the file, the others that are
 * kept are tried by and by. */
static bool is_blind(const struct point_input *in)
{
	return !is_measured(in, 0) || is_unknown(in, in->current) ||
	       (in->current == 0 && find_unknown(in) > 0);
}

/* The file was chosen: because of what? */
static void explain_file(const struct point_input *in, struct point_choice *ret)
{
	ret->rival = least(ret->whole_us, 1, in->n, 0);
	ret->reason = POINT_NOT_WORTH;
	if (ret->rival == 0)
		ret->reason = POINT_UNMEASURED;
	else if (saves(ret->whole_us[ret->rival], ret->whole_us[0], POINT_MARGIN)) {
		ret->rival = least(ret->serve_us, 1, in->n, 0);
		ret->reason = saves(ret->serve_us[ret->rival], ret->whole_us[0], POINT_MARGIN)
				  ? POINT_FEW_USES
				  : POINT_NO_ROOM;
	}
	if (ret->reason == POINT_FEW_USES)
		ret->rival = least(ret->total_us, 1, in->n, 0);
}

static void choose(const struct point_input *in, struct point_choice *ret)
{
	const double margin = in->current > 0 && in->is_new ? POINT_MARGIN_NEW : POINT_MARGIN;
	unsigned rival = least(ret->total_us, 0, in->n, in->current);

	ret->point =
	    saves(ret->total_us[rival], ret->total_us[in->current], margin) ? rival : in->current;
	ret->rival = least(ret->total_us, 0, in->n, ret->point);
	ret->reason =
	    ret->total_us[ret->rival] < ret->total_us[ret->point] ? POINT_STAYS : POINT_BEST;
	if (ret->point == 0)
		explain_file(in, ret);
}

void point_choose(const struct point_input *input, struct point_choice *ret)
{
	struct point_input in = *input;
	bool makes[POINT_MAX];

	memset(ret, 0, sizeof(*ret));
	tame_input(&in);
	for (unsigned p = 0; p < in.n; p++)
		makes[p] = expect(&in, p, ret);
	if (is_blind(&in))
		choose_blindly(&in, ret);
	else
		choose(&in, ret);
	ret->makes = ret->reason != POINT_UNMEASURED && makes[ret->point];
}

const char *point_reason_name(enum point_reason reason)
{
	static const char *const names[] = {
	    [POINT_UNMEASURED] = "unmeasured", [POINT_BEST] = "best",
	    [POINT_STAYS] = "stays",           [POINT_NOT_WORTH] = "not_worth",
	    [POINT_NO_ROOM] = "no_room",       [POINT_FEW_USES] = "few_uses",
	};

	return names[reason];
}

/* ---- uses and trials ---- */

/* A job that does not say when it ends will go on for about as long as it did (Lindy's law: the median
 * of what is left, seen at a random moment). That is also the rule for one who does not know how long
 * he will ski (A. Karlin et al., "Competitive snoopy caching", Algorithmica 3, 1988): buy when what was
 * paid for hiring would have bought, and never pay more than twice the best in hindsight. So is the
 * least of two: what is made in a first epoch costs no more than that epoch did. */
double point_uses(bool is_known, double left, double past)
{
	if (is_known)
		return tame(left, 0, 1e9);
	return tame(past, POINT_USES_LEAST, 1e9);
}

/* CPU of a trial. The first ones warm memory, so less of what they cost is believed. */
static double price_of(const struct point_input *in, unsigned p)
{
	const struct point_cost *cost = &in->cost[p];
	double price = cost->work_us + cost->read_cpu_us + cost->make_us;

	if (cost->samples == 0)
		return in->cost[0].work_us;
	return cost->samples < POINT_TRIALS_FIRST ? price / POINT_TRIALS_FIRST : price;
}

/* May it still turn out to be the best? By means of a few values, or of none. */
static bool is_contender(const struct point_input *in, const struct point_choice *now, double best,
			 unsigned p)
{
	return in->cost[p].samples < POINT_TRIALS_FIRST || now->total_us[p] < POINT_NEAR * best;
}

/* What three trials said is believed for once. */
static double expected_best(const struct point_input *in, struct point_choice *ret)
{
	struct point_input few = *in;
	double best = INFINITY;

	for (unsigned p = 0; p < few.n; p++) {
		if (few.cost[p].samples >= POINT_TRIALS_FIRST)
			few.cost[p].samples = POINT_TRIALS_LEAST;
		if (few.cost[p].made >= POINT_TRIALS_FIRST)
			few.cost[p].made = POINT_TRIALS_LEAST;
		expect(&few, p, ret);
		best = BASE_MIN(best, ret->total_us[p]);
	}
	return best;
}

/* Before anything is known: as many as are needed to choose, where there is work enough ahead to pay for dear ones. */
static uint64_t first_trials(const struct point_input *in)
{
	double files =
	    POINT_TRIALS_SHARE * (in->uses + in->past) * (double)in->n_samples / (in->n - 1);

	return files < POINT_DEAR * POINT_TRIALS_LEAST ? POINT_TRIALS_FIRST : POINT_TRIALS_LEAST;
}

/* CPU time that trials may take: a share of what the job has taken and is expected to take. */
static double paid_of(const struct point_input *in, double best)
{
	const double pace = elapsed(in, mixed(in, in->current, in->cached[in->current]));

	return POINT_TRIALS_SHARE * (best * in->uses + pace * in->past) * in->cores *
	       (double)in->n_samples;
}

/* Beside that, for those that may be the best: a share of what the best would save, as it looks now. */
static double gain_of(const struct point_input *in, const struct point_choice *now, double best)
{
	const double saved = now->total_us[in->current] - best;

	if (!isfinite(saved))
		return 0;
	return POINT_TRIALS_GAIN * saved * in->uses * in->cores * (double)in->n_samples;
}

static unsigned contenders(const struct point_input *in, const struct point_choice *now,
			   double best)
{
	unsigned n = 0;

	for (unsigned p = 1; p < in->n; p++)
		n += is_contender(in, now, best, p);
	return n;
}

/* CPU time for trials of p: most of it is for those that may be the best. *ret_open: it may be p or another. */
static double budget_of(const struct point_input *in, const struct point_choice *now, double best,
			unsigned p, bool *ret_open)
{
	const bool is_file_near = is_contender(in, now, best, 0),
		   is_near = is_contender(in, now, best, p);
	const double paid = paid_of(in, best);
	const unsigned n = contenders(in, now, best);

	*ret_open = is_near && n + is_file_near > 1;
	if (is_near && p > 0)
		return (POINT_TRIALS_NEAR * paid + gain_of(in, now, best)) / n;
	return (1 - POINT_TRIALS_NEAR) * paid / (in->n - 1);
}

/* While forms are tried nothing is made, and what passes comes as files once more: two samples a trial. That may
 * cost as much again as the trials do, which counts where it is the reading that takes long. And what the best
 * would save pays for no more than some of the samples. */
static double most_trials(const struct point_input *in, const struct point_choice *now, double best,
			  unsigned p)
{
	const double lost = POINT_TRIAL_PASSES * (now->total_us[0] - best);
	const double whole = POINT_TRIALS_SHARE * best * in->uses * (double)in->n_samples;
	const double few = POINT_TRIALS_SHARE * (double)in->n_samples;
	const double paid = POINT_TRIALS_NEAR * paid_of(in, best) /
			    BASE_MAX(contenders(in, now, best), 1u) /
			    BASE_MAX(price_of(in, p), 1e-3);

	if (p == 0)
		return few;
	return BASE_MIN(BASE_MAX(few, paid),
			isfinite(lost) && lost > 0 ? whole / lost : POINT_TRIALS_MOST);
}

uint64_t point_trials(const struct point_input *input, unsigned p)
{
	struct point_input in = *input;
	struct point_choice now;
	double best, trials;
	bool is_open, is_paid;

	tame_input(&in);
	if (!(in.uses > 1) || p >= in.n)
		return 0;
	best = expected_best(&in, &now);
	if (isinf(best))
		return first_trials(&in);
	trials = budget_of(&in, &now, best, p, &is_open) / BASE_MAX(price_of(&in, p), 1e-3);
	is_paid = trials >= POINT_TRIALS_LEAST;
	/* The price is the file's for want of its own. */
	if (in.cost[p].samples < POINT_TRIALS_FIRST && (is_paid || p > 0))
		return is_paid ? first_trials(&in) : POINT_TRIALS_FIRST;
	if (!is_paid)
		return 0;
	if (in.cost[p].samples >= POINT_TRIALS_LEAST && !is_open)
		return POINT_TRIALS_LEAST;
	trials = BASE_MIN(trials, most_trials(&in, &now, best, p));
	return (uint64_t)tame(trials, POINT_TRIALS_LEAST, POINT_TRIALS_MOST);
}
