/* SPDX-License-Identifier: Apache-2.0 */

/* The results for people: a table of the jobs, the node's share of the work, and what it means. */

#include "tools/bench.h"

#include <string.h>
#include "tools/table.h"

static double bench_share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void bench_report_job(struct table *table, unsigned i, const struct bench_job_result *job,
			     bool disturbed)
{
	table_cell(table, "%u", i);
	table_cell(table, "%u", job->batch);
	table_cell(table, "%g", job->step_ms);
	table_cell(table, "%g", job->start_s);
	table_cell(table, "%.0f", bench_share((double)job->totals.samples, job->seconds));
	table_cell(table, "%.1f %%", 100 * bench_share(job->wait_seconds, job->seconds));
	table_cell(table, "%llu/%llu", (unsigned long long)job->totals.epochs,
		   (unsigned long long)job->epochs_asked);
	table_cell(table, "%s", job->exactly_once ? "yes" : "NO");
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
		bench_report_job(&table, i, &result->job[i], disturbed);
	table_print(&table, "", out);
	table_fini(&table);
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

static void bench_report_node(const struct bench_result *result, FILE *out)
{
	const struct bench_node_result *node = &result->node;
	double separate = (double)node->separate;
	char bytes[32], rss[32];

	fprintf(out, "\nthe node, for all %u jobs together:\n", result->jobs);
	if (!node->known) {
		fprintf(out, "  accessd did not answer at the end: its figures are not known\n");
		return;
	}
	fprintf(out, "  files read        %10llu  (%s)\n", (unsigned long long)node->samples_read,
		base_format_bytes(node->bytes_read, bytes, sizeof(bytes)));
	fprintf(out, "  images decoded    %10llu\n",
		(unsigned long long)node->samples_preprocessed);
	fprintf(out, "  separate loaders  %10llu  read and decoded\n",
		(unsigned long long)node->separate);
	fprintf(out, "  work removed      %9.1f %%\n",
		100 * (1 - bench_share((double)node->samples_preprocessed, separate)));
	fprintf(out,
		"  reference         %10llu  images, as the fastest jobs alone would need: "
		"redundancy %.3f\n",
		(unsigned long long)node->reference, node->redundancy);
	fprintf(out, "  floor             %10llu  images, with unlimited memory\n",
		(unsigned long long)node->floor);
	fprintf(out, "  hands an epoch    %10llu  in %llu slots\n",
		(unsigned long long)node->hands_per_epoch, (unsigned long long)node->slots);
	fprintf(out, "  rate of all jobs  %10.0f  samples/s while all of them ran\n",
		node->rate_all);
	fprintf(out, "  CPU seconds       %10.2f  workers, %.2f readers, %.2f event loop; %s RSS\n",
		node->worker_cpu_seconds, node->reader_cpu_seconds, node->loop_cpu_seconds,
		base_format_bytes(node->rss_bytes, rss, sizeof(rss)));
	if (node->uptime_s + 0.5 < result->seconds)
		fprintf(out, "  accessd was restarted: these are the figures of its last %.1f s\n",
			node->uptime_s);
}

static void bench_report_meaning(const struct bench_result *result, FILE *out)
{
	const struct bench_node_result *node = &result->node;
	double removed =
	    100 * (1 - bench_share((double)node->samples_preprocessed, (double)node->separate));

	if (!node->known || node->separate == 0)
		return;
	fprintf(
	    out,
	    "\nWhat happened: %u training jobs, of different speeds and started at different\n"
	    "times, trained on the same pictures. Each with a data loader of its own, they would\n"
	    "have read and decoded %llu pictures. accessd read %llu and decoded %llu, once for\n"
	    "all: %.0f %% of the work was not done again.\n",
	    result->jobs, (unsigned long long)node->separate,
	    (unsigned long long)node->samples_read, (unsigned long long)node->samples_preprocessed,
	    removed);
	if (result->all_exactly_once)
		fprintf(
		    out,
		    "Every job got every picture exactly once in every epoch, in a random order;\n"
		    "that was counted, picture by picture, and every byte was read. The jobs "
		    "looked at\n"
		    "the same memory, which they can read and not write.\n");
	else
		fprintf(out, "NOT every job got every picture exactly once: see above.\n");
}

void bench_report(const struct bench_config *config, const struct bench_result *result, FILE *out)
{
	bench_report_jobs(config, result, out);
	bench_report_faults(result, out);
	bench_report_node(result, out);
	if (config->quickstart)
		bench_report_meaning(result, out);
	fflush(out);
}
