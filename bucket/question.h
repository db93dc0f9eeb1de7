/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What others say at the socket (shmring/bucket.h), checked to the last byte, and what of it is asked of the server at once. Arithmetic. */

#include "shmring/bucket.h"

struct question_ask {
	struct bucket_ask ask;
	const char *name; /* in the message, ask.name_bytes */
};
struct question {
	enum bucket_kind kind;
	uint64_t memory; /* of a HELLO */
	unsigned n;      /* of a READ */
	struct question_ask ask[BUCKET_MOST_ASKS];
};

/* memory: bytes of who asks; 0: it has said no HELLO. 0; -EBADMSG: the sender is broken. */
int question_read(const void *message, size_t bytes, uint64_t memory, struct question *ret);

/* Neighbours of one object are asked for as one range, with what is between them, */
#define QUESTION_MOST_GAP ((uint64_t)256 << 10)
#define QUESTION_MOST_SPAN ((uint64_t)8 << 20) /* up to so much, or as one of them wants */
struct question_span {
	unsigned first, n; /* ask[first ...], all of one object */
	uint64_t from, to;
};
/* Sorts what is asked. Returns how many spans there are. */
unsigned question_merge(struct question *question, struct question_span ret[BUCKET_MOST_ASKS]);
