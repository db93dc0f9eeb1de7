/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A random mixture of jobs, as numbers: which datasets, orders, ranks, batches and cut points. It is
 * a function of (seed, number), so a case that failed is run again by naming both. And the ledger of
 * a job: what all its lives together were given, and what is wrong with it.
 */

#include <stdio.h>

#include "base/base.h"
#include "libaccess/libaccess.h"
#include "plan/plan.h"

enum {
	MIXTURE_DATASETS = 6,
	MIXTURE_JOBS = 4,
	MIXTURE_LIVES = 4,
	MIXTURE_RANKS = 8,
	MIXTURE_EPOCHS = 3,
	MIXTURE_N = 400, /* samples of the largest dataset */
	MIXTURE_TO_THE_END = 1 << 30,
};

extern const unsigned mixture_samples[MIXTURE_DATASETS];

struct mixture_life { /* a job from an opening to its closing */
	uint32_t ranks, batch;
	uint32_t steps;  /* taken by each rank before all stop */
	uint32_t teller; /* the rank whose token the next life gets */
	bool drops_last, copies;
	bool is_brief; /* leaves order and seed to the token */
};

struct mixture_job {
	unsigned dataset, n_lives;
	enum oa_order order;
	bool is_random; /* its pipeline */
	bool is_half;   /* it has the first half of a random split */
	uint64_t seed, epochs;
	uint32_t chunk;
	struct mixture_life life[MIXTURE_LIVES];
};

struct mixture {
	uint64_t seed, number;
	unsigned n_jobs;
	unsigned kill_after; /* batches of all jobs, until accessd is killed; 0: it is not */
	struct mixture_job job[MIXTURE_JOBS];
};

/* most_ranks: of all jobs together, at once. */
void mixture_draw(struct mixture *mixture, uint64_t seed, uint64_t number, unsigned most_ranks);
void mixture_print(const struct mixture *mixture, FILE *file);

/* ---- the ledger ---- */

/* What one rank was given in one life. */
struct mixture_given {
	struct mixture_batch {
		uint64_t epoch, step;
		uint32_t count;
		bool is_last;
	} * batch;
	int64_t *ids;
	size_t n_batches, n_ids;
	bool has_ended;
};
void mixture_given_fini(struct mixture_given *given);
/* 0 or -ENOMEM. */
int mixture_given_add(struct mixture_given *given, const struct oa_batch_info *info);

struct mixture_ledger {
	const struct mixture_job *job;
	uint8_t version[32]; /* of the dataset; set by the caller before the first life is added */
	uint64_t epoch;      /* the last one of which anything came */
	uint64_t n;          /* samples of an epoch, see mixture_begin() */
	bool is_member[MIXTURE_N];
	uint64_t count[MIXTURE_EPOCHS];
	uint8_t seen[MIXTURE_EPOCHS][MIXTURE_N];
	uint64_t may_lack[MIXTURE_EPOCHS]; /* left out by lives that drop the last batch */
};

/* Where a token stands. */
struct mixture_place {
	uint64_t epoch, delivered;
};

/* With job and version set: which samples are the job's. */
void mixture_begin(struct mixture_ledger *ledger);
/* The random split that jobs have a half of. */
extern const struct oa_sampler mixture_half;
/* Adds a life of all ranks, which went from one place to another. false: diag says what is wrong. */
bool mixture_add(struct mixture_ledger *ledger, const struct mixture_life *life,
		 const struct mixture_given *given, struct mixture_place from,
		 struct mixture_place to, struct diag *diag);
/* After the last life: nothing is missing. */
bool mixture_is_whole(const struct mixture_ledger *ledger, struct diag *diag);
