/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Plans that are lists: own orders, draws by weight, replayed plans. accessd is sent the list of an
 * epoch before it can deal a chunk of it, always one epoch ahead.
 */

#include "libaccess/course.h"
#include "libaccess/trouble.h"
#include "plan/listing.h"

struct listed_map { /* a list that was sent */
	uint64_t epoch, bytes;
	void *map; /* owned; NULL: none */
	struct listing listing;
};

struct listed {
	uint64_t next;             /* the first epoch whose list this session was not sent */
	struct listed_map kept[2]; /* by epoch % 2: this epoch's and the next one's */
};

/* Does the data set have what the sampler names? 0, OA_E_INVALID, or of a
 * replayed plan OA_E_DATASET, OA_E_PIPELINE, with diag. */
int listed_check(const struct course *course, struct diag *diag);
/* Places of an epoch; without a list, its samples. */
uint64_t listed_places(const struct course *course, uint64_t epoch);
/* Sends accessd at sock what is due in the epoch, if anything is; a failure is the stream's. A session that
 * begins has no list: it needs them from the epoch of its token on, though that may be delivered. */
void listed_feed(struct listed *listed, const struct course *course, uint64_t epoch, int sock,
		 struct trouble *trouble);
/* The key of a place of the epoch; its list was sent. */
struct listing_key listed_key(const struct listed *listed, uint64_t epoch, uint64_t place);
void listed_fini(struct listed *listed);
