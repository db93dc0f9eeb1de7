/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside the carousel: what its files share, no business of anybody else. carousel.c has events and
 * views, carousel_join.c how jobs come and go, carousel_need.c need, grants and epochs,
 * carousel_chapter.c the chapters of a large epoch, carousel_step.c the policy, carousel_evict.c how
 * slots become free, carousel_deal.c what goes into a chunk, carousel_fixed.c the same for jobs with a
 * fixed plan, carousel_listed.c where that is a list, carousel_log.h for jobs of several ranks,
 * carousel_population.c whose samples they are, carousel_variant.c in which variants a chunk is made,
 * carousel_lead.c who leads, carousel_choose.c for whom
 * a chunk is made, tests/invariants/carousel_check.c the invariants.
 */

#include "base/bits.h"
#include "sched/carousel.h"
#include "plan/permutation.h"

#define CAROUSEL_NOBODY UINT32_MAX
/* Bitmaps over blocks are padded with zeros to whole spans, so that loops have constant
 * lengths. */
#define CAROUSEL_SPAN 16

struct carousel_set { /* of jobs */
	uint64_t word[CAROUSEL_MAX_JOBS / 64];
};

#define CAROUSEL_SCOPES (CAROUSEL_MAX_JOBS + 1) /* populations, 0: the whole */
struct carousel_scopes {                        /* a set of them */
	uint64_t word[(CAROUSEL_SCOPES + 63) / 64];
};

struct carousel_population {
	uint32_t users; /* jobs and chunks */
	bool is_held;   /* by who made it */
	bool is_random;
	uint64_t serial;        /* from 1, no two have the same */
	uint64_t *bits;         /* owned; over positions */
	uint64_t *need;         /* owned; blocks with a member */
	uint64_t count, blocks; /* members, bits of need */
	uint64_t at;            /* words of bits that these are of */
	struct carousel_scopes within;
	struct carousel_known {  /* what it has to do with those that are in the table */
		uint64_t serial; /* of this one; 0: none */
		uint64_t at;     /* words that were compared */
		unsigned differ; /* in these: population_differ() of it and that one */
	} known[CAROUSEL_SCOPES];
};

/*
 * A grant's life: GRANTED -> TAKEN -> (done)
 *                 GRANTED -> REVOKED -> (reclaimed), the usual answer, at once
 *                            REVOKED -> TAKEN or (reclaimed), later: the rank was quicker, or yields
 */
enum carousel_grant_state { CAROUSEL_GRANTED, CAROUSEL_REVOKED, CAROUSEL_TAKEN };

struct carousel_grant {
	enum carousel_grant_state state;
	bool last; /* with it the need of its epoch is met */
	uint32_t slot, samples;
	uint32_t first; /* of the chunk's samples, the first that is the job's */
	uint64_t epoch, since_ns;
};

struct carousel_list {
	uint64_t epoch;
	struct listing list; /* borrowed */
};

struct carousel_log; /* of a group: carousel_log.h */

struct carousel_member { /* a job, a rank or a group */
	bool used, waiting, is_group, leads;
	/* What it was granted was given up for others, and it has asked for nothing since */
	bool gave_way;
	uint32_t variant;
	uint32_t batch, ranks;
	uint64_t epoch, epochs; /* epoch of the next grant; == epochs: everything is granted */
	uint64_t closed;        /* epochs below it are over: the job took their last chunk */
	uint32_t population;    /* 0: the whole */
	uint32_t scope;       /* the same, but 0 if it is a random one: see carousel_population.c */
	bool is_narrow;       /* granted chunks of its own scope alone */
	uint32_t reuse;       /* epochs that may see the same instance */
	bool is_exact;        /* of no nonce but the chunk's */
	uint64_t *need;       /* owned; blocks not granted in `epoch` */
	uint16_t *words_some; /* owned; for each span a bit a word of need: has it any? */
	uint16_t *words_full; /* owned; the same: has it all 64? */
	uint64_t need_hash;   /* equal needs have equal ones */
	uint64_t need_blocks, need_samples;
	struct carousel_list lists[CAROUSEL_MAX_LISTS]; /* of a plan that is a list */
	uint32_t n_lists;
	uint64_t start;       /* place in its list at which it joined, until that has come */
	struct slice slice;   /* of its plan; base: of the epoch it joined in */
	uint64_t slice_epoch; /* that one */
	uint32_t *left;       /* owned; blocks needed, one a chapter */
	uint32_t *whole;      /* in the same memory; blocks of its population */
	uint32_t begun;       /* chapters needed in part */
	struct plan plan; /* order 0: none, it is dealt to; else need_samples alone says the need */
	int64_t *tail;    /* owned; samples not granted yet of begun blocks */
	uint32_t n_tail, tail_room;
	struct carousel_grant *grants; /* owned; in order of grant, at most one a slot */
	uint32_t n_grants;
	uint64_t coming;  /* samples GRANTED */
	uint32_t revoked; /* grants REVOKED, no answer yet: until then nothing is granted */
	uint32_t pins;    /* grants TAKEN or REVOKED */
	uint64_t taken, consumed, mark; /* samples; mark: consumed when the segment began */
	uint64_t given;                 /* samples of its epochs so far, from where it joined on */
	uint64_t lost;                  /* samples whose grant was given back against the rules */
	uint64_t interval_ns;           /* usual time from take to take */
	uint64_t take_ns, done_ns, act_ns; /* last take, last end, the later of them */
	double pace_ns;                    /* usual time it spends on a sample; 0: not known */
	struct carousel_log *log;          /* a group's, which owns it, or of a rank's group */
	uint64_t cursor;                   /* of a rank: number of its next entry */
	uint32_t skip; /* of a rank: samples of that entry which are below its place */
};

