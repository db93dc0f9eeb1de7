/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The part of a dataset that a job asks for in OPEN: a bitmap of its samples (plan/population.h). */

#include "base/base.h"

struct carousel;
struct carousel_join;
struct request;

struct members {
	uint64_t *bits; /* the population's, or owned; NULL: all samples are asked for */
	struct carousel_population *population; /* of them, as soon as it is being made */
	uint64_t count;                         /* samples */
	uint64_t sum;                           /* checksum of the bits */
	/* of the copying */
	void *from;
	uint64_t bytes, at;
};

/* Begins to copy what the request brings, of the dataset with that version; nothing to do for one of all samples. 0, or the code to refuse with,
 * and diag. The caller ends it by members_fini() in any case. */
int members_begin(struct members *members, const struct request *request,
		  const struct carousel *carousel, const uint8_t *version, struct diag *diag);
/* Copies some of it. true: that was all. */
bool members_step(struct members *members);
/* When all is copied: is it what it is said to be? 0, or the code to refuse with, and diag. */
int members_check(const struct members *members, const struct request *request,
		  const struct carousel *carousel, const uint8_t *version, struct diag *diag);
/* When they were checked: has the carousel all that a job needs that joins with them now? Does some of what is left to
 * do for that, with true in *ret_failed where there is no memory. */
bool members_settle(struct members *members, const struct request *request,
		    struct carousel *carousel, bool *ret_failed);
bool members_are_settled(const struct members *members, const struct carousel *carousel);
/* Fills join, which borrows bits and population. */
void members_join(const struct members *members, const struct request *request,
		  struct carousel_join *join);
void members_fini(struct members *members);
