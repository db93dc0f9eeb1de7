/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An imitated training job: opens a stream, takes batches, sleeps as long as a step would take,
 * gives them back. It uses libaccess's public functions alone, as anybody's job would.
 *
 * Nothing it knows dies with it. Each batch goes into the ledger together with the resume token
 * that follows it (when jobs are killed), in one step; a new life of the job goes on from there. A
 * batch that was handed out but not committed when the job died comes again, and counts once.
 *
 * Hand-over is the time inside oa_next() of a call that found its batch ready: the library's own
 * statistics say which calls those were.
 */

#include "tools/bench.h"

#include "libaccess/libaccess.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

struct bench_life { /* one process's worth of a job */
	const struct bench_config *config;
	struct bench_shared *shared;
	struct bench_seat *seat;
	const char *socket;
	unsigned job;
	int ledger_fd;
	bool has_ledger;
	struct ledger ledger;
	struct ledger_totals base, totals; /* of the lives before; up to now */
	struct bench_part part;
	struct oa_client *client;
	struct oa_stream *stream;
	uint64_t ready_count;
};

BASE_PRINTF(2, 3) static int bench_fail(struct bench_life *life, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(life->seat->error, sizeof(life->seat->error), fmt, args);
	va_end(args);
	counter_set(&life->seat->ended_ns, base_now_ns());
	counter_set(&life->seat->stage, BENCH_FAILED);
	bench_shared_mark(life->shared);
	return 1;
}

