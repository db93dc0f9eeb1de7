/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From ledgers, seats and accessd's status to one value that is printed twice: as JSON and for
 * people. Whether a job got everything exactly once is decided here and from its ledger alone.
 *
 * accessd's counters run since its start: what the run cost is the difference of two answers. When
 * accessd was restarted in between, the second answer is all there is, and uptime_s tells.
 */

#include "tools/bench.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

#include "shmring/proto.h"

#define BENCH_MAX_STATUS (16u << 20)

static double bench_seconds(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0;
}

static void bench_result_seat(const struct bench_seat *seat, struct bench_job_result *ret)
{
	ret->n = counter_get(&seat->n);
	ret->seconds = bench_seconds(counter_get(&seat->started_ns), counter_get(&seat->ended_ns));
	if (counter_get(&seat->first_ns) > 0)
		ret->first_batch_ms =
		    bench_seconds(counter_get(&seat->started_ns), counter_get(&seat->first_ns)) *
		    1e3;
	ret->handovers = seat->handover.count;
	ret->handover_p50_us = (double)histogram_quantile(&seat->handover, 0.5) * 1e-3;
	ret->handover_p99_us = (double)histogram_quantile(&seat->handover, 0.99) * 1e-3;
	ret->error = seat->error;
}

/* Judges a job by its ledger. What the policy skipped or the filter left out is not missing, nor what an interrupted job has
 * not come to. */
static void bench_result_judge(const struct ledger *ledger, bool interrupted,
			       struct bench_job_result *ret)
{
	const struct ledger_totals *totals = ledger_totals(ledger);
	uint64_t strange, missing = totals->missing;
	uint64_t left = ledger_missing(ledger, ret->epochs_asked, ret->n, &strange);

	missing += interrupted ? 0 : left;
	ret->totals = *totals;
	ret->totals.strange += strange;
	ret->dataset = ledger->n;
	ret->missing = missing - BASE_MIN(missing, totals->skipped + totals->filtered);
	ret->wait_seconds = (double)totals->wait_ns * 1e-9;
	if (totals->samples > 0)
		ret->copied_share = (double)totals->copied / (double)totals->samples;
	ret->exactly_once = ret->missing == 0 && totals->duplicates == 0 &&
			    ret->totals.strange == 0 && totals->bad_values == 0 &&
			    (interrupted || totals->epochs == ret->epochs_asked) &&
			    ret->error[0] == '\0';
}

static uint64_t bench_result_floor(const struct ledger *ledgers, unsigned n_ledgers)
{
	uint64_t floor = 0, n = 0;

	for (unsigned i = 0; i < n_ledgers; i++)
		n = BASE_MAX(n, ledgers[i].n);
	for (uint64_t sample = 0; sample < n; sample++) {
		uint16_t most = 0;

		for (unsigned i = 0; i < n_ledgers; i++)
			if (sample < ledgers[i].n)
				most = BASE_MAX(most, ledger_epochs_of(&ledgers[i], sample));
		floor += most;
	}
	return floor;
}