struct carousel_window { /* the words of a bitmap over blocks that hold a chapter */
	uint32_t chapter;
	size_t word, words; /* where it begins; how many, whole spans */
	unsigned first;     /* the chapter's first block, counted from the window's beginning */
	uint64_t end;       /* and the one past its last */
};

struct carousel_slot {
	struct carousel_chunk chunk; /* instance 0: empty */
	int64_t *ids;                /* owned; room for C */
	uint32_t *blocks;            /* owned; room for C */
	uint8_t *uses;               /* owned; by job: epochs it was granted the instance in */
	struct listing_key *keys;    /* owned; room for C */
	uint32_t owner;              /* job or group of a private chunk */
	uint32_t logged;             /* logs that say that it holds their entry */
	bool again;     /* made before, by the same nonce: for those alone who wait for it */
	bool stamped;   /* ready_ns is known */
	bool overtaken; /* unfinished, while one that was begun later is finished */
	uint64_t ready_ns;
	uint32_t granted, pins,
	    ghosts;                /* grants GRANTED; TAKEN or REVOKED; pins of jobs that left */
	struct carousel_set seen;  /* jobs that were granted the instance, or name its nonce */
	struct carousel_set check; /* jobs to be looked at: may they be granted it? */
	struct carousel_set meant; /* jobs that the chunk was made for */
};

#define CAROUSEL_PLAYERS 64
#define CAROUSEL_PROBES 1024
struct carousel_probes { /* scratch of carousel_choose.c */
	uint32_t n;
	uint32_t block[CAROUSEL_PROBES];
	uint64_t needed_by[CAROUSEL_PROBES]; /* players */
	uint64_t need[CAROUSEL_PLAYERS][CAROUSEL_PROBES / 64];
	double tie[CAROUSEL_PLAYERS][CAROUSEL_PLAYERS];
};

struct carousel_choice {
	uint32_t n;
	uint32_t job[CAROUSEL_MAX_JOBS];   /* in the order in which they have their say */
	bool is_wanted[CAROUSEL_MAX_JOBS]; /* what it needs, or what it does not need? */
	struct carousel_set meant;         /* jobs that the chunk is made for */
};

struct carousel_want { /* of a slot, scratch of carousel_evict.c */
	uint32_t jobs; /* that want it */
	uint32_t last; /* the last that was counted, + 1 */
	bool within;   /* some of a scope within the chunk's do */
};

