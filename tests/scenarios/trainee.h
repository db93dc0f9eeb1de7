/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A job in a scenario in C: takes batches, knows from the rig's pictures what must be in them, and
 * counts what came. A process of its own can be one, too, and be killed or stopped.
 */

#include <sys/types.h>

#include "tests/scenarios/rig.h"

#define TRAINEE_MOST 1024 /* samples of a dataset that can be counted */

/* Of imagenet-eval-u8: pixels tell their number. */
struct oa_options trainee_options(const char *dataset, uint32_t batch, uint64_t epochs);
/* The next batch, which must come within two minutes. NULL at the end. */
struct oa_batch *trainee_next(struct oa_stream *stream);
struct oa_batch_info trainee_info(const struct oa_batch *batch);
void trainee_field(const struct oa_batch *batch, const char *name, struct oa_field *ret);
/* The number that the pixels of sample i of the batch show. */
int trainee_shown(const struct oa_batch *batch, uint32_t i);
/* Samples whose pixels, label or index are not their id's; n pictures in so many classes. */
unsigned trainee_count_wrong(const struct oa_batch *batch, unsigned n, unsigned classes);

/* How often each sample came. */
struct trainee_seen {
	uint32_t count[TRAINEE_MOST];
};
void trainee_see(struct trainee_seen *seen, const struct oa_batch *batch);
/* Takes batches until most (0: to the end) and sees them. Number of batches. */
unsigned trainee_train(struct oa_stream *stream, unsigned most, struct trainee_seen *seen);
/* Each of n samples came so often, no other did. */
bool trainee_saw_all(const struct trainee_seen *seen, unsigned n, unsigned times);

/* A job in a process of its own: opens a stream, takes two batches, keeps them, and does what it is
 * told when woken. */
enum trainee_then {
	TRAINEE_HOLDS,    /* sleeps until it is killed */
	TRAINEE_FINISHES, /* when told to go: the rest of its epochs; status 0: all came, as often as
			     must be, and what it held did not change */
	TRAINEE_BABBLES,  /* when told to go: nonsense on its connection; holds; when told again:
			    status 0: what it held did not change */
	TRAINEE_EXITS,    /* when told to go: exit(7), with everything open */
	TRAINEE_WAITS,    /* when told to go: for a batch, without a time-out */
};
struct trainee {
	pid_t pid;
	int go_fd; /* write end: a byte is one "go" */
};
/* Returns when it holds its two batches. */
struct trainee trainee_start(const char *dataset, unsigned n, uint32_t batch, uint64_t epochs,
			     enum trainee_then then);
void trainee_go(const struct trainee *trainee);
/* Waits for its end: the status as of waitpid(). */
int trainee_end(struct trainee *trainee);
