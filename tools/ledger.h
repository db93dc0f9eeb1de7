/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a job of access-bench was delivered, kept outside the job: it survives kill -9 at any
 * instruction, and what it says then is exactly what the token in it says.
 *
 * A memfd that the parent makes and the job fills: for each sample the number of epochs in which it
 * came, totals, and the resume token after the last batch that counts.
 */

#include "base/base.h"

enum {
	LEDGER_E_EMPTY = 1, /* no job has made it yet */
	LEDGER_E_BAD = 2,   /* the memory is no ledger */
};

struct ledger_totals {
	uint64_t samples, batches, epochs; /* epochs: complete ones */
	uint64_t duplicates;               /* deliveries of a sample that the epoch had already */
	uint64_t missing;                  /* samples that an earlier, ended epoch did not bring */
	uint64_t strange;                  /* ids that are no sample's */
	uint64_t bad_values;               /* batches whose bytes are not what they must be */
	uint64_t skipped, substituted, copied, wait_ns, reconnects, bytes;
	uint64_t filtered, batch_mixed, batch_mixed_ns, late_ns;
	uint64_t digest; /* a sum over all that was delivered (bench_verify.c) */
};

struct ledger_map;
struct ledger { /* a mapped ledger; at most one process at a time fills it */
	struct ledger_map *map;
	uint64_t n, size;
	uint32_t batch, token_capacity;
	uint64_t *batch_seen; /* bitmap of the ids of one batch; private memory */
};

/* A new memfd for a ledger, CLOEXEC. Caller owns it. Negative errno. */
int ledger_memory(void);
/* Lays the ledger out for n samples, batches of at most batch samples and tokens of at most
 * token_capacity bytes. 0 or negative errno. fd stays the caller's. */
int ledger_make(int fd, uint64_t n, uint32_t batch, uint32_t token_capacity, struct ledger *ret);
/* Maps a ledger and finishes what a killed process left half done. 0, LEDGER_E_EMPTY, LEDGER_E_BAD,
 * negative errno. */
int ledger_open(int fd, struct ledger *ret);
void ledger_close(struct ledger *ledger);

/* The totals and the token as of the last commit; the token is borrowed, *ret_size 0: none. */
const struct ledger_totals *ledger_totals(const struct ledger *ledger);
const void *ledger_token(const struct ledger *ledger, size_t *ret_size);

/* Adds to totals what a batch of the given epoch means: duplicates, missing, strange. */
void ledger_count(struct ledger *ledger, uint64_t epoch, const int64_t *ids, uint32_t count,
		  struct ledger_totals *totals);
/* Room for the token that goes with the next commit: token_capacity bytes. */
void *ledger_token_room(struct ledger *ledger);
/* One batch, the totals with it and the token after it begin to count, all at once. */
void ledger_commit(struct ledger *ledger, uint64_t epoch, const int64_t *ids, uint32_t count,
		   const struct ledger_totals *totals, uint32_t token_size);

/* Epochs in which the sample came. */
uint16_t ledger_epochs_of(const struct ledger *ledger, uint64_t sample);
/* Deliveries that are still missing of so many epochs of so many samples, without those in
 * totals->missing. Where the job has a part of the samples, those that came are it: *ret_strange says
 * how many there are too many. */
uint64_t ledger_missing(const struct ledger *ledger, uint64_t epochs, uint64_t samples,
			uint64_t *ret_strange);
/* Before the first batch: the sample is none of the job's. */
void ledger_exclude(struct ledger *ledger, uint64_t sample);