struct carousel {
	struct carousel_config config;
	struct permutation permutation;
	size_t words;     /* of a bitmap over blocks, whole spans */
	uint64_t chapter; /* blocks a chapter */
	uint32_t chapters, max_begun;
	struct carousel_window window; /* of the chapter that a chunk is dealt from */
	size_t room_window;            /* words that the widest one has */
	uint32_t max_blocks;           /* of a chunk */
	uint32_t n_slots, n_free, unfinished, unstamped; /* n_free: of the slots, without a chunk */
	uint32_t overtaken;                              /* of the unfinished */
	uint64_t instances;
	uint64_t planned;  /* entries of logs that were not produced as they were dealt */
	uint32_t evicting; /* slot, or CAROUSEL_NO_SLOT */
	bool pending, blocked;
	struct carousel_action pending_grant; /* of a private chunk, granted with its production */
	uint64_t *candidates, *drawn; /* owned; scratch bitmaps, drawn is all 0 between calls */
	uint16_t *words_left;         /* owned; scratch, by span: words that may have candidates */
	uint32_t *sums;               /* owned; scratch, one a span + 1 */
	uint32_t *list;               /* owned; scratch, candidates that lie thin */
	uint32_t room_list;
	struct carousel_probes *probes;          /* owned; scratch */
	struct carousel_want *wants;             /* owned; scratch, one a slot */
	uint32_t members[CAROUSEL_MAX_VARIANTS]; /* jobs, ranks and groups of each */
	uint64_t productions, outputs, reference, waits_on_dead;
	struct carousel_population *population[CAROUSEL_SCOPES]; /* 0: always NULL */
	uint64_t populations;                                    /* that were made */
	struct carousel_slot *slots;                             /* owned; max_slots of them */
	struct carousel_slot spare; /* scratch: a chunk that is dealt without a slot */
	uint32_t n_groups;
	uint32_t jobs_end; /* all that are used are below it */
	struct carousel_member jobs[CAROUSEL_MAX_JOBS];
};

/* carousel_population.c */
/* A reference to the join's population, or to one like it, which is to be unreferenced. 0, CAROUSEL_E_BAD (nobody in
 * it, bits past the end), CAROUSEL_E_FULL, -ENOMEM: then *ret_index is 0. */
int carousel_population_join(struct carousel *carousel, const struct carousel_join *join,
			     uint32_t *ret_index);
void carousel_population_ref(struct carousel *carousel, uint32_t index);
void carousel_population_unref(struct carousel *carousel, uint32_t index);
/* Bitmap over positions; NULL: the whole. */
const uint64_t *carousel_population_bits(const struct carousel *carousel, uint32_t index);
/* Samples of the job's epochs. */
uint64_t carousel_population_count(const struct carousel *carousel,
				   const struct carousel_member *member);
/* Does the job need nothing but its own? */
bool carousel_population_has_need(const struct carousel *carousel,
				  const struct carousel_member *member);
bool carousel_population_is_within(const struct carousel *carousel, uint32_t inner, uint32_t outer);
/* Samples of the block that are in the scope. */
uint32_t carousel_population_block(const struct carousel *carousel, uint32_t scope, uint64_t block);
/* Samples of the chunk that are the job's. */
uint32_t carousel_population_of_chunk(const struct carousel *carousel,
				      const struct carousel_member *member,
				      const struct carousel_chunk *chunk);
/* One past the last of these. */
uint32_t carousel_population_end_in_chunk(const struct carousel *carousel,
					  const struct carousel_member *member,
					  const struct carousel_chunk *chunk);
/* Of a chunk of a wider scope: does the job need all that is its own, and is there any? */
bool carousel_population_covers(const struct carousel *carousel,
				const struct carousel_member *member,
				const struct carousel_chunk *chunk);
bool carousel_population_has(const struct carousel *carousel, const struct carousel_member *member,
			     uint32_t block);

static inline bool carousel_is_rank(const struct carousel_member *member)
{
	return member->log && !member->is_group;
}
/* Has it a place instead of a need: is need_samples, a number, all there is? */
static inline bool carousel_is_placed(const struct carousel_member *member)
{
	return member->plan.order || carousel_is_rank(member);
}

/* carousel_variant.c */
static inline bool carousel_variant_has(const struct carousel_chunk *chunk,
					const struct carousel_member *member)
{
	return chunk->variants >> member->variant & 1 && !chunk->is_forgotten;
}
/* May a resident instance serve the job again? */
static inline bool carousel_variant_again(const struct carousel *carousel,
					  const struct carousel_member *member)
{
	return carousel->config.usable_again >> member->variant & 1;
}
/* May the job be granted the chunk one time more, by what it saw of it? */
bool carousel_variant_is_fresh(const struct carousel *carousel, uint32_t job, uint32_t slot);
/* Has any job's pipeline a random op? */
bool carousel_variant_any_random(const struct carousel *carousel);
/* The variants of a chunk that was dealt into the slot for the job. */
uint32_t carousel_variant_of_chunk(const struct carousel *carousel, uint32_t job, uint32_t slot,
				   uint64_t now_ns);

