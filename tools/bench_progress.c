/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Progress while the jobs run: on a terminal that has the lines for it one block that is drawn again
 * five times a second, elsewhere a line every two seconds. Reads the seats, which jobs write without
 * asking; numbers of one line may be of slightly different moments.
 */

#include "tools/bench.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define BENCH_BAR 24
#define BENCH_REST 52 /* columns of a job's line beside its bar */

/* Jobs' lines, one more for the whole, and where the cursor stands below them must fit. */
static bool bench_progress_fits(struct bench_progress *progress, unsigned jobs)
{
	struct winsize window;

	progress->bar = BENCH_BAR;
	if (ioctl(fileno(progress->out), TIOCGWINSZ, &window) < 0 || window.ws_col == 0)
		return true;
	progress->bar = BASE_MIN(BASE_MAX(window.ws_col - BENCH_REST, 0), BENCH_BAR);
	return window.ws_row == 0 || jobs + 2 < window.ws_row;
}

void bench_progress_init(struct bench_progress *progress, unsigned jobs, FILE *out)
{
	const char *terminal = getenv("TERM");

	*progress = (struct bench_progress){.out = out, .last_ns = base_now_ns()};
	progress->redraws = out && isatty(fileno(out)) && terminal &&
			    strcmp(terminal, "dumb") != 0 && bench_progress_fits(progress, jobs);
}

static void bench_progress_bar(FILE *out, int width, double share)
{
	int filled = (int)(BASE_MIN(BASE_MAX(share, 0), 1) * width + 0.5);

	if (width < 4)
		return;
	fputc('[', out);
	for (int i = 0; i < width; i++)
		fputc(i < filled ? '#' : '.', out);
	fputs("] ", out);
}

