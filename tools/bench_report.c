/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The results for people: a table of the jobs, the node's work beside that of a loader a job, and,
 * with --quickstart, fewer columns and what it means.
 */

#include "tools/bench.h"

#include "tools/table.h"

static double bench_share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* 1234567 as "1,234,567". */
static const char *bench_count(uint64_t value, char *ret, size_t size)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	size_t used = 0;

	for (int i = 0; i < length && used + 2 < size; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			ret[used++] = ',';
		ret[used++] = digits[i];
	}
	ret[used] = '\0';
	return ret;
}

static const char *bench_verdict(const struct bench_result *result,
				 const struct bench_job_result *job)
{
	if (!job->exactly_once)
		return "NO";
	return result->interrupted && job->totals.epochs < job->epochs_asked ? "so far" : "yes";
}

static void bench_report_speed(struct table *table, const struct bench_job_result *job)
{
	table_cell(table, "%.0f", bench_share((double)job->totals.samples, job->seconds));
	table_cell(table, "%.1f %%", 100 * bench_share(job->wait_seconds, job->seconds));
	table_cell(table, "%llu/%llu", (unsigned long long)job->totals.epochs,
		   (unsigned long long)job->epochs_asked);
}

static void bench_report_job(struct table *table, unsigned i, const struct bench_result *result,
			     bool disturbed)
{
	const struct bench_job_result *job = &result->job[i];

	table_cell(table, "%u", i);
	table_cell(table, "%u", job->batch);
	table_cell(table, "%g", job->step_ms);
	table_cell(table, "%g", job->start_s);
	bench_report_speed(table, job);
	table_cell(table, "%s", bench_verdict(result, job));
	table_cell(table, "%.1f %%", 100 * job->copied_share);
	if (job->handovers > 0)
		table_cell(table, "%.1f/%.1f", job->handover_p50_us, job->handover_p99_us);
	else
		table_cell(table, "-");
	table_cell(table, "%.0f", job->first_batch_ms);
	if (disturbed)
		table_cell(table, "%u/%u", job->kills, job->stops);
	table_end_row(table);
}

static void bench_report_jobs(const struct bench_config *config, const struct bench_result *result,
			      FILE *out)
{
	bool disturbed = config->kill > 0 || config->stop > 0;
	struct table table;

	table_init(&table, disturbed ? "job|batch|step ms|start s|samples/s|waiting|epochs|exactly "
				       "once|copied|hand-over us|first ms|kills/stops"
				     : "job|batch|step ms|start s|samples/s|waiting|epochs|exactly "
				       "once|copied|hand-over us|first ms");
	for (unsigned i = 0; i < result->jobs; i++)
		bench_report_job(&table, i, result, disturbed);
	table_print(&table, "", NULL, out);
}

/* The same for who sees it for the first time. */
static void bench_report_jobs_first(const struct bench_result *result, FILE *out)
{
	struct table table;

	table_init(&table, "job|started|a step|samples/s|waiting|epochs|each picture exactly once");
	for (unsigned i = 0; i < result->jobs; i++) {
		const struct bench_job_result *job = &result->job[i];

		table_cell(&table, "%u", i);
		table_cell(&table, "%g s", job->start_s);
		table_cell(&table, "%g ms", job->step_ms);
		bench_report_speed(&table, job);
		table_cell(&table, "%s", bench_verdict(result, job));
		table_end_row(&table);
	}
	table_print(&table, "", NULL, out);
}

/* Where jobs have other pipelines, what they share with whom. */
static void bench_report_sharing(const struct bench_config *config,
				 const struct bench_result *result, FILE *out)
{
	for (unsigned i = 0; i < result->jobs && config->dealt.pipeline.n > 1; i++)
		if (result->job[i].shares[0])
			fprintf(out, "job %u, when it opened last: %.511s\n", i,
				result->job[i].shares);
}

static void bench_report_waits(const struct bench_result *result, FILE *out)
{
	double waited = 0, late = 0;

	for (unsigned i = 0; i < result->jobs; i++) {
		waited += result->job[i].wait_seconds;
		late += (double)result->job[i].totals.late_ns * 1e-9;
	}
	fprintf(out,
		"waited            %.1f s, all jobs together; %.1f %% of it for slow samples\n",
		waited, 100 * bench_share(late, waited));
	if (result->usual[0])
		fprintf(out, "pipeline          %s, the data set's usual one\n", result->usual);
}

/* What is wrong with a job, in words. */
static void bench_report_faults(const struct bench_result *result, FILE *out)
{
	for (unsigned i = 0; i < result->jobs; i++) {
		const struct bench_job_result *job = &result->job[i];
		const struct {
			uint64_t count;
			const char *what;
		} faults[] = {
		    {job->missing, "samples missing"},
		    {job->totals.duplicates, "samples came twice in an epoch"},
		    {job->totals.strange, "ids are no sample's"},
		    {job->totals.bad_values, "batches with impossible values"},
		};

		for (size_t k = 0; k < BASE_ARRAY_LEN(faults); k++)
			if (faults[k].count > 0)
				fprintf(out, "job %u: %llu %s\n", i,
					(unsigned long long)faults[k].count, faults[k].what);
		if (job->error[0])
			fprintf(out, "job %u failed: %s\n", i, job->error);
		if (job->totals.skipped + job->totals.substituted > 0)
			fprintf(out, "job %u: %llu bad samples skipped, %llu substituted\n", i,
				(unsigned long long)job->totals.skipped,
				(unsigned long long)job->totals.substituted);
	}
}

