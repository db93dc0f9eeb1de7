/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One conversion: list the source as access-reader does, start the lanes, take their results in turn,
 * hand them to the output, and have that name what it made when all of it is on the disk.
 *
 * Signals that mean the end are blocked and read from a descriptor beside the lanes' pipes, so they come where
 * they can be dealt with: everything is taken down, and then the signal does to us what it
 * would have done. Whatever goes wrong is the end of the conversion, and nothing of the target is left; a file that
 * only cannot be given the form that was asked for is no such thing.
 */

#include "convert/convert.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "pipeline/forms/form.h"

#define RUN_SCAN_THREADS 8
#define RUN_TICK_MS 500
#define RUN_MOST_LOST 10 /* names of files whose makers died */

struct run {
	const struct convert_options *options;
	struct convert_source source;
	const struct convert_output_ops *ops;
	struct convert_output *output; /* owned */
	struct convert_lane lane[CONVERT_MAX_JOBS];
	unsigned n_lanes;
	int signals; /* owned: signalfd */
	int signal;  /* that ends us; 0: none */
	struct convert_progress progress;
	uint64_t bytes[CONVERT_ENDED][2], count[CONVERT_ENDED]; /* of the files, of the samples */
	uint64_t n, source_bytes;                               /* their sums */
	uint64_t n_lost;
	uint8_t *buffer; /* owned */
	size_t room;
	struct diag diag;
};

static int run_fail(struct run *run, const char *what, int error)
{
	return diag_fail(&run->diag, CONVERT_FAILED, "%s: %s", what, strerror(error));
}

/* ---- signals ---- */

static int signals_open(struct run *run)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < BASE_ARRAY_LEN(numbers); i++)
		sigaddset(&set, numbers[i]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the write fails and says so */
	signal(SIGCHLD, SIG_DFL); /* where it is inherited as ignored nobody's status comes */
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signals < 0 ? -errno : 0;
}

static bool signal_came(struct run *run)
{
	struct signalfd_siginfo info;

	if (!run->signal && read(run->signals, &info, sizeof(info)) == sizeof(info))
		run->signal = (int)info.ssi_signo;
	return run->signal != 0;
}

/* ---- the source ---- */

static void scan_tell(void *arg, uint64_t folders, uint64_t files)
{
	struct run *run = arg;

	convert_progress_list(&run->progress, folders, files);
}

static bool scan_cancelled(void *arg)
{
	return signal_came(arg);
}

static struct scan_progress scan_progress(struct run *run)
{
	return (struct scan_progress){.tell = scan_tell, .cancelled = scan_cancelled, .arg = run};
}

static int source_list(struct run *run)
{
	const struct scan_progress progress = scan_progress(run);
	const int r = convert_source_list(&run->source, run->options->target, RUN_SCAN_THREADS,
					  &progress, &run->diag);

	convert_progress_end(&run->progress);
	return r || signal_came(run) ? CONVERT_FAILED : 0;
}

static unsigned count_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (unsigned)CPU_COUNT(&set);
}

/* ---- results ---- */

/* Until the lane has something to say. false: a signal came. */
static bool lane_wait(struct run *run, const struct convert_lane *lane)
{
	struct pollfd poll_fd[2] = {{.fd = lane->fd, .events = POLLIN},
				    {.fd = run->signals, .events = POLLIN}};

	for (;;) {
		const int r = poll(poll_fd, 2, RUN_TICK_MS);

		convert_progress_tell(&run->progress, run->n, run->source_bytes);
		if (signal_came(run))
			return false;
		if (r > 0 && poll_fd[0].revents)
			return true;
	}
}

static int lane_get(struct run *run, const struct convert_lane *lane, void *ret, uint64_t bytes)
{
	for (uint64_t got = 0; got < bytes;) {
		const ssize_t r = read(lane->fd, (uint8_t *)ret + got, bytes - got);

		if (r == 0 || (r < 0 && errno != EINTR))
			return diag_fail(&run->diag, CONVERT_FAILED,
					 "a process that converts ended by itself or was killed; "
					 "was there memory enough? fewer --jobs need less");
		got += r > 0 ? (uint64_t)r : 0;
	}
	return 0;
}

static int buffer_reserve(struct run *run, uint64_t bytes)
{
	return base_grow(&run->buffer, &run->room, bytes, 1) ? 0
							     : run_fail(run, "a picture", ENOMEM);
}

static void tell_lost(struct run *run, uint64_t sample)
{
	if (run->n_lost++ >= RUN_MOST_LOST)
		return;
	convert_progress_end(&run->progress);
	fprintf(
	    stderr,
	    "access-ctl convert: the process that made the form of \"%s\" died or took too long; "
	    "the file is kept as it is\n",
	    BASE_QUOTED(dataset_name_of(run->source.dataset, sample), 512));
}

