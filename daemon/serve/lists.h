/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The lists of a job whose plan is one (plan/listing.h): taken from the client, shown to the
 * carousel, and let go when their epochs are over. */

#include "sched/carousel.h"

struct endings;
struct porters;

struct lists {
	struct porters *porters; /* who close them, ... */
	uid_t uid;               /* ... as that user's */
	struct endings *endings; /* who ends large mappings */
	struct {
		uint64_t epoch, bytes;
		void *map;
		int fd; /* of a large one, for who gives back its pages: porter_close(); else -1 */
	} list[CAROUSEL_MAX_LISTS];
	unsigned n;
};

struct lists_job { /* whose they are */
	struct carousel *carousel;
	uint32_t number; /* in it */
};

void lists_init(struct lists *lists, struct porters *porters, struct endings *endings, uid_t uid);
/* The list of an epoch, in the memory behind fd (taken). Not 0: it is not as it must be, and diag says how. */
int lists_take(struct lists *lists, const struct lists_job *job, uint64_t epoch, int fd,
	       struct diag *diag);
void lists_let_go(struct lists *lists,
		  const struct lists_job *job); /* those of epochs that are over */
void lists_fini(struct lists *lists);           /* the carousel has forgotten the job */
