/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_LISTS_H
#define DAEMON_SERVE_LISTS_H

/* The lists of a job whose plan is one (sched/listing.h): taken from the client, shown to the
 * carousel, and let go when their epochs are over. */

#include "base/base.h"
#include "base/wire.h"
#include "daemon/net/message.h"
#include "sched/carousel.h"

struct job;

struct lists {
	struct {
		uint64_t epoch, bytes;
		void *map;
		int fd; /* of a large one, for who gives back its pages: porter_close(); else -1 */
	} list[CAROUSEL_MAX_LISTS];
	unsigned n;
};

/* A PLAN of the job's client. One that is not as it must be ends the job, and nobody else's. */
void lists_take(struct job *job, const struct message_plan *plan, struct wire_in *in);
void lists_let_go(struct job *job); /* those of epochs that are over */
void lists_fini(struct job *job);   /* the carousel has forgotten the job */

#endif