/* carousel_need.c */
void carousel_need_reset(struct carousel *carousel, struct carousel_member *member);
/* Sums up need anew: words_some, words_full, need_hash. */
void carousel_need_sum(const struct carousel *carousel, struct carousel_member *member);
void carousel_need_recount(const struct carousel *carousel, struct carousel_member *member);
/* The same where the samples were counted before. */
void carousel_need_known(const struct carousel *carousel, struct carousel_member *member,
			 uint64_t samples);
bool carousel_need_has(const struct carousel *carousel, const struct carousel_member *member,
		       const struct carousel_chunk *chunk);
/* What the job needs of the chunk's blocks, so many samples, is granted: it is needed no more. */
void carousel_need_take(struct carousel *carousel, uint32_t job, const struct carousel_chunk *chunk,
			uint32_t samples);
/* Begins the epochs that follow while nothing is left to grant in this one. */
void carousel_need_advance(struct carousel *carousel, uint32_t job);
/* Index of the job's grant of the slot, or -1. */
int carousel_need_find(const struct carousel_member *member, uint32_t slot);
void carousel_need_grant(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns,
			 struct carousel_action *ret);
/* The grant ends without a take: its samples are needed again. */
void carousel_need_return(struct carousel *carousel, uint32_t job, int index);
/* The grant ends; what it brought stays out of the need. */
void carousel_need_drop(struct carousel *carousel, uint32_t job, int index);
/* The grant that must be revoked first so that grant `index` can be returned; itself if none. */
int carousel_need_newest(const struct carousel_member *member, int index);
/* Look at every resident chunk again for this job. */
void carousel_need_look(struct carousel *carousel, uint32_t job);

/* carousel_fixed.c: for jobs whose plan has an order */
/* What the node's ranks have of the job's epoch; of a plan without a slice, and of no plan, all of it. */
void carousel_fixed_slice(const struct carousel *carousel, const struct carousel_member *member,
			  struct slice *ret);
/* Its places; 0 also where the epoch's list did not come yet. */
uint64_t carousel_fixed_places(const struct carousel *carousel,
			       const struct carousel_member *member);
/* Of these, those behind a place of the plan. */
uint64_t carousel_fixed_left(const struct carousel *carousel, const struct carousel_member *member,
			     uint64_t place);
/* The place in the plan of the chunk's i-th sample; how many samples from there on lie side by side. */
uint32_t carousel_fixed_run(const struct carousel_chunk *chunk, uint32_t i, uint64_t *ret_place);
/* Is the chunk the next one of the job's plan? */
bool carousel_fixed_has(const struct carousel *carousel, const struct carousel_member *member,
			const struct carousel_chunk *chunk);
/* Will the job come to the chunk soon? (false for jobs without a plan) */
bool carousel_fixed_awaits(const struct carousel *carousel, const struct carousel_member *member,
			   const struct carousel_chunk *chunk);
/* The job's first sample in the chunk, which it has. */
uint32_t carousel_fixed_first(const struct carousel *carousel, const struct carousel_member *member,
			      const struct carousel_chunk *chunk);
/* Fills the slot's chunk, nonce included, with the next one of the job's plan. */
void carousel_fixed_deal(const struct carousel *carousel, const struct carousel_member *member,
			 struct carousel_slot *slot);

/* carousel_chapter.c */
void carousel_chapter_init(struct carousel *carousel);
/* Counts what the chapters have of the job's population. 0 or -ENOMEM. */
int carousel_chapter_enter(const struct carousel *carousel, struct carousel_member *member);
void carousel_chapter_leave(struct carousel_member *member);
/* Counts a bitmap that was filled in some way; all of it needed; nothing. */
void carousel_chapter_recount(const struct carousel *carousel, struct carousel_member *member);
void carousel_chapter_fill(const struct carousel *carousel, struct carousel_member *member);
void carousel_chapter_clear(const struct carousel *carousel, struct carousel_member *member);
/* So many of a chunk's blocks left the need, or are back in it. True: the chapter is through. */
bool carousel_chapter_took(const struct carousel *carousel, struct carousel_member *member,
			   const struct carousel_chunk *chunk, uint32_t blocks);
void carousel_chapter_returned(const struct carousel *carousel, struct carousel_member *member,
			       const struct carousel_chunk *chunk, uint32_t blocks);
/* Has the job begun the chunk's chapter, or may it begin one more? */
bool carousel_chapter_allows(const struct carousel *carousel, const struct carousel_member *member,
			     const struct carousel_chunk *chunk);
