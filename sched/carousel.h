/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The carousel of chunks (DESIGN.md section 3): decides what to put into the next chunk, in which
 * slot, and which job is granted what. Pure: time and randomness are arguments; decisions come out
 * as values, one a call of carousel_step(); what happened goes in as events. The daemon and the
 * simulation run this same code.
 *
 * Need. A job's need is the bitmap of blocks of its epoch that it has not been granted. A grant
 * moves a chunk's blocks out of the need; a grant that ends without a take moves them back. When the
 * need is empty the next epoch's begins (no gap). Grants end in order of grant, so an untaken grant
 * of the epoch before implies that all later ones are untaken too: reclaiming it reclaims them
 * first and un-begins the epoch.
 *
 * A job with a tail (resume) gets it first, as a private chunk that nobody else is granted.
 *
 * Jobs of several pipelines, the *variants*, share the carousel: what goes into a chunk does not ask for
 * a job's variant, so one reading and decoding serves all of them. Each chunk is made in the variants
 * of those who are to have it (carousel_variant.c), and granted to jobs of these alone.
 *
 * A job with a fixed plan (plan.h) has no need but a place: it is granted the chunks of its plan one
 * after the other. It shares them with jobs that have the same plan and come by while they are
 * resident, and the slots with everybody. Where the plan is a list (listing.h), the job gets it epoch
 * by epoch, and waits while it has none; it shares chunks that hold what its list says. A job with ranks
 * on other nodes, too, reads a slice of its plan (slice.h): its chunks are ones of local places, and of
 * no others is anything made.
 *
 * A job of several ranks is a group: one need for all, a log of the chunks that were dealt to it, and
 * its ranks, each at its place of the log (carousel_log.c). It is numbered like a job, joined by
 * carousel_found(), and granted nothing itself.
 */

#include "plan/permutation.h"
#include "plan/entry.h"
#include "plan/listing.h"
#include "plan/plan.h"
#include "plan/ranks/slice.h"

#define CAROUSEL_MAX_JOBS 256
#define CAROUSEL_MAX_VARIANTS 8
#define CAROUSEL_MAX_LISTS 4 /* of a job at once */
#define CAROUSEL_NO_SLOT UINT32_MAX

enum { CAROUSEL_E_FULL = 1, CAROUSEL_E_BAD = 2 };

struct carousel_config {
	uint64_t n;          /* samples */
	uint8_t version[32]; /* keys the permutation */
	uint32_t chunk;      /* C */
	uint32_t slots;      /* at the start; carousel_add_slots() adds */
	uint32_t max_slots;
	uint32_t producing; /* chunks in production at once, 1 .. 4 */
	/* More that may be unfinished beside these: chunks that were overtaken, see carousel_produced() */
	uint32_t overtaken;
	uint64_t seed;        /* of the stream: keys the draws of chunks and orders inside chunks */
	uint64_t first_nonce; /* nonces are first_nonce, first_nonce + 1, ... */
	/* Variants whose pipeline has no random op, a bit each: a resident instance may serve a job
	 * again. carousel_set_variant() tells of later ones. */
	uint32_t usable_again;
	/* for tests; 0: what is right for n */
	uint32_t max_begun; /* chapters that a job may have begun */
	uint64_t chapter;   /* blocks a chapter */
};

