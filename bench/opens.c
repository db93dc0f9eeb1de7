/* SPDX-License-Identifier: Apache-2.0 */

/*
 * opens SOCKET DATASET N: opens N streams one after the other, as all sorts of jobs do: four of ten take a batch and close, two
 * are killed with the batch in hand, and the others ask for data, a pipeline or an order that is not to be had. Says how many
 * were opened and how many were refused, as it should be; status 1 when one was not as it should be.
 *
 * opens SOCKET DATASET hold: takes two batches, says "holds" and keeps them until it is killed.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libaccess/libaccess.h"

#define WAIT_MS 300000 /* which only ends what hangs */
#define SMALL                                                                         \
	"{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[64,64]},{\"op\":" \
	"\"layout\"}]}"

static const char *socket_path, *dataset;

/* The kinds of opens, in turn; what is wrong with one is refused. */
static const struct kind {
	const char *below, *pipeline; /* below: of the dataset */
	uint32_t batch;
	int is_good, dies;
} kinds[] = {
    {"", SMALL, 8, 1, 0},  {"", SMALL, 16, 1, 0}, {"/none", SMALL, 8, 0, 0},
    {"", SMALL, 8, 1, 1},  {"", "{}", 8, 0, 0},   {"", SMALL, 8, 1, 0},
    {"", SMALL, 0, 0, 0},  {"", SMALL, 16, 1, 1}, {"", "no-such", 8, 0, 0},
    {"", SMALL, 16, 1, 0},
};

struct job {
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_error error;
};

static int job_try(struct job *job, const struct kind *kind)
{
	char path[4096];
	struct oa_options options = {
	    .size = sizeof(options),
	    .dataset = path,
	    .pipeline = kind->pipeline,
	    .batch = kind->batch,
	    .epochs = 1,
	    .job = "opens",
	    .timeout_ms = WAIT_MS,
	};
	int r;

	*job = (struct job){.error = {.size = sizeof(job->error)}};
	snprintf(path, sizeof(path), "%s%s", dataset, kind->below);
	r = oa_connect(socket_path, &job->client, &job->error);
	return r ? r : oa_open(job->client, &options, &job->stream, &job->error);
}

static void job_close(struct job *job)
{
	oa_close(job->stream);
	oa_disconnect(job->client);
}

/* Again, if the parent of his workers died meanwhile. */
static int job_open(struct job *job, const struct kind *kind)
{
	int r;

	while ((r = job_try(job, kind)) == OA_E_REFUSED && strstr(job->error.text, "open it again"))
		job_close(job);
	return r;
}

/* In a process of its own, which dies of it. */
static int open_and_die(const struct kind *kind)
{
	struct oa_batch *batch;
	struct job job;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (job_open(&job, kind) == 0 && oa_next(job.stream, WAIT_MS, &batch) == 0)
			kill(getpid(), SIGKILL);
		fprintf(stderr, "opens: %s\n",
			job.stream ? oa_error_text(job.stream) : job.error.text);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

static int open_and_close(const struct kind *kind)
{
	struct oa_batch *batch;
	struct job job;
	int r = job_open(&job, kind), is_well = (r == 0) == kind->is_good;

	if (!is_well)
		fprintf(stderr, "opens: %s %s: %s \"%s\"\n", kind->below, kind->pipeline,
			oa_error_name(r), job.error.text);
	if (r == 0) {
		is_well &= oa_next(job.stream, WAIT_MS, &batch) == 0;
		if (is_well)
			oa_release(batch);
	}
	job_close(&job);
	return is_well;
}

static int hold(void)
{
	struct oa_batch *batch;
	struct job job;

	if (job_open(&job, &kinds[0]) || oa_next(job.stream, WAIT_MS, &batch) ||
	    oa_next(job.stream, WAIT_MS, &batch)) {
		fprintf(stderr, "opens: %s\n", job.error.text);
		return 1;
	}
	puts("holds");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	unsigned long opened = 0, refused = 0, n;

	if (argc != 4) {
		fputs("usage: opens SOCKET DATASET N|hold\n", stderr);
		return 2;
	}
	socket_path = argv[1];
	dataset = argv[2];
	if (strcmp(argv[3], "hold") == 0)
		return hold();
	n = strtoul(argv[3], NULL, 10);
	for (unsigned long i = 0; i < n; i++) {
		const struct kind *kind = &kinds[i % (sizeof(kinds) / sizeof(kinds[0]))];

		if (!(kind->dies ? open_and_die(kind) : open_and_close(kind)))
			return 1;
		*(kind->is_good ? &opened : &refused) += 1;
	}
	printf("%lu %lu\n", opened, refused);
	return 0;
}