static void bench_result_jobs(const struct bench_crew *crew, struct bench_result *ret)
{
	static struct ledger ledgers[BENCH_MAX_JOBS];
	const struct bench_shared *shared = crew->shared;
	uint64_t first_ns = UINT64_MAX, last_ns = 0, chunk;
	unsigned n_ledgers = 0;

	ret->all_exactly_once = true;
	for (unsigned i = 0; i < ret->jobs; i++) {
		const struct bench_member *member = &crew->member[i];
		struct bench_job_result *job = &ret->job[i];

		job->epochs_asked = bench_epochs_of(crew->config, i);
		job->batch = bench_batch_of(crew->config, i);
		job->plan_seed = bench_plan_seed_of(crew->config, i);
		job->step_ms = bench_step_ms_of(crew->config, i);
		job->start_s = bench_start_s_of(crew->config, i);
		job->pipeline = bench_pipeline_of(crew->config, i);
		job->shares = shared->seat[i].shares;
		job->kills = member->kills;
		job->stops = member->stops;
		job->lives = member->lives;
		bench_result_seat(&shared->seat[i], job);
		job->opened = ledger_open(member->ledger_fd, &ledgers[n_ledgers]) == 0;
		if (job->opened)
			bench_result_judge(&ledgers[n_ledgers++], ret->interrupted, job);
		else
			job->exactly_once = ret->interrupted;
		ret->all_exactly_once &= job->exactly_once;
		ret->node.separate += job->totals.samples;
		if (counter_get(&shared->seat[i].started_ns) > 0)
			first_ns = BASE_MIN(first_ns, counter_get(&shared->seat[i].started_ns));
		last_ns = BASE_MAX(last_ns, counter_get(&shared->seat[i].ended_ns));
		chunk = counter_get(&shared->seat[i].chunk);
		if (chunk > 0)
			ret->node.chunks_per_epoch = (job->n + chunk - 1) / chunk;
	}
	ret->seconds = bench_seconds(first_ns, last_ns);
	ret->node.floor = bench_result_floor(ledgers, n_ledgers);
	ret->node.rate_all = bench_shared_rate(shared);
	for (unsigned i = 0; i < n_ledgers; i++)
		ledger_close(&ledgers[i]);
}

static struct json_in *bench_status_parse(const char *text)
{
	struct json_in *status = NULL;

	if (text && json_in_parse(text, strlen(text), BENCH_MAX_STATUS, &status, NULL))
		return NULL;
	return status;
}

static const struct {
	const char *key;
	size_t offset;
	bool is_seconds, is_level; /* level: not a counter, its last value counts */
} bench_node_keys[] = {
#define NODE(member, is_seconds, is_level)                                                \
	{                                                                                 \
#member, offsetof(struct bench_node_result, member), is_seconds, is_level \
	}
    NODE(samples_read, false, false),         NODE(bytes_read, false, false),
    NODE(samples_preprocessed, false, false), NODE(reference, false, false),
    NODE(worker_cpu_seconds, true, false),    NODE(reader_cpu_seconds, true, false),
    NODE(loop_cpu_seconds, true, false),      NODE(rss_bytes, false, true),
    NODE(waits_on_dead, false, false),        NODE(bad_samples, false, false),
    NODE(worker_restarts, false, false),      NODE(reader_restarts, false, false),
    NODE(parent_restarts, false, false),
#undef NODE
};

static uint64_t bench_grown(const struct json_in *now, const struct json_in *then, const char *key)
{
	uint64_t count = json_in_u64(json_in_member(now, key), 0);
	uint64_t count_then = json_in_u64(json_in_member(then, key), 0);

	return count > count_then ? count - count_then : 0;
}

static void bench_result_node(const struct json_in *before, const struct json_in *after,
			      struct bench_node_result *ret)
{
	const struct json_in *now = json_in_member(after, "node"), *then = NULL;
	const struct json_in *streams = json_in_member(after, "streams");

	if (json_in_u64(json_in_member(before, "pid"), 0) ==
	    json_in_u64(json_in_member(after, "pid"), 1))
		then = json_in_member(before, "node");
	ret->known = now != NULL;
	ret->uptime_s = json_in_double(json_in_member(after, "uptime_s"), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(bench_node_keys); i++) {
		const char *key = bench_node_keys[i].key;
		void *at = (char *)ret + bench_node_keys[i].offset;

		if (bench_node_keys[i].is_seconds)
			*(double *)at = json_in_double(json_in_member(now, key), 0) -
					json_in_double(json_in_member(then, key), 0);
		else if (bench_node_keys[i].is_level)
			*(uint64_t *)at = json_in_u64(json_in_member(now, key), 0);
		else
			*(uint64_t *)at = bench_grown(now, then, key);
	}
	JSON_IN_EACH(stream, streams) {
		uint64_t slots = json_in_u64(json_in_member(stream, "slots"), 0);

		ret->slots = BASE_MAX(ret->slots, slots);
	}
	if (ret->reference > 0)
		ret->redundancy = (double)ret->samples_preprocessed / (double)ret->reference;
}