struct carousel_join {
	uint32_t variant;     /* < CAROUSEL_MAX_VARIANTS; a rank's is its group's */
	uint32_t batch;       /* B */
	uint32_t ranks;       /* R, >= 1; of these on this node */
	uint64_t epoch;       /* number of the epoch it is in */
	uint64_t epochs;      /* ends after this epoch number - 1 (total); 0: never ends */
	const uint64_t *need; /* bitmap over blocks (copied), NULL: all */
	bool is_counted; /* need_samples are those of population in need's blocks, as they are */
	uint64_t need_samples;
	const int64_t *tail; /* samples of begun blocks not delivered (copied) */
	uint32_t n_tail;
	/* Bitmap over positions of the permutation (copied; plan/population.h): which samples its epochs
	 * have, NULL: all. need and tail lie within it. is_random: it has nothing to do with what is
	 * in the samples (a random split). is_narrow: it is granted no chunk with other samples. */
	const uint64_t *population;
	bool is_random, is_narrow;
	struct carousel_population *made; /* of the same bits, if it was made beforehand */
	uint32_t reuse;                   /* epochs that may see the same instance; 0: 1 */
	/* A chunk's samples must be those of its nonce: none that were made with others */
	bool is_exact;
	const uint64_t *nonces; /* instances (nonces) it has seen: not granted again */
	uint32_t n_nonces;
	enum plan_order order; /* 0: dealt; a fixed one has no need, tail and nonces. PLAN_LIST: its
				  epochs come by carousel_list() */
	uint64_t seed;         /* of a fixed plan */
	uint64_t place; /* in a fixed plan's or a group's epoch: places below it were delivered */
	/* Of a fixed plan whose job has ranks on other nodes: the node's ranks, the first of them, of how
	 * many (n and base are of no meaning); slice.count 0: all are here. */
	struct slice slice;
	/* 1 + the number of the group that it is a rank of; then epoch, place and batch alone count */
	uint32_t group;
};

enum carousel_kind {
	CAROUSEL_NONE = 0, /* nothing to do until an event or until ret->wake_ns */
	CAROUSEL_GRANT,    /* post: job, slot, instance, epoch, last */
	CAROUSEL_REVOKE,  /* withdraw: job, slot. Answer with carousel_reclaimed() at once if it was
			     untaken for good; else later carousel_done() / carousel_reclaimed() */
	CAROUSEL_EMPTY,   /* slot is evicted: nobody holds it or is granted it */
	CAROUSEL_PRODUCE, /* fill slot with the chunk: see carousel_chunk_of(slot) */
	CAROUSEL_LOG,     /* the log of the group `job` has one entry more: carousel_newest() */
	CAROUSEL_FAIL,    /* job's list names what there is not: end it, by carousel_leave() */
};

struct carousel_action {
	enum carousel_kind kind;
	uint32_t job, slot;
	uint64_t instance, epoch;
	/* GRANT: of the chunk's samples, the first that is the job's (fixed plans), and one past the last (populations) */
	uint32_t first, end;
	bool last; /* GRANT: with it the epoch's need is met */
	/* NONE: call again then (now: it is not through), 0: events alone matter */
	uint64_t wake_ns;
};

struct carousel_chunk { /* what a slot holds; valid until CAROUSEL_EMPTY of the slot */
	/* Instance: number in this stream, from 1; nonce: unique for ever */
	uint64_t instance, nonce;
	const int64_t *ids; /* samples in order */
	uint32_t count;
	const uint32_t *blocks; /* NULL for a tail and in fixed plans */
	uint32_t n_blocks;
	uint64_t seed;         /* of orders and random ops: the stream's, or the plan's */
	enum plan_order order; /* of a fixed plan, else 0 */
	uint64_t place; /* of its first sample in a fixed plan's epoch, a local one in a slice */
	struct slice slice; /* of a fixed plan */
	uint32_t scope;     /* number of the population its samples are drawn from; 0: all */
	uint32_t variants;  /* a bit each: in which it is made, the same from PRODUCE on */
	/* Of each sample, instead of (seed, nonce), where they are not the same; else NULL. */
	const struct listing_key *keys;
	uint8_t number; /* carousel_number() */
	bool ready, is_private;
	bool is_forgotten; /* carousel_forget() */
};

struct carousel_job_view {
	bool used, lives, hungry, starving;
	uint64_t epoch;           /* of the next grant */
	uint64_t population;      /* samples of its epochs */
	uint64_t need;            /* samples not granted in this epoch */
	uint64_t coming;          /* samples granted, untaken */
	uint64_t taken, consumed; /* samples, over all epochs */
	uint32_t grants, pins;
	uint32_t begun; /* chapters of which it needs a part; 0 if there is but one chapter */
};

