/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * access-bench: many training jobs on one node, imitated, measured and checked.
 *
 *   the parent     starts a private accessd (or uses one that is there), forks the jobs, kills,
 * stops and restarts them as asked, draws the progress, judges and reports; it never calls
 * libaccess itself a job          one process with one stream; tells where it is in its seat
 * (shared memory of the parent) and what it was delivered in its ledger (tools/ledger.h)
 *
 * Everything shared lies in one anonymous mapping that is made before the first fork.
 */

#include "base/counter.h"
#include "base/philox.h"
#include "libaccess/libaccess.h"
#include "tools/histogram.h"
#include "tools/ledger.h"
#include "tools/option.h"

#define BENCH_MAX_JOBS 256
#define BENCH_MAX_EPOCHS 60000

struct bench_own { /* of the accessd that --private starts */
	uint64_t workers, readers, slots, memory;
	uint64_t cache_size; /* UINT64_MAX: not said */
	const char *cache_dir, *cache_point;
	struct option_texts set;
};

struct bench_dealt { /* round the jobs */
	struct option_list batch, step_ms, start_s, job_epochs, plan_seed;
	struct option_texts split, classes, pipeline;
};

struct bench_config {
	const char *dataset, *socket, *json, *record, *replay;
	uint64_t jobs, epochs, reuse, chunk, seed, timeout_s, bad_budget;
	struct bench_own own;
	struct bench_dealt dealt;
	double kill, stop;
	unsigned bad, order; /* enum oa_bad, enum oa_order */
	bool private, verify, copy, quickstart, quiet, help, version;
};

enum bench_stage {
	BENCH_WAITS = 0, /* for its time to start */
	BENCH_OPENS,
	BENCH_RUNS,
	BENCH_ENDED,
	BENCH_FAILED,
};

/* One a job. Written by the job while it lives, by the parent in between, unless said. */
struct bench_seat {
	struct counter stage;
	struct counter chunk;
	struct counter n;          /* samples of its epochs, 0: not known yet */
	struct counter started_ns; /* first connect */
	struct counter first_ns;   /* first batch */
	struct counter ended_ns;
	struct counter samples, epoch, wait_ns;
	struct counter done, total; /* of the opening */
	struct histogram handover;
	char shares[512]; /* with whom, as the daemon said; may be torn, too */
	char opening[96]; /* what the daemon says while it opens; may be torn, for show alone */
	char error[1024];
};

/* Samples over all jobs between two moments; whoever sees the moment come writes it down, once. */
struct bench_mark {
	struct counter claimed, whole;
	uint64_t ns, samples;
};

struct bench_shared {
	uint32_t jobs;
	uint64_t zero_ns;               /* --start-s counts from here */
	struct bench_mark all_have_one; /* every job has its first batch */
	struct bench_mark one_ended;    /* the first job is at its end */
	struct bench_seat seat[];
};

/* bench_shared.c */
struct bench_shared *bench_shared_new(uint32_t jobs); /* NULL: errno */
void bench_shared_free(struct bench_shared *shared);
/* Writes down the marks whose moment has come. Any process, at any time. */
void bench_shared_mark(struct bench_shared *shared);
/* Samples per second between the marks; 0 when there was no such time. */
double bench_shared_rate(const struct bench_shared *shared);

/* bench_options.c */
/* Fills config from the command line. 0 or OPTION_E_BAD with diag. */
/* Is something to be kept of samples, or what and where, said? */
bool bench_keeps(const struct bench_config *config);
int bench_options(int argc, char **argv, struct bench_config *ret, struct diag *diag);
void bench_options_help(FILE *out);
uint64_t bench_epochs_of(const struct bench_config *config, unsigned job);
uint32_t bench_batch_of(const struct bench_config *config, unsigned job);
double bench_step_ms_of(const struct bench_config *config, unsigned job);
double bench_start_s_of(const struct bench_config *config, unsigned job);
uint64_t bench_plan_seed_of(const struct bench_config *config, unsigned job);
const char *bench_pipeline_of(const struct bench_config *config, unsigned job); /* "": none */
const char *bench_order_name(const struct bench_config *config);

/* bench_part.c: which samples a job asks for */
struct bench_part {
	struct oa_sampler sampler;
	char *text;         /* owned */
	const char **names; /* owned; into text */
};
/* false with diag: --split makes no sense. */
bool bench_part_check(const struct bench_config *config, struct diag *diag);
/* false: all of them. bench_part_fini() in either case. */
bool bench_part_of(const struct bench_config *config, unsigned job, struct bench_part *ret);
static inline bool bench_part_is_asked(const struct bench_part *part)
{
	return part->sampler.n_classes || part->sampler.to > 0;
}
void bench_part_fini(struct bench_part *part);

/* bench_job.c: the whole life of a job's process; returns its exit status. */
int bench_job(const struct bench_config *config, const char *socket, unsigned job,
	      struct bench_shared *shared, int ledger_fd);

