/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recording of the plan as it is delivered (plan/recording.h): into a buffer, which becomes a block
 * of the file when it is full, when a token is saved, and at the end.
 */

#include "plan/recording.h"

struct course;
struct oa_batch;
struct progress;
struct token;

struct record {
	char *path; /* owned; NULL: nothing is recorded */
	int fd;     /* owned, -1: not open */
	uint8_t *buffer;
	size_t used;              /* of it, from the block's head on */
	uint64_t at, number;      /* of the next block, in the file */
	int failed;               /* a write did; oa_next() has not said so yet */
	struct listing_key *keys; /* of a batch: scratch */
};

void record_init(struct record *record);
/* The first session is there, the token (NULL: none) is used: makes the file, or goes on with it where
 * the token says. 0, OA_E_INVALID, negative errno with diag. */
int record_open(struct record *record, const struct course *course, const struct token *token,
		struct diag *diag);
void record_batch(struct record *record, const struct progress *progress,
		  const struct oa_batch *batch);
void record_flush(struct record *record);
/* Says once that recording has failed and ended: negative errno. */
int record_report(struct record *record, struct diag *error);
void record_fini(struct record *record); /* without writing: record_flush() before */