/* Read and decoded, beside what a loader of its own for each job would have; CPU time by its rate. */
static void bench_report_work(const struct bench_result *result, FILE *out)
{
	const struct bench_node_result *node = &result->node;
	double did = (double)node->samples_preprocessed, separate = (double)node->separate;
	double cpu_each = bench_share(node->worker_cpu_seconds + node->reader_cpu_seconds, did);
	char text[32];
	struct table table;

	table_init(&table, "<|files read|pictures decoded|CPU time for it");
	table_cell(&table, "accessd, for all jobs");
	table_cell(&table, "%s", bench_count(node->samples_read, text, sizeof(text)));
	table_cell(&table, "%s", bench_count(node->samples_preprocessed, text, sizeof(text)));
	table_cell(&table, "%.1f s", cpu_each * did);
	table_end_row(&table);
	table_cell(&table, "a loader for each of %u jobs", result->jobs);
	table_cell(&table, "%s", bench_count(node->separate, text, sizeof(text)));
	table_cell(&table, "%s", bench_count(node->separate, text, sizeof(text)));
	table_cell(&table, "about %.1f s", cpu_each * separate);
	table_end_row(&table);
	table_cell(&table, "work removed");
	table_cell(&table, "%.1f %%",
		   100 - 100 * bench_share((double)node->samples_read, separate));
	table_cell(&table, "%.1f %%", 100 - 100 * bench_share(did, separate));
	table_cell(&table, "%.1f %%", 100 - 100 * bench_share(did, separate));
	table_end_row(&table);
	table_print(&table, "", NULL, out);
}

static void bench_report_cache(const struct bench_config *config,
			       const struct bench_cache_result *cache, FILE *out)
{
	double looked = (double)(cache->hits + cache->misses);

	if (cache->why[0] && bench_keeps(config))
		fprintf(out, "kept              nothing: %s\n", cache->why);
	else if (looked > 0)
		fprintf(out, "kept              %s; %.1f %% of %.0f samples came kept (%s)\n",
			cache->point, 100 * (double)cache->hits / looked, looked,
			BASE_BYTES(cache->bytes));
}

static void bench_report_node(const struct bench_config *config, const struct bench_result *result,
			      FILE *out)
{
	const struct bench_node_result *node = &result->node;

	fprintf(out, "\nbytes read        %s\n", BASE_BYTES(node->bytes_read));
	fprintf(out,
		"reference         %llu pictures, as the fastest jobs alone would need: redundancy "
		"%.3f\n",
		(unsigned long long)node->reference, node->redundancy);
	fprintf(out, "floor             %llu pictures, with unlimited memory\n",
		(unsigned long long)node->floor);
	fprintf(out, "chunks an epoch    %llu, in %llu slots\n",
		(unsigned long long)node->chunks_per_epoch, (unsigned long long)node->slots);
	bench_report_waits(result, out);
	if (node->rate_all > 0)
		fprintf(out, "rate of all jobs  %.0f samples/s while all of them ran\n",
			node->rate_all);
	else if (!result->interrupted && result->all_exactly_once)
		fprintf(out, "rate of all jobs  not measured: one had ended before all had their "
			     "first batch; more --epochs help\n");
	fprintf(
	    out,
	    "CPU seconds       %.2f workers, %.2f readers, %.2f event loop, %.2f jobs; %s RSS\n",
	    node->worker_cpu_seconds, node->reader_cpu_seconds, node->loop_cpu_seconds,
	    node->job_cpu_seconds, BASE_BYTES(node->rss_bytes));
	bench_report_cache(config, &result->cache, out);
}

static void bench_report_meaning(const struct bench_result *result, FILE *out)
{
	if (!result->all_exactly_once)
		fprintf(out, "\nNOT every job got every picture exactly once: see above.\n");
	else if (result->interrupted)
		fprintf(out,
			"\nInterrupted: that far no job got a picture twice in an epoch, and no "
			"epoch that ended\nlacked one.\n");
	else
		fprintf(out,
			"\nEvery job got every picture exactly once an epoch, in a random "
			"order;\nthis was counted, picture by picture, and every byte was read.\n");
	fprintf(out, "One accessd did the work for all of them, and showed the result in memory "
		     "that jobs\ncan read and not write.\n");
}

void bench_report(const struct bench_config *config, const struct bench_result *result, FILE *out)
{
	const struct bench_node_result *node = &result->node;

	if (config->quickstart)
		bench_report_jobs_first(result, out);
	else
		bench_report_jobs(config, result, out);
	bench_report_sharing(config, result, out);
	bench_report_faults(result, out);
	fputc('\n', out);
	if (!node->known)
		fprintf(out, "accessd did not answer at the end: what it did is not known\n");
	else if (node->separate > 0)
		bench_report_work(result, out);
	else
		fprintf(out, "no job was delivered anything\n");
	if (node->known && node->uptime_s + 0.5 < result->seconds)
		fprintf(out, "accessd was restarted: these are the figures of its last %.1f s\n",
			node->uptime_s);
	if (config->quickstart && node->separate > 0)
		bench_report_meaning(result, out);
	else if (node->known)
		bench_report_node(config, result, out);
	fflush(out);
}
