/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The thread that may wait: it lists, makes placeholders, and asks the provider for other credentials or another region.
 * The other thread asks for that, and takes a picture of how it stands when errand_fd() is readable.
 */

#include "bucket/lister.h"
#include "bucket/tree.h"

struct errand;
struct errand_state {
	bool is_listing, has_folder;
	uint64_t objects, bytes; /* of the listing so far, or of the last one */
	uint64_t began_ns;       /* the last listing that has ended */
	unsigned listings;       /* that have ended */
	unsigned mends;          /* answers to errand_refused() */
	int mended;              /* the last: 1, worth one more try, or 0 */
	unsigned renewals;       /* how often credentials may have become others */
	int error;               /* of the last listing: 0 */
	struct diag diag;        /* of it, if it is not 0, */
	struct diag mend_diag;   /* and of the last mend, if it is 0 */
	char folder[4096];       /* has_folder: what is before a name in its key */
};

/* Both are the thread's from now on. 0, -ENOMEM, -EAGAIN. */
int errand_start(struct lister *lister, struct tree *tree, struct errand **ret);
int errand_fd(const struct errand *errand);
void errand_take(struct errand *errand, struct errand_state *ret);
void errand_list(struct errand *errand); /* once more, behind the one that runs */
/* One at a time: until `mends` has grown. What answer owns goes over; name is copied. */
void errand_refused(struct errand *errand, struct http_answer *answer, const char *name);
