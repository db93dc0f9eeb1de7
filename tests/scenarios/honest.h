/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Honest users of a town, who train run after run until they are told to stop. In each run every sample
 * comes as often as it must, with its pixels, or the run and all is wrong. */

#include <stdatomic.h>
#include "tests/scenarios/town.h"

struct honest {
	const struct town_user *user;
	struct town_errand *errand; /* batches: all so far */
	pid_t pid;
	_Atomic bool *is_over; /* shared with its process */
};

/* The dataset has n pictures in two classes, all of which a run has so many times. */
void honest_start(struct honest *honest, const struct town_user *user, const char *dataset,
		  unsigned n, unsigned epochs, enum oa_order order, unsigned step_ms);
/* Ends it with its run: all went well, and no process of his domain was replaced. */
void honest_end(struct honest *honest);
