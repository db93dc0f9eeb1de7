/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Progress: on a terminal a line that is written over twice a second, elsewhere a line every ten seconds, so
 * that the log of a batch job says how far it is and does not fill a disk. The time that is left is
 * what the rest takes at the average rate until now.
 */

#include "convert/convert.h"

#include <stdio.h>
#include <unistd.h>

#define PROGRESS_TERMINAL_NS UINT64_C(500000000)
#define PROGRESS_LINE_NS UINT64_C(10000000000)

double convert_progress_seconds(const struct convert_progress *progress)
{
	return (double)(base_now_ns() - progress->begin_ns) / 1e9;
}

void convert_progress_begin(struct convert_progress *progress, const char *what, uint64_t n)
{
	*progress = (struct convert_progress){
	    .what = what,
	    .n = n,
	    .begin_ns = base_now_ns(),
	    .is_terminal = isatty(STDERR_FILENO) == 1,
	};
	progress->next_ns =
	    progress->begin_ns + (progress->is_terminal ? PROGRESS_TERMINAL_NS : PROGRESS_LINE_NS);
}

static void format_left(double seconds, char *ret, size_t size)
{
	if (seconds < 60)
		snprintf(ret, size, "%.0f s", seconds);
	else if (seconds < 3600)
		snprintf(ret, size, "%.0f min", seconds / 60);
	else
		snprintf(ret, size, "%.0f h %.0f min", (double)(uint64_t)(seconds / 3600),
			 (double)((uint64_t)(seconds / 60) % 60));
}

static void progress_show(struct convert_progress *progress, uint64_t done, uint64_t bytes)
{
	const double seconds = convert_progress_seconds(progress);
	const double rate = (double)done / seconds;
	char left[48] = "?", each[32];

	if (done)
		format_left((double)(progress->n - done) / rate, left, sizeof(left));
	base_format_bytes((uint64_t)((double)bytes / seconds), each, sizeof(each));
	fprintf(stderr, "%s%s: %llu of %llu samples (%.1f %%), %.0f/s, %s/s, %s left%s",
		progress->is_terminal ? "\r" : "", progress->what, (unsigned long long)done,
		(unsigned long long)progress->n, 100 * (double)done / (double)progress->n, rate,
		each, left, progress->is_terminal ? "\033[K" : "\n");
	fflush(stderr);
	progress->is_shown = true;
}

static bool progress_is_due(struct convert_progress *progress)
{
	const uint64_t now_ns = base_now_ns();

	if (now_ns < progress->next_ns)
		return false;
	progress->next_ns =
	    now_ns + (progress->is_terminal ? PROGRESS_TERMINAL_NS : PROGRESS_LINE_NS);
	return true;
}

void convert_progress_tell(struct convert_progress *progress, uint64_t done, uint64_t bytes)
{
	if (progress_is_due(progress))
		progress_show(progress, done, bytes);
}

void convert_progress_list(struct convert_progress *progress, uint64_t folders, uint64_t files)
{
	if (!progress_is_due(progress))
		return;
	fprintf(stderr, "%s%s: %llu folders, %llu pictures%s", progress->is_terminal ? "\r" : "",
		progress->what, (unsigned long long)folders, (unsigned long long)files,
		progress->is_terminal ? "\033[K" : "\n");
	fflush(stderr);
	progress->is_shown = true;
}

void convert_progress_end(struct convert_progress *progress)
{
	if (progress->is_terminal && progress->is_shown)
		fputs("\r\033[K", stderr);
	progress->is_shown = false;
}
