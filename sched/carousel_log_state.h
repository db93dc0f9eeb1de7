/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside a group's log: what carousel_log.c, carousel_record.c, carousel_rank.c, carousel_plan.c and
 * tests/invariants/carousel_log_check.c share, no business of the carousel's other files. Entries are numbered from 0
 * over the log's whole life, the forgotten ones included.
 */

#include "sched/carousel_log.h"

struct carousel_record {
	struct entry entry; /* blocks and ids lie in the log's pages */
	uint64_t at;        /* samples of the log before it, over all epochs */
	bool produced;
};

struct carousel_log {
	uint32_t group, n_ranks;
	uint32_t rank[CAROUSEL_MAX_JOBS]; /* their numbers */
	struct carousel_record *records;  /* owned; in use from `start` on */
	uint32_t start, n, room;
	struct carousel_page *oldest, *newest; /* owned: carousel_record.c */
	uint64_t first;                        /* number of the oldest */
	uint64_t bytes, most_bytes;
	uint64_t place, samples; /* of the next one: in its epoch, in the log */
	uint64_t *at_slot;       /* owned; 1 + number of the entry that the slot holds, 0: none */
};

static inline struct carousel_record *carousel_record_of(const struct carousel_log *log,
							 uint64_t number)
{
	return &log->records[(log->start + (number - log->first)) & (log->room - 1)];
}

static inline uint64_t carousel_log_end(const struct carousel_log *log)
{
	return log->first + log->n;
}

/* carousel_record.c */
/* A copy of the entry goes to the end. NULL: no memory. */
struct carousel_record *carousel_record_push(struct carousel_log *log, const struct entry *entry);

/* carousel_log.c */
/* Whose samples the log's epochs have. */
struct entry_set carousel_log_set(const struct carousel *carousel, const struct carousel_log *log);
/* Samples of the epoch from the place on. */
uint64_t carousel_log_left(const struct carousel *carousel, const struct carousel_log *log,
			   uint64_t epoch, uint64_t place);
/* From now on the slot holds the entry. */
void carousel_log_hold(struct carousel *carousel, struct carousel_log *log, uint32_t slot,
		       uint64_t number);
/* The chunk, dealt to the group, leaves its need and becomes the next entry. */
void carousel_log_add(struct carousel *carousel, struct carousel_log *log,
		      const struct carousel_chunk *chunk, bool produced,
		      struct carousel_action *ret);

/* carousel_rank.c */
/* Samples of the log before what the rank has not taken. */
uint64_t carousel_rank_taken_to(const struct carousel_member *rank);
/* How far the first of the group's living ranks has come; 0: none lives. */
uint64_t carousel_rank_foremost(const struct carousel *carousel, const struct carousel_log *log,
				uint64_t now_ns);