/* The "cache" of the same stream. */
static const struct json_in *bench_cache_of(const struct json_in *status,
					    const struct json_in *stream)
{
	const uint64_t id = json_in_u64(json_in_member(stream, "id"), 0);

	return json_in_member(json_in_numbered(json_in_member(status, "streams"), "id", id),
			      "cache");
}

/* What streams that are there looked for; of those that were there before, since then. */
static void bench_result_cache(const struct json_in *before, const struct json_in *after,
			       struct bench_cache_result *ret)
{
	const struct json_in *streams = json_in_member(after, "streams");
	bool is_same = json_in_u64(json_in_member(before, "pid"), 0) ==
		       json_in_u64(json_in_member(after, "pid"), 1);
	uint64_t most = 0;

	JSON_IN_EACH(stream, streams) {
		const struct json_in *now = json_in_member(stream, "cache");
		const struct json_in *then = is_same ? bench_cache_of(before, stream) : NULL;
		uint64_t hits = bench_grown(now, then, "hits");
		uint64_t misses = bench_grown(now, then, "misses");

		if (now && (!ret->point[0] || hits + misses > most)) {
			snprintf(ret->point, sizeof(ret->point), "%s",
				 json_in_string(json_in_member(now, "point"), ""));
			snprintf(ret->why, sizeof(ret->why), "%s",
				 json_in_bool(json_in_member(now, "on"), true)
				     ? ""
				     : json_in_string(json_in_member(now, "why"), ""));
		}
		most = BASE_MAX(most, hits + misses);
		ret->hits += hits;
		ret->misses += misses;
		ret->bytes += bench_grown(now, then, "bytes");
	}
}

/* What jobs without a pipeline had: their named data set's usual one. */
static void bench_result_usual(const struct json_in *after, struct bench_result *ret,
			       const struct bench_config *config)
{
	const struct json_in *sets = json_in_member(after, "datasets");

	if (config->dealt.pipeline.n)
		return;
	JSON_IN_EACH(set, sets) {
		const char *name = json_in_string(json_in_member(set, "name"), "");

		if (proto_is_named(config->dataset) &&
		    strcmp(name, config->dataset + strlen(PROTO_NAMED)) == 0)
			snprintf(ret->usual, sizeof(ret->usual), "%s",
				 json_in_string(json_in_member(set, "pipeline"), ""));
	}
	for (unsigned i = 0; i < ret->jobs; i++)
		ret->job[i].pipeline = ret->usual;
}

void bench_result_collect(const struct bench_crew *crew, bool interrupted,
			  const char *status_before, const char *status_after,
			  struct bench_result *ret)
{
	_cleanup_json_ struct json_in *before = bench_status_parse(status_before);
	_cleanup_json_ struct json_in *after = bench_status_parse(status_after);

	*ret =
	    (struct bench_result){.jobs = (uint32_t)crew->config->jobs, .interrupted = interrupted};
	bench_result_jobs(crew, ret);
	bench_result_usual(after, ret, crew->config);
	bench_result_node(before, after, &ret->node);
	ret->node.job_cpu_seconds = crew->cpu_seconds;
	bench_result_cache(before, after, &ret->cache);
}

