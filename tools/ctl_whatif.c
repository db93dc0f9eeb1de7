/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a status to the model of tools/whatif.c: how samples come now is the mean of the files' costs and of the kept form's, by the
 * share that is kept; what is made for a job is what the fastest of its stream takes, as all share it. A stream of which
 * nothing is kept has no costs but the median of a worker's time. What is not known bounds nothing, so a change may seem to bring
 * more than it does.
 */

#include "tools/ctl_whatif.h"

#include <math.h>
#include <stdio.h>

#include "tools/ctl.h"
#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"

#define WHATIF_MEASURED 8 /* samples; sched/point.h says nothing of fewer */
#define WHATIF_WORTH 0.03 /* a cache that would bring less does not limit */

static const char *const whatif_parts[] = {"read", "decode", "slots", "job"};

/* What is asked about. */
struct whatif_of {
	const struct json_in *status, *job, *stream, *cache;
	const struct json_in *file, *chosen; /* of its points; NULL: there is none */
	double kept;                         /* share of the samples, in the chosen form */
	struct ctl_whatif *all;
};

/* ---- what is measured ---- */

static bool whatif_is_measured(const struct json_in *point)
{
	return ctl_u64(point, "samples") >= WHATIF_MEASURED && ctl_known(point, "work_us") > 0;
}

static struct whatif_cost whatif_cost_of(const struct json_in *point)
{
	return (struct whatif_cost){.work_us = ctl_known(point, "work_us"),
				    .read_us = ctl_known(point, "read_us"),
				    .read_cpu_us = ctl_known(point, "read_cpu_us")};
}

static const struct json_in *whatif_point(const struct json_in *cache, const char *name)
{
	const struct json_in *points = json_in_member(cache, "points");

	JSON_IN_EACH(point, points) {
		if (strcmp(ctl_string(point, "name"), name) == 0 && whatif_is_measured(point))
			return point;
	}
	return NULL;
}

/* As samples of the stream come now. */
static struct whatif_cost whatif_now(const struct whatif_of *of)
{
	const double median_us = ctl_known(of->stream, "median_us");
	struct whatif_cost file, chosen;

	if (!of->file && !of->chosen)
		return (struct whatif_cost){median_us > 0 ? median_us : -1, -1, -1};
	file = whatif_cost_of(of->file ? of->file : of->chosen);
	chosen = whatif_cost_of(of->chosen ? of->chosen : of->file);
	return whatif_mixed(&file, &chosen, of->kept);
}

/* Samples a second that are made: all jobs of a stream share them, and ranks have a part each. */
static double whatif_made(const struct json_in *status, const struct json_in *stream)
{
	const struct json_in *jobs = json_in_member(status, "jobs");
	double most = 0;

	JSON_IN_EACH(job, jobs) {
		const uint64_t ranks = ctl_u64(job, "ranks");

		if (ctl_u64(job, "stream") == ctl_u64(stream, "id"))
			most = BASE_MAX(most, ctl_real(job, "rate") * (double)BASE_MAX(ranks, 1u));
	}
	return most;
}

/* Has the stream a job of the user? */
static bool whatif_serves(const struct json_in *status, const struct json_in *stream, uint64_t uid)
{
	const struct json_in *jobs = json_in_member(status, "jobs");

	JSON_IN_EACH(job, jobs) {
		if (ctl_u64(job, "stream") == ctl_u64(stream, "id") && ctl_u64(job, "uid") == uid)
			return true;
	}
	return false;
}

/* Is it of the same pool as the job's stream: what is open to all, a named data set, or a user's own? */
static bool whatif_is_beside(const struct whatif_of *of, const struct json_in *one)
{
	return ctl_is(one, "public") == ctl_is(of->stream, "public") &&
	       strcmp(ctl_named(one), ctl_named(of->stream)) == 0;
}

static bool whatif_is_users_own(const struct whatif_of *of)
{
	return !ctl_is(of->stream, "public") && !*ctl_named(of->stream);
}

