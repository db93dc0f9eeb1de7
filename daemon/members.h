/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_MEMBERS_H
#define DAEMON_MEMBERS_H

/* The part of a dataset that a job asks for in OPEN: a bitmap of its samples (sched/population.h). */

#include "base/base.h"

struct carousel_join;
struct request;
struct stream;

/* Reads it into join->population (*ret_bits owns it until the job has joined) and says what kind it
 * is. Nothing to do for a request of all samples. 0, or the code to refuse with, and diag. */
int members_read(const struct request *request, const struct stream *stream,
		 struct carousel_join *join, uint64_t **ret_bits, struct diag *diag);

#endif