/* The chapter of the next chunk, for order[0]; order[0 .. n_hungry-1] are hungry. */
uint32_t carousel_chapter_choose(const struct carousel *carousel, uint64_t nonce,
				 const uint32_t *order, uint32_t n, uint32_t n_hungry);
/* Can the job take chunks of the chapter? */
bool carousel_chapter_has_say(const struct carousel *carousel, const struct carousel_member *member,
			      uint32_t chapter);
void carousel_chapter_window(const struct carousel *carousel, uint32_t chapter,
			     struct carousel_window *ret);

/* carousel_listed.c: of those, jobs whose plan is a list. Others have the permutation's epochs. */
/* Samples of the epoch that the job is in, on all nodes; 0: its list did not come yet. */
uint64_t carousel_listed_places(const struct carousel *carousel,
				const struct carousel_member *member);
bool carousel_listed_awaits(const struct carousel_member *member);
/* Does the chunk hold what the job's list has at its place, as far as so many of its samples say? */
bool carousel_listed_has(const struct carousel *carousel, const struct carousel_member *member,
			 const struct carousel_chunk *chunk, uint32_t most);
/* Are the entries of its next chunk good? */
bool carousel_listed_is_good(const struct carousel *carousel, const struct carousel_member *member);
/* Fills ids and keys of a chunk whose place and count are known. */
void carousel_listed_deal(const struct carousel_member *member, struct carousel_slot *slot);

/* carousel.c */
/* Ends a segment of the reference. */
void carousel_end_segment(struct carousel *carousel);

/* carousel_join.c */
/* Gives back what a job or a group owns, and its number. */
void carousel_join_free(struct carousel *carousel, struct carousel_member *member);

/* carousel_step.c */
/* Samples that a job wants ahead of itself. */
uint64_t carousel_step_ahead(const struct carousel *carousel, const struct carousel_member *member);
bool carousel_step_lives(const struct carousel *carousel, uint32_t job, uint64_t now_ns,
			 uint64_t *ret_until_ns);
bool carousel_step_hungry(const struct carousel *carousel, uint32_t job, uint64_t now_ns);
bool carousel_step_starving(const struct carousel *carousel, uint32_t job, uint64_t now_ns);

/* carousel_lead.c */
/* Do jobs follow one that leads? */
static inline bool carousel_has_lead(const struct carousel *carousel)
{
	return carousel->chapters == 1 && carousel_variant_any_random(carousel);
}
/* Marks who leads. */
void carousel_lead_find(struct carousel *carousel, uint64_t now_ns);
/* Chunks ahead of the job; half of them are one step's, at least. */
double carousel_lead_level(const struct carousel *carousel, const struct carousel_member *member);
/* The job's speed, 1: as fast as the lead. */
double carousel_lead_speed(const struct carousel *carousel, uint32_t job, uint32_t lead);
/* Is so little coming to the job that it is hungry if it lives and needs something? */
bool carousel_lead_wants(const struct carousel *carousel, const struct carousel_member *member);
/* Is it time that the job is granted the chunk, if it needs it? */
bool carousel_lead_may_take(const struct carousel *carousel, uint32_t job, uint32_t slot);

/* carousel_choose.c: for whom the chunk of that nonce is made; order as in carousel_deal_chunk() */
void carousel_choose(struct carousel *carousel, uint64_t nonce, const uint32_t *order, uint32_t n,
		     uint32_t n_hungry, struct carousel_choice *ret);

/* carousel_evict.c */
/* Index of the job's grant of the slot, or -1. */
int carousel_evict_granted_at(const struct carousel *carousel, uint32_t job, uint32_t slot);
/* The slot to give up, or CAROUSEL_NO_SLOT. rank_waits: one of those who starve sleeps in next. */
uint32_t carousel_evict_choose(const struct carousel *carousel, bool somebody_starves,
			       bool rank_waits, uint64_t now_ns);
/* One step of the eviction under way. False: there is none, or it has come to nothing. */
bool carousel_evict_step(struct carousel *carousel, struct carousel_action *ret);

/* carousel_deal.c: order[0] is the hungriest job, order[0 .. n_hungry-1] the hungry ones. Fills
 * the slot's chunk but for instance and nonce, which it is given. */
void carousel_deal_tail(struct carousel *carousel, uint32_t job, struct carousel_slot *slot);
void carousel_deal_chunk(struct carousel *carousel, const uint32_t *order, uint32_t n,
			 uint32_t n_hungry, struct carousel_slot *slot);