static double whatif_others(const struct whatif_of *of)
{
	const struct json_in *streams = json_in_member(of->status, "streams");
	double busy = 0;

	for (size_t i = 0; i < json_in_count(streams); i++) {
		struct whatif_of other = {.status = of->status, .job = NULL};

		other.stream = json_in_item(streams, i);
		if (other.stream == of->stream || !whatif_is_beside(of, other.stream) ||
		    (whatif_is_users_own(of) &&
		     !whatif_serves(of->status, other.stream, ctl_u64(of->job, "uid"))))
			continue;
		busy += whatif_made(of->status, other.stream) *
			BASE_MAX(ctl_known(other.stream, "median_us"), 0.0) / 1e6;
	}
	return busy;
}

/* A worker, or a tenant. */
static bool whatif_is_of(const struct whatif_of *of, const struct json_in *one)
{
	return whatif_is_beside(of, one) &&
	       (!whatif_is_users_own(of) || ctl_u64(one, "uid") == ctl_u64(of->job, "uid"));
}

static double whatif_workers(const struct whatif_of *of)
{
	const struct json_in *workers = json_in_member(of->status, "workers");
	unsigned n = 0;

	JSON_IN_EACH(worker, workers)
		n += whatif_is_of(of, worker);
	return n > 0 ? n : (double)ctl_u64(json_in_member(of->status, "node"), "workers");
}

/* Since they began. Who is not shown all workers of a user cannot know it: 1. */
static double whatif_granted(const struct whatif_of *of)
{
	const struct json_in *workers = json_in_member(of->status, "workers");
	const struct json_in *tenants = json_in_member(of->status, "tenants");
	const struct json_in *who = json_in_member(of->status, "node");
	double busy_s = 0;

	JSON_IN_EACH(tenant, tenants)
		if (whatif_is_of(of, tenant))
			who = tenant;
	JSON_IN_EACH(worker, workers)
		if (whatif_is_of(of, worker))
			busy_s += ctl_real(worker, "busy_seconds");
	return busy_s > 0 ? BASE_MIN(ctl_real(who, "worker_cpu_seconds") / busy_s, 1.0) : 1;
}

/* Shares of its time lately; what is none of the parts counts as another wait. */
static void whatif_waits(const struct json_in *job, struct whatif_input *in)
{
	static const struct {
		const char *stage;
		enum whatif_part part;
	} stages[] = {{"read", WHATIF_READ}, {"decode", WHATIF_DECODE}, {"slot", WHATIF_SLOTS},
		      {"scan", WHATIF_JOB},  {"workers", WHATIF_JOB},   {"schedule", WHATIF_JOB},
		      {"drain", WHATIF_JOB}};
	const struct json_in *waits = json_in_member(job, "waits");
	const double window_s = ctl_known(waits, "window_seconds");

	for (size_t i = 0; window_s > 0 && i < BASE_ARRAY_LEN(stages); i++)
		in->waits[stages[i].part] += ctl_real(waits, stages[i].stage) / window_s;
}

static void whatif_measure(const struct whatif_of *of)
{
	const struct json_in *node = json_in_member(of->status, "node");
	const double cpus = ctl_known(json_in_member(node, "machine"), "cpus");
	const double readers = ctl_known(node, "readers");
	struct whatif_input *in = &of->all->in;

	*in = (struct whatif_input){.rate = ctl_real(of->job, "rate")};
	in->made = BASE_MAX(whatif_made(of->status, of->stream), in->rate);
	in->workers = whatif_workers(of);
	in->cpus = cpus > 0 ? cpus : in->workers;
	in->readers = readers > 0 ? readers : 1;
	in->others_busy = whatif_others(of);
	in->granted = whatif_granted(of);
	in->cost = whatif_now(of);
	if (readers <= 0) /* an accessd that does not say how many there are */
		in->cost.read_us = -1;
	whatif_waits(of->job, in);
	whatif_look(in, &of->all->at);
}

