/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recording of the plan as it is delivered (sched/recording.h): into a buffer, which becomes a block
 * of the file when it is full, when a token is saved, and at the end.
 */

#include "base/base.h"
#include "sched/recording.h"

struct held;
struct oa_batch;
struct oa_stream;
struct token;

struct record {
	char *path; /* owned; NULL: nothing is recorded */
	int fd;     /* owned, -1: not open */
	uint8_t *buffer;
	size_t used;              /* of it, from the block's head on */
	uint64_t number;          /* of the next block */
	int failed;               /* a write did; oa_next() has not said so yet */
	struct listing_key *keys; /* of a batch: scratch */
};

void record_init(struct record *record);
/* The first session is there, the token (NULL: none) is used: makes the file, or goes on with it where
 * the token says. 0, OA_E_INVALID, negative errno with diag. */
int record_open(struct oa_stream *stream, const struct token *token, struct diag *diag);
void record_batch(struct oa_stream *stream, const struct oa_batch *batch);
/* The keys of count samples of a chunk, from its first on. */
void record_keys(const struct oa_stream *stream, const struct held *held, uint32_t first,
		 uint32_t count, struct listing_key *ret);
void record_flush(struct oa_stream *stream);
/* Says once that recording has failed and ended: negative errno. 0: it has not. */
int record_report(struct oa_stream *stream);
void record_fini(struct record *record); /* without writing: record_flush() before */