/* bench_verify.c */
struct oa_batch;
/* Reads every byte of the batch, and adds what its samples are to *digest. False when a value cannot be: a float that is not
 * finite, an index field that does not say the ids. */
bool bench_verify(const struct oa_batch *batch, uint64_t *digest);

/* bench_crew.c: the jobs' processes, seen from the parent */
struct bench_member {
	int pid; /* 0: none at the moment */
	int ledger_fd;
	unsigned kills, stops, lives;
	uint64_t continue_ns; /* when stopped: goes on then */
	bool over;            /* ended or failed for good */
};
struct bench_crew {
	const struct bench_config *config;
	const char *socket; /* NULL: as libaccess finds it */
	struct bench_shared *shared;
	struct philox_seq draws;
	uint64_t last_ns;
	double cpu_seconds; /* of jobs that have ended */
	struct bench_member member[BENCH_MAX_JOBS];
};
/* Forks all jobs. 0 or negative errno; after a failure bench_crew_end() still must be called. */
int bench_crew_start(struct bench_crew *crew, const struct bench_config *config, const char *socket,
		     struct bench_shared *shared);
/* Reaps, restarts, kills, stops, continues. Returns the number of jobs that are not over. */
unsigned bench_crew_tend(struct bench_crew *crew, uint64_t now_ns);
void bench_crew_kill(struct bench_crew *crew); /* what still runs; the ledgers stay */
void bench_crew_end(struct bench_crew *crew);  /* and closes the ledgers */

/* bench_result.c: what came out, as values */
struct bench_job_result {
	struct ledger_totals totals;
	bool opened, exactly_once;
	uint64_t epochs_asked, missing, n, dataset, plan_seed; /* n: samples of its epochs */
	uint32_t batch;
	double seconds, wait_seconds, copied_share, first_batch_ms, step_ms, start_s;
	uint64_t handovers;
	double handover_p50_us, handover_p99_us;
	unsigned kills, stops, lives;
	const char *error;    /* "" if none; borrowed from the seat */
	const char *shares;   /* the same */
	const char *pipeline; /* borrowed from the configuration, or the result */
};
struct bench_node_result {
	bool known; /* accessd answered at the end */
	uint64_t samples_read, bytes_read, samples_preprocessed, reference, floor, chunks_per_epoch;
	uint64_t slots, rss_bytes, waits_on_dead, bad_samples;
	uint64_t worker_restarts, reader_restarts, parent_restarts;
	double redundancy, worker_cpu_seconds, reader_cpu_seconds, loop_cpu_seconds, rate_all;
	double job_cpu_seconds; /* of the jobs' processes */
	double uptime_s;
	uint64_t separate; /* samples that the jobs would have read and decoded each for itself */
};
#define BENCH_USUAL_CACHE "8G" /* accessd's own */
struct bench_cache_result {
	/* of the stream that looked for the most samples; "": accessd does not say */
	char point[32];
	char why[256];                /* nothing is kept for it; "": something is */
	uint64_t hits, misses, bytes; /* samples that came kept, or not; bytes of the former */
};
struct bench_result {
	bool all_exactly_once; /* interrupted: as far as they came */
	bool interrupted;
	double seconds; /* from the first connect to the last end */
	uint32_t jobs;
	struct bench_node_result node;
	struct bench_cache_result cache;
	char usual
	    [1024]; /* the pipeline of jobs that were given none; "": there are none, or accessd does not say */
	struct bench_job_result job[BENCH_MAX_JOBS];
};
/* status_before and status_after: accessd's JSON, NULL when there was no answer. interrupted: what an
 * epoch under way has not brought yet is not missing. */
void bench_result_collect(const struct bench_crew *crew, bool interrupted,
			  const char *status_before, const char *status_after,
			  struct bench_result *ret);
/* The JSON text, which the caller frees. 0 or negative errno. */
int bench_result_json(const struct bench_config *config, const struct bench_result *result,
		      char **ret);

/* bench_report.c: the same for people */
void bench_report(const struct bench_config *config, const struct bench_result *result, FILE *out);

/* bench_progress.c */
struct bench_progress {
	FILE *out; /* NULL: shows nothing */
	bool redraws;
	int bar;        /* columns of a job's bar */
	unsigned lines; /* of the block on the terminal */
	uint64_t next_ns, last_ns;
	uint64_t last_samples[BENCH_MAX_JOBS], last_wait_ns[BENCH_MAX_JOBS];
};
void bench_progress_init(struct bench_progress *progress, unsigned jobs, FILE *out);
/* Draws when it is time. */
void bench_progress_tick(struct bench_progress *progress, const struct bench_crew *crew,
			 uint64_t now_ns);
void bench_progress_end(struct bench_progress *progress, const struct bench_crew *crew);