/* ---- the rows ---- */

static struct ctl_whatif_row *whatif_add(const struct whatif_of *of, const char *key,
					 const struct whatif_change *change)
{
	struct ctl_whatif *all = of->all;
	struct ctl_whatif_row *row = &all->row[all->n];

	all->n += all->n < CTL_WHATIF_ROWS;
	*row = (struct ctl_whatif_row){.key = key, .rate = whatif_rate(&all->in, &all->at, change)};
	row->gain = row->rate / all->in.rate - 1;
	if (!isfinite(row->gain))
		row->gain = 0;
	return row;
}

static void whatif_more_workers(const struct whatif_of *of)
{
	const struct whatif_input *in = &of->all->in;
	const double idle = in->cpus - in->workers;
	struct whatif_change change = whatif_none;
	struct ctl_whatif_row *row;

	change.workers = idle >= 1 ? BASE_MIN(in->workers, idle) : in->workers;
	row = whatif_add(of, "workers", &change);
	snprintf(row->change, sizeof(row->change), "%.0f more worker%s", change.workers,
		 change.workers > 1 ? "s" : "");
	snprintf(row->how, sizeof(row->how), "workers=%.0f%s", in->workers + change.workers,
		 idle >= 1 ? "" : ", more than processors");
}

/* Only where a worker for each processor is there. */
static void whatif_more_cpus(const struct whatif_of *of)
{
	const struct whatif_input *in = &of->all->in;
	struct whatif_change change = whatif_none;
	struct ctl_whatif_row *row;

	if (in->cpus > in->workers)
		return;
	change.cpus = change.workers = in->cpus;
	row = whatif_add(of, "processors", &change);
	snprintf(row->change, sizeof(row->change), "%.0f more processor%s", change.cpus,
		 change.cpus > 1 ? "s" : "");
	snprintf(row->how, sizeof(row->how), "a CPU quota or cpuset of %.0f", 2 * in->cpus);
}

/* What fits is made by itself where it is worth its making; who wants it sooner asks for it. */
static void whatif_say_keeping(const struct json_in *point, struct ctl_whatif_row *row)
{
	const char *name = row->form;
	const char *form = strncmp(name, "decoded+", 8) == 0 ? "deepest" : name;
	char bytes[32];

	base_format_bytes((uint64_t)row->bytes, bytes, sizeof(bytes));
	if (!row->fits)
		snprintf(row->how, sizeof(row->how), "cache_size over %s (%.0f %% fit)", bytes,
			 100 * BASE_MAX(ctl_known(point, "fits"), 0.0));
	else
		snprintf(row->how, sizeof(row->how),
			 "cache warm --form %s, with its --pipeline (%s)", form, bytes);
}

static void whatif_keep(const struct whatif_of *of, const struct json_in *point)
{
	const char *name = ctl_string(point, "name");
	struct whatif_change change = whatif_none;
	struct ctl_whatif_row *row;

	if (!whatif_is_measured(point) || strcmp(name, "file") == 0 ||
	    strcmp(name, "augmented") == 0 || (point == of->chosen && of->kept >= CTL_WAITS_ALL))
		return;
	change.cost = whatif_cost_of(point);
	row = whatif_add(of, "kept", &change);
	row->form = name;
	row->fits = ctl_known(point, "fits") >= CTL_WAITS_ALL;
	snprintf(row->change, sizeof(row->change), "all kept as %.40s", name);
	row->bytes = ctl_known(point, "bytes") * ctl_real(of->stream, "samples");
	row->bytes = BASE_MIN(BASE_MAX(row->bytes, 0.0), 1e18);
	whatif_say_keeping(point, row);
}

static void whatif_forms(const struct whatif_of *of)
{
	const struct json_in *points = json_in_member(of->cache, "points");

	JSON_IN_EACH(point, points)
		whatif_keep(of, point);
}