static int result_add(struct run *run, const struct convert_result *result)
{
	int r;

	if (result->is_lost)
		tell_lost(run, result->sample);
	r = run->ops->add(run->output, result, run->buffer, &run->diag);
	if (r)
		return r;
	run->n++;
	run->source_bytes += result->source_size;
	run->count[result->outcome]++;
	run->bytes[result->outcome][0] += result->source_size;
	run->bytes[result->outcome][1] += result->size;
	return 0;
}

static int result_take(struct run *run, const struct convert_lane *lane)
{
	struct convert_result result;
	int r;

	if (!lane_wait(run, lane))
		return CONVERT_FAILED;
	r = lane_get(run, lane, &result, sizeof(result));
	r = r ? r : buffer_reserve(run, (uint64_t)result.size + 1);
	r = r ? r : lane_get(run, lane, run->buffer, result.size);
	if (r)
		return r;
	if (result.outcome < CONVERT_ENDED)
		return result_add(run, &result);
	run->buffer[result.size] = '\0';
	return diag_fail(&run->diag, CONVERT_FAILED, "%s", (const char *)run->buffer);
}

static int lanes_start(struct run *run)
{
	const uint64_t most =
	    BASE_MIN(dataset_count(run->source.dataset), (uint64_t)CONVERT_MAX_JOBS);
	const unsigned n = (unsigned)BASE_MIN((uint64_t)run->source.jobs, most);

	while (run->n_lanes < n) {
		int r = convert_lane_start(&run->lane[run->n_lanes], &run->source, run->n_lanes, n);

		if (r)
			return run_fail(run, "no process can be started that reads files", -r);
		run->n_lanes++;
	}
	return 0;
}

static int run_samples(struct run *run)
{
	const uint64_t n = dataset_count(run->source.dataset);
	int r = run->ops->begin(run->output, run->source.dataset, &run->diag);

	if (r)
		return r;
	r = lanes_start(run);
	convert_progress_begin(&run->progress, "converting", n);
	for (uint64_t i = 0; i < n && !r; i++)
		r = result_take(run, &run->lane[i % run->n_lanes]);
	convert_progress_end(&run->progress);
	return r;
}

/* ---- the whole ---- */

static int run_all(struct run *run)
{
	const struct scan_progress progress = scan_progress(run);
	int r = signals_open(run);

	if (r)
		return run_fail(run, "signals", -r);
	convert_progress_begin(&run->progress, "listing", 1);
	r = convert_source_open(&run->source, run->options->source, &progress, &run->diag);
	r = r ? r : run->ops->open(run->options, &run->output, &run->diag);
	r = r ? r : source_list(run);
	r = r ? r : run_samples(run);
	if (!r && !signal_came(run))
		r = run->ops->keep(run->output, &run->diag);
	return run->signal ? CONVERT_FAILED : r;
}

static const char *form_name(unsigned form)
{
	return form == FORM_PACKED ? "packed" : "indexed";
}

static void print_part(const char *name, uint64_t count, const uint64_t bytes[2])
{
	if (!count)
		return;
	printf("  %-12s %10llu samples  %10s -> %10s  (%.3f x)\n", name, (unsigned long long)count,
	       BASE_BYTES(bytes[0]), BASE_BYTES(bytes[1]),
	       bytes[0] ? (double)bytes[1] / (double)bytes[0] : 1);
}

int convert_run(const struct convert_options *options)
{
	struct run run = {
	    .options = options,
	    .source = {.form = options->form,
		       .jobs = options->jobs
				   ? options->jobs
				   : BASE_MIN(count_processors(), (unsigned)CONVERT_MAX_JOBS)},
	    .ops = convert_output_of(options->target),
	    .signals = -1,
	};
	int r;

	if (options->form == CONVERT_USUAL_FORM)
		run.source.form = run.ops->usual_form;
	r = run_all(&run);
	if (r && !run.signal)
		fprintf(stderr, "access-ctl convert: %s\n", run.diag.text);
	if (!r) {
		const double seconds = convert_progress_seconds(&run.progress);

		printf("%s: %llu samples in %.1f s (%.0f/s)\n",
		       BASE_QUOTED(run.options->target, 512), (unsigned long long)run.n, seconds,
		       (double)run.n / seconds);
		print_part(form_name(run.source.form), run.count[CONVERT_FORMED],
			   run.bytes[CONVERT_FORMED]);
		print_part("as they are", run.count[CONVERT_KEPT], run.bytes[CONVERT_KEPT]);
	}
	for (unsigned i = 0; i < run.n_lanes; i++)
		convert_lane_end(&run.lane[i]);
	if (run.output)
		run.ops->close(run.output);
	convert_source_close(&run.source);
	base_close(&run.signals);
	free(run.buffer);
	if (!r && fflush(stdout) != 0)
		r = CONVERT_FAILED;
	return run.signal ? -run.signal : r;
}