static void bench_sleep_until(uint64_t ns)
{
	struct timespec until = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void bench_tell_opening(void *arg, const char *text, uint64_t done, uint64_t total)
{
	struct bench_seat *seat = arg;

	snprintf(seat->opening, sizeof(seat->opening), "%s", text);
	counter_set(&seat->done, done);
	counter_set(&seat->total, total);
}

/* oa_open() takes 0 for the usual number. */
static int64_t bench_budget(const struct bench_config *config)
{
	if (config->bad_budget == UINT64_MAX)
		return 0;
	return config->bad_budget ? (int64_t)config->bad_budget : -1;
}

static int bench_job_open(struct bench_life *life)
{
	const struct bench_config *config = life->config;
	struct oa_error error = {.size = sizeof(error)};
	char name[32];
	struct oa_options options = {
	    .size = sizeof(options),
	    .dataset = config->dataset,
	    .pipeline = bench_pipeline_of(config, life->job),
	    .batch = bench_batch_of(config, life->job),
	    .flags = config->copy ? OA_COPY : 0,
	    .epochs = bench_epochs_of(config, life->job),
	    .job = name,
	    .bad = (enum oa_bad)config->bad,
	    .bad_budget = bench_budget(config),
	    .chunk = (uint32_t)config->chunk,
	    .order = (enum oa_order)config->order,
	    .seed = bench_plan_seed_of(config, life->job),
	    .reuse = (uint32_t)config->reuse,
	    .replay = config->replay,
	    .progress = bench_tell_opening,
	    .progress_arg = life->seat,
	};
	char record[4096];
	int r;

	snprintf(name, sizeof(name), "bench-%u", life->job);
	snprintf(record, sizeof(record), "%s.%u", config->record ? config->record : "", life->job);
	options.record = config->record ? record : NULL;
	if (bench_part_of(config, life->job, &life->part))
		options.sampler = &life->part.sampler;
	if (life->has_ledger)
		options.token = ledger_token(&life->ledger, &options.token_size);
	if (options.token_size == 0)
		options.token = NULL;
	r = oa_connect(life->socket, &life->client, &error);
	if (r)
		return bench_fail(life, "cannot connect: %s", error.text);
	r = oa_open(life->client, &options, &life->stream, &error);
	if (r)
		return bench_fail(life, "cannot open: %s", error.text);
	return 0;
}

/* A part of the samples: which are the job's is known of classes, of a split or a pipeline's filter only
 * how many. A usual pipeline may have a filter. */
static int bench_job_part(struct bench_life *life, struct oa_dataset **ret)
{
	const char *pipeline = bench_pipeline_of(life->config, life->job);
	struct oa_error error = {.size = sizeof(error)};

	if (!bench_part_is_asked(&life->part) && *pipeline && !strstr(pipeline, "filter"))
		return 0;
	if (oa_dataset_open(life->client, life->config->dataset, 0, ret, &error))
		return bench_fail(life, "cannot ask what is in the dataset: %s", error.text);
	return 0;
}

static bool bench_job_has_class(const struct bench_part *part, const char *name)
{
	for (uint32_t i = 0; i < part->sampler.n_classes; i++)
		if (name && strcmp(part->names[i], name) == 0)
			return true;
	return false;
}

/* What the ledger can know without believing libaccess: a sample of another class is not the job's. */
static void bench_job_mark(const struct bench_part *part, const struct oa_dataset *dataset,
			   struct ledger *ledger)
{
	if (!part->sampler.n_classes)
		return;
	for (uint64_t id = 0; id < ledger->n; id++) {
		int64_t label = oa_dataset_label(dataset, (int64_t)id);

		if (!bench_job_has_class(part, oa_dataset_class_name(dataset, (uint32_t)label)))
			ledger_exclude(ledger, id);
	}
}

static int bench_job_make_ledger(struct bench_life *life, const struct oa_stats *stats)
{
	uint32_t batch = bench_batch_of(life->config, life->job);
	uint64_t n = stats->n_samples, token = 0;
	struct oa_dataset *dataset = NULL;
	int r = bench_job_part(life, &dataset);

	if (r)
		return r;
	if (dataset)
		n = oa_dataset_count(dataset);
	if (life->config->kill > 0) /* bitmap of blocks, tail, and what comes with them */
		token = 4096 + n / 8 + 32 * ((uint64_t)stats->chunk + batch);
	r = ledger_make(life->ledger_fd, n, batch, (uint32_t)token, &life->ledger);
	if (r == 0)
		bench_job_mark(&life->part, dataset, &life->ledger);
	oa_dataset_close(dataset);
	if (r)
		return bench_fail(life, "cannot make the ledger: %s", strerror(-r));
	life->has_ledger = true;
	return 0;
}

/* Makes the ledger in the job's first life, when the number of samples is known. */
static int bench_job_ledger(struct bench_life *life)
{
	struct oa_stats stats = {.size = sizeof(stats)};
	uint64_t before = counter_get(&life->seat->n);

	oa_stream_stats(life->stream, &stats);
	if (!before)
		counter_set(&life->seat->n, stats.n_samples);
	counter_set(&life->seat->chunk, stats.chunk);
	memcpy(life->seat->shares, stats.shares, sizeof(life->seat->shares));
	if (life->has_ledger && before != stats.n_samples && !bench_part_is_asked(&life->part))
		return bench_fail(life, "the dataset had %llu samples and now has %llu",
				  (unsigned long long)before, (unsigned long long)stats.n_samples);
	return life->has_ledger ? 0 : bench_job_make_ledger(life, &stats);
}

static void bench_job_tell(struct bench_life *life)
{
	struct bench_seat *seat = life->seat;

	counter_set(&seat->samples, life->totals.samples);
	counter_set(&seat->wait_ns, life->totals.wait_ns);
	counter_set(&seat->epoch, life->totals.epochs);
}

/* The library's statistics of this life on top of the lives before. */
static void bench_job_stats(struct bench_life *life, const struct oa_stats *stats)
{
	life->totals.skipped = life->base.skipped + stats->skipped;
	life->totals.substituted = life->base.substituted + stats->substituted;
	life->totals.filtered = life->base.filtered + stats->filtered;
	life->totals.batch_mixed = life->base.batch_mixed + stats->batch_mixed;
	life->totals.batch_mixed_ns = life->base.batch_mixed_ns + stats->batch_mixed_ns;
	life->totals.copied = life->base.copied + stats->copied;
	life->totals.wait_ns = life->base.wait_ns + stats->wait_ns;
	life->totals.late_ns = life->base.late_ns + stats->late_ns;
	life->totals.reconnects = life->base.reconnects + stats->reconnects;
}

static int bench_job_commit(struct bench_life *life, const struct oa_batch_info *info)
{
	size_t token_size = life->ledger.token_capacity;
	int r;

	if (token_size > 0) {
		r = oa_state(life->stream, ledger_token_room(&life->ledger), &token_size);
		if (r)
			return bench_fail(life, "no token (%zu bytes): %s", token_size,
					  oa_error_text(life->stream));
	}
	ledger_commit(&life->ledger, info->epoch, info->ids, info->count, &life->totals,
		      (uint32_t)token_size);
	return 0;
}

static int bench_job_batch(struct bench_life *life, const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_stats stats = {.size = sizeof(stats)};

	oa_batch_info(batch, &info);
	oa_stream_stats(life->stream, &stats);
	if (info.count > life->ledger.batch)
		return bench_fail(life, "a batch of %u samples instead of %u", info.count,
				  life->ledger.batch);
	ledger_count(&life->ledger, info.epoch, info.ids, info.count, &life->totals);
	life->totals.samples += info.count;
	life->totals.batches++;
	life->totals.epochs += info.is_last ? 1 : 0;
	bench_job_stats(life, &stats);
	if (life->config->verify) {
		life->totals.bad_values += bench_verify(batch, &life->totals.digest) ? 0 : 1;
		for (uint32_t i = 0; i < info.n_fields; i++) {
			struct oa_field field = {.size = sizeof(field)};

			if (oa_batch_field(batch, i, &field) == 0)
				life->totals.bytes += field.bytes;
		}
	}
	if (bench_job_commit(life, &info))
		return 1;
	bench_job_tell(life);
	return 0;
}

/* oa_next(), timed. */
static int bench_job_next(struct bench_life *life, struct oa_batch **ret)
{
	struct oa_stats stats = {.size = sizeof(stats)};
	int timeout_ms = (int)BASE_MIN(life->config->timeout_s * 1000, (uint64_t)INT32_MAX);
	uint64_t before, after;
	int r;

	do {
		before = base_now_ns();
		r = oa_next(life->stream, timeout_ms, ret);
		after = base_now_ns();
	} while (r == OA_E_INTERRUPTED);
	if (r)
		return r;
	oa_stream_stats(life->stream, &stats);
	if (stats.ready_count > life->ready_count)
		histogram_add(&life->seat->handover, after - before);
	life->ready_count = stats.ready_count;
	if (counter_get(&life->seat->first_ns) == 0)
		counter_set(&life->seat->first_ns, after);
	return 0;
}

static int bench_job_train(struct bench_life *life)
{
	uint64_t step_ns = (uint64_t)(bench_step_ms_of(life->config, life->job) * 1e6);
	struct oa_batch *batch = NULL;
	int r;

	while ((r = bench_job_next(life, &batch)) == 0) {
		r = bench_job_batch(life, batch);
		bench_shared_mark(life->shared);
		if (r == 0 && step_ns > 0)
			bench_sleep_until(base_now_ns() + step_ns);
		oa_release(batch);
		if (r)
			return r;
	}
	if (r != OA_E_END)
		return bench_fail(life, "%s: %s", oa_error_name(r), oa_error_text(life->stream));
	return 0;
}

/* What the statistics say after the last batch (skipped samples at the very end) counts, too. */
static int bench_job_finish(struct bench_life *life)
{
	struct oa_batch_info nothing = {.count = 0, .ids = (const int64_t[]){0}};
	struct oa_stats stats = {.size = sizeof(stats)};

	oa_stream_stats(life->stream, &stats);
	bench_job_stats(life, &stats);
	if (bench_job_commit(life, &nothing))
		return 1;
	bench_job_tell(life);
	counter_set(&life->seat->ended_ns, base_now_ns());
	counter_set(&life->seat->stage, BENCH_ENDED);
	bench_shared_mark(life->shared);
	return 0;
}

static int bench_job_live(struct bench_life *life)
{
	int r = ledger_open(life->ledger_fd, &life->ledger);

	if (r != 0 && r != LEDGER_E_EMPTY)
		return bench_fail(life, "the ledger is damaged (%d)", r);
	life->has_ledger = r == 0;
	if (life->has_ledger)
		life->base = life->totals = *ledger_totals(&life->ledger);
	counter_set(&life->seat->stage, BENCH_OPENS);
	if (counter_get(&life->seat->started_ns) == 0)
		counter_set(&life->seat->started_ns, base_now_ns());
	r = bench_job_open(life);
	r = r ? r : bench_job_ledger(life);
	if (r == 0) {
		bench_job_tell(life);
		counter_set(&life->seat->stage, BENCH_RUNS);
		r = bench_job_train(life);
	}
	return r ? r : bench_job_finish(life);
}

int bench_job(const struct bench_config *config, const char *socket, unsigned job,
	      struct bench_shared *shared, int ledger_fd)
{
	struct bench_life life = {
	    .config = config,
	    .shared = shared,
	    .seat = &shared->seat[job],
	    .socket = socket,
	    .job = job,
	    .ledger_fd = ledger_fd,
	};
	char name[16];
	int r;

	snprintf(name, sizeof(name), "bench-%u", job);
	prctl(PR_SET_NAME, name);
	signal(SIGINT, SIG_IGN); /* the parent ends its jobs */
	bench_sleep_until(shared->zero_ns + (uint64_t)(bench_start_s_of(config, job) * 1e9));
	r = bench_job_live(&life);
	oa_close(life.stream);
	oa_disconnect(life.client);
	ledger_close(&life.ledger);
	bench_part_fini(&life.part);
	return r;
}
