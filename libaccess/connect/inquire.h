/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks accessd what is in a dataset. */

#include "libaccess/connect/dial.h"
#include "libaccess/connect/remote.h"
#include "shmring/catalog.h"

struct inquire_filter { /* owned */
	/* Classes that the pipeline's filter names; NULL: it names none */
	int32_t *keep, *drop;
	uint32_t n_keep, n_drop;
	char *usual; /* the pipeline of jobs that bring none; NULL: the data set has no such */
};
void inquire_filter_fini(struct inquire_filter *filter);

/* dataset: it is open. pipeline: whose filter goes to *ret_filter (the caller's to end); each may be NULL. Tells options->progress, if there are options, while it waits. 0 (the
 * caller detaches *ret), OA_E_... or a negative errno with diag. */
int inquire(const struct dial_route *route, struct remote *dataset, const char *pipeline,
	    uint64_t deadline, const struct oa_options *options, struct catalog *ret,
	    struct inquire_filter *ret_filter, struct diag *diag);