struct carousel;
/* -ENOMEM, CAROUSEL_E_BAD */
int carousel_new(const struct carousel_config *config, struct carousel **ret);
void carousel_free(struct carousel *carousel);
const struct permutation *carousel_permutation(const struct carousel *carousel);
/* CAROUSEL_E_FULL past max_slots */
int carousel_add_slots(struct carousel *carousel, uint32_t slots);
uint32_t
carousel_jobs_end(const struct carousel *carousel); /* one past the highest number in use */
uint32_t carousel_free_slots(const struct carousel *carousel); /* that have no chunk */
/* Does a chunk in production wait for a sample that takes longer than a whole chunk? */
bool carousel_is_overtaken(const struct carousel *carousel);
bool carousel_is_late(const struct carousel *carousel, uint32_t slot); /* does this one? */
/* Are so few chunks in production that one more may be begun? */
bool carousel_may_begin(const struct carousel *carousel);

/*
 * The number is another pipeline's from now on: what is resident of the one before is no variant of its
 * chunk any more. CAROUSEL_E_BAD: there is no such number, or jobs of it are there.
 */
int carousel_set_variant(struct carousel *carousel, uint32_t variant, bool usable_again);

/*
 * A population that is made beforehand, in steps that are short however many samples and other populations there are.
 * bits: from malloc(), taken, and there as long as it is. Its maker ends it by carousel_population_end(), before
 * the carousel; jobs that joined with it keep it. NULL: no memory, and bits are still the caller's.
 */
struct carousel_population;
struct carousel_population *carousel_population_new(struct carousel *carousel, uint64_t *bits,
						    bool is_random);
/* Some of the work. true: nothing is left, as long as no job with another population joins; a join then takes no
 * longer for it. */
bool carousel_population_step(const struct carousel *carousel,
			      struct carousel_population *population);
bool carousel_population_is_ready(const struct carousel *carousel,
				  const struct carousel_population *population);
/* When nothing is left: its blocks, and its samples. */
const uint64_t *carousel_population_blocks(const struct carousel_population *population,
					   uint64_t *ret_samples);
void carousel_population_end(struct carousel_population *population); /* NULL is fine */

/* events; jobs are numbered 0 .. CAROUSEL_MAX_JOBS-1, numbers are used again after a leave */
/* CAROUSEL_E_FULL, CAROUSEL_E_BAD (ids, bits out of range), -ENOMEM */
int carousel_join(struct carousel *carousel, const struct carousel_join *join, uint64_t now_ns,
		  uint32_t *ret_job);
/*
 * Founds a group: need, tail, nonces, epoch and epochs of join are the job's, batch and ranks, too. Its
 * next chunk is at join->place of the epoch. log_bytes: what entries may take before the oldest are
 * forgotten, by carousel_entry_bytes(). It lasts until carousel_leave(), after that of its ranks.
 */
int carousel_found(struct carousel *carousel, const struct carousel_join *join, uint64_t log_bytes,
		   uint64_t now_ns, uint32_t *ret_group);
/*
 * A log that is gone on with, made beforehand, in whatever steps: what came before is added oldest first,
 * entries that are good (plan/entry.h), and forgotten as above. carousel_adopt() gives it (consumed) to a
 * group that was founded behind its end, before any rank joins.
 */
struct carousel_log;
struct carousel_log *carousel_log_new(const struct carousel *carousel, uint64_t log_bytes);
void carousel_log_free(struct carousel_log *log); /* NULL is fine */
/* So many bytes of it; then it can only be freed. false: that was all, and *log is NULL. */
bool carousel_log_free_some(struct carousel_log **log, uint64_t most);
/* 0, CAROUSEL_E_BAD (it does not follow, or is no chunk of this carousel), -ENOMEM. */
int carousel_recall(const struct carousel *carousel, struct carousel_log *log,
		    const struct entry *entry);
void carousel_adopt(struct carousel *carousel, uint32_t group, struct carousel_log *log);
uint64_t carousel_entry_bytes(const struct entry *entry);
/* What two epochs may take, with some short chunks. */
uint64_t carousel_log_bytes(const struct carousel *carousel);
/* The same of a carousel with chunks of any size: no log of these samples is larger. */
uint64_t carousel_log_most(const struct carousel *carousel);
/* The newest entry of the group's log: valid until the next call that changes something. */
void carousel_newest(const struct carousel *carousel, uint32_t group, struct entry *ret);
/* Is the place one of the log, so that a rank can join there? */
bool carousel_has_place(const struct carousel *carousel, uint32_t group, uint64_t epoch,
			uint64_t place);
