/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A recorded plan, replayed: its epochs as lists. */

#include "plan/recording.h"
#include "plan/token.h"

struct replay_epoch {
	uint64_t places, offset, number; /* of the block in which it begins */
};

struct replay {
	char *path; /* owned; NULL: none */
	int fd;     /* owned, -1 */
	uint64_t size, first;
	struct recording_head head;
	struct replay_epoch *epochs; /* owned */
	uint64_t n_epochs;
	size_t room; /* of epochs */
};

void replay_init(struct replay *replay);
/* Reads all of path, and names what it holds: hash. 0, OA_E_INVALID, negative errno with diag. */
int replay_open(struct replay *replay, const char *path, uint8_t hash[TOKEN_SAMPLER],
		struct diag *diag);
void replay_fini(struct replay *replay);
uint64_t replay_places(const struct replay *replay, uint64_t epoch); /* 0: it has no such epoch */
/* 0, -ENOMEM, -EIO: the file is not what it was. */
int replay_build(const struct replay *replay, uint64_t epoch, struct listing_draft *ret);
/* The token of the recording's start. Heap. 0 or -ENOMEM. */
int replay_token(const struct replay *replay, uint64_t epochs, const uint8_t hash[TOKEN_SAMPLER],
		 void **ret, size_t *ret_size);
