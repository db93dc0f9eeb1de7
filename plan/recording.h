/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recorded plan, as bytes (access-plan(5) has them in full): a head that says of what, then blocks
 * of batches, each block with its checksum. What is written last may be cut off by a crash: the
 * blocks before are a plan of their own. Hostile when it is read: bounded, everything is checked.
 *
 * Pure: bytes come by a callback.
 */

#include "plan/listing.h"

#define RECORDING_HEAD 128
#define RECORDING_BLOCK_HEAD 32
#define RECORDING_BATCH_HEAD 48
#define RECORDING_MAX_BLOCK (16u << 20) /* bytes after a block's head */

enum {
	RECORDING_E_BAD = 1,     /* damaged, forged or no recording at all */
	RECORDING_E_VERSION = 2, /* of a newer format */
	RECORDING_E_END = 3,     /* nothing follows */
	RECORDING_E_CUT = 4,     /* what follows was not written to its end */
};

struct recording_head {
	uint64_t n;
	uint32_t block, order; /* order: enum plan_order */
	uint8_t dataset[32], pipeline[32];
	uint64_t seed; /* of a fixed plan */
	uint32_t batch;
};

enum recording_flags { RECORDING_LAST = 1 }; /* the last batch of its epoch */

struct recording_batch {
	uint64_t epoch, step;
	uint64_t after; /* what a token that is saved after it says of the epoch */
	uint32_t rank, ranks, count, n_runs, flags;
	const uint8_t *runs, *ids; /* in the block */
	unsigned id_bytes;
};

/* ---- writing ---- */

void recording_write_head(const struct recording_head *head, uint8_t ret[RECORDING_HEAD]);
/* Most bytes that a batch of count samples takes. */
size_t recording_batch_bytes(uint32_t count);
/* Writes batch, of whose members runs and ids are not looked at: ids and keys are. Returns bytes. */
size_t recording_write_batch(const struct recording_batch *batch, uint64_t n, const int64_t *ids,
			     const struct listing_key *keys, uint8_t *ret);
/* The head of a block whose batches, bytes of them, follow it in memory. */
void recording_seal_block(uint8_t *block, uint64_t number, uint32_t bytes);

/* ---- reading ---- */

struct recording_reader {
	int (*read)(int file, void *ret, uint64_t bytes,
		    uint64_t at); /* base_read_at(), or one like it */
	int file;                 /* borrowed; what it reads */
	uint64_t size;            /* of all */
	uint64_t offset;          /* of the next block */
	uint64_t number;          /* its number */
	struct recording_head head;
	uint8_t *block; /* owned: batches of the block at hand */
	uint32_t bytes; /* of them */
	uint32_t at;    /* next batch in it */
	uint64_t begin; /* where its head is */
};

/* Of the same data set, pipeline, order and seed? */
bool recording_is_same(const struct recording_head *a, const struct recording_head *b);
/* 0, RECORDING_E_BAD, RECORDING_E_VERSION with diag, negative errno. recording_fini() in any case. */
int recording_open(struct recording_reader *reader, struct diag *diag);
/* The next batch, good until the next call. 0, RECORDING_E_..., negative errno; diag with BAD. */
int recording_next(struct recording_reader *reader, struct recording_batch *ret, struct diag *diag);
/* Goes on at the block that begins at offset, number `number`. */
void recording_seek(struct recording_reader *reader, uint64_t offset, uint64_t number);
void recording_fini(struct recording_reader *reader);

int64_t recording_id(const struct recording_batch *batch, uint32_t i); /* i < count */
/* Run i < n_runs: its key; returns its samples, from the run before on. */
uint32_t recording_run(const struct recording_batch *batch, uint32_t i, struct listing_key *ret);
