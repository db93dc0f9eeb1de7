/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a job stands as one set of samples that were not delivered: for its token, and to go back to it. */

#include "libaccess/carry.h"
#include "libaccess/progress.h"

/* Where a job stood a while ago. What it was given since may not have been passed on. */
struct progress_mark {
	uint64_t epoch, delivered; /* as a token says it */
	const int64_t *ids;        /* delivered since then, of that epoch; borrowed */
	uint32_t n_ids;
};

/* What was taken and not delivered. */
struct progress_hand {
	const struct chunks *chunks;
	const struct carries *carries;
};

/* Takes it all back: it will be needed again. 0 or -ENOMEM, or the stream has failed. */
int progress_rewind(struct progress *progress, const struct progress_hand *hand);
/* What a token says of how far the epoch is. */
uint64_t progress_after(const struct progress *progress);
void progress_mark(const struct progress *progress, struct progress_mark *ret);
/* The token as it is sent in OPEN, as of the mark (NULL: of now): heap, caller owns. 0 or -ENOMEM. */
int progress_token(struct progress *progress, const struct progress_hand *hand,
		   const struct progress_mark *mark, void **ret, size_t *ret_size);
/* Of an epoch from its beginning on. 0 or -ENOMEM. */
int progress_epoch_token(const struct progress *progress, uint64_t epoch, void **ret,
			 size_t *ret_size);
/* Copies token to data if it fits: 0, else -ENOBUFS. *size: in room, out the token's. */
int progress_copy_token(const void *token, size_t token_size, void *data, size_t *size);