/* carousel_leave() of a group. Its log is the caller's, to be freed. NULL: there is no such group. */
struct carousel_log *carousel_disband(struct carousel *carousel, uint32_t group, uint64_t now_ns);
/* The rank's next entry was forgotten: it can only leave. */
bool carousel_is_behind(const struct carousel *carousel, uint32_t job);
/* The job is gone: untaken grants end at once, slots it has taken are free of it. */
void carousel_leave(struct carousel *carousel, uint32_t job, uint64_t now_ns);
/* The job is gone but its process still holds what it took: those slots stay pinned (by a ghost)
 * until carousel_unpin(). Otherwise as carousel_leave(). */
void carousel_leave_pinned(struct carousel *carousel, uint32_t job, uint64_t now_ns);
void carousel_unpin(struct carousel *carousel, uint32_t slot);
/* All samples of the slot are finished. What was begun before it and is not finished waits for a sample that takes
 * longer than a whole chunk: it is overtaken, and as many of these as the configuration says are no reason not to begin
 * another chunk. */
void carousel_produced(struct carousel *carousel, uint32_t slot);
/* The slot's chunk is not what it is to be: it is granted to nobody any more, and made anew for who needs it. Who was granted it
 * keeps it. */
void carousel_forget(struct carousel *carousel, uint32_t slot);
/* The job has the slot, for good. A grant that was revoked stops the job's grants until this, or
 * carousel_reclaimed(), tells how that ended. */
void carousel_taken(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns);
void carousel_done(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns);
void carousel_reclaimed(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns);
/* The job sleeps in next, or does no more. */
void carousel_waiting(struct carousel *carousel, uint32_t job, bool waiting);

/* Chunks in which all jobs allow the same instance of a sample, at least 1: more, and samples may be kept behind
 * random ops (sched/instance.h). A job that must have the samples of a chunk's own nonce allows no more than 1: with a
 * fixed plan, of several ranks, or is_exact. */
uint32_t carousel_allows(const struct carousel *carousel);
/* Right after CAROUSEL_PRODUCE: samples of the slot's chunk are kept in it, or were brought from what was kept, and it
 * is the number-th chunk, from 1, of the one that came in most. From then on each job is granted it once at most, and
 * only if it allows as many. false: it is a chunk whose samples cannot be such. */
bool carousel_number(struct carousel *carousel, uint32_t slot, uint32_t number);

/* The list of an epoch of a job with PLAN_LIST: borrowed until carousel_lists_over() says that it is
 * over, or the job leaves. CAROUSEL_E_BAD: it is over, or there already, or the job's place is past
 * its end; CAROUSEL_E_FULL: there are CAROUSEL_MAX_LISTS. */
int carousel_list(struct carousel *carousel, uint32_t job, uint64_t epoch,
		  const struct listing *list);
/* Forgets the lists of epochs that are over: those below the number that is returned. */
uint64_t carousel_lists_over(struct carousel *carousel, uint32_t job);

/* The next decision. Call until CAROUSEL_NONE after events. */
void carousel_step(struct carousel *carousel, uint64_t now_ns, struct carousel_action *ret);

/* views, for the daemon's status and the tests */
/* NULL: the slot is empty. */
const struct carousel_chunk *carousel_chunk_of(const struct carousel *carousel, uint32_t slot);
void carousel_job(const struct carousel *carousel, uint32_t job, uint64_t now_ns,
		  struct carousel_job_view *ret);
struct carousel_totals {
	uint64_t productions, chunks; /* samples and chunks put into production */
	uint64_t outputs;             /* samples put into production, once for each variant */
	uint64_t reference;           /* DESIGN.md section 3, over segments up to now */
	uint64_t waits_on_dead; /* live, starving job found no slot because of one that a job which
				   does not live pins or was granted: must stay 0 */
	uint32_t slots, resident, pinned, jobs;
};
void carousel_totals(const struct carousel *carousel, struct carousel_totals *ret);