static void bench_progress_opening(const struct bench_seat *seat, FILE *out)
{
	char text[sizeof(seat->opening)];

	memcpy(text, seat->opening, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	fprintf(out, "opening %s", BASE_QUOTED(text, 2 * sizeof(seat->opening)));
	if (counter_get(&seat->done) > 0)
		fprintf(out, " %llu", (unsigned long long)counter_get(&seat->done));
	if (counter_get(&seat->total) > 0)
		fprintf(out, " of %llu", (unsigned long long)counter_get(&seat->total));
}

static void bench_progress_job(struct bench_progress *progress, const struct bench_crew *crew,
			       unsigned i, double seconds)
{
	const struct bench_seat *seat = &crew->shared->seat[i];
	uint64_t samples = counter_get(&seat->samples), wait_ns = counter_get(&seat->wait_ns);
	uint64_t stage = counter_get(&seat->stage);
	uint64_t epochs = bench_epochs_of(crew->config, i);
	double whole = (double)(counter_get(&seat->n) * epochs);

	fprintf(progress->out, "job %-3u ", i);
	bench_progress_bar(progress->out, progress->bar, whole > 0 ? (double)samples / whole : 0);
	fprintf(progress->out, "epoch %llu/%llu  ",
		(unsigned long long)BASE_MIN(counter_get(&seat->epoch) + 1, epochs),
		(unsigned long long)epochs);
	if (stage == BENCH_WAITS)
		fprintf(progress->out, "starts at %g s", bench_start_s_of(crew->config, i));
	else if (stage == BENCH_OPENS)
		bench_progress_opening(seat, progress->out);
	else if (stage == BENCH_FAILED)
		fprintf(progress->out, "failed");
	else if (stage == BENCH_ENDED)
		fprintf(progress->out, "done");
	else if (crew->member[i].continue_ns > 0)
		fprintf(progress->out, "stopped");
	else
		fprintf(
		    progress->out, "%8.0f samples/s  %3.0f %% waiting",
		    (double)(samples - progress->last_samples[i]) / seconds,
		    BASE_MIN((double)(wait_ns - progress->last_wait_ns[i]) / seconds / 1e7, 100));
	fputs("\x1b[K\n", progress->out);
}

/* Seconds until the last job that runs is done, if all go on as in all their time; 0: not known. */
static double bench_progress_left(const struct bench_crew *crew)
{
	double most = 0;

	for (unsigned i = 0; i < crew->config->jobs; i++) {
		const struct bench_seat *seat = &crew->shared->seat[i];
		uint64_t first_ns = counter_get(&seat->first_ns);
		double whole = (double)(counter_get(&seat->n) * bench_epochs_of(crew->config, i));
		double samples = (double)counter_get(&seat->samples);
		double seconds = (double)(base_now_ns() - first_ns) * 1e-9;

		if (counter_get(&seat->stage) == BENCH_RUNS && first_ns > 0 && samples > 0 &&
		    whole > samples)
			most = BASE_MAX(most, seconds * (whole - samples) / samples);
	}
	return most;
}

static void bench_progress_whole(const struct bench_progress *progress,
				 const struct bench_crew *crew)
{
	double left = bench_progress_left(crew);

	fprintf(progress->out, "%.0f s", (double)(base_now_ns() - crew->shared->zero_ns) * 1e-9);
	if (left >= 90)
		fprintf(progress->out, ", about %.0f min left", left / 60);
	else if (left > 0)
		fprintf(progress->out, ", about %.0f s left", left);
	fputs("; Ctrl-C ends it and shows what came out\x1b[K\n", progress->out);
}

static void bench_progress_block(struct bench_progress *progress, const struct bench_crew *crew,
				 double seconds)
{
	fputs("\x1b[?7l", progress->out); /* a line too long for the terminal is cut, not wrapped */
	if (progress->lines > 0)
		fprintf(progress->out, "\x1b[%uA", progress->lines);
	for (unsigned i = 0; i < crew->config->jobs; i++)
		bench_progress_job(progress, crew, i, seconds);
	bench_progress_whole(progress, crew);
	fputs("\x1b[?7h", progress->out);
	progress->lines = (unsigned)crew->config->jobs + 1;
}

static void bench_progress_line(const struct bench_progress *progress,
				const struct bench_crew *crew, double seconds)
{
	unsigned running = 0, over = 0;
	uint64_t samples = 0, last = 0, n = 0, epochs = 0;

	for (unsigned i = 0; i < crew->config->jobs; i++) {
		const struct bench_seat *seat = &crew->shared->seat[i];

		running += counter_get(&seat->stage) == BENCH_RUNS;
		over += counter_get(&seat->stage) >= BENCH_ENDED;
		samples += counter_get(&seat->samples);
		last += progress->last_samples[i];
		n = BASE_MAX(n, counter_get(&seat->n));
		epochs += bench_epochs_of(crew->config, i);
	}
	fprintf(progress->out,
		"%5.1f s: %u jobs run, %u are over; %llu samples delivered (%.0f %%), %.0f "
		"samples/s\n",
		(double)(base_now_ns() - crew->shared->zero_ns) * 1e-9, running, over,
		(unsigned long long)samples,
		n > 0 ? 100 * (double)samples / (double)(n * epochs) : 0,
		(double)(samples - last) / seconds);
}

static void bench_progress_draw(struct bench_progress *progress, const struct bench_crew *crew,
				uint64_t now_ns)
{
	double seconds = BASE_MAX((double)(now_ns - progress->last_ns) * 1e-9, 1e-3);

	if (progress->redraws)
		bench_progress_block(progress, crew, seconds);
	else
		bench_progress_line(progress, crew, seconds);
	fflush(progress->out);
}

void bench_progress_tick(struct bench_progress *progress, const struct bench_crew *crew,
			 uint64_t now_ns)
{
	if (!progress->out || now_ns < progress->next_ns)
		return;
	if (progress->next_ns > 0 || progress->redraws)
		bench_progress_draw(progress, crew, now_ns);
	progress->next_ns = now_ns + (progress->redraws ? 200000000 : 2000000000);
	/* rates over a second on the terminal: shorter ones flicker */
	if (progress->redraws && now_ns - progress->last_ns < 1000000000)
		return;
	progress->last_ns = now_ns;
	for (unsigned i = 0; i < crew->config->jobs; i++) {
		progress->last_samples[i] = counter_get(&crew->shared->seat[i].samples);
		progress->last_wait_ns[i] = counter_get(&crew->shared->seat[i].wait_ns);
	}
}

void bench_progress_end(struct bench_progress *progress, const struct bench_crew *crew)
{
	if (!progress->out)
		return;
	if (progress->redraws) {
		bench_progress_draw(progress, crew, base_now_ns());
		fputs("\x1b[1A\x1b[K", progress->out); /* what is left is nothing */
	}
	fputc('\n', progress->out);
	fflush(progress->out);
}
