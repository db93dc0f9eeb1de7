/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A chunk in production: its tasks on their way through reader and workers into a slot, the
 * watermark, and what happens to bad samples.
 */

#include "daemon/serve/fill_state.h"

struct budget;
struct carousel_chunk;
struct node;
struct stream;

int fill_init(struct stream *stream); /* rooms for tasks; -ENOMEM */
void fill_fini(struct stream *stream);
/* Begins the chunk that the carousel put into slot. */
void fill_begin(struct stream *stream, uint32_t slot, uint64_t now_ns);
/* Looks at all chunks in production: outcomes, watermarks, finished chunks. true when anything
 * moved. */
bool fill_collect(struct stream *stream);
/* Queues tasks for which there is room in the arena, oldest chunk first, until the budget is spent. Returns when it
 * wants to be called again, 0: after the next event. */
uint64_t fill_feed(struct stream *stream, const struct budget *budget);
/* Sets when the workers ring next, after doorbell_arm_event(). true: that has come already, and nobody
 * rings for it. */
bool fill_arm(struct stream *stream);
/* Where nobody needs a processor, and other nodes may want it: stored forms are made that no job here waits for. */
void fill_ahead(struct stream *stream, uint64_t now_ns);
/* Rows that a stream's queue has: those of chunks in production (admit.h), and one for that, where there may be other nodes. */
uint32_t fill_rows(const struct node *node);
/* The sample that stands in for the chunk's i-th where it is bad, and those before this one, too: a function of (seed, nonce, id,
 * attempt). */
#define FILL_SUBSTITUTES 8 /* attempts, from 1 */
uint64_t fill_substitute_of(const struct stream *stream, const struct carousel_chunk *chunk,
			    uint32_t i, unsigned attempt);
/* Bytes of the file of a task of that row; 0: there is none. */
uint64_t fill_bytes_of(const struct stream *stream, uint32_t row, uint32_t task);
/* What its first unfinished sample waits for. */
enum layout_stage fill_stage(const struct stream *stream, const struct fill *fill);
/* That sample. */
uint64_t fill_awaits(const struct stream *stream, const struct fill *fill);
/* The reader says that it could not read a task's sample. */
void fill_read_failed(struct stream *stream, uint64_t row, uint64_t task, uint64_t sample);
/* Once a tick: what the work of all streams took since the last one, to jobs and users, and to who may go on (fill_fair.c). */
void fill_settle(struct node *node, uint64_t now_ns);
/* A process is gone: what it had under way. */
void fill_worker_died(struct stream *stream, const struct fill_death *death);
void fill_reader_died(struct stream *stream);