static void bench_json_job(struct json_out *out, const char *order,
			   const struct bench_job_result *job)
{
	char digest[17];

	json_out_object_begin(out);
	json_out_member_u64(out, "samples", job->totals.samples);
	JSON_OUT_MEMBERS(out, job, seconds, wait_seconds);
	json_out_member_double(out, "late_seconds", (double)job->totals.late_ns * 1e-9);
	json_out_member_u64(out, "epochs", job->totals.epochs);
	json_out_member_u64(out, "missing", job->missing);
	json_out_member_u64(out, "duplicates", job->totals.duplicates);
	JSON_OUT_MEMBERS(out, job, copied_share, first_batch_ms);
	json_out_member_object(out, "handover_us");
	json_out_member_u64(out, "count", job->handovers);
	json_out_member_double(out, "p50", job->handover_p50_us);
	json_out_member_double(out, "p99", job->handover_p99_us);
	json_out_object_end(out);
	json_out_member_bool(out, "exactly_once", job->exactly_once);
	json_out_member_string(out, "error", job->error[0] ? job->error : NULL);
	json_out_member_u64(out, "epochs_asked", job->epochs_asked);
	json_out_member_u64(out, "dataset_samples", job->dataset);
	json_out_member_u64(out, "population", job->n);
	json_out_member_u64(out, "batch", job->batch);
	json_out_member_string(out, "order", order);
	json_out_member_u64(out, "seed", job->plan_seed);
	JSON_OUT_MEMBERS(out, job, pipeline, shares, step_ms, start_s);
	JSON_OUT_MEMBERS(out, &job->totals, batches, strange, bad_values, skipped, substituted,
			 filtered, batch_mixed);
	json_out_member_double(out, "batch_mixed_seconds",
			       (double)job->totals.batch_mixed_ns * 1e-9);
	json_out_member_u64(out, "bytes_verified", job->totals.bytes);
	snprintf(digest, sizeof(digest), "%.16" PRIx64, job->totals.digest);
	json_out_member_string(out, "digest", digest);
	json_out_member_u64(out, "reconnects", job->totals.reconnects);
	JSON_OUT_MEMBERS(out, job, kills, stops, lives);
	json_out_object_end(out);
}

static void bench_json_node(struct json_out *out, const struct bench_node_result *node)
{
	json_out_object_begin(out);
	JSON_OUT_MEMBERS(out, node, samples_read, bytes_read, samples_preprocessed, reference,
			 floor, redundancy, chunks_per_epoch, slots, worker_cpu_seconds,
			 reader_cpu_seconds, loop_cpu_seconds, job_cpu_seconds, rss_bytes, rate_all,
			 separate, waits_on_dead, bad_samples, worker_restarts, reader_restarts,
			 parent_restarts, uptime_s, known);
	json_out_object_end(out);
}

int bench_result_json(const struct bench_config *config, const struct bench_result *result,
		      char **ret)
{
	struct json_out out;

	json_out_init(&out, true);
	json_out_object_begin(&out);
	json_out_member_string(&out, "dataset", config->dataset);
	json_out_member_string(&out, "pipeline",
			       config->dealt.pipeline.n ? bench_pipeline_of(config, 0)
							: result->usual);
	json_out_member_bool(&out, "verify", config->verify);
	json_out_member_double(&out, "seconds", result->seconds);
	json_out_member_bool(&out, "exactly_once", result->all_exactly_once);
	json_out_member_bool(&out, "interrupted", result->interrupted);
	json_out_member_array(&out, "jobs");
	for (unsigned i = 0; i < result->jobs; i++)
		bench_json_job(&out, bench_order_name(config), &result->job[i]);
	json_out_array_end(&out);
	json_out_key(&out, "node");
	bench_json_node(&out, &result->node);
	json_out_key(&out, "cache");
	json_out_object_begin(&out);
	json_out_member_string(&out, "point", result->cache.point[0] ? result->cache.point : NULL);
	json_out_member_string(&out, "why_off", result->cache.why[0] ? result->cache.why : NULL);
	JSON_OUT_MEMBERS(&out, &result->cache, hits, misses, bytes);
	json_out_object_end(&out);
	json_out_object_end(&out);
	return json_out_take(&out, ret, NULL);
}