/* What is kept comes as before. */
static void whatif_source(const struct whatif_of *of)
{
	struct whatif_change change = whatif_none;
	struct ctl_whatif_row *row;

	change.read = 2;
	if (of->file && of->chosen) {
		struct whatif_cost file = whatif_cost_of(of->file),
				   chosen = whatif_cost_of(of->chosen);

		file.read_us /= 2;
		change.cost.read_us = whatif_mixed(&file, &chosen, of->kept).read_us;
		change.read = 1;
	}
	row = whatif_add(of, "source", &change);
	snprintf(row->change, sizeof(row->change), "source twice as fast");
	snprintf(row->how, sizeof(row->how), "faster storage, or one file (convert)");
}

static void whatif_slots(const struct whatif_of *of)
{
	struct whatif_change change = whatif_none;
	struct ctl_whatif_row *row;

	change.slots = 2;
	row = whatif_add(of, "slots", &change);
	snprintf(row->change, sizeof(row->change), "2 x slots memory");
	snprintf(row->how, sizeof(row->how), "memory, or slots=%llu",
		 (unsigned long long)(2 * ctl_u64(of->stream, "slots")));
}

static void whatif_step(const struct whatif_of *of)
{
	struct whatif_change change = whatif_none;
	struct ctl_whatif_row *row;

	change.step = 2;
	row = whatif_add(of, "job", &change);
	snprintf(row->change, sizeof(row->change), "a step twice as fast");
	snprintf(row->how, sizeof(row->how), "the job's own code, or its GPU");
}

/* ---- the limit ---- */

/* Is there a form that would make it faster, more than those do that fit, if there were room for it? */
static bool whatif_is_room(const struct ctl_whatif *all)
{
	double fits = 0, best = 0;

	for (unsigned i = 0; i < all->n; i++) {
		const struct ctl_whatif_row *row = &all->row[i];

		if (row->form && row->fits)
			fits = BASE_MAX(fits, row->gain);
		else if (row->form)
			best = BASE_MAX(best, row->gain);
	}
	return best >= fits + WHATIF_WORTH;
}

static const char *whatif_limit(const struct whatif_of *of)
{
	const enum whatif_part limit = of->all->at.limit;
	struct ctl_waits waits;

	ctl_waits_of(of->job, &waits);
	if (waits.pace == CTL_PACE_STOPPED)
		return "job";
	if (!of->all->is_known)
		return "unknown";
	if (limit == WHATIF_PARTS)
		return waits.stage && strcmp(waits.stage, "scan") == 0 ? "listing" : "accessd";
	if ((limit == WHATIF_READ || limit == WHATIF_DECODE) && whatif_is_room(of->all))
		return "cache";
	return whatif_parts[limit];
}

void ctl_whatif_of(const struct json_in *status, const struct json_in *job, struct ctl_whatif *ret)
{
	struct whatif_of of = {.status = status, .job = job, .all = ret};

	*ret = (struct ctl_whatif){.n = 0};
	of.stream = ctl_stream_of(of.status, of.job);
	of.cache = json_in_member(of.stream, "cache");
	of.file = whatif_point(of.cache, "file");
	of.chosen = whatif_point(of.cache, ctl_string(of.cache, "point"));
	of.kept = 0;
	if (of.chosen == of.file)
		of.chosen = NULL;
	if (of.chosen)
		of.kept = BASE_MIN(BASE_MAX(ctl_known(of.chosen, "cached"), 0.0), 1.0);
	whatif_measure(&of);
	ret->is_known = ret->in.rate > 0 && ctl_is(job, "active") &&
			ctl_known(json_in_member(job, "waits"), "window_seconds") > 0;
	if (ret->is_known) {
		if (ret->in.cost.work_us >= 0) { /* else nobody knows what they would bring */
			whatif_more_workers(&of);
			whatif_more_cpus(&of);
		}
		whatif_forms(&of);
		whatif_source(&of);
		whatif_slots(&of);
		whatif_step(&of);
	}
	ret->limit = whatif_limit(&of);
}
